//! Choices of what is written: the version of qlog with its event names, and addresses.

/// Version of qlog, an IETF draft that has changed over the years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Schema {
    /// qlog 0.3 (draft-ietf-quic-qlog-main-schema-05, draft-ietf-quic-qlog-quic-events-04), the
    /// newest version that qvis opens. Events have the categories `connectivity`, `transport`,
    /// `security` and `recovery`.
    #[default]
    V03,
    /// The newest drafts (draft-ietf-quic-qlog-main-schema-14,
    /// draft-ietf-quic-qlog-quic-events-13). Their events have the namespace `quic`; qvis does not
    /// know them yet.
    Draft13,
}

/// Whether logs contain addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Addresses {
    Written,
    Omitted,
}

/// URIs of the event schemas of [`Schema::Draft13`].
pub(super) const EVENT_SCHEMAS: [&str; 4] = [
    "urn:ietf:params:qlog:events:quic-13",
    "urn:ietf:params:qlog:events:loglevel",
    "https://docs.rs/hybriq/112026/hybriq",
    "https://docs.rs/hybriq/112026/quic#hybriq",
];

/// Name of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    ConnectionStarted,
    ConnectionClosed,
    ConnectionStateUpdated,
    ConnectionIdUpdated,
    MtuUpdated,
    PathUpdated,
    TupleAssigned,
    VersionInformation,
    AlpnInformation,
    ParametersSet,
    PacketSent,
    PacketReceived,
    PacketDropped,
    PacketBuffered,
    KeyExchange,
    KeyUpdated,
    KeyDiscarded,
    RecoveryParametersSet,
    MetricsUpdated,
    CongestionStateUpdated,
    EcnStateUpdated,
    LossTimerUpdated,
    PacketLost,
    SpuriousLosses,
    AckFrequencyUpdated,
    Warning,
}

impl Name {
    /// Returns the name with its category, or with its namespace.
    pub(super) const fn of(self, schema: Schema) -> &'static str {
        let (v03, draft_13) = match self {
            Self::ConnectionStarted => {
                ("connectivity:connection_started", "quic:connection_started")
            }
            Self::ConnectionClosed => ("connectivity:connection_closed", "quic:connection_closed"),
            Self::ConnectionStateUpdated => (
                "connectivity:connection_state_updated",
                "quic:connection_state_updated",
            ),
            Self::ConnectionIdUpdated => (
                "connectivity:connection_id_updated",
                "quic:connection_id_updated",
            ),
            Self::MtuUpdated => ("connectivity:mtu_updated", "quic:mtu_updated"),
            Self::PathUpdated => ("connectivity:path_updated", "quic:migration_state_updated"),
            Self::TupleAssigned => ("connectivity:path_assigned", "quic:tuple_assigned"),
            Self::VersionInformation => {
                ("transport:version_information", "quic:version_information")
            }
            Self::AlpnInformation => ("transport:alpn_information", "quic:alpn_information"),
            Self::ParametersSet => ("transport:parameters_set", "quic:parameters_set"),
            Self::PacketSent => ("transport:packet_sent", "quic:packet_sent"),
            Self::PacketReceived => ("transport:packet_received", "quic:packet_received"),
            Self::PacketDropped => ("transport:packet_dropped", "quic:packet_dropped"),
            Self::PacketBuffered => ("transport:packet_buffered", "quic:packet_buffered"),
            Self::KeyExchange => ("security:key_exchange", "hybriq:key_exchange"),
            Self::KeyUpdated => ("security:key_updated", "quic:key_updated"),
            Self::KeyDiscarded => ("security:key_discarded", "quic:key_discarded"),
            Self::RecoveryParametersSet => {
                ("recovery:parameters_set", "quic:recovery_parameters_set")
            }
            Self::MetricsUpdated => ("recovery:metrics_updated", "quic:recovery_metrics_updated"),
            Self::CongestionStateUpdated => (
                "recovery:congestion_state_updated",
                "quic:congestion_state_updated",
            ),
            Self::EcnStateUpdated => ("recovery:ecn_state_updated", "quic:ecn_state_updated"),
            Self::LossTimerUpdated => ("recovery:loss_timer_updated", "quic:timer_updated"),
            Self::PacketLost => ("recovery:packet_lost", "quic:packet_lost"),
            Self::SpuriousLosses => ("recovery:spurious_losses", "hybriq:spurious_losses"),
            Self::AckFrequencyUpdated => (
                "recovery:ack_frequency_updated",
                "hybriq:ack_frequency_updated",
            ),
            Self::Warning => ("generic:warning", "loglevel:warning"),
        };
        match schema {
            Schema::V03 => v03,
            Schema::Draft13 => draft_13,
        }
    }
}

//! Counters of an endpoint.

use super::declare::{by_label, counters};

counters! {
    /// Counters of an endpoint, or of one of its workers, without those of its connections. Bytes are UDP
    /// payload bytes.
    pub struct EndpointStats: AddAssign {
        /// Connections now, closing ones included.
        connections: u64 => ["hybriq_connections"];
        /// Datagrams received.
        datagrams_received: u64 => ["hybriq_datagrams_received_total"];
        /// UDP payload received.
        bytes_received: u64 => ["hybriq_received_bytes_total"];
        /// Datagrams sent.
        datagrams_sent: u64 => ["hybriq_datagrams_sent_total"];
        /// UDP payload sent.
        bytes_sent: u64 => ["hybriq_sent_bytes_total"];
        /// System calls that sent something: one call may send many datagrams.
        send_calls: u64 => ["hybriq_send_calls_total"];
        /// System calls that received something: one call may receive many datagrams.
        receive_calls: u64 => ["hybriq_receive_calls_total"];
        /// Datagrams that the system refused to send. They are lost like any other.
        send_errors: u64 => ["hybriq_send_errors_total"];
        /// System errors while receiving.
        receive_errors: u64 => ["hybriq_receive_errors_total"];
        /// Datagrams received that belonged to no connection and were useless.
        datagrams_dropped: u64;
        /// Datagrams received that belonged to no connection and were useless, by reason.
        drops: DatagramDrops => ["hybriq_datagrams_dropped_total" by reason];
        /// Datagrams that arrived at the wrong worker and were passed on to the right one.
        datagrams_passed_on: u64 => ["hybriq_datagrams_passed_on_total"];
        /// Datagrams received for connections of earlier processes, and forwarded to them.
        datagrams_forwarded: u64 => ["hybriq_datagrams_forwarded_total" by outcome "sent"];
        /// Such datagrams that were dropped because the earlier process was too slow to take them.
        forwards_dropped: u64 => ["hybriq_datagrams_forwarded_total" by outcome "dropped"];
        /// Datagrams that a later process received and forwarded to this one.
        forwards_received: u64 => ["hybriq_datagrams_forwarded_total" by outcome "received"];
        /// Times that a worker panicked, lost its connections and was restarted.
        worker_failures: u64 => ["hybriq_worker_failures_total"];
        /// ClientHellos that are incomplete, now.
        partial_hellos: u64 => ["hybriq_partial_hellos"];
        /// Clients whose 0-RTT packets wait for a connection, now.
        early_clients: u64 => ["hybriq_early_clients"];
        /// Clients that wait for the application's decision, now.
        waiting_incoming: u64 => ["hybriq_clients_waiting"];
        /// Clients refused before any public-key work because they offered no post-quantum group.
        key_exchange_refused: u64 => ["hybriq_clients_refused_total" by reason "key_exchange"];
        /// Version Negotiation packets sent.
        version_negotiations: u64 => ["hybriq_version_negotiations_total"];
        /// Stateless resets sent: packets arrived for connections that no longer exist here.
        stateless_resets: u64 => ["hybriq_stateless_resets_total"];
        /// ClientHellos ignored because too many waited for the application.
        incoming_ignored: u64 => ["hybriq_clients_ignored_total"];
        /// Clients refused by the application, or because the endpoint accepts no more.
        refused_by_application: u64 => ["hybriq_clients_refused_total" by reason "application"];
        /// Clients refused because the number of connections had reached `max_connections`.
        refused_too_many: u64 => ["hybriq_clients_refused_total" by reason "max_connections"];
        /// Clients refused because the number of unfinished handshakes had reached `max_handshakes`.
        refused_too_busy: u64 => ["hybriq_clients_refused_total" by reason "max_handshakes"];
        /// Clients refused because their network started more connections than `max_rate_per_network`
        /// allows.
        refused_too_fast: u64 => ["hybriq_clients_refused_total" by reason "max_rate_per_network"];
        /// Accepted connections that have not completed their handshake, now.
        handshaking: u64 => ["hybriq_handshakes_in_progress"];
        /// Workers that send clients away now to prove their address, because the load is high: adaptive
        /// address validation.
        retrying: u64 => ["hybriq_retrying"];
        /// Retry packets sent.
        retries_sent: u64 => ["hybriq_retries_sent_total"];
        /// Clients that proved their address with a token.
        addresses_validated: u64 => ["hybriq_addresses_validated_total"];
        /// Tokens that were forged, expired, or meant for another address.
        tokens_rejected: u64 => ["hybriq_tokens_rejected_total" by reason "invalid"];
        /// Tokens that had already been used.
        tokens_replayed: u64 => ["hybriq_tokens_rejected_total" by reason "replayed"];
    }
}

/// Reason why a datagram that belongs to no connection was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DropReason {
    /// The header cannot be read, or its ids have a length that no version of ours uses.
    Malformed,
    /// The version is unknown, and this endpoint is no server or the datagram is too small for an
    /// answer (RFC 9000 §6.1).
    UnknownVersion,
    /// No connection has its id, and no stateless reset was due.
    UnknownConnection,
    /// The datagram belongs to a ClientHello and adds nothing to it: it is not authentic, repeats
    /// what is known, or is too small.
    UselessHello,
    /// The datagram arrived before its connection existed, and was dropped.
    TooEarly,
    /// Too many clients wait, or too many answers.
    Overload,
    /// The source cannot be answered: its port is 0, or its address does not belong to a single host.
    ImpossibleSource,
}

by_label! {
    /// Numbers of dropped datagrams that belong to no connection, by reason.
    pub struct DatagramDrops: u64 {
        /// Those of [`DropReason::Malformed`].
        malformed = "malformed";
        /// Those of [`DropReason::UnknownVersion`].
        unknown_version = "unknown_version";
        /// Those of [`DropReason::UnknownConnection`].
        unknown_connection = "unknown_connection";
        /// Those of [`DropReason::UselessHello`].
        useless_hello = "useless_hello";
        /// Those of [`DropReason::TooEarly`].
        too_early = "too_early";
        /// Those of [`DropReason::Overload`].
        overload = "overload";
        /// Those of [`DropReason::ImpossibleSource`].
        impossible_source = "impossible_source";
    }
}

impl EndpointStats {
    /// Counts a datagram that belonged to no connection and was dropped.
    pub const fn on_dropped(&mut self, reason: DropReason) {
        let drops = &mut self.drops;
        let count = match reason {
            DropReason::Malformed => &mut drops.malformed,
            DropReason::UnknownVersion => &mut drops.unknown_version,
            DropReason::UnknownConnection => &mut drops.unknown_connection,
            DropReason::UselessHello => &mut drops.useless_hello,
            DropReason::TooEarly => &mut drops.too_early,
            DropReason::Overload => &mut drops.overload,
            DropReason::ImpossibleSource => &mut drops.impossible_source,
        };
        *count += 1;
        self.datagrams_dropped += 1;
    }
}

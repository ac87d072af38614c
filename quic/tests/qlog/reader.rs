//! Reads logs, and checks them against the drafts.

use serde_json::Value;

use super::cddl::Rules;
use hybriq::qlog::Schema;

/// The CDDL type of the data of each event that is written, by schema.
const V03: [(&str, &str); 26] = [
    (
        "connectivity:connection_started",
        "ConnectivityConnectionStarted",
    ),
    (
        "connectivity:connection_closed",
        "ConnectivityConnectionClosed",
    ),
    (
        "connectivity:connection_state_updated",
        "ConnectivityConnectionStateUpdated",
    ),
    (
        "connectivity:connection_id_updated",
        "ConnectivityConnectionIDUpdated",
    ),
    ("connectivity:mtu_updated", "ConnectivityMTUUpdated"),
    ("connectivity:path_assigned", "HybriqPathAssigned"),
    ("connectivity:path_updated", "HybriqPathUpdated"),
    (
        "transport:version_information",
        "TransportVersionInformation",
    ),
    ("transport:alpn_information", "TransportALPNInformation"),
    ("transport:parameters_set", "TransportParametersSet"),
    ("transport:packet_sent", "TransportPacketSent"),
    ("transport:packet_received", "TransportPacketReceived"),
    ("transport:packet_dropped", "TransportPacketDropped"),
    ("transport:packet_buffered", "TransportPacketBuffered"),
    ("security:key_exchange", "HybriqKeyExchange"),
    ("security:key_updated", "SecurityKeyUpdated"),
    ("security:key_discarded", "SecurityKeyDiscarded"),
    ("recovery:parameters_set", "RecoveryParametersSet"),
    ("recovery:metrics_updated", "RecoveryMetricsUpdated"),
    (
        "recovery:congestion_state_updated",
        "RecoveryCongestionStateUpdated",
    ),
    ("recovery:ecn_state_updated", "HybriqEcnStateUpdated"),
    ("recovery:loss_timer_updated", "RecoveryLossTimerUpdated"),
    ("recovery:packet_lost", "RecoveryPacketLost"),
    ("recovery:spurious_losses", "HybriqSpuriousLosses"),
    (
        "recovery:ack_frequency_updated",
        "HybriqAckFrequencyUpdated",
    ),
    ("generic:warning", "GenericWarning"),
];

const DRAFT_13: [(&str, &str); 26] = [
    ("quic:connection_started", "QUICConnectionStarted"),
    ("quic:connection_closed", "QUICConnectionClosed"),
    (
        "quic:connection_state_updated",
        "QUICConnectionStateUpdated",
    ),
    ("quic:connection_id_updated", "QUICConnectionIDUpdated"),
    ("quic:mtu_updated", "QUICMTUUpdated"),
    ("quic:tuple_assigned", "QUICTupleAssigned"),
    ("quic:migration_state_updated", "QUICMigrationStateUpdated"),
    ("quic:version_information", "QUICVersionInformation"),
    ("quic:alpn_information", "QUICALPNInformation"),
    ("quic:parameters_set", "QUICParametersSet"),
    ("quic:packet_sent", "QUICPacketSent"),
    ("quic:packet_received", "QUICPacketReceived"),
    ("quic:packet_dropped", "QUICPacketDropped"),
    ("quic:packet_buffered", "QUICPacketBuffered"),
    ("hybriq:key_exchange", "HybriqKeyExchange"),
    ("quic:key_updated", "QUICKeyUpdated"),
    ("quic:key_discarded", "QUICKeyDiscarded"),
    ("quic:recovery_parameters_set", "QUICRecoveryParametersSet"),
    (
        "quic:recovery_metrics_updated",
        "QUICRecoveryMetricsUpdated",
    ),
    (
        "quic:congestion_state_updated",
        "QUICCongestionStateUpdated",
    ),
    ("quic:ecn_state_updated", "QUICECNStateUpdated"),
    ("quic:timer_updated", "QUICTimerUpdated"),
    ("quic:packet_lost", "QUICPacketLost"),
    ("hybriq:spurious_losses", "HybriqSpuriousLosses"),
    ("hybriq:ack_frequency_updated", "HybriqAckFrequencyUpdated"),
    ("loglevel:warning", "LogLevelWarning"),
];

pub(crate) fn rules(schema: Schema) -> Rules {
    let ours = include_str!("hybriq.cddl");
    if schema == Schema::Draft13 {
        return Rules::read(&[
            include_str!("draft13.cddl"),
            ours,
            include_str!("hybriq_draft13.cddl"),
        ]);
    }
    let mut rules = Rules::read(&[
        include_str!("v03.cddl"),
        ours,
        include_str!("hybriq_v03.cddl"),
    ]);
    // The drafts take any map for these: nothing would be checked.
    rules.forget_open("$QuicFrame");
    rules
}

/// A log: its first record, and its events.
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) header: Value,
    pub(crate) events: Vec<Value>,
}

impl Log {
    /// Reads a JSON text sequence (RFC 7464), and checks every record against the drafts.
    pub(crate) fn read(text: &str, schema: Schema) -> Self {
        let mut texts = text.split('\u{1e}');
        assert_eq!(texts.next(), Some(""), "a record separator comes first");
        let mut records = texts.map(|text| {
            let text = text.strip_suffix('\n').expect("a whole record");
            serde_json::from_str::<Value>(text).unwrap_or_else(|error| panic!("{error}: {text}"))
        });
        let header = records.next().expect("a header");
        let log = Self {
            header,
            events: records.collect(),
        };
        log.check(schema);
        log
    }

    fn check(&self, schema: Schema) {
        let rules = rules(schema);
        let is_right = |name: &str, value: &Value| {
            if let Err(error) = rules.check(name, value) {
                panic!("{error}\nin {value}");
            }
        };
        is_right("QlogFileSeq", &self.header);
        let types = match schema {
            Schema::V03 => V03,
            _ => DRAFT_13,
        };
        for event in &self.events {
            is_right("Event", event);
            let name = event["name"].as_str().expect("a name");
            let (_, data) = types
                .iter()
                .find(|(known, _)| *known == name)
                .unwrap_or_else(|| panic!("{name} is an event that no schema describes"));
            is_right(data, &event["data"]);
        }
        if schema == Schema::V03 {
            self.opens_in_qvis();
        }
    }

    /// Checks what qvis checks when it opens a file whose name ends in `.sqlog`: see
    /// `textsequencejsontoqlog.ts` and `QlogLoaderV2.ts` in its sources.
    fn opens_in_qvis(&self) {
        let versions = ["draft-02", "draft-02-RC1", "qlog-03-WIP", "0.3"];
        let version = self.header["qlog_version"].as_str().expect("a version");
        assert!(versions.contains(&version), "{version}");
        assert_eq!(self.header["qlog_format"], "JSON-SEQ");
        let trace = &self.header["trace"];
        assert!(trace["vantage_point"]["type"].is_string());
        assert!(trace["common_fields"]["reference_time"].is_number());
        assert_eq!(trace["common_fields"]["time_format"], "relative");
        let is_grouped = self
            .events
            .iter()
            .any(|event| event["group_id"].is_string());
        let mut before = 0.0;
        for event in &self.events {
            let (category, kind) = event["name"].as_str().unwrap().split_once(':').unwrap();
            let categories = [
                "connectivity",
                "security",
                "transport",
                "recovery",
                "generic",
            ];
            assert!(categories.contains(&category) && !kind.is_empty());
            // A file of several connections is split by this field, and sorted.
            assert_eq!(event["group_id"].is_string(), is_grouped);
            let time = event["time"].as_f64().unwrap();
            assert!(is_grouped || time >= before, "{time} after {before}");
            before = time;
            let data = &event["data"];
            assert!(data["header"]["packet_size"].is_null() && data["packet_type"].is_null());
        }
    }

    /// Returns the data of the events with a name, without its category or namespace.
    pub(crate) fn data<'a>(&'a self, name: &str) -> Vec<&'a Value> {
        let events = self.events.iter();
        let of_name = events.filter(|event| {
            let (_, kind) = event["name"].as_str().unwrap().split_once(':').unwrap();
            kind == name
        });
        of_name.map(|event| &event["data"]).collect()
    }

    /// Returns the number of events that the warnings say are missing.
    pub(crate) fn missing(&self) -> u64 {
        let warnings = self.data("warning").into_iter();
        let count = |warning: &Value| {
            let message = warning["message"].as_str().unwrap();
            message.split(' ').next().unwrap().parse::<u64>().unwrap()
        };
        warnings.map(count).sum()
    }
}

//! Names, units and meanings of all metrics. `quic/docs/metrics.md` has a row for each.

use metrics::{Recorder, Unit};

/// A metric.
#[derive(Clone, Copy, Debug)]
pub(super) struct Metric {
    pub(super) name: &'static str,
    kind: Kind,
    unit: Unit,
    meaning: &'static str,
}

/// Kind of a metric.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Counter,
    Gauge,
    Histogram,
}

macro_rules! metrics {
    ($($constant:ident: $kind:ident, $unit:ident, $name:literal, $meaning:literal;)*) => {
        $(pub(super) const $constant: Metric = Metric {
            name: $name,
            kind: Kind::$kind,
            unit: Unit::$unit,
            meaning: $meaning,
        };)*

        const ALL: &[Metric] = &[$($constant),*];
    };
}

metrics! {
    // Workers: what happens outside of connections.
    CONNECTIONS: Gauge, Count, "hybriq_connections",
        "Connections now, closing ones included.";
    HANDSHAKES_IN_PROGRESS: Gauge, Count, "hybriq_handshakes_in_progress",
        "Accepted connections that have not completed their handshake.";
    PARTIAL_HELLOS: Gauge, Count, "hybriq_partial_hellos",
        "ClientHellos of which a part is missing.";
    CLIENTS_WAITING: Gauge, Count, "hybriq_clients_waiting",
        "Clients that wait for the application's decision.";
    RETRYING: Gauge, Count, "hybriq_retrying",
        "1 while adaptive address validation sends clients away to prove their address.";
    MEMORY_BYTES: Gauge, Bytes, "hybriq_memory_bytes",
        "Memory that connections hold, by what holds it; an estimate of the last seconds.";
    DATAGRAMS_RECEIVED: Counter, Count, "hybriq_datagrams_received_total",
        "Datagrams received.";
    DATAGRAMS_SENT: Counter, Count, "hybriq_datagrams_sent_total",
        "Datagrams sent.";
    RECEIVED_BYTES: Counter, Bytes, "hybriq_received_bytes_total",
        "UDP payload received.";
    SENT_BYTES: Counter, Bytes, "hybriq_sent_bytes_total",
        "UDP payload sent.";
    RECEIVE_CALLS: Counter, Count, "hybriq_receive_calls_total",
        "Calls to the system that received something.";
    SEND_CALLS: Counter, Count, "hybriq_send_calls_total",
        "Calls to the system that sent something.";
    RECEIVE_ERRORS: Counter, Count, "hybriq_receive_errors_total",
        "Errors of the system while receiving.";
    SEND_ERRORS: Counter, Count, "hybriq_send_errors_total",
        "Datagrams that the system refused to send.";
    DATAGRAMS_DROPPED: Counter, Count, "hybriq_datagrams_dropped_total",
        "Datagrams received that belonged to no connection and were useless.";
    DATAGRAMS_PASSED_ON: Counter, Count, "hybriq_datagrams_passed_on_total",
        "Datagrams that came to the wrong worker and were passed on to the right one.";
    DATAGRAMS_FORWARDED: Counter, Count, "hybriq_datagrams_forwarded_total",
        "Datagrams of connections of an earlier process, at the process that forwards and at the one that takes them.";
    CLIENTS_REFUSED: Counter, Count, "hybriq_clients_refused_total",
        "Clients refused, by the policy or the limit that refused them.";
    CLIENTS_IGNORED: Counter, Count, "hybriq_clients_ignored_total",
        "ClientHellos ignored because too many waited for the application.";
    RETRIES_SENT: Counter, Count, "hybriq_retries_sent_total",
        "Retry packets sent.";
    ADDRESSES_VALIDATED: Counter, Count, "hybriq_addresses_validated_total",
        "Clients that proved their address by a token.";
    TOKENS_REJECTED: Counter, Count, "hybriq_tokens_rejected_total",
        "Tokens that proved nothing: invalid or used before.";
    VERSION_NEGOTIATIONS: Counter, Count, "hybriq_version_negotiations_total",
        "Version Negotiation packets sent.";
    STATELESS_RESETS: Counter, Count, "hybriq_stateless_resets_total",
        "Stateless resets sent: packets came for connections that are not here any more.";
    WORKER_FAILURES: Counter, Count, "hybriq_worker_failures_total",
        "Times that a worker failed by a panic, lost its connections and was started again.";
    TURN_SECONDS: Histogram, Seconds, "hybriq_turn_seconds",
        "Time that a worker works before it looks for new datagrams again.";
    YIELD_SECONDS: Histogram, Seconds, "hybriq_yield_seconds",
        "Time that a worker waits in a turn for tasks of the application that share its thread.";
    QUEUE_DEPTH: Histogram, Count, "hybriq_queue_depth",
        "Messages of applications and other workers that a worker finds in a turn, if any.";

    // Connections.
    CONNECTIONS_ACCEPTED: Counter, Count, "hybriq_connections_accepted_total",
        "Connections of clients that were accepted; their handshakes begin.";
    CONNECTIONS_INITIATED: Counter, Count, "hybriq_connections_initiated_total",
        "Connections that this end began.";
    HANDSHAKES: Counter, Count, "hybriq_handshakes_total",
        "Handshakes completed.";
    DOWNGRADES: Counter, Count, "hybriq_downgrades_total",
        "Servers that were post-quantum and are not any more, met by clients with the downgrade alarm.";
    EARLY_DATA: Counter, Count, "hybriq_early_data_total",
        "Handshakes in which the client offered 0-RTT data, by the server's answer.";
    HANDSHAKE_SECONDS: Histogram, Seconds, "hybriq_handshake_seconds",
        "Time from the start of a connection to the end of its handshake.";
    MIGRATIONS: Counter, Count, "hybriq_migrations_total",
        "Changes of the path of a connection, by their outcome.";
    CONNECTIONS_CLOSED: Counter, Count, "hybriq_connections_closed_total",
        "Connections that ended, by the reason.";
    CONNECTION_SECONDS: Histogram, Seconds, "hybriq_connection_seconds",
        "Lifetime of a connection.";
    CONNECTION_RTT_SECONDS: Histogram, Seconds, "hybriq_connection_rtt_seconds",
        "Smoothed round-trip time at the end of a connection.";

    // Sums over connections that ended.
    PACKETS_SENT: Counter, Count, "hybriq_packets_sent_total",
        "Packets sent by connections that ended.";
    PACKETS_RECEIVED: Counter, Count, "hybriq_packets_received_total",
        "Packets received and accepted by connections that ended.";
    PACKETS_LOST: Counter, Count, "hybriq_packets_lost_total",
        "Packets declared lost by connections that ended.";
    SPURIOUS_LOSSES: Counter, Count, "hybriq_spurious_losses_total",
        "Packets declared lost and acknowledged later, of connections that ended.";
    PACKETS_DROPPED: Counter, Count, "hybriq_packets_dropped_total",
        "Packets dropped by connections that ended.";
    PROBE_TIMEOUTS: Counter, Count, "hybriq_probe_timeouts_total",
        "Probe timeouts of connections that ended.";
    CONGESTION_EVENTS: Counter, Count, "hybriq_congestion_events_total",
        "Round trips with losses or marks that slowed connections that ended.";
    ACKS_SENT: Counter, Count, "hybriq_acks_sent_total",
        "ACK frames sent by connections that ended.";
    ACKS_RECEIVED: Counter, Count, "hybriq_acks_received_total",
        "ACK frames received by connections that ended.";
    ECN_SENT: Counter, Count, "hybriq_ecn_sent_total",
        "Packets sent, by ECN mark, by connections that ended.";
    ECN_ECHOED: Counter, Count, "hybriq_ecn_echoed_total",
        "Packets that the peer received, by ECN mark, of connections that ended.";
    ECN_RECEIVED: Counter, Count, "hybriq_ecn_received_total",
        "Packets received, by ECN mark, by connections that ended.";
    MTU_PROBES_SENT: Counter, Count, "hybriq_mtu_probes_sent_total",
        "Probes for a larger datagram size sent by connections that ended.";
    MTU_PROBES_LOST: Counter, Count, "hybriq_mtu_probes_lost_total",
        "Probes for a larger datagram size lost by connections that ended.";
    MTU_BLACK_HOLES: Counter, Count, "hybriq_mtu_black_holes_total",
        "Times that a path stopped carrying a size, of connections that ended.";
    KEY_UPDATES: Counter, Count, "hybriq_key_updates_total",
        "Key updates of connections that ended.";
    DATAGRAM_FRAMES_SENT: Counter, Count, "hybriq_datagram_frames_sent_total",
        "DATAGRAM frames sent by connections that ended.";
    DATAGRAM_FRAMES_RECEIVED: Counter, Count, "hybriq_datagram_frames_received_total",
        "DATAGRAM frames received by connections that ended.";
    DATAGRAM_FRAMES_ACKNOWLEDGED: Counter, Count, "hybriq_datagram_frames_acknowledged_total",
        "DATAGRAM frames that the peer acknowledged, of connections that ended.";
    DATAGRAM_FRAMES_LOST: Counter, Count, "hybriq_datagram_frames_lost_total",
        "DATAGRAM frames that did not arrive, by reason, of connections that ended.";
}

/// Describes all metrics to the recorder.
pub(super) fn describe(recorder: &dyn Recorder) {
    for metric in ALL {
        let (name, meaning) = (metric.name.into(), metric.meaning.into());
        match metric.kind {
            Kind::Counter => recorder.describe_counter(name, Some(metric.unit), meaning),
            Kind::Gauge => recorder.describe_gauge(name, Some(metric.unit), meaning),
            Kind::Histogram => recorder.describe_histogram(name, Some(metric.unit), meaning),
        }
    }
}

//! Measurements that are recorded one by one.

use hybriq_proto::stats::Metric;
use metrics::Histogram;

use super::report::Common;

const TURNS: Metric = Metric::new(
    "hybriq_turn_seconds",
    "Time that a worker works before it looks for new datagrams again.",
);
const YIELDS: Metric = Metric::new(
    "hybriq_yield_seconds",
    "Time that a worker waits in a turn for tasks of the application that share its thread.",
);
const DEPTHS: Metric = Metric::new(
    "hybriq_queue_depth",
    "Messages from applications and other workers that a worker finds in a turn, if any.",
);
const HANDSHAKES: Metric = Metric::new(
    "hybriq_handshake_seconds",
    "Time from the start of a connection to the end of its handshake.",
);
const LIFETIMES: Metric = Metric::new("hybriq_connection_seconds", "Lifetime of a connection.");
const RTTS: Metric = Metric::new(
    "hybriq_connection_rtt_seconds",
    "Smoothed round-trip time at the end of a connection.",
);

/// Histograms of a worker and its connections.
pub(super) struct Histograms {
    pub(super) turns: Histogram,
    pub(super) yields: Histogram,
    pub(super) depths: Histogram,
    /// Handshakes as a client, and as a server.
    pub(super) handshakes: [Histogram; 2],
    pub(super) lifetimes: Histogram,
    pub(super) rtts: Histogram,
}

impl Histograms {
    pub(super) const METRICS: [Metric; 6] = [TURNS, YIELDS, DEPTHS, HANDSHAKES, LIFETIMES, RTTS];

    pub(super) fn new(endpoint: &Common, worker: &Common) -> Self {
        let handshake =
            |role: &'static str| endpoint.histogram(HANDSHAKES.name, &[("role", role.into())]);
        Self {
            turns: worker.histogram(TURNS.name, &[]),
            yields: worker.histogram(YIELDS.name, &[]),
            depths: worker.histogram(DEPTHS.name, &[]),
            handshakes: ["client", "server"].map(handshake),
            lifetimes: endpoint.histogram(LIFETIMES.name, &[]),
            rtts: endpoint.histogram(RTTS.name, &[]),
        }
    }
}

//! Sums over connections that ended.

use std::mem;

use hybriq_proto::stats::{ConnectionStats, PacketDrops};

use super::{
    catalogue::{self as names, Metric},
    report::Common,
};

/// Number of sums over connections that ended.
const SUMS: usize = 26;

/// Sums over connections that ended and are not published yet.
#[derive(Debug, Default)]
pub(super) struct Sums {
    values: [u64; SUMS],
    drops: PacketDrops,
}

impl Sums {
    const METRICS: [(Metric, Option<(&'static str, &'static str)>); SUMS] = [
        (names::PACKETS_SENT, None),
        (names::PACKETS_RECEIVED, None),
        (names::PACKETS_LOST, None),
        (names::SPURIOUS_LOSSES, None),
        (names::PROBE_TIMEOUTS, None),
        (names::CONGESTION_EVENTS, None),
        (names::ACKS_SENT, None),
        (names::ACKS_RECEIVED, None),
        (names::ECN_SENT, Some(("mark", "ect0"))),
        (names::ECN_SENT, Some(("mark", "ect1"))),
        (names::ECN_ECHOED, Some(("mark", "ect0"))),
        (names::ECN_ECHOED, Some(("mark", "ect1"))),
        (names::ECN_ECHOED, Some(("mark", "ce"))),
        (names::ECN_RECEIVED, Some(("mark", "ect0"))),
        (names::ECN_RECEIVED, Some(("mark", "ect1"))),
        (names::ECN_RECEIVED, Some(("mark", "ce"))),
        (names::MTU_PROBES_SENT, None),
        (names::MTU_PROBES_LOST, None),
        (names::MTU_BLACK_HOLES, None),
        (names::KEY_UPDATES, None),
        (names::DATAGRAM_FRAMES_SENT, None),
        (names::DATAGRAM_FRAMES_RECEIVED, None),
        (names::DATAGRAM_FRAMES_ACKNOWLEDGED, None),
        (names::DATAGRAM_FRAMES_LOST, Some(("reason", "network"))),
        (names::DATAGRAM_FRAMES_LOST, Some(("reason", "unsent"))),
        (names::DATAGRAM_FRAMES_LOST, Some(("reason", "unread"))),
    ];

    /// Adds the counters of a connection, in the order of the metrics.
    pub(super) fn add(&mut self, stats: &ConnectionStats) {
        let values = [
            stats.packets_sent,
            stats.packets_received,
            stats.packets_lost,
            stats.spurious_losses,
            stats.ptos,
            stats.congestion_events,
            stats.acks_sent,
            stats.acks_received,
            stats.ecn_sent.ect0,
            stats.ecn_sent.ect1,
            stats.ecn_echoed.ect0,
            stats.ecn_echoed.ect1,
            stats.ecn_echoed.ce,
            stats.ecn_received.ect0,
            stats.ecn_received.ect1,
            stats.ecn_received.ce,
            stats.mtu_probes_sent,
            stats.mtu_probes_lost,
            stats.mtu_black_holes,
            stats.key_updates,
            stats.datagram_frames.sent,
            stats.datagram_frames.received,
            stats.datagram_frames.acknowledged,
            stats.datagram_frames.lost,
            stats.datagram_frames.dropped_unsent,
            stats.datagram_frames.dropped_unread,
        ];
        for (sum, value) in self.values.iter_mut().zip(values) {
            *sum = sum.saturating_add(value);
        }
        self.drops += stats.drops;
    }

    pub(super) fn publish(&mut self, common: &Common) {
        for ((metric, mark), sum) in Self::METRICS.iter().zip(&mut self.values) {
            let mark = mark.map(|(name, value)| (name, value.into()));
            let counter = common.counter(metric, mark.as_slice());
            counter.increment(mem::take(sum));
        }
        for (reason, sum) in mem::take(&mut self.drops).by_reason() {
            let counter = common.counter(&names::PACKETS_DROPPED, &[("reason", reason.into())]);
            counter.increment(sum.into());
        }
    }
}

//! Metrics that are published from the counters of a worker.

use super::{
    catalogue::{self as names, Metric},
    report::Common,
};
use crate::worker::stats::EndpointStats;

/// Number of counters of a worker.
const COUNTERS: usize = 25;

/// A counter: its metric, a label of its own, and its value.
type Row = (Metric, Option<(&'static str, &'static str)>, u64);

/// Returns the values that only grow. A new field of the counters does not compile before it has
/// its row here, in [`gauges`] or in [`Published::update`].
fn counters(stats: &EndpointStats) -> [Row; COUNTERS] {
    let EndpointStats {
        connections: _,
        datagrams_received,
        bytes_received,
        datagrams_sent,
        bytes_sent,
        send_calls,
        receive_calls,
        send_errors,
        receive_errors,
        datagrams_dropped: _,
        drops: _,
        datagrams_passed_on,
        datagrams_forwarded,
        forwards_dropped,
        forwards_received,
        worker_failures,
        partial_hellos: _,
        waiting_incoming: _,
        key_exchange_refused,
        version_negotiations,
        stateless_resets,
        incoming_ignored,
        refused_by_application,
        refused_too_many,
        refused_too_busy,
        refused_too_fast,
        handshaking: _,
        retrying: _,
        retries_sent,
        addresses_validated,
        tokens_rejected,
        tokens_replayed,
    } = *stats;
    let outcome = |outcome| Some(("outcome", outcome));
    let refused = |reason| Some(("reason", reason));
    [
        (names::DATAGRAMS_RECEIVED, None, datagrams_received),
        (names::DATAGRAMS_SENT, None, datagrams_sent),
        (names::RECEIVED_BYTES, None, bytes_received),
        (names::SENT_BYTES, None, bytes_sent),
        (names::RECEIVE_CALLS, None, receive_calls),
        (names::SEND_CALLS, None, send_calls),
        (names::RECEIVE_ERRORS, None, receive_errors),
        (names::SEND_ERRORS, None, send_errors),
        (names::DATAGRAMS_PASSED_ON, None, datagrams_passed_on),
        (
            names::DATAGRAMS_FORWARDED,
            outcome("sent"),
            datagrams_forwarded,
        ),
        (
            names::DATAGRAMS_FORWARDED,
            outcome("dropped"),
            forwards_dropped,
        ),
        (
            names::DATAGRAMS_FORWARDED,
            outcome("received"),
            forwards_received,
        ),
        (
            names::CLIENTS_REFUSED,
            refused("key_exchange"),
            key_exchange_refused,
        ),
        (
            names::CLIENTS_REFUSED,
            refused("application"),
            refused_by_application,
        ),
        (
            names::CLIENTS_REFUSED,
            refused("max_connections"),
            refused_too_many,
        ),
        (
            names::CLIENTS_REFUSED,
            refused("max_handshakes"),
            refused_too_busy,
        ),
        (
            names::CLIENTS_REFUSED,
            refused("max_rate_per_network"),
            refused_too_fast,
        ),
        (names::CLIENTS_IGNORED, None, incoming_ignored),
        (names::RETRIES_SENT, None, retries_sent),
        (names::ADDRESSES_VALIDATED, None, addresses_validated),
        (names::TOKENS_REJECTED, refused("invalid"), tokens_rejected),
        (names::TOKENS_REJECTED, refused("replayed"), tokens_replayed),
        (names::VERSION_NEGOTIATIONS, None, version_negotiations),
        (names::STATELESS_RESETS, None, stateless_resets),
        (names::WORKER_FAILURES, None, worker_failures),
    ]
}

/// Returns the values that grow and shrink.
fn gauges(stats: &EndpointStats) -> [(Metric, u64); 5] {
    [
        (names::CONNECTIONS, stats.connections),
        (names::HANDSHAKES_IN_PROGRESS, stats.handshaking),
        (names::PARTIAL_HELLOS, stats.partial_hellos),
        (names::CLIENTS_WAITING, stats.waiting_incoming),
        (names::RETRYING, stats.retrying),
    ]
}

/// Counters of a worker as they were last published.
#[derive(Debug, Default)]
pub(super) struct Published(EndpointStats);

impl Published {
    pub(super) fn is(&self, stats: &EndpointStats) -> bool {
        self.0 == *stats
    }

    /// Publishes what changed. Gauges change by differences too, so that endpoints without a name
    /// add up.
    pub(super) fn update(&mut self, common: &Common, stats: &EndpointStats) {
        let before = counters(&self.0);
        for ((metric, mark, value), (.., before)) in counters(stats).into_iter().zip(before) {
            let mark = mark.map(|(name, value)| (name, value.into()));
            common
                .counter(&metric, mark.as_slice())
                .increment(grown(before, value));
        }
        let (drops, before) = (stats.drops.by_reason(), self.0.drops.by_reason());
        for ((reason, value), (_, before)) in drops.into_iter().zip(before) {
            common
                .counter(&names::DATAGRAMS_DROPPED, &[("reason", reason.into())])
                .increment(grown(before, value));
        }
        let before = gauges(&self.0);
        for ((metric, value), (_, before)) in gauges(stats).into_iter().zip(before) {
            common
                .gauge(&metric, &[])
                .increment(value as f64 - before as f64);
        }
        self.0 = *stats;
    }

    /// Publishes the end of the worker: the last counts, and nothing left.
    pub(super) fn end(&mut self, common: &Common, stats: &EndpointStats) {
        let none = EndpointStats {
            connections: 0,
            handshaking: 0,
            partial_hellos: 0,
            waiting_incoming: 0,
            retrying: 0,
            ..*stats
        };
        self.update(common, &none);
    }
}

/// Returns the growth of a counter, which starts again from 0 after the failure of a worker.
const fn grown(before: u64, now: u64) -> u64 {
    if now >= before { now - before } else { now }
}

#[cfg(test)]
mod tests {
    use super::grown;

    #[test]
    fn a_counter_that_starts_again_loses_nothing() {
        assert_eq!(grown(5, 9), 4);
        assert_eq!(grown(5, 5), 0);
        assert_eq!(grown(5, 2), 2);
    }
}

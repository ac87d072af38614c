//! Computes the metrics of a repetition from the counters of its processes.

use std::collections::BTreeMap;

use super::{Histogram, KindResult, Process, Repetition, Results};
use crate::drivers::Traffic;

/// Least number of durations of which the p99.9 is more than the largest.
const ENOUGH_FOR_P999: u64 = 1000;

impl Repetition {
    /// Returns the number of connections that ended well.
    pub(crate) fn completed(&self) -> u64 {
        let counts = self
            .kinds
            .values()
            .filter_map(|kind| kind.outcomes.get("ok"));
        counts.sum()
    }

    /// Returns the number of connections that failed.
    pub(crate) fn failed(&self) -> u64 {
        self.failures().map(|(_, count)| count).sum()
    }

    /// Returns the failures with their counts.
    pub(crate) fn failures(&self) -> impl Iterator<Item = (&str, u64)> {
        self.kinds.values().flat_map(|kind| {
            let outcomes = kind.outcomes.iter().filter(|(outcome, _)| *outcome != "ok");
            outcomes.map(|(outcome, count)| (outcome.as_str(), *count))
        })
    }

    /// Returns the metrics by the names of [`super::METRICS`], without those that this scenario or
    /// stack lacks.
    pub(crate) fn derive_metrics(&self) -> BTreeMap<String, f64> {
        let mut metrics = Derived::default();
        let completed = self.completed();
        let attempts = completed + self.failed();
        if attempts > 0 {
            metrics.set("failed_percent", share(self.failed(), attempts));
        }
        if completed == 0 {
            return metrics.0;
        }
        metrics.rates(self, completed);
        metrics.latencies(self);
        metrics.processes(self, completed);
        metrics.traffic(self, completed);
        metrics.0
    }

    /// Returns true if the server had other clients too, whose results are elsewhere.
    fn shares_server(&self) -> bool {
        self.round.is_some() && self.server.completed > self.completed()
    }

    fn merged(&self, of: impl Fn(&KindResult) -> Vec<&Histogram>) -> Histogram {
        let mut all = Histogram::default();
        for histogram in self.kinds.values().flat_map(of) {
            all.add(histogram);
        }
        all
    }

    fn requests(&self) -> Histogram {
        self.merged(|kind| kind.requests.values().collect())
    }
}

#[derive(Default)]
struct Derived(BTreeMap<String, f64>);

impl Derived {
    fn set(&mut self, name: &str, value: f64) {
        debug_assert!(super::METRICS.iter().any(|metric| metric.name == name));
        self.0.insert(name.to_owned(), value);
    }

    fn rates(&mut self, repetition: &Repetition, completed: u64) {
        let seconds = repetition.elapsed_us / 1e6;
        if seconds <= 0.0 {
            return;
        }
        self.set("connections_per_second", completed as f64 / seconds);
        let requests = repetition.requests().count();
        if requests > 0 {
            self.set("requests_per_second", requests as f64 / seconds);
        }
        let kinds = repetition.kinds.values();
        let bytes: u64 = kinds
            .map(|kind| kind.stream_bytes_sent + kind.stream_bytes_received)
            .sum();
        if bytes > 0 {
            self.set("goodput_bits_per_second", bytes as f64 * 8.0 / seconds);
        }
    }

    fn latencies(&mut self, repetition: &Repetition) {
        let handshake = repetition.merged(|kind| vec![&kind.handshake]);
        if !handshake.is_empty() {
            self.set("handshake_mean_us", handshake.mean_us());
        }
        let percentiles: &[(&str, f64)] = &[("p50", 0.5), ("p90", 0.9), ("p99", 0.99)];
        let ends: &[(&str, f64)] = &[("p50", 0.5), ("p99", 0.99)];
        self.quantiles("handshake", &handshake, percentiles);
        let first_byte = repetition.merged(|kind| vec![&kind.first_byte]);
        self.quantiles("first_byte", &first_byte, ends);
        let connection = repetition.merged(|kind| vec![&kind.connection]);
        self.quantiles("connection", &connection, ends);
        let requests = repetition.requests();
        self.quantiles("request", &requests, percentiles);
        if requests.count() >= ENOUGH_FOR_P999 {
            self.quantiles("request", &requests, &[("p999", 0.999)]);
        }
        let datagrams = repetition.merged(|kind| vec![&kind.datagrams]);
        self.quantiles("datagram", &datagrams, ends);
        let lost: u64 = repetition
            .kinds
            .values()
            .map(|kind| kind.datagrams_lost)
            .sum();
        if datagrams.count() + lost > 0 {
            self.set(
                "datagrams_lost_percent",
                share(lost, datagrams.count() + lost),
            );
        }
    }

    fn quantiles(&mut self, of: &str, durations: &Histogram, quantiles: &[(&str, f64)]) {
        for (name, quantile) in quantiles.iter().filter(|_| !durations.is_empty()) {
            self.set(&format!("{of}_{name}_us"), durations.us_at(*quantile));
        }
    }

    fn processes(&mut self, repetition: &Repetition, completed: u64) {
        for (side, process) in [
            ("server", &repetition.server),
            ("client", &repetition.client),
        ] {
            // A server that another machine runs unwatched tells nothing.
            if process.peak_rss_kib == 0 && process.cpu_us() <= 0.0 {
                continue;
            }
            let connections = match side {
                "server" if repetition.shares_server() => process.completed,
                _ => completed,
            };
            let each = |sum: f64| sum / connections as f64;
            self.set(&format!("{side}_cpu_us"), each(process.cpu_us()));
            let switches = process.voluntary_switches + process.involuntary_switches;
            self.set(&format!("{side}_switches"), each(switches as f64));
            self.set(&format!("{side}_peak_rss_kib"), process.peak_rss_kib as f64);
        }
    }

    fn traffic(&mut self, repetition: &Repetition, completed: u64) {
        let each = |sum: u64| sum as f64 / completed as f64;
        let client = repetition.client.traffic;
        let server = repetition.server.traffic;
        let server = server.filter(|_| !repetition.shares_server());
        if client.is_some() || server.is_some() {
            // The larger of what left one socket and what reached the other: the last close may
            // leave after the client has reported, and the system may drop what was sent.
            let (client, server) = (client.unwrap_or_default(), server.unwrap_or_default());
            let larger = |a: u64, b: u64| each(a.max(b));
            self.set(
                "bytes_to_server",
                larger(client.sent_bytes, server.received_bytes),
            );
            self.set(
                "bytes_to_client",
                larger(server.sent_bytes, client.received_bytes),
            );
            self.set(
                "datagrams_to_server",
                larger(client.sent_datagrams, server.received_datagrams),
            );
            self.set(
                "datagrams_to_client",
                larger(server.sent_datagrams, client.received_datagrams),
            );
        }
        if repetition.handshake_traffic != Traffic::default() {
            let handshake = repetition.handshake_traffic;
            self.set("handshake_bytes_to_server", each(handshake.sent_bytes));
            self.set("handshake_bytes_to_client", each(handshake.received_bytes));
        }
    }
}

impl Results {
    /// Returns true if the user ended the run.
    pub(crate) fn was_interrupted(&self) -> bool {
        self.problems.iter().any(|problem| problem == "interrupted")
    }

    /// Returns a warning if other work on the machine disturbed the measurement.
    pub(crate) fn noise(&self) -> Option<String> {
        let disturbed = self.cells.iter().filter(|cell| cell.disturbed).count();
        let repetitions = self.cells.iter().flat_map(|cell| &cell.repetitions);
        let most = repetitions.filter_map(|repetition| repetition.other_cores);
        let most = most.fold(0.0, f64::max);
        (disturbed > 0).then(|| {
            format!(
                "other work on this machine used up to {most:.1} cores and disturbed {disturbed} \
                 of {} cells (marked !): measure again",
                self.cells.len()
            )
        })
    }
}

impl Process {
    /// Returns the CPU time in user mode and in the kernel.
    pub(crate) fn cpu_us(&self) -> f64 {
        self.user_us + self.system_us
    }
}

fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64 * 100.0
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{KindResult, Process, Repetition, Traffic};

    fn kind(ok: u64, timeouts: u64) -> KindResult {
        let mut kind = KindResult::default();
        kind.outcomes.insert("ok".to_owned(), ok);
        kind.outcomes.insert("timeout".to_owned(), timeouts);
        for millis in 1..=ok {
            kind.handshake.record(Duration::from_millis(millis));
        }
        kind
    }

    fn near(figure: f64, expected: f64) -> bool {
        (figure / expected - 1.0).abs() < 0.002
    }

    #[test]
    fn kinds_of_connections_are_counted_together() {
        let mut repetition = Repetition {
            elapsed_us: 2e6,
            ..Repetition::default()
        };
        repetition.kinds.insert("a".to_owned(), kind(60, 20));
        repetition.kinds.insert("b".to_owned(), kind(20, 0));
        let metrics = repetition.derive_metrics();
        assert!(near(metrics["connections_per_second"], 40.0));
        assert!(near(metrics["failed_percent"], 20.0));
        assert!(near(metrics["handshake_p50_us"], 20_000.0));
        assert!(!metrics.contains_key("request_p50_us"));
        assert!(!metrics.contains_key("bytes_to_server"));
        assert!(!metrics.contains_key("server_cpu_us"));
    }

    #[test]
    fn costs_are_those_of_one_connection_and_bytes_the_larger_count() {
        let traffic = |sent, received| {
            Some(Traffic {
                sent_bytes: sent,
                received_bytes: received,
                ..Traffic::default()
            })
        };
        let mut repetition = Repetition {
            elapsed_us: 1e6,
            client: Process {
                traffic: traffic(900, 510),
                ..Process::default()
            },
            server: Process {
                user_us: 300.0,
                system_us: 100.0,
                traffic: traffic(500, 1000),
                ..Process::default()
            },
            ..Repetition::default()
        };
        repetition.kinds.insert(String::new(), kind(10, 0));
        let metrics = repetition.derive_metrics();
        assert!(near(metrics["server_cpu_us"], 40.0));
        assert!(near(metrics["bytes_to_server"], 100.0));
        assert!(near(metrics["bytes_to_client"], 51.0));
    }

    #[test]
    fn where_nothing_succeeded_only_the_failures_are_a_metric() {
        let mut repetition = Repetition::default();
        assert!(repetition.derive_metrics().is_empty());
        repetition.kinds.insert(String::new(), kind(0, 7));
        let metrics = repetition.derive_metrics();
        assert_eq!(metrics.len(), 1);
        assert!(near(metrics["failed_percent"], 100.0));
    }
}

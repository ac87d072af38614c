//! Metrics: the numbers of a repetition that are compared.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A number that every repetition has one of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Metric {
    /// Name in JSON and CSV; ends with its unit where it has one.
    pub(crate) name: &'static str,
    /// Name in tables and charts.
    pub(crate) title: &'static str,
    /// Unit, if any.
    pub(crate) unit: &'static str,
    /// Direction in which it improves.
    pub(crate) better: Better,
}

/// Direction in which a metric improves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
}

const fn higher(name: &'static str, title: &'static str, unit: &'static str) -> Metric {
    Metric {
        name,
        title,
        unit,
        better: Better::Higher,
    }
}

const fn lower(name: &'static str, title: &'static str, unit: &'static str) -> Metric {
    Metric {
        name,
        title,
        unit,
        better: Better::Lower,
    }
}

/// Every metric, in the order of tables. CPU, switches, bytes and datagrams are per connection that
/// ended well.
pub(crate) const METRICS: [Metric; 31] = [
    higher("connections_per_second", "connections", "1/s"),
    higher("requests_per_second", "requests", "1/s"),
    higher("goodput_bits_per_second", "goodput", "bit/s"),
    lower("handshake_mean_us", "handshake, mean", "µs"),
    lower("handshake_p50_us", "handshake, median", "µs"),
    lower("handshake_p90_us", "handshake, p90", "µs"),
    lower("handshake_p99_us", "handshake, p99", "µs"),
    lower("first_byte_p50_us", "first byte, median", "µs"),
    lower("first_byte_p99_us", "first byte, p99", "µs"),
    lower("connection_p50_us", "connection, median", "µs"),
    lower("connection_p99_us", "connection, p99", "µs"),
    lower("request_p50_us", "request, median", "µs"),
    lower("request_p90_us", "request, p90", "µs"),
    lower("request_p99_us", "request, p99", "µs"),
    lower("request_p999_us", "request, p99.9", "µs"),
    lower("server_cpu_us", "server CPU", "µs"),
    lower("client_cpu_us", "client CPU", "µs"),
    lower("server_switches", "server context switches", ""),
    lower("client_switches", "client context switches", ""),
    lower("server_peak_rss_kib", "server memory, peak", "KiB"),
    lower("client_peak_rss_kib", "client memory, peak", "KiB"),
    lower("bytes_to_server", "bytes to the server", "B"),
    lower("bytes_to_client", "bytes to the client", "B"),
    lower("datagrams_to_server", "datagrams to the server", ""),
    lower("datagrams_to_client", "datagrams to the client", ""),
    lower(
        "handshake_bytes_to_server",
        "handshake bytes to the server",
        "B",
    ),
    lower(
        "handshake_bytes_to_client",
        "handshake bytes to the client",
        "B",
    ),
    lower("datagram_p50_us", "datagram round trip, median", "µs"),
    lower("datagram_p99_us", "datagram round trip, p99", "µs"),
    lower("datagrams_lost_percent", "datagrams lost", "%"),
    lower("failed_percent", "failed", "%"),
];

/// A metric over all repetitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Summary {
    /// Median of the repetitions.
    pub(crate) median: f64,
    /// Lower end of the 95 % interval: the median of a repeat lies within it 95 times of 100.
    pub(crate) low: f64,
    /// Upper end of the 95 % interval.
    pub(crate) high: f64,
    /// Number of repetitions.
    pub(crate) n: u64,
}

//! The most important metrics of a result, in one line.

use std::collections::BTreeMap;

/// Returns the most important metrics, as `1975 conn/s, handshake p50 367 µs p99 542 µs`.
pub(crate) fn brief(metrics: &BTreeMap<String, f64>) -> String {
    let metric = |name: &str| metrics.get(name).copied();
    let mut parts = Vec::new();
    let connections = metric("connections_per_second").unwrap_or(0.0);
    let goodput = metric("goodput_bits_per_second").unwrap_or(0.0);
    let requests = metric("requests_per_second").unwrap_or(0.0);
    if goodput >= crate::report::results::MUCH * connections && goodput > 0.0 {
        parts.push(rate_of_bits(goodput));
    } else if connections > 0.0 {
        parts.push(format!("{connections:.0} conn/s"));
    }
    if requests > 1.5 * connections {
        parts.push(format!("{requests:.0} req/s"));
    }
    for (title, name) in [("handshake", "handshake"), ("request", "request")] {
        if name == "request" && requests <= 1.5 * connections {
            continue;
        }
        let p50 = metric(&format!("{name}_p50_us"));
        let p99 = metric(&format!("{name}_p99_us"));
        if let (Some(p50), Some(p99)) = (p50, p99) {
            parts.push(format!("{title} p50 {p50:.0} µs p99 {p99:.0} µs"));
        }
    }
    match metric("failed_percent") {
        Some(failed) if failed > 0.0 => parts.push(format!("{failed:.1} % failed")),
        _ => {}
    }
    if parts.is_empty() {
        return "nothing".to_owned();
    }
    parts.join(", ")
}

fn rate_of_bits(bits: f64) -> String {
    if bits >= 1e9 {
        format!("{:.2} Gbit/s", bits / 1e9)
    } else {
        format!("{:.1} Mbit/s", bits / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::brief;

    fn metrics(list: &[(&str, f64)]) -> BTreeMap<String, f64> {
        list.iter()
            .map(|(name, value)| ((*name).to_owned(), *value))
            .collect()
    }

    #[test]
    fn a_line_says_what_the_scenario_is_about() {
        let connect = metrics(&[
            ("connections_per_second", 1975.4),
            ("requests_per_second", 1975.4),
            ("goodput_bits_per_second", 32_000.0),
            ("handshake_p50_us", 367.2),
            ("handshake_p99_us", 541.9),
            ("failed_percent", 0.0),
        ]);
        assert_eq!(
            brief(&connect),
            "1975 conn/s, handshake p50 367 µs p99 542 µs"
        );
        let bulk = metrics(&[
            ("connections_per_second", 0.5),
            ("goodput_bits_per_second", 4.2e9),
        ]);
        assert_eq!(brief(&bulk), "4.20 Gbit/s");
        let failing = metrics(&[("failed_percent", 100.0)]);
        assert_eq!(brief(&failing), "100.0 % failed");
        assert_eq!(brief(&metrics(&[])), "nothing");
    }
}

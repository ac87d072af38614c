//! Numbers and times of scenarios and axes, as text with a unit.

use std::time::Duration;

/// Description of a time in error messages.
pub(crate) const TIME: &str = "a time, such as \"10ms\" or \"5s\" (a number alone is milliseconds)";

/// Largest whole number that every JSON reader keeps exactly.
pub(crate) const LARGEST: u64 = 1 << 53;

/// Reads a time with its unit: `"500us"`, `"10ms"`, `"5s"`, `"2m"`, `"1h"`.
pub(crate) fn parse_time(text: &str) -> Result<Duration, String> {
    const UNITS: [(&str, f64); 7] = [
        ("ns", 1e-9),
        ("us", 1e-6),
        ("µs", 1e-6),
        ("ms", 1e-3),
        ("s", 1.0),
        ("m", 60.0),
        ("h", 3600.0),
    ];
    UNITS
        .iter()
        .find_map(|(unit, seconds)| {
            let count: f64 = text.strip_suffix(unit)?.trim().parse().ok()?;
            time_of_seconds(count * seconds)
        })
        .ok_or_else(|| format!("expected {TIME}, not \"{text}\""))
}

/// Returns a time of at most a century. A longer one overflows when it is added to a clock.
pub(crate) fn time_of_seconds(seconds: f64) -> Option<Duration> {
    const CENTURY: f64 = 100.0 * 365.25 * 86_400.0;
    (seconds <= CENTURY)
        .then(|| Duration::try_from_secs_f64(seconds).ok())
        .flatten()
}

/// Reads a whole number, or text with a unit: bytes (`64KiB`), milliseconds (`5s`), a rate (`500/s`).
pub(crate) fn parse_number(text: &str) -> Result<u64, String> {
    let number = super::size(text.trim())
        .ok()
        .or_else(|| text.strip_suffix("/s")?.trim().parse().ok())
        .or_else(|| {
            let time = parse_time(text.trim()).ok()?;
            (time.subsec_nanos() % 1_000_000 == 0).then_some(time.as_millis() as u64)
        });
    number.filter(|number| *number <= LARGEST).ok_or_else(|| {
        format!("expected a whole number, such as 1000, 64KiB, 5s or 500/s, not \"{text}\"")
    })
}

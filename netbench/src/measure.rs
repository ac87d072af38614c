//! Counters and histograms of one process.

use std::ops::AddAssign;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use hybriq::{ConnectionStats, Endpoint};
use serde::{Deserialize, Serialize};

use crate::Failure;
use crate::os;

/// Datagrams and bytes of UDP payload that passed an endpoint's socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Traffic {
    pub(crate) sent_datagrams: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) received_datagrams: u64,
    pub(crate) received_bytes: u64,
}

impl Traffic {
    /// What passed since the endpoint was made.
    fn of(endpoint: &Endpoint) -> Self {
        let stats = endpoint.stats();
        Self {
            sent_datagrams: stats.datagrams_sent,
            sent_bytes: stats.bytes_sent,
            received_datagrams: stats.datagrams_received,
            received_bytes: stats.bytes_received,
        }
    }

    /// What passed since an earlier look.
    fn since(self, earlier: Self) -> Self {
        Self {
            sent_datagrams: self.sent_datagrams.saturating_sub(earlier.sent_datagrams),
            sent_bytes: self.sent_bytes.saturating_sub(earlier.sent_bytes),
            received_datagrams: self
                .received_datagrams
                .saturating_sub(earlier.received_datagrams),
            received_bytes: self.received_bytes.saturating_sub(earlier.received_bytes),
        }
    }
}

impl AddAssign for Traffic {
    fn add_assign(&mut self, more: Self) {
        self.sent_datagrams += more.sent_datagrams;
        self.sent_bytes += more.sent_bytes;
        self.received_datagrams += more.received_datagrams;
        self.received_bytes += more.received_bytes;
    }
}

/// Losses, summed over connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Losses {
    pub(crate) packets_lost: u64,
    pub(crate) probe_timeouts: u64,
}

impl Losses {
    pub(crate) fn add(&mut self, stats: &ConnectionStats) {
        self.packets_lost += stats.packets_lost;
        self.probe_timeouts += stats.ptos;
    }
}

/// The distribution of a duration, in microseconds.
#[expect(clippy::struct_field_names, reason = "the JSON names carry their unit")]
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Latency {
    pub(crate) mean_us: f64,
    pub(crate) p50_us: f64,
    pub(crate) p90_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) p999_us: f64,
    pub(crate) max_us: f64,
}

/// Durations from a microsecond to a minute, kept to three digits.
pub(crate) struct Durations(Histogram<u64>);

impl Durations {
    pub(crate) fn new() -> Result<Self, Failure> {
        Ok(Self(Histogram::new_with_bounds(1000, 60_000_000_000, 3)?))
    }

    pub(crate) fn record(&mut self, duration: Duration) {
        self.0
            .saturating_record(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
    }

    pub(crate) fn latency(&self) -> Latency {
        let us = |nanos: u64| nanos as f64 / 1e3;
        let at = |quantile| us(self.0.value_at_quantile(quantile));
        if self.0.is_empty() {
            return Latency::default();
        }
        Latency {
            mean_us: self.0.mean() / 1e3,
            p50_us: at(0.5),
            p90_us: at(0.9),
            p99_us: at(0.99),
            p999_us: at(0.999),
            max_us: us(self.0.max()),
        }
    }
}

/// What a process spent while it was measuring, pauses excluded.
#[derive(Default)]
pub(crate) struct Meter {
    pub(crate) elapsed_us: f64,
    pub(crate) cpu_us: f64,
    pub(crate) traffic: Traffic,
    running: Option<Readings>,
}

/// What the clocks and counters said when the meter was started.
struct Readings {
    at: Instant,
    cpu: Duration,
    traffic: Traffic,
}

impl Meter {
    pub(crate) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    pub(crate) fn start(&mut self, endpoint: &Endpoint) -> Result<(), Failure> {
        self.running = Some(Readings {
            traffic: Traffic::of(endpoint),
            cpu: os::cpu_time()?,
            at: Instant::now(),
        });
        Ok(())
    }

    pub(crate) fn pause(&mut self, endpoint: &Endpoint) -> Result<(), Failure> {
        let (at, cpu) = (Instant::now(), os::cpu_time()?);
        if let Some(since) = self.running.take() {
            self.elapsed_us += at.duration_since(since.at).as_secs_f64() * 1e6;
            self.cpu_us += cpu.saturating_sub(since.cpu).as_secs_f64() * 1e6;
            self.traffic += Traffic::of(endpoint).since(since.traffic);
        }
        Ok(())
    }
}

/// How many failed, and why the first did. Later ones are mostly its echo.
#[derive(Clone, Debug, Default)]
pub(crate) struct Failures {
    pub(crate) count: u64,
    pub(crate) first: Option<String>,
}

impl Failures {
    pub(crate) fn record(&mut self, failure: &Failure) {
        self.count += 1;
        self.first.get_or_insert_with(|| failure.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::{Durations, Failures, Latency};
    use std::time::Duration;

    #[test]
    fn quantiles_are_within_a_thousandth() {
        let mut durations = Durations::new().unwrap();
        for micros in 1..=1000 {
            durations.record(Duration::from_micros(micros));
        }
        let Latency {
            p50_us,
            p99_us,
            max_us,
            mean_us,
            ..
        } = durations.latency();
        for (measured, exact) in [(p50_us, 500.0), (p99_us, 990.0), (max_us, 1000.0)] {
            assert!(
                (measured / exact - 1.0).abs() < 0.002,
                "{measured} for {exact}"
            );
        }
        assert!((mean_us - 500.5).abs() < 1.0);
    }

    #[test]
    fn absurd_durations_are_kept_at_the_bounds() {
        let mut durations = Durations::new().unwrap();
        durations.record(Duration::ZERO);
        durations.record(Duration::MAX);
        assert!(durations.latency().max_us >= 60e6);
    }

    #[test]
    fn nothing_measured_is_zero() {
        let latency = Durations::new().unwrap().latency();
        assert!(latency.p99_us.abs() < f64::EPSILON);
    }

    #[test]
    fn the_first_failure_is_kept() {
        let mut failures = Failures::default();
        failures.record(&"first".into());
        failures.record(&"second".into());
        assert_eq!(
            (failures.count, failures.first.as_deref()),
            (2, Some("first"))
        );
    }
}

//! Distributions of durations, kept to three digits.

use std::borrow::Cow;
use std::time::Duration;

use hdrhistogram::Histogram as Hdr;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Shortest and longest duration that is kept: a microsecond and an hour, in nanoseconds.
const BOUNDS: (u64, u64) = (1000, 3_600_000_000_000);

/// A distribution of durations. In JSON its quantiles, for people, and its buckets, for everything
/// else.
#[derive(Clone, Debug)]
pub(crate) struct Histogram(Hdr<u64>);

impl Default for Histogram {
    fn default() -> Self {
        #[expect(clippy::expect_used, reason = "the bounds are constants and valid")]
        Self(Hdr::new_with_bounds(BOUNDS.0, BOUNDS.1, 3).expect("valid bounds"))
    }
}

impl Histogram {
    pub(crate) fn record(&mut self, duration: Duration) {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.0.saturating_record(nanos);
    }

    pub(crate) fn add(&mut self, other: &Self) {
        // Both have the same bounds.
        let _ = self.0.add(&other.0);
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the quantile (0 to 1) in microseconds; 0 where nothing was recorded.
    pub(crate) fn us_at(&self, quantile: f64) -> f64 {
        if self.is_empty() {
            return 0.0;
        }
        self.0.value_at_quantile(quantile) as f64 / 1e3
    }

    pub(crate) fn mean_us(&self) -> f64 {
        self.0.mean() / 1e3
    }

    pub(crate) fn max_us(&self) -> f64 {
        self.0.max() as f64 / 1e3
    }

    /// Returns the buckets that hold something: their values in nanoseconds, and their counts.
    pub(crate) fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        self.0
            .iter_recorded()
            .map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value()))
    }
}

/// A histogram in JSON.
#[derive(Serialize, JsonSchema)]
struct Document {
    /// Number of durations.
    count: u64,
    /// Mean.
    #[schemars(range(min = 0))]
    mean_us: f64,
    /// Quantile of 1 %.
    #[schemars(range(min = 0))]
    p01_us: f64,
    /// Median.
    #[schemars(range(min = 0))]
    p50_us: f64,
    /// Quantile of 90 %.
    #[schemars(range(min = 0))]
    p90_us: f64,
    /// Quantile of 99 %.
    #[schemars(range(min = 0))]
    p99_us: f64,
    /// Quantile of 99.9 %.
    #[schemars(range(min = 0))]
    p999_us: f64,
    /// Longest duration.
    #[schemars(range(min = 0))]
    max_us: f64,
    /// Buckets that hold something: their values in nanoseconds, and the number of durations.
    buckets_ns: Vec<(u64, u64)>,
}

impl JsonSchema for Histogram {
    fn schema_name() -> Cow<'static, str> {
        "Histogram".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Document::json_schema(generator)
    }
}

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let document = Document {
            count: self.count(),
            mean_us: self.mean_us(),
            p01_us: self.us_at(0.01),
            p50_us: self.us_at(0.5),
            p90_us: self.us_at(0.9),
            p99_us: self.us_at(0.99),
            p999_us: self.us_at(0.999),
            max_us: self.max_us(),
            buckets_ns: self.buckets().collect(),
        };
        document.serialize(to)
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Buckets {
            buckets_ns: Vec<(u64, u64)>,
        }
        let mut histogram = Self::default();
        for (value, count) in Buckets::deserialize(from)?.buckets_ns {
            histogram
                .0
                .record_n(value, count)
                .map_err(D::Error::custom)?;
        }
        Ok(histogram)
    }
}

//! Summaries of repetitions: the median, and the interval in which the median of a repeat lies.
//!
//! A reader of "1682 ±31" asks what the same command would have printed a minute later. The answer is
//! the prediction interval of the median of as many further repetitions (Hahn and Meeker,
//! *Statistical Intervals*, give it for means): with `n` repetitions of standard deviation `s`
//!
//! ```text
//!     median ± t(97.5 %, n − 1) · s · √(2 · v(n))
//! ```
//! where `v(n)` is the variance of the median of `n` standard normal values; twice, because both
//! medians vary. It is wider than the 95 % interval of the median, which it therefore also is. The
//! interval from order statistics, which assumes no distribution, would hold a repeat's median 83
//! times of 100 with five repetitions, and needs nine for 95.

use super::{CellResult, METRICS, Repetition, Summary};
use crate::system::foreign::LOUD;

/// Student's t for 97.5 %, by degrees of freedom from 1 (tables of Fisher and Yates).
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// The variance of the median of n standard normal values, by n from 2 (Teichroew, *Tables of
/// expected values of order statistics*, 1956).
const MEDIAN_VARIANCE: [f64; 9] = [
    0.5000, 0.4487, 0.2982, 0.2868, 0.2147, 0.2104, 0.1682, 0.1661, 0.1383,
];

impl CellResult {
    /// Sums up the figures of its repetitions.
    pub(crate) fn summarize(&mut self) {
        let figures = METRICS.iter().filter_map(|metric| {
            let repetitions = self.repetitions.iter();
            let values: Vec<f64> = repetitions
                .filter_map(|repetition| repetition.metrics.get(metric.name).copied())
                .collect();
            Some((metric.name.to_owned(), Summary::of(&values)?))
        });
        self.summary = figures.collect();
        self.disturbed = self.repetitions.iter().any(Repetition::is_disturbed);
    }

    /// Puts a repetition in the place of the most disturbed one, if it is calmer; returns true if
    /// it did.
    pub(crate) fn replace_disturbed(&mut self, again: Repetition) -> bool {
        let noise = |repetition: &Repetition| repetition.other_cores.unwrap_or(0.0);
        let worst = self
            .repetitions
            .iter_mut()
            .filter(|repetition| repetition.is_disturbed())
            .max_by(|a, b| noise(a).total_cmp(&noise(b)));
        let Some(worst) = worst.filter(|worst| noise(&again) < noise(worst)) else {
            return false;
        };
        *worst = again;
        self.summarize();
        true
    }
}

impl Repetition {
    /// Returns true if other processes used so much of the machine that its figures may be wrong.
    pub(crate) fn is_disturbed(&self) -> bool {
        self.other_cores.is_some_and(|cores| cores >= LOUD)
    }
}

impl Summary {
    /// Sums up one value a repetition. `None`: there is none. The interval of a lone value is that
    /// value: `n` says that nothing is known about it.
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        let mut sorted: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let median = median(&sorted)?;
        let half = half_width(&sorted);
        // Keep the interval above zero for figures that cannot be negative.
        let floor = match sorted.first() {
            Some(&least) if least >= 0.0 => 0.0,
            _ => f64::NEG_INFINITY,
        };
        Some(Self {
            median,
            low: (median - half).max(floor),
            high: median + half,
            n: sorted.len() as u64,
        })
    }
}

/// Returns the median of sorted values.
fn median(sorted: &[f64]) -> Option<f64> {
    let upper = *sorted.get(sorted.len() / 2)?;
    let lower = *sorted.get(sorted.len().checked_sub(1)? / 2)?;
    Some(f64::midpoint(lower, upper))
}

fn half_width(values: &[f64]) -> f64 {
    let n = values.len();
    if n < 2 {
        return 0.0;
    }
    let mean = values.iter().sum::<f64>() / n as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let deviation = (squares / (n - 1) as f64).sqrt();
    student(n - 1) * deviation * (2.0 * median_variance(n)).sqrt()
}

fn student(freedom: usize) -> f64 {
    // Beyond the table the first terms of its expansion around the normal quantile.
    let z = 1.959_964_f64;
    STUDENT
        .get(freedom - 1)
        .copied()
        .unwrap_or_else(|| z + (z.powi(3) + z) / (4.0 * freedom as f64))
}

fn median_variance(n: usize) -> f64 {
    // Beyond the table use the limit π/2n, an upper bound.
    MEDIAN_VARIANCE
        .get(n - 2)
        .copied()
        .unwrap_or_else(|| std::f64::consts::FRAC_PI_2 / n as f64)
}

#[cfg(test)]
mod tests {
    use hybriq_sim::Rng;

    use super::Summary;
    use crate::report::results::{CellResult, Repetition};

    fn beside(cores: f64, rate: f64) -> Repetition {
        let metrics = [("connections_per_second".to_owned(), rate)];
        Repetition {
            other_cores: Some(cores),
            metrics: metrics.into(),
            ..Repetition::default()
        }
    }

    #[test]
    fn a_calmer_repetition_takes_the_place_of_the_most_disturbed_one() {
        let mut cell = CellResult {
            repetitions: vec![beside(0.02, 100.0), beside(0.4, 40.0), beside(0.2, 80.0)],
            ..CellResult::default()
        };
        cell.summarize();
        assert!(cell.disturbed);
        assert!(!cell.replace_disturbed(beside(0.5, 10.0)), "worse still");
        assert!(cell.replace_disturbed(beside(0.0, 101.0)));
        assert!(cell.disturbed, "another one is left");
        assert!(cell.replace_disturbed(beside(0.1, 102.0)));
        assert!(!cell.disturbed);
        assert!(!cell.replace_disturbed(beside(0.0, 1.0)), "all are good");
        close(cell.summary["connections_per_second"].median, 101.0);
        assert_eq!(cell.repetitions.len(), 3);
    }

    #[test]
    fn a_repetition_is_disturbed_from_a_sixth_of_a_core_on() {
        assert!(!beside(0.149, 1.0).is_disturbed());
        assert!(beside(0.15, 1.0).is_disturbed());
        assert!(!Repetition::default().is_disturbed(), "unknown");
    }

    fn close(value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-3, "{value}, not {expected}");
    }

    #[test]
    fn a_lone_value_has_no_width() {
        let summary = Summary::of(&[7.0]).unwrap();
        assert_eq!(
            summary,
            Summary {
                median: 7.0,
                low: 7.0,
                high: 7.0,
                n: 1
            }
        );
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(Summary::of(&[f64::NAN]), None);
    }

    #[test]
    fn five_values_have_the_interval_worked_out_by_hand() {
        // s² = 2.5, t(4) = 2.776, v(5) = 0.2868: 2.776 · √2.5 · √0.5736 = 3.3242
        let summary = Summary::of(&[12.0, 10.0, 14.0, 11.0, 13.0]).unwrap();
        close(summary.median, 12.0);
        close(summary.low, 12.0 - 3.3242);
        close(summary.high, 12.0 + 3.3242);
    }

    #[test]
    fn the_median_of_an_even_number_lies_between_the_middle_two() {
        close(Summary::of(&[4.0, 1.0, 3.0, 2.0]).unwrap().median, 2.5);
    }

    #[test]
    fn what_is_never_negative_is_not_said_to_become_so() {
        let summary = Summary::of(&[0.0, 0.0, 9.0]).unwrap();
        close(summary.low, 0.0);
        assert!(Summary::of(&[-1.0, 5.0]).unwrap().low < -1.0);
    }

    #[test]
    fn equal_values_have_no_width_and_more_values_a_smaller_one() {
        close(Summary::of(&[3.0; 6]).unwrap().high, 3.0);
        let width = |n: usize| {
            let values: Vec<f64> = (0..n).map(|i| (i % 2) as f64).collect();
            let summary = Summary::of(&values).unwrap();
            summary.high - summary.median
        };
        assert!(width(4) > width(10) && width(10) > width(32) && width(32) > width(200));
    }

    /// Normal values, from a fixed seed: sums of twelve uniform ones.
    fn normal(random: &mut Rng) -> f64 {
        let mut uniform = || (random.draw() >> 11) as f64 / (1_u64 << 53) as f64;
        (0..12).map(|_| uniform()).sum::<f64>() - 6.0
    }

    #[test]
    fn a_repeat_has_its_median_in_the_interval_95_times_of_100() {
        let mut random = Rng::new(7);
        for n in [3, 5, 8, 20] {
            let mut run = || {
                let values: Vec<f64> = (0..n).map(|_| 1000.0 + normal(&mut random)).collect();
                Summary::of(&values).unwrap()
            };
            let within = (0..20_000)
                .filter(|_| {
                    let (first, second) = (run(), run());
                    (first.low..=first.high).contains(&second.median)
                })
                .count() as f64
                / 20_000.0;
            assert!((0.94..0.965).contains(&within), "{within} with {n}");
        }
    }
}

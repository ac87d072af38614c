//! Scheduled times of an open loop.

use std::time::Duration;

use hybriq_sim::Rng;
use tokio::time::Instant;

use crate::scenario;

/// Seed of random arrivals; every run has the same.
const SEED: u64 = 0x6e65_7462_656e_6368;

/// Points in time, one for each arrival.
pub(crate) struct Arrivals {
    next: Instant,
    begin: Instant,
    rate: f64,
    spacing: scenario::Arrivals,
    /// Number of arrivals so far.
    count: u64,
    /// Seconds from the start to the next random arrival.
    elapsed: f64,
    random: Rng,
}

impl Arrivals {
    /// Returns `rate` arrivals a second.
    pub(crate) fn new(begin: Instant, rate: f64, spacing: scenario::Arrivals) -> Self {
        let mut arrivals = Self {
            next: begin,
            begin,
            rate,
            spacing,
            count: 0,
            elapsed: 0.0,
            random: Rng::new(SEED),
        };
        if spacing == scenario::Arrivals::Poisson {
            arrivals.advance();
        }
        arrivals
    }

    /// Returns the time of the next arrival.
    pub(crate) fn due(&self) -> Instant {
        self.next
    }

    /// Advances to the following arrival.
    pub(crate) fn advance(&mut self) {
        self.count += 1;
        let seconds = match self.spacing {
            scenario::Arrivals::Constant => self.count as f64 / self.rate,
            scenario::Arrivals::Poisson => {
                // Times between independent arrivals are distributed exponentially.
                self.elapsed -= self.uniform().ln() / self.rate;
                self.elapsed
            }
        };
        // A rate so low that the next arrival never comes gets one year.
        let year = Duration::from_hours(365 * 24);
        self.next = self.begin
            + Duration::try_from_secs_f64(seconds)
                .unwrap_or(year)
                .min(year);
    }

    /// Returns a number above 0 and up to 1.
    fn uniform(&mut self) -> f64 {
        ((self.random.draw() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::Arrivals;
    use crate::scenario::Arrivals as Spacing;

    fn times(spacing: Spacing, count: usize) -> Vec<f64> {
        let begin = Instant::now();
        let mut arrivals = Arrivals::new(begin, 1000.0, spacing);
        (0..count)
            .map(|_| {
                let due = arrivals.due();
                arrivals.advance();
                (due - begin).as_secs_f64()
            })
            .collect()
    }

    #[test]
    fn constant_arrivals_are_spaced_evenly_and_do_not_drift() {
        let times = times(Spacing::Constant, 100_001);
        assert!(times[0].abs() < 1e-9);
        assert!((times[1] - 0.001).abs() < 1e-8);
        assert!((times[100_000] - 100.0).abs() < 1e-6);
    }

    #[test]
    fn random_arrivals_keep_the_rate_and_are_the_same_every_time() {
        let first = times(Spacing::Poisson, 100_000);
        assert_eq!(first, times(Spacing::Poisson, 100_000));
        let last = first.last().unwrap();
        assert!((last - 100.0).abs() < 1.0, "{last}");
        // The standard deviation of exponential gaps equals their mean.
        let gaps: Vec<f64> = first.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let squares: f64 = gaps.iter().map(|gap| (gap - 0.001).powi(2)).sum();
        let deviation = (squares / gaps.len() as f64).sqrt();
        assert!((deviation - 0.001).abs() < 0.000_02, "{deviation}");
    }

    #[test]
    fn a_rate_next_to_nothing_does_no_harm() {
        let begin = Instant::now();
        let mut arrivals = Arrivals::new(begin, f64::MIN_POSITIVE, Spacing::Constant);
        arrivals.advance();
        assert!(arrivals.due() > begin + Duration::from_hours(1));
    }
}

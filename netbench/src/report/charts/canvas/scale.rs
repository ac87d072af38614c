//! Mapping of numbers to places on an axis.

/// Kind of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Linear,
    /// Every decade has the same length.
    Log,
    /// Quantiles from 0 to below 1; every nine has the same length: 90 %, 99 %, 99.9 %, …
    Tail,
}

/// Axis between two numbers and two places.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Scale {
    kind: Kind,
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    step: f64,
}

impl Scale {
    /// Returns a scale from a round number to a round number that covers both, with about `ticks`
    /// ticks.
    pub(crate) fn covering(kind: Kind, (low, high): (f64, f64), ticks: usize) -> Self {
        let (low, high, step) = match kind {
            Kind::Linear => round_linear(low, high, ticks),
            Kind::Log => round_log(low, high),
            Kind::Tail if high.is_nan() => (0.0, 0.9, 1.0),
            Kind::Tail => (0.0, high.clamp(0.9, 0.999_999), 1.0),
        };
        Self {
            kind,
            low,
            high,
            from: 0.0,
            to: 1.0,
            step,
        }
    }

    /// Returns a scale like [`covering`](Self::covering) that ends at the numbers themselves.
    pub(crate) fn exactly((low, high): (f64, f64), ticks: usize) -> Self {
        let (_, _, step) = round_linear(low, high, ticks);
        let high = if high > low { high } else { low + 1.0 };
        Self {
            kind: Kind::Linear,
            low,
            high,
            from: 0.0,
            to: 1.0,
            step,
        }
    }

    /// Sets the places of its ends.
    pub(crate) fn between(mut self, from: f64, to: f64) -> Self {
        (self.from, self.to) = (from, to);
        self
    }

    /// Returns the place of a number; that of the nearer end if it lies outside.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let bounded = value.clamp(self.low, self.high);
        let share = match self.kind {
            Kind::Linear => (bounded - self.low) / (self.high - self.low),
            Kind::Log => (bounded / self.low).ln() / (self.high / self.low).ln(),
            Kind::Tail => nines(bounded) / nines(self.high),
        };
        let share = if share.is_finite() && !value.is_nan() {
            share
        } else {
            0.0
        };
        self.from + share * (self.to - self.from)
    }

    /// Returns the least number on it.
    pub(crate) fn low(&self) -> f64 {
        self.low
    }

    /// Returns the largest number on it.
    pub(crate) fn high(&self) -> f64 {
        self.high
    }

    /// Returns the distance between two ticks on a linear axis.
    pub(crate) fn step(&self) -> f64 {
        self.step
    }

    /// Returns the numbers written along the axis.
    pub(crate) fn ticks(&self) -> Vec<f64> {
        match self.kind {
            Kind::Linear => {
                let first = (self.low / self.step - 1e-6).ceil();
                let count = ((self.high / self.step + 1e-6).floor() - first).clamp(0.0, 50.0);
                (0..=count as usize)
                    .map(|index| (first + index as f64) * self.step)
                    .collect()
            }
            Kind::Log => self.log_ticks(),
            Kind::Tail => [0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999_999]
                .into_iter()
                .filter(|&tick| tick <= self.high * (1.0 + 1e-12))
                .collect(),
        }
    }

    /// Returns powers of ten, and 2 and 5 times them on a short axis.
    fn log_ticks(&self) -> Vec<f64> {
        let decades = (self.high / self.low).log10();
        let multiples: &[f64] = if decades <= 2.5 {
            &[1.0, 2.0, 5.0]
        } else {
            &[1.0]
        };
        let first = self.low.log10().floor() as i32;
        let last = self.high.log10().ceil() as i32;
        let every = ((last - first) / 10 + 1).unsigned_abs() as usize;
        (first..=last)
            .step_by(every)
            .flat_map(|power| {
                multiples
                    .iter()
                    .map(move |times| times * 10_f64.powi(power))
            })
            .filter(|tick| *tick >= self.low * 0.999 && *tick <= self.high * 1.001)
            .collect()
    }
}

/// Returns the number of nines of a quantile, with fractions.
fn nines(quantile: f64) -> f64 {
    -(1.0 - quantile).max(1e-9).log10()
}

/// Returns round ends around both numbers and the step between ticks: 1, 2 or 5 times a power of
/// ten.
fn round_linear(low: f64, high: f64, ticks: usize) -> (f64, f64, f64) {
    let low = if low.is_finite() { low } else { 0.0 };
    let high = if high.is_finite() && high > low {
        high
    } else {
        low + low.abs().max(1.0)
    };
    let rough = (high - low) / ticks.max(1) as f64;
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0]
        .into_iter()
        .map(|times| times * power)
        .find(|step| *step >= rough * 0.999)
        .unwrap_or(10.0 * power);
    (
        (low / step + 1e-9).floor() * step,
        (high / step - 1e-9).ceil() * step,
        step,
    )
}

/// Returns 1, 2 or 5 times powers of ten around both numbers.
fn round_log(low: f64, high: f64) -> (f64, f64, f64) {
    let low = if low.is_finite() && low > 0.0 {
        low
    } else {
        1.0
    };
    let high = if high.is_finite() && high > low {
        high
    } else {
        low * 10.0
    };
    let power = |value: f64| 10_f64.powf(value.log10().floor());
    let below = [5.0, 2.0, 1.0]
        .into_iter()
        .map(|times| times * power(low))
        .find(|round| *round <= low * 1.000_001)
        .unwrap_or(low);
    let above = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|times| times * power(high))
        .find(|round| *round >= high * 0.999_999)
        .unwrap_or(high);
    (below, above.max(below * 2.0), 1.0)
}

#[cfg(test)]
mod tests {
    use super::{Kind, Scale};

    fn ticks(kind: Kind, bounds: (f64, f64), about: usize) -> Vec<f64> {
        Scale::covering(kind, bounds, about).ticks()
    }

    #[test]
    fn linear_ticks_are_round_and_cover_the_figures() {
        assert_eq!(
            ticks(Kind::Linear, (0.0, 97.0), 5),
            [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]
        );
        assert_eq!(
            ticks(Kind::Linear, (0.0, 1.0), 4),
            [0.0, 0.25, 0.5, 0.75, 1.0]
        );
        assert_eq!(
            ticks(Kind::Linear, (-12.0, 9.0), 4),
            [-20.0, -10.0, 0.0, 10.0]
        );
        assert_eq!(
            ticks(Kind::Linear, (2710.0, 2990.0), 4),
            [2700.0, 2800.0, 2900.0, 3000.0]
        );
    }

    #[test]
    fn every_axis_has_an_extent_whatever_it_is_to_cover() {
        let odd = [
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            0.0,
            -1.0,
            1e300,
            1e-300,
        ];
        for kind in [Kind::Linear, Kind::Log, Kind::Tail] {
            for low in odd {
                for high in odd {
                    let scale = Scale::covering(kind, (low, high), 5).between(0.0, 100.0);
                    assert!(scale.ticks().len() <= 64, "{kind:?} {low} {high}");
                    for value in odd {
                        let place = scale.at(value);
                        assert!(
                            place.is_nan() || (-0.001..=100.001).contains(&place),
                            "{kind:?} {low} {high} {value}: {place}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn a_long_logarithmic_axis_has_powers_of_ten_a_short_one_more() {
        assert_eq!(
            ticks(Kind::Log, (3.0, 90_000.0), 5),
            [10.0, 100.0, 1000.0, 10_000.0, 100_000.0]
        );
        assert_eq!(
            ticks(Kind::Log, (30.0, 450.0), 5),
            [20.0, 50.0, 100.0, 200.0, 500.0]
        );
    }

    #[test]
    fn each_nine_is_as_long_as_the_next() {
        let scale = Scale::covering(Kind::Tail, (0.0, 0.9999), 5).between(0.0, 400.0);
        assert_eq!(scale.ticks(), [0.0, 0.5, 0.9, 0.99, 0.999, 0.9999]);
        for (quantile, place) in [(0.0, 0.0), (0.9, 100.0), (0.99, 200.0), (0.9999, 400.0)] {
            assert!((scale.at(quantile) - place).abs() < 1e-6, "{quantile}");
        }
    }

    #[test]
    fn an_axis_may_run_upwards() {
        let scale = Scale::covering(Kind::Linear, (0.0, 10.0), 5).between(200.0, 0.0);
        assert!((scale.at(0.0) - 200.0).abs() < 1e-9);
        assert!((scale.at(2.5) - 150.0).abs() < 1e-9);
        assert!((scale.at(99.0)).abs() < 1e-9);
    }
}

//! Ratios of two metrics, with their confidence intervals.

use crate::report::results::Summary;

/// A ratio of two medians.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ratio {
    pub(crate) value: f64,
    /// Ends of the 95 % confidence interval; `None` with one repetition, which has no spread. An
    /// end of 0 or infinity is none: the repetitions do not bound that side.
    interval: Option<(f64, f64)>,
}

impl Ratio {
    /// Returns the ratio; `None` if either median is not above 0.
    ///
    /// The interval is derived from both figures' own (Donner and Zou 2012, "MOVER"), on
    /// logarithms, where a ratio is a difference: the distances from the medians to the ends add up
    /// like the sides of a right-angled triangle. A summary's interval is that of a repeat, which
    /// is √2 as wide as that of the median itself.
    pub(crate) fn of(this: Summary, base: Summary) -> Option<Self> {
        let is_repeated = this.n > 1 && base.n > 1;
        let (this, base) = (Logarithms::of(this)?, Logarithms::of(base)?);
        let value = this.median - base.median;
        let side = |a: f64, b: f64| a.hypot(b) * std::f64::consts::FRAC_1_SQRT_2;
        let below = side(this.median - this.low, base.high - base.median);
        let above = side(this.high - this.median, base.median - base.low);
        Some(Self {
            value: value.exp(),
            interval: is_repeated.then(|| ((value - below).exp(), (value + above).exp())),
        })
    }

    /// Returns the ratio of the base to this.
    pub(crate) fn inverse(self) -> Self {
        Self {
            value: 1.0 / self.value,
            interval: self.interval.map(|(low, high)| (1.0 / high, 1.0 / low)),
        }
    }

    /// Returns the ratio as a change: 12.0 is 12 % more.
    pub(crate) fn percent(self) -> f64 {
        as_percent(self.value)
    }

    /// Returns the interval as changes.
    pub(crate) fn percent_interval(self) -> Option<(f64, f64)> {
        let (low, high) = self.interval?;
        Some((as_percent(low), as_percent(high)))
    }

    /// Returns true if there is an interval, and it does not contain 1.
    pub(crate) fn is_certain(self) -> bool {
        // Rounding may move equal values slightly away from 1.
        let (low, high) = self.interval.unwrap_or((1.0, 1.0));
        low > 1.0 + 1e-9 || high < 1.0 - 1e-9
    }

    /// Returns the interval of the ratio.
    pub(crate) fn interval(self) -> Option<(f64, f64)> {
        self.interval
    }
}

fn as_percent(ratio: f64) -> f64 {
    (ratio - 1.0) * 100.0
}

struct Logarithms {
    median: f64,
    low: f64,
    high: f64,
}

impl Logarithms {
    /// Returns the interval. One that reaches down to 0 has no lower end, because there is no ratio
    /// to 0.
    fn of(summary: Summary) -> Option<Self> {
        let Summary {
            median, low, high, ..
        } = summary;
        if !(median > 0.0 && median.is_finite()) {
            return None;
        }
        Some(Self {
            median: median.ln(),
            low: low.min(median).max(0.0).ln(),
            high: high.max(median).ln(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Ratio;
    use crate::report::results::Summary;

    fn summary(low: f64, median: f64, high: f64) -> Summary {
        Summary {
            median,
            low,
            high,
            n: 5,
        }
    }

    #[test]
    fn a_ratio_to_a_figure_without_spread_has_the_spread_of_the_other() {
        let ratio = Ratio::of(summary(108.0, 112.0, 116.0), summary(100.0, 100.0, 100.0)).unwrap();
        assert!((ratio.percent() - 12.0).abs() < 1e-9, "{ratio:?}");
        let (low, high) = ratio.percent_interval().unwrap();
        assert!((9.0..9.3).contains(&low), "4/√2 below 12: {ratio:?}");
        assert!((14.7..15.0).contains(&high), "4/√2 above 12: {ratio:?}");
        assert!(ratio.is_certain());
    }

    #[test]
    fn spreads_of_both_sides_add_up() {
        let wide = summary(90.0, 100.0, 110.0);
        let ratio = Ratio::of(wide, wide).unwrap();
        assert!((ratio.value - 1.0).abs() < 1e-12);
        let (low, high) = ratio.percent_interval().unwrap();
        assert!((-11.0..-9.0).contains(&low), "{low}");
        assert!((9.0..11.0).contains(&high), "{high}");
        assert!(!ratio.is_certain());
    }

    #[test]
    fn nothing_can_be_said_of_zero_and_of_what_is_no_number() {
        let one = summary(1.0, 1.0, 1.0);
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Ratio::of(summary(bad, bad, bad), one), None);
            assert_eq!(Ratio::of(one, summary(bad, bad, bad)), None);
        }
        let odd = Ratio::of(summary(f64::NAN, 2.0, f64::INFINITY), one).unwrap();
        let (low, high) = odd.interval().unwrap();
        assert!(low > 1.9 && high.is_infinite(), "{low} … {high}");
    }

    #[test]
    fn a_side_that_the_repetitions_do_not_bound_has_no_end() {
        let (wide, narrow) = (summary(0.0, 100.0, 240.0), summary(99.0, 100.0, 101.0));
        let ratio = Ratio::of(narrow, wide).unwrap();
        let (low, high) = ratio.percent_interval().unwrap();
        assert!((-60.0..-30.0).contains(&low), "{low}");
        assert!(high.is_infinite(), "the base may be next to nothing");
        let ratio = Ratio::of(wide, narrow).unwrap();
        let (low, high) = ratio.percent_interval().unwrap();
        assert!(low <= -100.0);
        assert!((50.0..150.0).contains(&high), "{high}");
        assert!(!ratio.is_certain());
        let ratio = Ratio::of(wide, wide).unwrap();
        assert_eq!(ratio.percent_interval(), Some((-100.0, f64::INFINITY)));
        let far = Ratio::of(summary(900.0, 1000.0, 1100.0), wide).unwrap();
        assert!(far.is_certain(), "one bound is enough: {far:?}");
    }

    #[test]
    fn a_single_repetition_makes_nothing_certain() {
        let once = |median: f64| Summary {
            n: 1,
            ..summary(median, median, median)
        };
        let ratio = Ratio::of(once(2.0), once(1.0)).unwrap();
        assert_eq!(ratio.interval(), None);
        assert!(!ratio.is_certain());
        let exact = Ratio::of(summary(2.0, 2.0, 2.0), summary(1.0, 1.0, 1.0)).unwrap();
        assert!(exact.is_certain(), "repeated, and the same each time");
    }
}

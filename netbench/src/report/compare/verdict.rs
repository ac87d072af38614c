//! Verdicts on a change.

use serde::Serialize;

use super::is_worse;
use crate::report::ratio::Ratio;
use crate::report::results::{Better, Summary};

/// Verdict on a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Verdict {
    Better,
    Worse,
    Same,
    CannotTell,
}

impl Verdict {
    /// Judges two measurements; `threshold` in percent.
    ///
    /// Better or worse: the change exceeds the threshold, and its interval does not contain "no
    /// change". The same: the interval lies within the threshold, or the change is certain and
    /// small. Everything else is unclear and needs more repetitions.
    pub(crate) fn of(better: Better, before: Summary, after: Summary, threshold: f64) -> Self {
        let Some(ratio) = Ratio::of(after, before) else {
            return Self::of_zero(better, before, after);
        };
        let Some((low, high)) = ratio.percent_interval() else {
            return Self::CannotTell;
        };
        let change = ratio.percent();
        let is_large = change.abs() > threshold;
        if is_large && ratio.is_certain() {
            return if is_worse(better, change) {
                Self::Worse
            } else {
                Self::Better
            };
        }
        let is_small = low >= -threshold && high <= threshold;
        if !is_large && (is_small || ratio.is_certain()) {
            Self::Same
        } else {
            Self::CannotTell
        }
    }

    /// Judges a change to or from 0, which has no ratio: the intervals must be apart.
    fn of_zero(better: Better, before: Summary, after: Summary) -> Self {
        if before == after {
            return Self::Same;
        }
        let are_apart = before.high < after.low || after.high < before.low;
        if !are_apart || before.n < 2 || after.n < 2 {
            return Self::CannotTell;
        }
        if is_worse(better, after.median - before.median) {
            Self::Worse
        } else {
            Self::Better
        }
    }

    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "WORSE",
            Self::Same => "the same",
            Self::CannotTell => "cannot tell",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Verdict;
    use crate::report::results::{Better, Summary};

    fn summary(median: f64, half: f64, n: u64) -> Summary {
        Summary {
            median,
            low: median - half,
            high: median + half,
            n,
        }
    }

    fn verdict(before: Summary, after: Summary) -> Verdict {
        Verdict::of(Better::Lower, before, after, 5.0)
    }

    #[test]
    fn a_change_counts_only_where_it_is_certain_and_beyond_the_threshold() {
        let before = summary(100.0, 1.0, 5);
        assert_eq!(verdict(before, summary(110.0, 1.0, 5)), Verdict::Worse);
        assert_eq!(verdict(before, summary(90.0, 1.0, 5)), Verdict::Better);
        assert_eq!(
            verdict(before, summary(103.0, 0.1, 5)),
            Verdict::Same,
            "certain but small"
        );
        assert_eq!(
            verdict(before, summary(110.0, 30.0, 5)),
            Verdict::CannotTell,
            "large but uncertain"
        );
        assert_eq!(
            verdict(before, summary(101.0, 2.0, 5)),
            Verdict::Same,
            "shown to be small"
        );
        assert_eq!(
            verdict(before, summary(101.0, 20.0, 5)),
            Verdict::CannotTell,
            "may be large"
        );
    }

    #[test]
    fn more_is_worse_only_where_less_is_better() {
        let (low, high) = (summary(100.0, 1.0, 5), summary(120.0, 1.0, 5));
        assert_eq!(Verdict::of(Better::Higher, low, high, 5.0), Verdict::Better);
        assert_eq!(Verdict::of(Better::Higher, high, low, 5.0), Verdict::Worse);
        assert_eq!(Verdict::of(Better::Lower, high, low, 5.0), Verdict::Better);
    }

    #[test]
    fn one_repetition_tells_nothing() {
        assert_eq!(
            verdict(summary(100.0, 0.0, 1), summary(200.0, 0.0, 1)),
            Verdict::CannotTell
        );
    }

    #[test]
    fn from_nothing_to_something_is_a_change() {
        let zero = summary(0.0, 0.0, 5);
        assert_eq!(verdict(zero, zero), Verdict::Same);
        assert_eq!(verdict(zero, summary(3.0, 1.0, 5)), Verdict::Worse);
        assert_eq!(verdict(summary(3.0, 1.0, 5), zero), Verdict::Better);
        assert_eq!(verdict(zero, summary(3.0, 4.0, 5)), Verdict::CannotTell);
        assert_eq!(
            verdict(zero, summary(f64::NAN, f64::NAN, 5)),
            Verdict::CannotTell
        );
    }
}

//! Verdicts of experiments: an interval has to exclude the other answer.

use serde::{Deserialize, Serialize};

use crate::report::results::Summary;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    Agrees,
    Differs,
    /// The intervals are too wide for a verdict.
    Unclear,
    /// The compared values were not measured.
    #[default]
    Unknown,
}

impl From<bool> for Verdict {
    fn from(agrees: bool) -> Self {
        if agrees { Self::Agrees } else { Self::Differs }
    }
}

impl Verdict {
    /// Judges whether a value is in a range. The interval has to exclude the other answer, and one
    /// repetition has none.
    pub(crate) fn within(value: Summary, low: f64, high: f64) -> Self {
        if value.n < 2 {
            Self::Unclear
        } else if value.low >= low && value.high <= high {
            Self::Agrees
        } else if value.low > high || value.high < low {
            Self::Differs
        } else {
            Self::Unclear
        }
    }

    /// Returns the worse of two verdicts.
    pub(crate) fn and(self, other: Self) -> Self {
        let worse = [Self::Unknown, Self::Differs, Self::Unclear];
        let found = worse.into_iter().find(|it| [self, other].contains(it));
        found.unwrap_or(Self::Agrees)
    }

    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::Differs => "differs",
            Self::Unclear => "unclear",
            Self::Unknown => "unknown",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Summary, Verdict};

    #[test]
    fn a_verdict_needs_an_interval_that_excludes_the_other() {
        let of = |n, median, low, high| {
            let value = Summary {
                median,
                low,
                high,
                n,
            };
            Verdict::within(value, 80.0, 100.0)
        };
        let verdict = |median, low, high| of(5, median, low, high);
        assert_eq!(verdict(92.0, 90.0, 95.0), Verdict::Agrees);
        assert_eq!(verdict(92.0, 60.0, 120.0), Verdict::Unclear);
        assert_eq!(verdict(92.0, 70.0, 95.0), Verdict::Unclear);
        assert_eq!(of(1, 92.0, 92.0, 92.0), Verdict::Unclear, "one repetition");
        assert_eq!(of(1, 154.0, 154.0, 154.0), Verdict::Unclear);
        assert_eq!(verdict(70.0, 60.0, 85.0), Verdict::Unclear);
        assert_eq!(verdict(110.0, 99.0, 120.0), Verdict::Unclear);
        assert_eq!(verdict(70.0, 60.0, 79.0), Verdict::Differs);
    }

    #[test]
    fn of_two_verdicts_the_worse_stands() {
        let (agrees, unclear, differs) = (Verdict::Agrees, Verdict::Unclear, Verdict::Differs);
        assert_eq!(agrees.and(agrees), agrees);
        assert_eq!(agrees.and(unclear), unclear);
        assert_eq!(unclear.and(differs), differs);
        assert_eq!(differs.and(Verdict::Unknown), Verdict::Unknown);
    }
}

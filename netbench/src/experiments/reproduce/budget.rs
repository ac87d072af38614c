//! Time limits of the experiments.

use std::time::Duration;

use super::Experiment;

/// Time of all experiments of a quick run. The rest of its five minutes is for starting processes
/// and writing the report.
pub(super) const QUICK: Duration = Duration::from_secs(275);

/// Limits of one experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Budget {
    /// True in a quick run.
    pub(crate) quick: bool,
    /// Wall time that it should take. A full run uses the time of the published experiment, with
    /// bounds in case something hangs.
    pub(crate) time: Duration,
}

impl Budget {
    /// Returns the value for a quick run, or that for a full one.
    pub(crate) fn choose<T>(&self, quick: T, full: T) -> T {
        if self.quick { quick } else { full }
    }
}

impl Budget {
    /// Returns the time for each of this number of cells such that each can be measured four times:
    /// fewer repetitions have intervals that exclude nothing.
    pub(super) fn cell(&self, cells: u32) -> Duration {
        self.time / (4 * cells.max(1))
    }
}

/// Length of a run of all experiments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    /// This time for all experiments, with fewer repetitions than were published.
    Quick(Duration),
    /// As long as the published experiments need.
    Full,
}

/// Distribution of the time over the experiments by their weights.
#[derive(Clone, Debug)]
pub(super) struct Purse {
    length: Length,
    /// Sum of the weights of all experiments.
    total_weight: u32,
    /// Time planned for the experiments so far.
    planned: Duration,
}

impl Purse {
    /// Returns the time of a run whose experiments have this total weight.
    pub(super) fn new(length: Length, total_weight: u32) -> Self {
        Self {
            total_weight,
            length,
            planned: Duration::ZERO,
        }
    }

    /// Returns the share of the next experiment at this time. Excess of earlier ones is subtracted,
    /// down to half the share. A quick run of few experiments gives each only its share of all, so
    /// that it measures the same in both.
    pub(super) fn share(&mut self, experiment: &Experiment, elapsed: Duration) -> Budget {
        let time = if let Length::Quick(all) = self.length {
            let share = all * experiment.weight / self.total_weight;
            let late = elapsed.saturating_sub(self.planned);
            self.planned += share;
            share.saturating_sub(late).max(share / 2)
        } else {
            experiment.full
        };
        Budget {
            quick: self.length != Length::Full,
            time,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Length, Purse, QUICK};
    use crate::experiments::reproduce::experiments::{ALL, total_weight};

    #[test]
    fn a_quick_run_of_everything_keeps_to_its_time() {
        for time in [QUICK, Duration::from_mins(1)] {
            let mut purse = Purse::new(Length::Quick(time), total_weight());
            let mut elapsed = Duration::ZERO;
            for experiment in ALL {
                elapsed += purse.share(experiment, elapsed).time;
            }
            assert!(elapsed <= time && elapsed > time * 9 / 10);
        }
    }

    #[test]
    fn who_comes_after_one_that_took_too_long_gets_less() {
        let mut purse = Purse::new(Length::Quick(QUICK), total_weight());
        let first = purse.share(&ALL[0], Duration::ZERO).time;
        let late = first + Duration::from_secs(2);
        let second = purse.share(&ALL[1], late).time;
        let on_time = Purse::new(Length::Quick(QUICK), total_weight())
            .share(&ALL[1], Duration::ZERO)
            .time;
        assert!(
            on_time >= second + Duration::from_millis(1999),
            "{second:?}"
        );
        let third = purse.share(&ALL[2], late * 100).time;
        let on_time = Purse::new(Length::Quick(QUICK), total_weight())
            .share(&ALL[2], Duration::ZERO)
            .time;
        assert_eq!(third, on_time / 2);
    }

    #[test]
    fn a_full_run_has_the_time_that_the_experiments_need() {
        let share =
            Purse::new(Length::Full, total_weight()).share(&ALL[0], Duration::from_secs(9999));
        assert_eq!(share.time, ALL[0].full);
    }
}

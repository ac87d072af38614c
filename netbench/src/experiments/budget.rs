//! Time limits of the experiments.

use std::time::Duration;

use super::file::{Experiment, Size};

/// Time of all experiments of a quick run. The rest of its five minutes is for starting processes
/// and writing the report.
pub(super) const QUICK: Duration = Duration::from_secs(275);

/// Limits of one experiment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Budget {
    /// True in a quick run.
    pub(crate) quick: bool,
    /// Wall time that it should take. A full run uses the time of the published experiment, with
    /// bounds in case something hangs. `None`: as long as it takes.
    pub(crate) time: Option<Duration>,
}

/// Length of a run of all experiments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    /// This time for all experiments, with fewer repetitions than were published.
    Quick(Duration),
    /// As long as the published experiments need.
    Full,
}

impl Length {
    pub(super) fn size(self) -> Size {
        match self {
            Self::Quick(_) => Size::Quick,
            Self::Full => Size::Full,
        }
    }
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
            Duration::from_mins(experiment.minutes)
        };
        Budget {
            quick: self.length != Length::Full,
            time: Some(time),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Length, Purse, QUICK};
    use crate::experiments::all;
    use crate::experiments::file::Size;

    fn weights() -> u32 {
        all(Size::Quick).unwrap().iter().map(|it| it.weight).sum()
    }

    #[test]
    fn a_quick_run_of_everything_keeps_to_its_time() {
        for time in [QUICK, Duration::from_mins(1)] {
            let mut purse = Purse::new(Length::Quick(time), weights());
            let mut elapsed = Duration::ZERO;
            for experiment in &all(Size::Quick).unwrap() {
                elapsed += purse.share(experiment, elapsed).time.unwrap();
            }
            assert!(elapsed <= time && elapsed > time * 9 / 10);
        }
    }

    #[test]
    fn who_comes_after_one_that_took_too_long_gets_less() {
        let experiments = all(Size::Quick).unwrap();
        let share = |purse: &mut Purse, index: usize, elapsed| {
            purse.share(&experiments[index], elapsed).time.unwrap()
        };
        let fresh = || Purse::new(Length::Quick(QUICK), weights());
        let mut purse = fresh();
        let first = share(&mut purse, 0, Duration::ZERO);
        let late = first + Duration::from_secs(2);
        let second = share(&mut purse, 1, late);
        let on_time = share(&mut fresh(), 1, Duration::ZERO);
        assert!(
            on_time >= second + Duration::from_millis(1999),
            "{second:?}"
        );
        let third = share(&mut purse, 2, late * 100);
        assert_eq!(third, share(&mut fresh(), 2, Duration::ZERO) / 2);
        let mut full = Purse::new(Length::Full, weights());
        let share = share(&mut full, 0, Duration::from_secs(9999));
        assert_eq!(share, Duration::from_mins(experiments[0].minutes));
    }
}

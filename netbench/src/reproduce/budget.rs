//! How much work an experiment may be.

use std::time::Duration;

use super::experiments::Experiment;

/// What all experiments of a quick run may take together. The rest of its three minutes is for
/// starting processes and writing the report.
const QUICK: Duration = Duration::from_secs(140);

/// What one experiment may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Budget {
    /// Whether it is a quick run.
    pub(crate) quick: bool,
    /// Wall time that it should keep to. A full run has the time that the published experiment
    /// needs, and bounds for what should hang.
    pub(crate) time: Duration,
}

impl Budget {
    /// What a quick and what a full run do.
    pub(crate) fn choose<T>(&self, quick: T, full: T) -> T {
        if self.quick { quick } else { full }
    }
}

/// Divides the time over the experiments by their weights. A quick run of few experiments does not
/// give them more than their share of all: the same figure costs the same in both.
pub(super) fn divide(quick: bool, chosen: &[&Experiment]) -> Vec<Budget> {
    let all: u32 = super::experiments::ALL
        .iter()
        .map(|experiment| experiment.weight)
        .sum();
    let budget = |experiment: &&Experiment| Budget {
        quick,
        time: if quick {
            QUICK * experiment.weight / all.max(1)
        } else {
            experiment.full
        },
    };
    chosen.iter().map(budget).collect()
}

#[cfg(test)]
mod tests {
    use super::{QUICK, divide};
    use crate::reproduce::experiments::{self, ALL};

    #[test]
    fn a_quick_run_of_everything_keeps_to_its_time() {
        let all = experiments::choose(&[]).unwrap();
        let budgets = divide(true, &all);
        assert_eq!(budgets.len(), ALL.len());
        assert!(
            budgets
                .iter()
                .map(|budget| budget.time)
                .sum::<std::time::Duration>()
                <= QUICK
        );
        assert!(budgets.iter().all(|budget| budget.quick));
    }
}

//! The list of experiments.

use std::time::Duration;

use super::{Experiment, algorithms, breakdown, hierarchy, negotiation};
use super::{idle_timeout, latency, pool, rate, resumption, reuse};
use crate::system::failure::Failure;

/// All experiments, in the order of the report. A new one needs a file here and a line below:
///
/// ```text
/// Experiment { id, title, weight, full, run: |experiment, budget| Box::pin(rate::run(experiment, budget)) }
/// ```
pub(super) const ALL: &[Experiment] = &[
    Experiment {
        id: "rate",
        title: "Connection rate per key-exchange group",
        weight: 20,
        full: MINUTE.saturating_mul(30),
        run: |experiment, budget| Box::pin(rate::run(experiment, budget)),
    },
    Experiment {
        id: "reuse",
        title: "Request rate with and without connection reuse",
        weight: 25,
        full: MINUTE.saturating_mul(60),
        run: |experiment, budget| Box::pin(reuse::run(experiment, budget)),
    },
    Experiment {
        id: "latency",
        title: "Handshake latency: computing and the network",
        weight: 15,
        full: MINUTE.saturating_mul(30),
        run: |experiment, budget| Box::pin(latency::run(experiment, budget)),
    },
    Experiment {
        id: "pool",
        title: "Tuning: the size of a connection pool",
        weight: 20,
        full: MINUTE.saturating_mul(40),
        run: |experiment, budget| Box::pin(pool::run(experiment, budget)),
    },
    Experiment {
        id: "idle-timeout",
        title: "Tuning: the idle limit of connections",
        weight: 24,
        full: MINUTE.saturating_mul(20),
        run: |experiment, budget| Box::pin(idle_timeout::run(experiment, budget)),
    },
    Experiment {
        id: "resumption",
        title: "Tuning: session resumption",
        weight: 15,
        full: MINUTE.saturating_mul(20),
        run: |experiment, budget| Box::pin(resumption::run(experiment, budget)),
    },
    Experiment {
        id: "breakdown",
        title: "Where a TLS 1.3 handshake's time goes",
        weight: 8,
        full: MINUTE.saturating_mul(5),
        run: |experiment, budget| Box::pin(breakdown::run(experiment, budget)),
    },
    Experiment {
        id: "algorithms",
        title: "What the algorithms cost",
        weight: 4,
        full: MINUTE.saturating_mul(2),
        run: |experiment, budget| Box::pin(algorithms::run(experiment, budget)),
    },
    Experiment {
        id: "negotiation",
        title: "Which group is negotiated",
        weight: 2,
        full: MINUTE,
        run: |experiment, budget| Box::pin(negotiation::run(experiment, budget)),
    },
    Experiment {
        id: "ml-dsa",
        title: "ML-DSA certificates and mutual TLS",
        weight: 4,
        full: MINUTE.saturating_mul(2),
        run: |experiment, budget| Box::pin(hierarchy::run(experiment, budget)),
    },
];

const MINUTE: Duration = Duration::from_mins(1);

/// Returns the experiments with these ids, in the order of the list; all without ids.
pub(super) fn choose(ids: &[String]) -> Result<Vec<&'static Experiment>, Failure> {
    if let Some(unknown) = ids
        .iter()
        .find(|id| ALL.iter().all(|experiment| experiment.id != id.as_str()))
    {
        let known: Vec<_> = ALL.iter().map(|experiment| experiment.id).collect();
        return Err(format!(
            "no experiment is called `{unknown}`; there are {}",
            known.join(", ")
        )
        .into());
    }
    Ok(ALL
        .iter()
        .filter(|experiment| ids.is_empty() || ids.iter().any(|id| id == experiment.id))
        .collect())
}

/// Returns the sum of all weights.
pub(super) fn total_weight() -> u32 {
    let weights = ALL.iter().map(|experiment| experiment.weight);
    weights.sum::<u32>().max(1)
}

#[cfg(test)]
mod tests {
    use super::{ALL, choose};

    #[test]
    fn an_unknown_experiment_is_refused_with_the_list_of_known_ones() {
        let refused = choose(&["nonsense".to_owned()]).err().unwrap().to_string();
        assert!(refused.contains("`nonsense`"), "{refused}");
        for experiment in ALL {
            assert!(refused.contains(experiment.id), "{refused}");
        }
    }

    #[test]
    fn ids_are_distinct() {
        for (index, experiment) in ALL.iter().enumerate() {
            assert!(ALL[..index].iter().all(|other| other.id != experiment.id));
        }
    }
}

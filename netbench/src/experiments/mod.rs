//! Experiments: comparisons made of runs, described by files.
//!
//! ```text
//!  experiments/*.json ─► Experiment ─► parts: runs ──► Results ─┐
//!  (cells, published figures,     └──► handshakes ─────────────┼─► Section ─► Document: page, JSON,
//!   formulas, rule of agreement)                               ┘              Markdown, CSV, chart
//! ```
//! Absolute figures depend on the machine. What is compared is the shape: ratios, order, and the
//! distribution of time; each section says in one computed sentence whether it agrees.

mod budget;
mod expression;
mod file;
mod handshakes;
mod measured;
pub(crate) mod peers;
pub(crate) mod reproduce;
mod versus;

use std::time::Instant;

use budget::Budget;
use file::{Experiment, Size};
use measured::{Measured, begin, run_part};

use crate::report::document::Section;
use crate::report::results::Results;
use crate::system::failure::{Failure, with_causes};
use crate::system::terminal::complain;

/// Published experiments, in the order of their report.
const PUBLISHED: [&str; 10] = [
    include_str!("../../experiments/rate.json"),
    include_str!("../../experiments/reuse.json"),
    include_str!("../../experiments/latency.json"),
    include_str!("../../experiments/pool.json"),
    include_str!("../../experiments/idle-timeout.json"),
    include_str!("../../experiments/resumption.json"),
    include_str!("../../experiments/breakdown.json"),
    include_str!("../../experiments/algorithms.json"),
    include_str!("../../experiments/negotiation.json"),
    include_str!("../../experiments/ml-dsa.json"),
];

/// Returns all published experiments.
fn all(size: Size) -> Result<Vec<Experiment>, Failure> {
    let read = |text: &&str| Experiment::read(text, size);
    PUBLISHED.iter().map(read).collect()
}

/// Runs an experiment. The section's problems name what could not be measured.
async fn run(experiment: &Experiment, repetitions: Option<u32>, budget: &Budget) -> Section {
    let section = match experiment.handshakes {
        Some(what) => handshakes::section(experiment, what, budget.quick).await,
        None => run_parts(experiment, repetitions, budget).await,
    };
    section.unwrap_or_else(|failure| Section {
        problems: vec![with_causes(failure.as_ref())],
        ..begin(experiment)
    })
}

/// Runs the parts, each within its share of the time that is left.
async fn run_parts(
    experiment: &Experiment,
    repetitions: Option<u32>,
    budget: &Budget,
) -> Result<Section, Failure> {
    let started = Instant::now();
    let count = experiment.parts.len();
    let mut weight: u32 = experiment.parts.iter().map(|part| part.weight).sum();
    let (mut results, mut failures) = (Vec::new(), Vec::new());
    for (index, part) in experiment.parts.iter().enumerate() {
        let left = budget
            .time
            .map(|time| time.saturating_sub(started.elapsed()));
        let budget = Budget {
            time: left.map(|left| left * part.weight / weight.max(1)),
            ..*budget
        };
        weight = weight.saturating_sub(part.weight);
        if count > 1 {
            complain(&format!("{}/{count} {}", index + 1, part.id));
        }
        match run_part(experiment, part, repetitions, &budget).await {
            Ok(measured) => results.push(measured),
            // The other parts need a place among the results.
            Err(failure) if count > 1 => {
                failures.push(format!("{}: {failure}", part.id));
                results.push(measured::nothing(part)?);
            }
            Err(failure) => return Err(failure),
        }
        if results.last().is_some_and(Results::was_interrupted) {
            break;
        }
    }
    let measured = Measured {
        experiment,
        results: &results,
    };
    let mut section = match &experiment.versus {
        Some(versus) => versus.section(&measured),
        None => measured.section(),
    };
    section.problems.extend(failures);
    Ok(section.with_noise())
}

#[cfg(test)]
mod tests;

//! `netbench reproduce`: the published experiments, done again in kind, beside what was published.
//!
//! ```text
//!  experiments: list ──► run(&Budget) ──► Section ─┐
//!                        run(&Budget) ──► Section ─┼─► Reproduction ──► report.html
//!                        run(&Budget) ──► Section ─┘                └─► report.json
//! ```
//! Absolute figures belong to machines. What is compared is the shape: ratios, order, and where the
//! time goes; each section says in one computed sentence whether it agrees.

mod algorithms;
mod args;
mod breakdown;
mod budget;
mod document;
mod experiments;
mod figures;
#[cfg(test)]
mod fixed;
mod hierarchy;
mod idle_timeout;
mod latency;
mod measure;
mod negotiation;
mod page;
mod pool;
mod rate;
mod resumption;
mod reuse;
mod section;

use std::process::ExitCode;
use std::time::Instant;

use crate::Failure;
use crate::terminal::{complain, print};

pub(crate) use args::Args;
pub(crate) use budget::Budget;
pub(crate) use section::{Figure, Section, Table, Verdict};

use budget::Purse;
use document::Reproduction;
use experiments::Experiment;

/// Runs the experiments one after the other. After each one the report is written anew, so that
/// what was measured before something failed is kept.
pub(crate) async fn run(args: Args) -> Result<ExitCode, Failure> {
    let chosen = experiments::choose(&args.only)?;
    let out = args.outputs();
    let started = Instant::now();
    let mut purse = Purse::new(args.length());
    let mut reproduction = Reproduction::begin(args.length());
    reproduction.write(&out)?;
    for (index, experiment) in chosen.iter().enumerate() {
        announce(index, chosen.len(), experiment);
        let budget = purse.share(experiment, started.elapsed());
        let section = match (experiment.run)(experiment, &budget).await {
            Ok(section) => section,
            Err(failure) => Section::failed(experiment, failure.as_ref()),
        };
        for problem in &section.problems {
            complain(&format!("{}: {problem}", experiment.id));
        }
        let was_interrupted = section.was_interrupted();
        reproduction.sections.push(section);
        reproduction.write(&out)?;
        if was_interrupted {
            break;
        }
    }
    reproduction.finish(chosen.len());
    reproduction.write(&out)?;
    print(|to| reproduction.print(to, &out))?;
    Ok(if reproduction.complete {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn announce(index: usize, of: usize, experiment: &Experiment) {
    complain(&format!("{}/{of} {}", index + 1, experiment.title));
}

//! `netbench reproduce`: repeats published experiments, and compares with what was published.
//!
//! ```text
//!  experiments: list ──► run(&Budget) ──► Section ─┐
//!                        run(&Budget) ──► Section ─┼─► Reproduction ──► report.html
//!                        run(&Budget) ──► Section ─┘                └─► report.json
//! ```
//! Absolute figures depend on the machine. The comparison covers the shape: ratios, order, and the
//! distribution of time; each section says in one computed sentence whether it agrees.

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

use std::fs;
use std::pin::Pin;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::report::outputs;
use crate::system::failure::Failure;
use crate::system::files;
use crate::system::terminal::{complain, print};

pub(crate) use args::Args;
pub(crate) use budget::Budget;
pub(crate) use section::{Section, Value, ValueTable, Verdict};

use args::Outputs;
use budget::Purse;
use document::Reproduction;

/// A section that is being measured.
type Running<'a> = Pin<Box<dyn Future<Output = Result<Section, Failure>> + 'a>>;

/// A published experiment that can be repeated.
pub(crate) struct Experiment {
    /// Name on the command line, in JSON, and as the anchor in the report.
    pub(crate) id: &'static str,
    /// Headline of its section.
    pub(crate) title: &'static str,
    /// Its share of the time of a quick run.
    pub(crate) weight: u32,
    /// Time that it may take in a full run.
    pub(crate) full: Duration,
    /// Runs it. The section's problems name what could not be measured; an error means that nothing
    /// could.
    pub(crate) run: for<'a> fn(&'a Experiment, &'a Budget) -> Running<'a>,
}

/// Runs the experiments in sequence. The report is rewritten after each one, so that measurements
/// before a failure are kept.
pub(crate) async fn run(args: Args) -> Result<ExitCode, Failure> {
    let chosen = experiments::choose(&args.only)?;
    let out = args.outputs();
    let started = Instant::now();
    let mut purse = Purse::new(args.length(), experiments::total_weight());
    let mut reproduction = Reproduction::begin(args.length());
    write(&reproduction, &out)?;
    for (index, experiment) in chosen.iter().enumerate() {
        print_progress(index, chosen.len(), experiment);
        let budget = purse.share(experiment, started.elapsed());
        let section = match (experiment.run)(experiment, &budget).await {
            Ok(section) => section,
            Err(failure) => Section::failed(experiment, failure.as_ref()),
        };
        let section = section.with_noise();
        for problem in &section.problems {
            complain(&format!("{}: {problem}", experiment.id));
        }
        let was_interrupted = section.was_interrupted();
        reproduction.sections.push(section);
        if let Err(failure) = write(&reproduction, &out) {
            complain(&failure.to_string());
        }
        if was_interrupted {
            break;
        }
    }
    reproduction.finish(chosen.len());
    let printed = print(|to| reproduction.print(to, &out));
    let written = write(&reproduction, &out);
    let failures: Vec<Failure> = [printed.err(), written.err()]
        .into_iter()
        .flatten()
        .collect();
    if !failures.is_empty() {
        let rescued = files::rescue(&serde_json::to_vec(&reproduction)?);
        return Err(outputs::told(&failures, rescued));
    }
    Ok(if reproduction.complete {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Writes the report so far, as JSON and as HTML.
fn write(reproduction: &Reproduction, to: &Outputs) -> Result<(), Failure> {
    if let Some(folder) = to.html.parent() {
        fs::create_dir_all(folder)
            .map_err(|error| format!("cannot make the folder {}: {error}", folder.display()))?;
    }
    let json = serde_json::to_vec_pretty(reproduction)?;
    for (path, content) in [
        (&to.json, json),
        (&to.html, page::html(reproduction).into_bytes()),
    ] {
        files::write(path, &content)
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }
    Ok(())
}

/// Prints which experiment runs now.
fn print_progress(index: usize, of: usize, experiment: &Experiment) {
    complain(&format!("{}/{of} {}", index + 1, experiment.title));
}

//! `netbench merge`: combines the results of several clients.
//!
//! ```text
//!  A.json ─┐          same scenario,        repetitions of the same time ──► added up
//!  B.json ─┼─► fit ─► cells, version ─► cells                                            ─► M.json
//!  C.json ─┘                                others ──► further repetitions
//! ```
//! Clients of a fleet (`--fleet`) share a server process and begin together: they are added up
//! round by round, whatever their clocks say. Repetitions of other clients count as simultaneous if
//! they overlap by at least half according to their clocks.

pub(crate) mod combine;
mod fit;
mod samples;
mod together;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::report::results::Results;
use crate::system::failure::Failure;
use crate::system::terminal;
use crate::system::terminal::{complain, print};

/// Merges the results of clients that ran against the same servers, as those of a fleet.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Files that `netbench run --json` wrote, or logs of `netbench client --print-json`.
    #[arg(required = true, num_args = 1.., value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// File for the merged results; by default only their table is printed.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

/// One of the input files.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    /// Name in messages.
    name: String,
    results: Results,
}

/// Reads, merges, prints and writes.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let inputs = args.files.iter().map(Input::read);
    let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
    let merged = merge(&inputs)?;
    if let Some(out) = &args.out {
        fs::write(out, serde_json::to_vec(&merged)?)
            .map_err(|error| format!("cannot write {}: {error}", out.display()))?;
    }
    print(|out| merged.print(out, terminal::width()))?;
    for problem in &merged.problems {
        complain(problem);
    }
    Ok(if merged.complete {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Merges all results; fails if they do not belong together.
fn merge(inputs: &[Input]) -> Result<Results, Failure> {
    let missing = fit::check(inputs)?;
    let mut merged = inputs.first().ok_or("nothing to merge")?.results.clone();
    merged.about.merged = inputs
        .iter()
        .map(|input| input.results.about.clone())
        .collect();
    merged.problems = missing;
    for input in inputs {
        let problems = input.results.problems.iter();
        merged
            .problems
            .extend(problems.map(|problem| format!("{}: {problem}", input.name)));
        if !input.results.complete && input.results.problems.is_empty() {
            let name = &input.name;
            merged.problems.push(format!("{name} is not complete"));
        }
    }
    let mut is_whole = true;
    for cell in &mut merged.cells {
        let of_each = inputs
            .iter()
            .map(|input| input.repetitions_of(cell))
            .collect();
        is_whole &= together::merge(cell, of_each, inputs);
    }
    let all_complete = inputs.iter().all(|input| input.results.complete);
    merged.complete = is_whole && all_complete && merged.problems.is_empty();
    Ok(merged)
}

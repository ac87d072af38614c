//! `netbench run handshake-breakdown`: the time of a TLS 1.3 handshake, split by message and by
//! operation, on both sides of our stack.
//!
//! ```text
//!   plan ──► two sessions in this process ──► record ──► medians ──► Results.breakdowns
//!            (handshake)   │                  (samples)              table on the terminal
//!                          └─ rustls over timed crypto (timed, recorder)
//! ```
//! Sockets and packets are not included; the other scenarios measure their cost.

mod args;
pub(crate) mod cases;
pub(crate) mod certificates;
mod exchange;
pub(crate) mod measure;
mod plan;
mod timed;

use std::process::ExitCode;

use indicatif::ProgressBar;

pub(crate) use args::Args;
pub(crate) use args::document::{Gaps, results};
pub(crate) use measure::{Outcome, measure};
pub(crate) use plan::{Mode, Plan};

use crate::system::failure::Failure;
use crate::system::terminal;
use crate::system::terminal::complain;

/// Measures every requested combination, prints it, and writes the files.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let plans = args.plans()?;
    let outputs = args.outputs();
    outputs.check()?;
    let progress = ProgressBar::new(measure::turns(&plans));
    let outcome = measure(&plans, args.iterations(), || progress.inc(1));
    progress.finish_and_clear();
    let results = results(&plans, args.iterations(), outcome, args.gaps())?;
    for reason in &results.problems {
        complain(&format!("left out: {reason}"));
    }
    let printed = terminal::print(|out| args::print::write(out, &results));
    outputs.write(&results, printed)?;
    Ok(if results.complete {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

#[cfg(test)]
mod tests;

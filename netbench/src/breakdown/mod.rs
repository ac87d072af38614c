//! `netbench run handshake-breakdown`: where the time of a TLS 1.3 handshake goes, message by
//! message and operation by operation, on both sides of our stack.
//!
//! ```text
//!   plan ──► two sessions in this process ──► record ──► medians ──► Results.breakdowns
//!            (handshake)   │                  (measure)              table on the terminal
//!                          └─ rustls over timed crypto (timed, recorder)
//! ```
//! Without sockets and packets: what those cost, the other scenarios measure.

mod args;
mod handshake;
mod measure;
mod messages;
mod plan;
mod recorder;
mod table;
mod timed;

use std::io::IsTerminal as _;
use std::process::ExitCode;

pub(crate) use args::Args;
pub(crate) use measure::measure;
pub(crate) use plan::{Mode, Plan};

use crate::Failure;
use crate::certificates;
use crate::results::Breakdown;
use crate::terminal::{complain, print};

/// Measures every combination that was asked for, and prints it.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let plans = args.plans()?;
    let (breakdowns, left_out) = all(&plans, args.iterations())?;
    for reason in &left_out {
        complain(&format!("left out: {reason}"));
    }
    print(|out| table::write(out, &breakdowns))?;
    Ok(ExitCode::SUCCESS)
}

/// Measures all plans, and says why some could not be. One that was asked for by name has to be
/// possible.
fn all(plans: &[Plan], iterations: usize) -> Result<(Vec<Breakdown>, Vec<String>), Failure> {
    let mut breakdowns = Vec::new();
    let mut left_out = Vec::new();
    let tells = std::io::stderr().is_terminal();
    for (index, plan) in plans.iter().enumerate() {
        if tells {
            complain(&format!("{}/{} {plan}", index + 1, plans.len()));
        }
        let certificates = certificates::make(plan.certificate, plan.chain, plan.client_auth)?;
        match measure(plan, &certificates, iterations) {
            Ok(measured) => breakdowns.extend(measured),
            Err(reason) => left_out.push(format!("{plan}: {reason}")),
        }
    }
    Ok((breakdowns, left_out))
}

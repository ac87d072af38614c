//! `netbench`: measures the cost of connections, for any stack, and the additional cost of
//! post-quantum cryptography.
//!
//! A run starts two further processes of this binary for each repetition of each cell of its
//! matrix: a server and a client, each on one thread and, if there are two, on a core of its own.
//! The run talks to them over pipes. The cells take turns, so that a disturbance affects all alike.
//!
//! ```text
//!  scenario, axes ─► run ─┬─► server process: a script, behind a driver ┐
//!                         │                                            │ loopback, or a link
//!                         └─► client process: a script, behind a driver ┘
//!                    ▼
//!                 results ─► table, JSON, CSV, HTML, charts
//! ```

// `terminal` prints, and escapes what peers wrote.
#![cfg_attr(not(test), warn(clippy::print_stderr, clippy::print_stdout))]

mod axes;
mod breakdown;
mod certificates;
mod charts;
mod cli;
mod client;
mod compare;
mod crates;
mod csv;
mod distributed;
mod drivers;
mod engine;
mod failure;
mod files;
mod fleet;
mod foreign;
mod link;
mod links;
mod machine;
mod merge;
mod os;
mod outcome;
mod outputs;
mod page;
mod pattern;
mod peers;
mod pipe;
mod pki;
mod process;
mod ratio;
mod reproduce;
mod results;
mod run;
mod scenario;
#[cfg(test)]
mod schema;
mod sign;
pub mod stacks;
mod terminal;
mod units;

#[cfg(test)]
#[path = "../tests/pages/synthetic/mod.rs"]
mod synthetic;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;
use cli::{Cli, Command};
use failure::{Failure, with_causes};
use run::Run;

/// Runs the `netbench` program with the arguments of this process.
pub fn main() -> ExitCode {
    let cli = Cli::try_parse().unwrap_or_else(|error| refuse(&error));
    let outcome = match cli.command {
        Command::Run { scenario } => match scenario {
            Run::Scenario(request) => single_threaded(run::run(*request)),
            Run::HandshakeBreakdown(args) => breakdown::run(&args),
            Run::Peers(args) => single_threaded(peers::run(*args, measure_part)),
            Run::Links(links) => single_threaded(links::run(links)),
        },
        Command::Scenarios(args) => scenario::listing::run(&args),
        Command::Drivers => {
            terminal::print(|out| write!(out, "{}", drivers::table())).map(|()| ExitCode::SUCCESS)
        }
        Command::Link(link) => single_threaded(link::run(*link)),
        Command::Server(args) => single_threaded(distributed::serve(args)),
        Command::Client(args) => client_of_others(args),
        Command::Merge(args) => merge::run(&args),
        Command::Reproduce(args) => single_threaded(reproduce::run(args)),
        Command::Certificates(args) => pki::run(&args),
        Command::Sign(sign) => sign.run(),
        Command::Verify(verify) => verify.run(),
        Command::Report(report) => report.run(),
        Command::Compare(compare) => compare.run(),
        Command::Csv(csv) => csv.run(),
        Command::Serve => child(engine::child::server()),
        Command::Drive => child(engine::child::client()),
        Command::LinkServer => child(links::child::serve()),
        Command::LinkClient => child(links::child::fetch()),
    };
    match outcome {
        Ok(code) => code,
        Err(failure) => {
            terminal::complain(&failure.to_string());
            ExitCode::FAILURE
        }
    }
}

/// Measures a part of the comparison with other stacks.
async fn measure_part(part: &peers::Part) -> Result<results::Results, Failure> {
    let mut request = run::Request::new(part.template.clone());
    request.axes = part.axes.clone();
    request.repetitions = part.repetitions;
    request.time = part.time;
    request.gives_up = true;
    request.transport.socket_buffer = Some(peers::SOCKET_BUFFER);
    run::measure(&request).await
}

fn client_of_others(args: client::ClientArgs) -> Result<ExitCode, Failure> {
    match args.request() {
        Ok(request) => single_threaded(run::run(*request)),
        Err(client::ClientError::Usage(error)) => refuse(&error),
        Err(client::ClientError::Refused(failure)) => Err(failure),
    }
}

/// Reports invalid arguments in one line and ends the process.
fn refuse(error: &clap::Error) -> ! {
    use ErrorKind::{DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion};
    match error.kind() {
        DisplayHelp | DisplayHelpOnMissingArgumentOrSubcommand | DisplayVersion => error.exit(),
        _ => {
            terminal::complain(&cli::one_line(&error.to_string()));
            std::process::exit(error.exit_code())
        }
    }
}

/// Runs a future on this thread alone: a measured process must not spread over cores.
fn single_threaded<T>(future: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(tokio::task::LocalSet::new().run_until(future))
}

/// Runs a child's part. Failures are reported to the parent, which prints them.
fn child(part: impl Future<Output = Result<(), Failure>>) -> Result<ExitCode, Failure> {
    os::die_with_parent()?;
    if let Err(failure) = single_threaded(part) {
        pipe::tell(&Err::<(), String>(with_causes(failure.as_ref())))?;
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

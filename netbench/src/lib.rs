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

mod cli;
mod drivers;
mod engine;
mod experiments;
mod handshake;
mod report;
mod run;
mod scenario;
pub mod stacks;
mod system;

#[cfg(test)]
#[path = "../tests/pages/synthetic/mod.rs"]
mod synthetic;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;
use cli::run::Run;
use cli::{Cli, Command};
use system::failure::{Failure, with_causes};

/// Runs the `netbench` program with the arguments of this process.
pub fn main() -> ExitCode {
    let cli = Cli::try_parse().unwrap_or_else(|error| refuse(&error));
    let outcome = match cli.command {
        Command::Run { scenario } => match scenario {
            Run::Scenario(request) => single_threaded(run::run(*request)),
            Run::HandshakeBreakdown(args) => handshake::run(&args),
            Run::Peers(args) => single_threaded(experiments::peers::run(*args)),
        },
        Command::Scenarios(args) => scenario::listing::run(&args),
        Command::Drivers => system::terminal::print(|out| write!(out, "{}", drivers::table()))
            .map(|()| ExitCode::SUCCESS),
        Command::Link(link) => single_threaded(run::link::run(*link)),
        Command::Server(args) => single_threaded(run::distributed::serve(args)),
        Command::Client(args) => client_of_others(args),
        Command::Merge(args) => report::merge::run(&args),
        Command::Reproduce(args) => single_threaded(experiments::reproduce::run(args)),
        Command::Certificates(args) => handshake::certificates::pki::run(&args),
        Command::Sign(sign) => sign.run(),
        Command::Verify(verify) => verify.run(),
        Command::Report(report) => report.run(),
        Command::Compare(compare) => compare.run(),
        Command::Csv(csv) => csv.run(),
        Command::Serve => child(engine::child::server()),
        Command::Drive => child(engine::child::client()),
    };
    match outcome {
        Ok(code) => code,
        Err(failure) => {
            system::terminal::complain(&failure.to_string());
            ExitCode::FAILURE
        }
    }
}

fn client_of_others(args: cli::client::ClientArgs) -> Result<ExitCode, Failure> {
    match args.request() {
        Ok(request) => single_threaded(run::run(*request)),
        Err(cli::client::ClientError::Usage(error)) => refuse(&error),
        Err(cli::client::ClientError::Refused(failure)) => Err(failure),
    }
}

/// Reports invalid arguments in one line and ends the process.
fn refuse(error: &clap::Error) -> ! {
    use ErrorKind::{DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion};
    match error.kind() {
        DisplayHelp | DisplayHelpOnMissingArgumentOrSubcommand | DisplayVersion => error.exit(),
        _ => {
            system::terminal::complain(&cli::one_line(&error.to_string()));
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
    system::os::die_with_parent()?;
    if let Err(failure) = single_threaded(part) {
        system::process::pipe::tell(&Err::<(), String>(with_causes(failure.as_ref())))?;
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

//! The command line.

pub(crate) mod client;
pub(crate) mod run;
#[cfg(test)]
mod schema;

use clap::{Parser, Subcommand};

use self::run::Run;
use crate::experiments::reproduce;
use crate::handshake::certificates::pki;
use crate::handshake::certificates::sign::{Sign, Verify};
use crate::report::compare::Compare;
use crate::report::merge;
use crate::report::outputs::csv::Csv;
use crate::report::page::Report;
use crate::run::distributed;
use crate::run::link::{LinkArgs, UNITS};
use crate::scenario::listing;

/// Measures what connections cost, for QUIC stacks and TLS over TCP, by key-exchange group,
/// certificate, link and more.
#[derive(Parser)]
#[command(name = "netbench", version)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Runs a scenario and prints its table.
    Run {
        #[command(subcommand)]
        scenario: Run,
    },
    /// Lists the scenarios that are built in, or writes them to files.
    Scenarios(listing::Args),
    /// Relays UDP as a network link would: delay, rate, queue, loss, reordering, rebinding.
    #[command(after_help = UNITS)]
    Link(Box<LinkArgs>),
    /// Lists the QUIC stacks that are built in, and how to get the others.
    Drivers,
    Certificates(pki::Args),
    Sign(Sign),
    Verify(Verify),
    Report(Report),
    Compare(Compare),
    Csv(Csv),
    /// Runs servers for clients on other hosts.
    Server(distributed::ServerArgs),
    /// Runs a scenario against servers on other hosts.
    Client(client::ClientArgs),
    /// Adds up the results of several clients.
    Merge(merge::Args),
    /// Repeats published experiments, and shows the published figures next to ours.
    Reproduce(reproduce::Args),
    /// The server process of a run.
    #[command(hide = true)]
    Serve,
    /// The client process of a run.
    #[command(hide = true)]
    Drive,
}

/// Joins the lines of a message of clap, without those about usage.
pub(crate) fn one_line(text: &str) -> String {
    let lines = text
        .lines()
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
    let parts: Vec<&str> = lines
        .map(|line| line.trim().trim_start_matches("error: "))
        .filter(|line| !line.is_empty())
        .collect();
    parts.join("; ").replace(":; ", ": ").replace("tip: ", "")
}

#[cfg(test)]
mod tests {
    use super::one_line;

    #[test]
    fn complaints_are_one_line_and_keep_the_hint() {
        let text = "error: unexpected argument '--conections' found\n\n  \
                    tip: a similar argument exists: '--connections'\n\n\
                    Usage: netbench run\n\nFor more information, try '--help'.\n";
        assert_eq!(
            one_line(text),
            "unexpected argument '--conections' found; \
             a similar argument exists: '--connections'"
        );
        let text = "error: the following required arguments were not provided:\n  \
                    --to <ADDRESS>\n\nUsage: netbench link\n";
        assert_eq!(
            one_line(text),
            "the following required arguments were not provided: --to <ADDRESS>"
        );
    }
}

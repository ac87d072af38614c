//! The command line.

use clap::{Parser, Subcommand};

use crate::compare::Compare;
use crate::csv::Csv;
use crate::link::{Link, UNITS};
use crate::page::Report;
use crate::run::Run;
use crate::scenario::listing;
use crate::{merge, remote, reproduce};

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
    Link(Box<Link>),
    /// Lists the QUIC stacks that are built in, and how to get the others.
    Drivers,
    Report(Report),
    Compare(Compare),
    Csv(Csv),
    /// Runs servers for clients on other hosts.
    Server(remote::ServerArgs),
    /// Runs a scenario against servers on other hosts.
    Client(remote::ClientArgs),
    /// Adds up the results of several clients.
    Merge(merge::Args),
    /// Repeats published experiments, and shows the published figures beside ours.
    Reproduce(reproduce::Args),
    /// The server process of a run.
    #[command(hide = true)]
    Serve,
    /// The client process of a run.
    #[command(hide = true)]
    Drive,
    /// The server process of a download over a link.
    #[command(hide = true)]
    LinkServer,
    /// The client process of a download over a link.
    #[command(hide = true)]
    LinkClient,
}

/// What clap says over several lines, without what it says about usage.
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

/// Reads `123`, `4KiB`, `5MiB` or `6GiB`.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text.get(digits.len()..) {
        Some("" | "B") => 1,
        Some("KiB") => 1 << 10,
        Some("MiB") => 1 << 20,
        Some("GiB") => 1 << 30,
        _ => return Err("units are B, KiB, MiB and GiB".to_owned()),
    };
    let count: u64 = digits
        .parse()
        .map_err(|_| "expected a number, for example 64MiB".to_owned())?;
    count
        .checked_mul(unit)
        .ok_or_else(|| "too large".to_owned())
}

#[cfg(test)]
mod tests {
    use super::{one_line, size};

    #[test]
    fn sizes_are_read_with_and_without_a_unit() {
        assert_eq!(size("0"), Ok(0));
        assert_eq!(size("17B"), Ok(17));
        assert_eq!(size("1GiB"), Ok(1 << 30));
        assert!(size("1GB").is_err());
        assert!(size("GiB").is_err());
        assert!(size("-1").is_err());
        assert!(size("99999999999GiB").is_err());
    }

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

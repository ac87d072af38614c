//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::breakdown;
use crate::compare::Compare;
use crate::csv::Csv;
use crate::link::{Link, UNITS};
use crate::links::Links;
use crate::page::Report;
use crate::{merge, remote, reproduce};

/// Measures QUIC connections per key-exchange group, and emulates links to measure them over.
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
        scenario: Scenario,
    },
    /// Runs a scenario by the new way.
    #[command(hide = true)]
    Measure {
        #[command(subcommand)]
        scenario: crate::run::Run,
    },
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

#[derive(Subcommand)]
pub(crate) enum Scenario {
    #[command(flatten)]
    PerGroup(PerGroup),
    /// Where a handshake's time goes: each TLS message and each operation, without a network.
    HandshakeBreakdown(Box<breakdown::Args>),
    /// Downloads over emulated links, ours beside other stacks'.
    Links(Links),
}

/// Scenarios that compare key-exchange groups.
#[derive(Subcommand)]
pub(crate) enum PerGroup {
    /// Connections that each send one request, read one response and close.
    RequestResponse(RequestResponse),
    /// One stream from server to client, every byte compared with what was sent.
    Bulk(Bulk),
}

#[derive(Args)]
pub(crate) struct RequestResponse {
    /// Groups by name, separated by commas, or `all`.
    #[arg(long, default_value = "all", value_name = "NAMES")]
    pub(crate) groups: String,

    /// Measured connections per group. Before them, min(50, a tenth) are made and not counted.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) connections: u64,

    /// Connections under way at once; 1 means one after the other.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) concurrency: u32,

    /// Bytes of the request.
    #[arg(long, default_value = "1", value_parser = message_size)]
    pub(crate) request_size: u64,

    /// Bytes of the response.
    #[arg(long, default_value = "1", value_parser = message_size)]
    pub(crate) response_size: u64,

    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Args)]
pub(crate) struct Bulk {
    /// Bytes to transfer, for example `64MiB`.
    #[arg(long, default_value = "1GiB", value_parser = transfer_size)]
    pub(crate) bytes: u64,

    /// The group of the handshake before it.
    #[arg(long, default_value = "X25519MLKEM768", value_name = "NAME")]
    pub(crate) groups: String,

    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Args)]
pub(crate) struct Common {
    /// TLS provider of the server: `rustls` or `s2n-tls`. The client has rustls, which can offer
    /// exactly one group, so that the group is never left to chance.
    #[arg(long, default_value = "rustls", value_name = "PROVIDER")]
    pub(crate) tls: String,

    /// Where the server listens; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDRESS")]
    pub(crate) listen: SocketAddr,

    /// Bytes of the UDP payloads after the handshake, both ends: 1200 to 65507, the most that UDP
    /// over IPv4 carries. Default: the library's.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(1200..=65507))]
    pub(crate) datagram_size: Option<u16>,

    /// Also writes the results to this file as JSON.
    #[arg(long, value_name = "PATH")]
    pub(crate) json: Option<PathBuf>,
}

/// The largest request or response: both are held in memory whole.
const MAX_MESSAGE: u64 = 64 << 20;

fn message_size(text: &str) -> Result<u64, String> {
    match size(text)? {
        bytes if bytes <= MAX_MESSAGE => Ok(bytes),
        _ => Err("at most 64MiB".to_owned()),
    }
}

fn transfer_size(text: &str) -> Result<u64, String> {
    match size(text)? {
        0 => Err("at least 1 byte".to_owned()),
        bytes => Ok(bytes),
    }
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
    use super::{message_size, size, transfer_size};

    #[test]
    fn sizes_are_read_with_and_without_a_unit() {
        assert_eq!(size("0"), Ok(0));
        assert_eq!(size("17B"), Ok(17));
        assert_eq!(size("1GiB"), Ok(1 << 30));
        assert!(size("1GB").is_err());
        assert!(size("GiB").is_err());
        assert!(size("-1").is_err());
        assert!(size("99999999999GiB").is_err());
        assert!(message_size("64MiB").is_ok());
        assert!(message_size("65MiB").is_err());
        assert_eq!(transfer_size("1"), Ok(1));
        assert!(transfer_size("0GiB").is_err());
    }
}

//! `netbench run links`: downloads over emulated links, with our stack and others.
//!
//! ```text
//!  server process ◄─UDP─► relay process (`netbench link`) ◄─UDP─► client process
//! ```
//! Every download has three processes. Within a repetition the stacks take turns on each link, so
//! that disturbances affect all of them alike.

mod cases;
pub(crate) mod child;
mod report;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde::Deserialize;

use crate::drivers::{Certificates, Setup, Transport};
use crate::handshake::certificates;
use crate::report::outputs::Outputs;
use crate::run::link::Summary;
use crate::scenario::axes;
use crate::scenario::axes::Named as _;
use crate::system::failure::Failure;
use crate::system::machine::Machine;
use crate::system::process::Process;
use crate::system::terminal::{complain, print};
use cases::Case;
use child::{ClientReport, ClientSpec, Finish, ServerReport, ServerSpec};
use report::{Download, Outcome, Report, Run, Stack};

/// Maximum number of bytes that may be unread or unacknowledged with any stack: five times what the
/// longest link holds.
const WINDOW: u32 = 32 << 20;

const SOCKET_BUFFER: u32 = 4 << 20;

/// Datagram size that the other stacks find by path MTU discovery on these links, set for ours
/// because a window counted in datagrams grows with them.
const DATAGRAM: u16 = 1452;

/// Time by which a download may exceed its duration before it is given up.
const GRACE: Duration = Duration::from_secs(20);

/// Downloads over emulated links (`netbench link`), and compares stacks.
#[derive(Args)]
pub(crate) struct Links {
    /// Links by name, separated by commas, or `all`: clean, fast, lossy, shallow, bursts,
    /// reordered, blackout, long, marked.
    #[arg(long, default_value = "all", value_name = "NAMES")]
    cases: String,

    /// Stacks by name, separated by commas: hybriq, and where they are built in, quinn and
    /// s2n-quic (`netbench drivers`). Default: all that are built in.
    #[arg(long, visible_aliases = ["stack", "driver"], value_name = "NAMES", value_delimiter = ',',
          value_parser = axes::Stack::from_text)]
    stacks: Vec<axes::Stack>,

    /// Congestion controllers of hybriq, separated by commas: new-reno, cubic, bbr, prague. Each
    /// is a competitor of its own; the other stacks have their defaults.
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "cubic"
    )]
    congestion: Vec<String>,

    /// Length of each download, in seconds.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,

    /// Number of repetitions of each download; the table shows medians.
    #[arg(long = "repetitions", visible_alias = "repeat", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=100))]
    repeat: u32,

    /// Also writes everything that was measured to this file as JSON.
    #[arg(long, value_name = "PATH")]
    json: Option<PathBuf>,

    /// Also writes a row for each download to this file as CSV.
    #[arg(long, value_name = "PATH")]
    csv: Option<PathBuf>,

    /// Also writes a page with tables and charts to this file.
    #[arg(long, value_name = "PATH")]
    html: Option<PathBuf>,

    /// Also writes each chart to this folder as SVG (and PNG, if built in).
    #[arg(long, value_name = "FOLDER")]
    charts: Option<PathBuf>,
}

impl Links {
    fn outputs(&self) -> Outputs {
        Outputs {
            json: self.json.clone(),
            csv: self.csv.clone(),
            html: self.html.clone(),
            charts: self.charts.clone(),
            print_json: false,
        }
    }
}

/// First line of a relay.
#[derive(Deserialize)]
struct Listening {
    listening: SocketAddr,
}

/// Runs the comparison and prints its table. Measurements before a failure are kept.
pub(crate) async fn run(links: Links) -> Result<ExitCode, Failure> {
    let mut report = Report {
        netbench: env!("CARGO_PKG_VERSION"),
        build: if cfg!(debug_assertions) {
            "debug"
        } else {
            "release"
        },
        machine: Machine::detect(),
        seconds: Duration::from_secs(links.seconds).as_secs_f64(),
        window_bytes: WINDOW,
        stacks: stacks(&links)?,
        cases: cases::lasting(&links.cases, links.seconds)?,
        runs: Vec::new(),
        rows: Vec::new(),
    };
    let outputs = links.outputs();
    outputs.check()?;
    report.write_part(&outputs)?;
    print(|out| report.print_head(out))?;
    let certificates = certificates::of_server(axes::Certificate::default(), 1)?;
    for repetition in 1..=links.repeat {
        for case in report.cases.clone() {
            for stack in report.stacks.clone() {
                let lane = Lane {
                    case,
                    stack: &stack,
                    certificates: &certificates,
                    lasts: Duration::from_secs(links.seconds),
                    repetition,
                };
                let run = lane.run().await;
                complain(&told(&run));
                report.runs.push(run);
                report.sum_up();
                if let Err(failure) = report.write_part(&outputs) {
                    complain(&failure.to_string());
                }
            }
        }
    }
    let printed = print(|out| report.print_rows(out));
    report.write(&outputs, printed)?;
    Ok(if report.is_complete() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn told(run: &Run) -> String {
    let outcome = match &run.outcome {
        Outcome::Done(download) => format!("{:.1} Mbit/s", download.goodput_mbit),
        Outcome::Failed(reason) => format!("failed: {reason}"),
    };
    format!("{}, {}: {outcome}", run.case, run.stack)
}

fn stacks(links: &Links) -> Result<Vec<Stack>, Failure> {
    // The links carry only UDP.
    let built_in = || axes::Stack::built_in().filter(|stack| *stack != axes::Stack::TcpTls);
    let named: Vec<axes::Stack> = match links.stacks.as_slice() {
        [] => built_in().collect(),
        named => named.to_vec(),
    };
    let mut stacks = Vec::new();
    for stack in named {
        if stack == axes::Stack::Hybriq {
            for congestion in &links.congestion {
                stacks.push(Stack::new(stack, Some(congestion))?);
            }
        } else {
            stacks.push(Stack::new(stack, None)?);
        }
    }
    Ok(stacks)
}

/// Returns the TLS library with which a stack is mostly used.
fn provider(stack: axes::Stack) -> hybriq::Backend {
    match stack {
        axes::Stack::S2nQuic => hybriq::Backend::S2nTls,
        _ => hybriq::Backend::Rustls,
    }
}

/// One download with one stack over one link.
struct Lane<'a> {
    case: Case,
    stack: &'a Stack,
    certificates: &'a Certificates,
    lasts: Duration,
    repetition: u32,
}

impl Lane<'_> {
    async fn run(&self) -> Run {
        let outcome = match tokio::time::timeout(self.lasts + GRACE, self.download()).await {
            Ok(Ok(download)) => Outcome::Done(Box::new(download)),
            Ok(Err(failure)) => Outcome::Failed(failure.to_string()),
            Err(_) => Outcome::Failed("it did not end".to_owned()),
        };
        Run {
            case: self.case.name,
            stack: self.stack.label.clone(),
            repetition: self.repetition,
            link_command: format!("netbench link {}", self.link_args().join(" ")),
            outcome,
        }
    }

    /// Returns the link's arguments. All stacks have the same seed; each repetition has another.
    fn link_args(&self) -> Vec<String> {
        let own = self.case.args.iter().copied();
        own.chain(["--mtu", cases::MTU, "--seed"])
            .map(str::to_owned)
            .chain([self.repetition.to_string()])
            .collect()
    }

    /// Returns the setup: X25519MLKEM768 for all, and each stack's defaults except for windows and
    /// buffers.
    fn setup(&self) -> Setup {
        let stack = self.stack.driver;
        Setup {
            cell: axes::Cell {
                driver: stack,
                client: stack,
                provider: provider(stack),
                ..axes::Cell::default()
            },
            certificates: self.certificates.clone(),
            transport: Transport {
                datagram_size: (stack == axes::Stack::Hybriq).then_some(DATAGRAM),
                congestion: self.stack.chosen.clone(),
                window: Some(WINDOW),
                socket_buffer: Some(SOCKET_BUFFER),
                ..Transport::default()
            },
        }
    }

    async fn download(&self) -> Result<Download, Failure> {
        let spec = ServerSpec {
            setup: self.setup(),
        };
        let mut server = Process::start("link-server", &spec).await?;
        let address: SocketAddr = server.receive().await?;

        let mut args = self.link_args();
        args.extend(["--json", "--until-eof", "--to"].map(str::to_owned));
        args.push(address.to_string());
        let mut relay = Process::spawn("link", &args)?;
        let Listening { listening } = relay.read().await?;

        let spec = ClientSpec {
            setup: self.setup(),
            server: listening,
            lasts: self.lasts,
        };
        let mut client = Process::start("link-client", &spec).await?;
        let client_report: ClientReport = client.receive().await?;
        server.tell(&Finish).await?;
        let server_report: ServerReport = server.receive().await?;
        let summary: Summary = relay.last_words().await?;
        Ok(Download::new(client_report, server_report, &summary))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::cases::CASES;
    use crate::cli::Cli;

    #[test]
    fn every_case_is_a_link_that_can_be_made() {
        for case in CASES {
            let head = ["netbench", "link", "--to", "127.0.0.1:1"];
            let cli = Cli::try_parse_from(head.iter().chain(case.args));
            assert!(cli.is_ok(), "{}: {:?}", case.name, cli.err());
        }
    }
}

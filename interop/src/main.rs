//! `hybriq-interop`: an endpoint of the QUIC interop runner, and matrices of implementations and cases.

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use clap::{Args, Parser, Subcommand};
use hybriq::error::Printable;
use hybriq_interop::{
    cases, loopback, peers,
    runner::{Refusal, Task},
    testbed::{self, Report, Selection, Wire},
};

/// Exit status for the runner: the endpoint cannot do the test case.
const UNSUPPORTED: u8 = 127;

/// An error that ends a command.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Tests QUIC implementations against each other.
///
/// Without a command and with ROLE set it is an endpoint of the QUIC interop runner; then TESTCASE, REQUESTS
/// and the other variables of the runner say what to do.
#[derive(Parser)]
#[command(name = "hybriq-interop", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Matrix(Matrix),
    Loopback(Loopback),
    Compare(Compare),
    Hosts(OnHosts),
    /// Traffic alongside a download.
    #[command(hide = true, subcommand)]
    Traffic(Traffic),
}

/// Runs the cases of the QUIC interop runner between two network namespaces, over a link that loses, corrupts,
/// delays and rebinds. The verdict is taken from a capture of the link.
///
/// Needs root for the namespaces; without, the cases of `loopback` are run instead. Other implementations are
/// installed by `interop/peers/install`; those that are missing are skipped with the reason. Exits with a
/// failure if a run failed.
#[derive(Args)]
#[command(after_help = matrix_names())]
struct Matrix {
    /// Cases by name or letters. Default: all.
    cases: Vec<String>,
    /// Clients by name, with commas between. Default: all.
    #[arg(long, value_delimiter = ',')]
    clients: Vec<String>,
    /// Servers by name, with commas between. Default: all.
    #[arg(long, value_delimiter = ',')]
    servers: Vec<String>,
    /// Also runs pairs without hybriq: shows whose failure one is.
    #[arg(long)]
    all_pairs: bool,
    /// Runs the cases that show most in a few minutes, if none is named.
    #[arg(long)]
    quick: bool,
    /// Runs this many at a time. More than the number of cores spoils the measurements.
    #[arg(long, default_value_t = 1, value_name = "COUNT")]
    jobs: usize,
    /// Repeats each failed run alone at the end, at most this many times. The last result counts.
    #[arg(long, default_value_t = 0, value_name = "TIMES")]
    retries: usize,
    /// Folder for captures, key logs, qlog files and what the endpoints print.
    #[arg(long, default_value = "interop-logs", value_name = "FOLDER")]
    logs: PathBuf,
    /// Writes a page for a browser. Its links lead to the folder of the logs.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Writes the results for machines and for `compare`, after each run.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Adds the runs of an earlier `--json` that are not repeated, to run only a part again.
    #[arg(long, value_name = "FILE")]
    keep: Option<PathBuf>,
    /// Writes the table as Markdown.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

/// Runs cases of our own over loopback, between the implementations that are built in, each as client and as
/// server, and prints a table.
///
/// The variable QLOGDIR names a folder for logs of hybriq's connections. Exits with a failure if a case failed.
#[derive(Args)]
#[command(after_help = loopback_names())]
struct Loopback {
    /// Part of the name of an implementation.
    #[arg(default_value = "", hide_default_value = true)]
    peers: String,
    /// Part of the name of a case.
    #[arg(default_value = "", hide_default_value = true)]
    cases: String,
}

/// Compares two results of `matrix --json`. Exits with a failure if a run passed before and does not now.
///
/// Runs that only one of them has, and rates that fell by more than 3 %, are named.
#[derive(Args)]
struct Compare {
    /// The former results.
    before: PathBuf,
    /// The new results.
    now: PathBuf,
}

/// Runs a program while two network namespaces are joined by a link that delays and loses, for measurements by
/// hand. Needs root.
///
/// The program finds the words that run something on a host in the variables ON_CLIENT and ON_SERVER, and the
/// server's address in SERVER. The link carries TCP, and UDP of port 443 at the server. Exits with the status of
/// the program. Example: hybriq-interop hosts --delay-ms 50 --loss-percent 1 -- sh -c '$ON_CLIENT curl http://$SERVER'
#[derive(Args)]
struct OnHosts {
    /// Delay in one direction, in milliseconds.
    #[arg(long, default_value_t = 0, value_name = "MS")]
    delay_ms: u64,
    /// Share of the packets that are lost in each direction.
    #[arg(long, default_value_t = 0.0, value_name = "PERCENT")]
    loss_percent: f64,
    /// Rate in each direction, with a queue for a round trip. Default: no limit.
    #[arg(long, value_name = "MBIT")]
    rate_mbit: Option<u64>,
    /// Seed of the losses.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The program and its arguments.
    #[arg(last = true, required = true)]
    program: Vec<String>,
}

#[derive(Subcommand)]
enum Traffic {
    Send,
    Receive { host: String },
}

#[tokio::main]
async fn main() -> ExitCode {
    if std::env::args().len() == 1
        && let Some(task) = Task::from_env()
    {
        return match task {
            Ok(task) => task.run().await,
            Err(Refusal::Unsupported(reason)) => {
                eprintln!("unsupported: {reason}");
                ExitCode::from(UNSUPPORTED)
            }
            Err(Refusal::Wrong(problem)) => {
                eprintln!("{problem}");
                ExitCode::FAILURE
            }
        };
    }
    let done = match Cli::parse().command {
        Command::Matrix(matrix) => matrix.run().await,
        Command::Loopback(loopback) => loopback.run().await,
        Command::Compare(compare) => compare.run(),
        Command::Hosts(hosts) => hosts.run().await,
        Command::Traffic(traffic) => traffic.run(),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {}", Printable(error));
            ExitCode::FAILURE
        }
    }
}

impl Matrix {
    /// Returns true if nothing failed.
    async fn run(self) -> Result<bool, Failure> {
        let selection = Selection {
            clients: self.clients.clone(),
            servers: self.servers.clone(),
            cases: self.cases.clone(),
            quick: self.quick,
            with_us: !self.all_pairs,
            jobs: self.jobs,
            retries: self.retries,
        };
        selection.check()?;
        if let Some(lack) = testbed::lack() {
            eprintln!(
                "skipped: this machine has no network namespaces for us ({lack}); run it as root. \
                 The cases over loopback follow, all of them and without a report."
            );
            let all = Loopback {
                peers: String::new(),
                cases: String::new(),
            };
            return all.run().await;
        }
        let former = self.keep.as_deref().map(Report::read).transpose()?;
        self.check_outputs()?;
        let logs = match &self.html {
            Some(page) => testbed::logs_from(page, &self.logs)?,
            None => String::new(),
        };
        let whole = |mut report: Report| {
            if let Some(former) = &former {
                report.keep(former.clone());
            }
            report
        };
        // A machine may stop in the middle, a disk may be full at the end.
        let save = |report: &Report| {
            if let (Some(path), Ok(text)) = (&self.json, whole(report.clone()).json()) {
                let _ = write(path, &text);
            }
        };
        let report = whole(testbed::run(&selection, &self.logs, save).await?);
        let markdown = report.markdown();
        // Nobody may be listening any longer.
        let _ = write!(io::stdout(), "\n{:#}", Printable(&markdown));
        let outputs = [
            (&self.html, report.html(&logs)),
            (&self.json, report.json()?),
            (&self.markdown, markdown),
        ];
        let mut all_written = true;
        for (path, text) in outputs {
            let Some(path) = path else { continue };
            if let Err(error) = write(path, &text) {
                let path = path.display();
                eprintln!("error: {path}: {error}; what was there before stays");
                all_written = false;
            }
        }
        Ok(all_written && report.is_good())
    }
}

impl Matrix {
    /// Finds out before the runs if their results can be written.
    fn check_outputs(&self) -> Result<(), Failure> {
        fs::create_dir_all(&self.logs)
            .map_err(|error| format!("{}: {error}", self.logs.display()))?;
        for path in [&self.html, &self.json, &self.markdown]
            .into_iter()
            .flatten()
        {
            let written = fs::write(new(path), "");
            written.map_err(|error| format!("{}: {error}", path.display()))?;
            fs::remove_file(new(path))?;
        }
        Ok(())
    }
}

/// Returns the file that takes the place of another once it is whole.
fn new(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    name.into()
}

/// Writes a file. Where the disk is full, what was there before stays.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let written = fs::write(new(path), text).and_then(|()| fs::rename(new(path), path));
    if written.is_err() {
        let _ = fs::remove_file(new(path));
    }
    written
}

impl Loopback {
    /// Returns true if nothing failed.
    async fn run(self) -> Result<bool, Failure> {
        let mut peers = peers::all();
        let names = peer_names();
        peers.retain(|one| one.name().contains(&self.peers));
        let cases = loopback::select(&self.cases);
        if peers.is_empty() {
            let wanted = self.peers;
            return Err(
                format!("no implementation is called '{wanted}'; there are: {names}").into(),
            );
        }
        if cases.is_empty() {
            let wanted = self.cases;
            let help = "`hybriq-interop loopback --help` lists the cases";
            return Err(format!("no case is called '{wanted}'; {help}").into());
        }
        let passed = loopback::run(&peers, &cases, &mut io::stdout()).await;
        peers::flush_logs();
        passed.map_err(|error| format!("cannot print the table: {error}").into())
    }
}

impl Compare {
    /// Returns true if nothing is worse.
    fn run(self) -> Result<bool, Failure> {
        let (before, now) = (Report::read(&self.before)?, Report::read(&self.now)?);
        let comparison = now.since(&before);
        let _ = io::stdout().write_all(comparison.text().as_bytes());
        Ok(comparison.worse.is_empty())
    }
}

impl OnHosts {
    /// Returns true if the program ended well.
    async fn run(self) -> Result<bool, Failure> {
        let wire = Wire {
            delay: Duration::from_millis(self.delay_ms),
            loss: self.loss_percent / 100.0,
            rate: self.rate_mbit.map(|rate| rate * 1_000_000),
            seed: self.seed,
        };
        let (program, words) = self.program.split_first().ok_or("name a program")?;
        let ended = testbed::on_hosts(wire, program.as_ref(), words).await?;
        Ok(ended.success())
    }
}

impl Traffic {
    fn run(self) -> Result<bool, Failure> {
        match self {
            Self::Send => testbed::send()?,
            Self::Receive { host } => testbed::receive(&host)?,
        }
        Ok(true)
    }
}

fn peer_names() -> String {
    let names: Vec<_> = peers::all().iter().map(|peer| peer.name()).collect();
    names.join(", ")
}

fn matrix_names() -> String {
    format!(
        "Implementations: {}\n\nCases: {}",
        testbed::peer_names().join(", "),
        testbed::case_names().join(", ")
    )
}

fn loopback_names() -> String {
    let cases: Vec<_> = cases::ALL.iter().map(loopback::sentence).collect();
    format!(
        "Implementations: {}\n\nCases:\n  {}",
        peer_names(),
        cases.join("\n  ")
    )
}

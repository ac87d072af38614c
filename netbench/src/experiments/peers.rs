//! `netbench run peers`: one table of our stack next to the others, with goals.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use super::budget::Budget;
use super::file::{Experiment, Size};
use super::measured::Measured;
use crate::report::charts::{Place, Table};
use crate::report::document::{Document, Section};
use crate::report::outputs;
use crate::system::failure::Failure;
use crate::system::files;
use crate::system::terminal::{complain, print};

const PEERS: &str = include_str!("../../experiments/peers.json");

/// Measures our stack against all other built-in stacks, and writes one table with goals.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// Measures less of everything, for at most nine minutes.
    #[arg(long)]
    quick: bool,

    /// Number of repetitions of each cell; results are their medians [default: 5, quick 3].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    repetitions: Option<u32>,

    /// Largest number of minutes; repetitions for which there is no time are left out.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=600))]
    minutes: Option<u64>,

    /// A directory for RESULTS.md, peers.json, peers.csv and peers.svg.
    #[arg(long, value_name = "DIRECTORY", default_value = "netbench-peers")]
    out: PathBuf,

    /// As small as possible, for tests of netbench.
    #[arg(long, hide = true)]
    tiny: bool,
}

/// Time of a quick run. The rest of its nine minutes is for starting processes beyond the time of
/// the last turn, and for writing.
const QUICK: Duration = Duration::from_secs(500);

impl Args {
    /// Returns the amount of work, and the number of repetitions.
    fn size(&self) -> (Size, u32) {
        let (size, repetitions) = match (self.tiny, self.quick) {
            (true, _) => (Size::Tiny, 1),
            (_, true) => (Size::Quick, 3),
            _ => (Size::Full, 5),
        };
        (size, self.repetitions.unwrap_or(repetitions))
    }

    fn budget(&self) -> Budget {
        let minutes = self.minutes.map(Duration::from_mins);
        Budget {
            quick: self.quick || self.tiny,
            time: minutes.or(self.quick.then_some(QUICK)),
        }
    }

    fn paths(&self) -> [PathBuf; 4] {
        ["RESULTS.md", "peers.csv", "peers.svg", "peers.json"].map(|name| self.out.join(name))
    }
}

/// Measures all parts, prints the table, and writes the files.
pub(crate) async fn run(args: Args) -> Result<ExitCode, Failure> {
    let paths = args.paths();
    fs::create_dir_all(&args.out)
        .and_then(|()| paths.iter().try_for_each(|path| files::check(path)))
        .map_err(|error| {
            let out = args.out.display();
            format!("cannot write to {out}: {error}; choose another --out")
        })?;
    let (size, repetitions) = args.size();
    let experiment = Experiment::read(PEERS, size)?;
    let mut report = Document::begin("peers", args.quick);
    let section = super::run(&experiment, Some(repetitions), &args.budget()).await;
    let was_interrupted = section.was_interrupted();
    let svg = chart(&experiment, &section);
    report.sections.push(section);
    report.finish(1);
    let page = page(&report);
    let json = serde_json::to_vec_pretty(&report)?;
    // Printed first, so that a full disk costs nothing.
    let printed = print(|out| write!(out, "{page}"));
    let csv = report.sections.iter().flat_map(|it| &it.ours);
    let csv: String = csv.map(Table::csv).collect();
    let contents = [
        page.into_bytes(),
        csv.into_bytes(),
        svg.into_bytes(),
        json.clone(),
    ];
    let mut failures: Vec<Failure> = printed.err().into_iter().collect();
    for (path, content) in paths.iter().zip(contents) {
        if let Err(error) = files::write(path, &content) {
            failures.push(format!("cannot write {}: {error}", path.display()).into());
        }
    }
    if !failures.is_empty() {
        return Err(outputs::told(&failures, files::rescue(&json)));
    }
    for path in &paths {
        complain(&format!("written: {}", path.display()));
    }
    Ok(if was_interrupted {
        ExitCode::from(outputs::INTERRUPTED)
    } else if report.complete {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn chart(experiment: &Experiment, section: &Section) -> String {
    let measured = Measured {
        experiment,
        results: &section.results,
    };
    let versus = experiment.versus.as_ref();
    versus.map_or_else(String::new, |versus| {
        versus.chart(&measured).svg(Place::Document).into_string()
    })
}

/// Returns the page as Markdown: the machine, the table, and what is unclear.
fn page(report: &Document) -> String {
    let about = &report.about;
    let machine = &about.machine;
    let pinned = match (machine.server_core, machine.client_core) {
        (Some(server), Some(client)) => format!("server on core {server}, client on core {client}"),
        _ => "not pinned, because there is only one core".to_owned(),
    };
    let names = [
        "hybriq",
        "s2n-quic",
        "s2n-tls",
        "quiche",
        "quinn",
        "rustls",
        "aws-lc-rs",
    ];
    let versions = names
        .iter()
        .filter_map(|name| Some(format!("{name} {}", about.crates.get(*name)?)));
    let versions = versions.collect::<Vec<_>>().join(", ");
    let git = about.git.as_ref();
    let git = git.map_or(String::new(), |git| format!(" of {git}"));
    let mut text = format!(
        "# hybriq compared with other stacks\n\nMeasured {} on {}, {} cores, Linux {}, load {:.1} before; \
         {pinned}.\n\n{} build{git}: {versions}.\n\nMade by `{}`.\n\n\
         ![The table below as a chart](peers.svg)\n",
        about.started,
        machine.cpu,
        machine.cores,
        machine.kernel,
        machine.load,
        about.build,
        about.command.join(" ")
    );
    if about.build != "release" {
        text.push_str("\n**A debug build: these figures say nothing.**\n");
    }
    for section in &report.sections {
        for table in &section.ours {
            let _ = write!(text, "\n{}", table.markdown());
        }
        let _ = writeln!(text, "\n{}", section.finding.sentence);
        let lines = [("", &section.notes), ("## Problems\n\n", &section.problems)];
        for (heading, lines) in lines.into_iter().filter(|(_, lines)| !lines.is_empty()) {
            let _ = writeln!(text, "\n{heading}- {}", lines.join("\n- "));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::page;
    use crate::report::charts::Table;
    use crate::report::document::{Document, Section};

    #[test]
    fn the_page_has_the_table_and_the_notes() {
        let mut report = Document::begin("peers", true);
        let mut table = Table::new("", "", &[("hybriq", "")]);
        table.push("rate, 1/s", [1.0]);
        report.sections.push(Section {
            ours: vec![table],
            notes: vec!["one".to_owned(), "two".to_owned()],
            problems: vec!["quinn died".to_owned()],
            ..Section::default()
        });
        let page = page(&report);
        for part in [
            "| rate, 1/s | 1 |",
            "\n- one\n- two\n",
            "## Problems\n\n- quinn died",
        ] {
            assert!(page.contains(part), "{page}");
        }
    }
}

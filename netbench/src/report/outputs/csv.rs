//! Results as comma-separated values (RFC 4180), for spreadsheets and scripts.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use csv::{Terminator, WriterBuilder};

use crate::report::results::{CellResult, METRICS, Repetition, Results};
use crate::scenario::axes::NAMES;
use crate::system::failure::Failure;
use crate::system::{files, terminal};

/// Writes results as comma-separated values, a row for each repetition of each cell.
#[derive(Args)]
pub(crate) struct Csv {
    /// A file that `netbench run --json` wrote.
    #[arg(value_name = "RESULTS")]
    results: PathBuf,

    /// A row for each sample of each repetition instead.
    #[arg(long)]
    samples: bool,

    /// File to write; without it standard output.
    #[arg(long, value_name = "PATH")]
    out: Option<PathBuf>,
}

impl Csv {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        let results = Results::read(&self.results)?;
        let text = if self.samples {
            samples(&results)?
        } else {
            repetitions(&results)?
        };
        match self.out {
            Some(path) => save(&path, &text)?,
            None => terminal::print(|out| std::io::Write::write_all(out, &text))?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Writes a row for each repetition of each cell, with every metric.
pub(crate) fn write(results: &Results, path: &Path) -> Result<(), Failure> {
    save(path, &repetitions(results)?)
}

/// Writes a finished table.
pub(crate) fn save(path: &Path, text: &[u8]) -> Result<(), Failure> {
    files::write(path, text).map_err(|error| {
        format!(
            "cannot write {}: {error}; choose another path",
            path.display()
        )
        .into()
    })
}

fn repetitions(results: &Results) -> Result<Vec<u8>, Failure> {
    let params = params(results);
    let mut table = Records::default();
    let metrics = METRICS.iter().map(|metric| metric.name.to_owned());
    let heads = ["started_ms", "elapsed_us", "other_cores", "error"].map(str::to_owned);
    table.push(head(&params).chain(heads).chain(metrics))?;
    for (cell, number, repetition) in each(results) {
        let own = [
            repetition.started_ms.to_string(),
            repetition.elapsed_us.to_string(),
            repetition
                .other_cores
                .map(|cores| cores.to_string())
                .unwrap_or_default(),
            repetition.error.clone().unwrap_or_default(),
        ];
        let value = |name| repetition.metrics.get(name).map(f64::to_string);
        let metrics = METRICS
            .iter()
            .map(|metric| value(metric.name).unwrap_or_default());
        let names = names(results, cell, &params, number);
        table.push(names.into_iter().chain(own).chain(metrics))?;
    }
    table.finish()
}

fn samples(results: &Results) -> Result<Vec<u8>, Failure> {
    let params = params(results);
    let heads = [
        "at_ms",
        "lasted_ms",
        "connections",
        "requests",
        "failures",
        "bytes_sent",
        "bytes_received",
        "cpu_us",
    ];
    let mut table = Records::default();
    table.push(head(&params).chain(heads.map(str::to_owned)))?;
    for (cell, number, repetition) in each(results) {
        let names = names(results, cell, &params, number);
        for sample in &repetition.samples {
            let figures = [
                sample.at_ms.to_string(),
                sample.lasted_ms.to_string(),
                sample.connections.to_string(),
                sample.requests.to_string(),
                sample.failures.to_string(),
                sample.bytes_sent.to_string(),
                sample.bytes_received.to_string(),
                sample.cpu_us.to_string(),
            ];
            table.push(names.iter().cloned().chain(figures))?;
        }
    }
    table.finish()
}

/// Returns every repetition with its cell and its number, counted from 1.
fn each(results: &Results) -> impl Iterator<Item = (&CellResult, usize, &Repetition)> {
    results.cells.iter().flat_map(|cell| {
        let repetitions = cell.repetitions.iter().enumerate();
        repetitions.map(move |(index, repetition)| (cell, index + 1, repetition))
    })
}

/// Returns the parameters that any cell has, in order.
fn params(results: &Results) -> Vec<&String> {
    let mut params: Vec<&String> = results
        .cells
        .iter()
        .flat_map(|c| c.cell.params.keys())
        .collect();
    params.sort();
    params.dedup();
    params
}

/// Returns the columns that identify a row: the cell, its axes, and the number of the repetition.
fn head(params: &[&String]) -> impl Iterator<Item = String> {
    let params = params.iter().map(|param| format!("param_{param}"));
    let axes = axes().map(str::to_owned);
    let heads = ["scenario", "cell"].map(str::to_owned).into_iter();
    let heads: Vec<String> = heads
        .chain(axes)
        .chain(["repetition".to_owned()])
        .chain(params)
        .collect();
    heads.into_iter()
}

/// Returns the axes, without the one that only narrows others.
fn axes() -> impl Iterator<Item = &'static str> {
    NAMES.into_iter().filter(|axis| *axis != "profile")
}

fn names(results: &Results, it: &CellResult, params: &[&String], number: usize) -> Vec<String> {
    let mut names = vec![results.scenario.name.clone(), it.name.clone()];
    names.extend(axes().map(|axis| it.cell.value(axis)));
    names.push(number.to_string());
    names.extend(params.iter().map(|param| it.cell.value(param)));
    names
}

/// Records as text, with the line ends of RFC 4180.
struct Records(csv::Writer<Vec<u8>>);

impl Default for Records {
    fn default() -> Self {
        let mut builder = WriterBuilder::new();
        Self(builder.terminator(Terminator::CRLF).from_writer(Vec::new()))
    }
}

impl Records {
    fn push(&mut self, fields: impl Iterator<Item = String>) -> Result<(), Failure> {
        Ok(self.0.write_record(fields.map(String::into_bytes))?)
    }

    fn finish(self) -> Result<Vec<u8>, Failure> {
        let written = self.0.into_inner();
        Ok(written.map_err(csv::IntoInnerError::into_error)?)
    }
}

#[cfg(test)]
mod tests {
    use super::{Records, repetitions, samples};
    use crate::report::results::{METRICS, Results};
    use crate::synthetic;

    fn text(written: Result<Vec<u8>, crate::system::failure::Failure>) -> String {
        String::from_utf8(written.unwrap()).unwrap()
    }

    #[test]
    fn separators_and_quotes_are_quoted() {
        let mut records = Records::default();
        let fields = ["plain", "a,b", "say \"no\"", "two\nlines", ""];
        records.push(fields.map(str::to_owned).into_iter()).unwrap();
        assert_eq!(
            text(records.finish()),
            "plain,\"a,b\",\"say \"\"no\"\"\",\"two\nlines\",\r\n"
        );
    }

    #[test]
    fn there_is_a_row_for_each_repetition_and_each_sample() {
        let results = Results::parse(&synthetic::groups().to_string()).unwrap();
        let rows = text(repetitions(&results));
        assert_eq!(rows.lines().count(), 1 + 8 * 5);
        assert_eq!(text(samples(&results)).lines().count(), 1 + 8 * 5 * 10);
        let columns = |line: &str| line.split(',').count();
        let head = rows.lines().next().unwrap();
        assert_eq!(columns(head), 16 + 4 + METRICS.len());
        assert!(rows.lines().all(|line| columns(line) == columns(head)));
        assert!(
            rows.lines()
                .nth(1)
                .unwrap()
                .starts_with("request-response,X25519,hybriq,")
        );
    }

    #[test]
    fn results_without_cells_are_a_head_alone() {
        let empty = synthetic::results("nothing", Vec::new());
        let results = Results::parse(&empty.to_string()).unwrap();
        assert_eq!(text(repetitions(&results)).lines().count(), 1);
    }
}

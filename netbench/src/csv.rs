//! Results as comma-separated values (RFC 4180), for spreadsheets and scripts.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use crate::results::{CellResult, METRICS, Repetition, Results};
use crate::{Failure, terminal};

/// Writes results as comma-separated values, a row for each repetition of each cell.
#[derive(Args)]
pub(crate) struct Csv {
    /// A file that `netbench run --json` wrote.
    #[arg(value_name = "RESULTS")]
    results: PathBuf,

    /// A row for each sample of each repetition instead.
    #[arg(long)]
    samples: bool,

    /// Where to; without it standard output.
    #[arg(long, value_name = "PATH")]
    out: Option<PathBuf>,
}

impl Csv {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        let results = Results::read(&self.results)?;
        let text = if self.samples {
            samples(&results)
        } else {
            repetitions(&results)
        };
        match self.out {
            Some(path) => save(&path, &text)?,
            None => terminal::print(|out| std::io::Write::write_all(out, text.as_bytes()))?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Writes a row for each repetition of each cell, with every metric.
pub(crate) fn write(results: &Results, path: &Path) -> Result<(), Failure> {
    save(path, &repetitions(results))
}

fn save(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|error| {
        format!(
            "cannot write {}: {error}; choose another path",
            path.display()
        )
        .into()
    })
}

/// What names a row: the cell, its axes, and the number of the repetition.
const NAMES: [&str; 14] = [
    "scenario",
    "cell",
    "driver",
    "client",
    "provider",
    "group",
    "hello_retry",
    "certificate",
    "chain",
    "suite",
    "resumption",
    "client_auth",
    "link",
    "repetition",
];

fn repetitions(results: &Results) -> String {
    let params = params(results);
    let mut text = String::new();
    let metrics = METRICS.iter().map(|metric| metric.name.to_owned());
    let heads = ["started_ms", "elapsed_us", "error"].map(str::to_owned);
    row(&mut text, head(&params).chain(heads).chain(metrics));
    each(results, |cell, number, repetition| {
        let own = [
            repetition.started_ms.to_string(),
            repetition.elapsed_us.to_string(),
            repetition.error.clone().unwrap_or_default(),
        ];
        let metric = |name| {
            repetition
                .metrics
                .get(name)
                .map_or(String::new(), f64::to_string)
        };
        let metrics = METRICS.iter().map(|it| metric(it.name));
        let names = names(results, cell, &params, number);
        row(&mut text, names.into_iter().chain(own).chain(metrics));
    });
    text
}

fn samples(results: &Results) -> String {
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
    let mut text = String::new();
    row(&mut text, head(&params).chain(heads.map(str::to_owned)));
    each(results, |cell, number, repetition| {
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
            row(&mut text, names.iter().cloned().chain(figures));
        }
    });
    text
}

fn each<'a>(results: &'a Results, mut visit: impl FnMut(&'a CellResult, usize, &'a Repetition)) {
    for cell in &results.cells {
        for (index, repetition) in cell.repetitions.iter().enumerate() {
            visit(cell, index + 1, repetition);
        }
    }
}

/// The parameters that any cell has.
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

fn head(params: &[&String]) -> impl Iterator<Item = String> {
    let params = params.iter().map(|param| format!("param_{param}"));
    let heads: Vec<String> = NAMES
        .iter()
        .map(|name| (*name).to_owned())
        .chain(params)
        .collect();
    heads.into_iter()
}

fn names(results: &Results, it: &CellResult, params: &[&String], number: usize) -> Vec<String> {
    let cell = &it.cell;
    let name_of = |value: serde_json::Result<serde_json::Value>| match value {
        Ok(serde_json::Value::String(name)) => name,
        _ => String::new(),
    };
    let mut names = vec![
        results.scenario.name.clone(),
        it.name.clone(),
        cell.driver.clone(),
        cell.client.clone(),
        cell.provider.clone(),
        cell.group.clone(),
        cell.hello_retry.to_string(),
        name_of(serde_json::to_value(cell.certificate)),
        cell.chain.to_string(),
        cell.suite.clone(),
        name_of(serde_json::to_value(cell.resumption)),
        cell.client_auth.to_string(),
        cell.link.clone(),
        number.to_string(),
    ];
    let value = |param: &&String| {
        cell.params
            .get(*param)
            .map_or(String::new(), u64::to_string)
    };
    names.extend(params.iter().map(value));
    names
}

/// One record. Fields that hold a separator are quoted, and quotes in them doubled (RFC 4180 §2).
fn row(text: &mut String, fields: impl Iterator<Item = String>) {
    for (index, field) in fields.enumerate() {
        if index > 0 {
            text.push(',');
        }
        if field.contains([',', '"', '\r', '\n']) {
            let _ = write!(text, "\"{}\"", field.replace('"', "\"\""));
        } else {
            text.push_str(&field);
        }
    }
    text.push_str("\r\n");
}

#[cfg(test)]
mod tests {
    use super::{repetitions, row, samples};
    use crate::results::{METRICS, Results};
    use crate::synthetic;

    #[test]
    fn separators_and_quotes_are_quoted() {
        let mut text = String::new();
        let fields = ["plain", "a,b", "say \"no\"", "two\nlines", ""];
        row(&mut text, fields.iter().map(|&field| field.to_owned()));
        assert_eq!(text, "plain,\"a,b\",\"say \"\"no\"\"\",\"two\nlines\",\r\n");
    }

    #[test]
    fn there_is_a_row_for_each_repetition_and_each_sample() {
        let results = Results::parse(&synthetic::groups().to_string()).unwrap();
        let rows = repetitions(&results);
        assert_eq!(rows.lines().count(), 1 + 8 * 5);
        assert_eq!(samples(&results).lines().count(), 1 + 8 * 5 * 10);
        let columns = |line: &str| line.split(',').count();
        let head = rows.lines().next().unwrap();
        assert_eq!(columns(head), 14 + 3 + METRICS.len());
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
        assert_eq!(repetitions(&results).lines().count(), 1);
    }
}

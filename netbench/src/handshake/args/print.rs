//! Breakdowns as tables: messages and operations as rows, group and suite as columns.

use std::io::{self, Write};

use crate::handshake::timed::recorder::Operation;
use crate::report::results::{Breakdown, Part, Results};

/// Number of columns side by side; others go below.
const COLUMNS: usize = 4;

/// Writes one table for each side, provider, certificate and mode.
pub(crate) fn write(out: &mut impl Write, results: &Results) -> io::Result<()> {
    if results.breakdowns.is_empty() {
        return Ok(());
    }
    let machine = &results.about.machine;
    let (cpu, kernel, load) = (&machine.cpu, &machine.kernel, machine.load);
    writeln!(out, "{cpu}, {kernel}, load {load}")?;
    if cfg!(debug_assertions) {
        writeln!(out, "debug build: these figures say nothing, use --release")?;
    }
    writeln!(out)?;
    let mut rest: Vec<&Breakdown> = results.breakdowns.iter().collect();
    while let Some(first) = rest.first().copied() {
        let (same, others): (Vec<_>, Vec<_>) = rest
            .into_iter()
            .partition(|it| heading(it) == heading(first));
        writeln!(out, "{}", heading(first))?;
        for columns in same.chunks(COLUMNS) {
            write!(out, "{}", Layout::of(columns).text())?;
            writeln!(out)?;
        }
        rest = others;
    }
    writeln!(
        out,
        "Medians. A message's bytes; an operation's share of the total."
    )
}

fn heading(of: &Breakdown) -> String {
    format!(
        "{}, {}, {}, {}",
        of.side, of.provider, of.certificate, of.mode
    )
}

struct Layout {
    /// Name of each line, and a text for each column.
    lines: Vec<(String, Vec<String>)>,
}

impl Layout {
    fn of(columns: &[&Breakdown]) -> Self {
        let mut table = Self { lines: Vec::new() };
        table.line("", columns, |it| it.group.to_string());
        table.line("", columns, |it| {
            it.suite.to_string().trim_start_matches("TLS_").to_owned()
        });
        for name in names(columns, |it| &it.messages) {
            table.line(&name, columns, |it| {
                let found = it.messages.iter().find(|part| part.name == name);
                found.map_or_else(missing, |part| message(part.us.median, part.bytes))
            });
        }
        table.line("total", columns, |it| {
            message(
                it.total_us.median,
                it.messages.iter().map(|it| it.bytes).sum(),
            )
        });
        table.line("  95 % interval", columns, |it| {
            format!(
                "{:.1} to {:.1} µs        ",
                it.total_us.low, it.total_us.high
            )
        });
        let mut operations = names(columns, |it| &it.operations);
        operations.sort_by_key(|name| Operation::ALL.iter().position(|it| it.name() == name));
        for name in operations {
            table.line(&format!("  {name}"), columns, |it| {
                let found = it.operations.iter().find(|part| part.name == name);
                found.map_or_else(missing, |part| operation(part.us.median, it))
            });
        }
        if columns.iter().any(|it| !it.operations.is_empty()) {
            table.line("  everything else", columns, |it| {
                operation(everything_else(it), it)
            });
        }
        table
    }

    fn line(&mut self, name: &str, columns: &[&Breakdown], cell: impl Fn(&Breakdown) -> String) {
        let cells = columns.iter().map(|column| cell(column)).collect();
        self.lines.push((name.to_owned(), cells));
    }

    fn text(&self) -> String {
        let width = |text: &String| text.chars().count();
        let names = self
            .lines
            .iter()
            .map(|(name, _)| width(name))
            .max()
            .unwrap_or(0);
        let cells = self
            .lines
            .iter()
            .flat_map(|(_, cells)| cells)
            .map(width)
            .max()
            .unwrap_or(0);
        let line = |(name, texts): &(String, Vec<String>)| {
            let padded: Vec<String> = texts
                .iter()
                .map(|text| format!("  {text:>cells$}"))
                .collect();
            format!("{name:names$}{}\n", padded.concat().trim_end())
        };
        let lines: Vec<String> = self.lines.iter().map(line).collect();
        lines.concat()
    }
}

fn message(us: f64, bytes: u64) -> String {
    format!("{us:.1} µs {bytes:>6} B")
}

fn operation(us: f64, of: &Breakdown) -> String {
    format!("{us:.1} µs {:>6.1} %", us / of.total_us.median * 100.0)
}

/// Returns the time outside of operations: reading and writing messages, memory, certificates.
fn everything_else(of: &Breakdown) -> f64 {
    let known: f64 = of.operations.iter().map(|part| part.us.median).sum();
    (of.total_us.median - known).max(0.0)
}

fn missing() -> String {
    "–         ".to_owned()
}

/// Returns all names, in the order of their first appearance.
fn names<'a>(
    columns: &[&'a Breakdown],
    parts: impl Fn(&'a Breakdown) -> &'a [Part],
) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for part in columns.iter().flat_map(|column| parts(column)) {
        if !names.contains(&part.name) {
            names.push(part.name.clone());
        }
    }
    names
}

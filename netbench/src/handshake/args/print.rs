//! Breakdowns as tables: messages and operations as rows, group and suite as columns.

use std::io::{self, Write};

use crate::handshake::timed::recorder::Operation;
use crate::report::charts::Table;
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
            table(columns).print(out, 0)?;
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

fn table(columns: &[&Breakdown]) -> Table {
    let head = |it: &&Breakdown| {
        let suite = it.suite.to_string();
        format!("{} {}", it.group, suite.trim_start_matches("TLS_"))
    };
    let head = std::iter::once(String::new()).chain(columns.iter().map(head));
    let mut table = Table::of_texts(head, []);
    let mut line = |name: &str, cell: &dyn Fn(&Breakdown) -> Option<String>| {
        table.push(name, columns.iter().map(|column| cell(column)));
    };
    for name in names(columns, |it| &it.messages) {
        line(&name, &|it| {
            let part = it.messages.iter().find(|part| part.name == name)?;
            Some(message(part.us.median, part.bytes))
        });
    }
    line("total", &|it| {
        let bytes = it.messages.iter().map(|it| it.bytes).sum();
        Some(message(it.total_us.median, bytes))
    });
    line("  95 % interval", &|it| {
        let (low, high) = (it.total_us.low, it.total_us.high);
        Some(format!("{low:.1} to {high:.1} µs         "))
    });
    let mut operations = names(columns, |it| &it.operations);
    operations.sort_by_key(|name| Operation::ALL.iter().position(|it| it.name() == name));
    for name in operations {
        line(&format!("  {name}"), &|it| {
            let part = it.operations.iter().find(|part| part.name == name)?;
            Some(operation(part.us.median, it))
        });
    }
    if columns.iter().any(|it| !it.operations.is_empty()) {
        line("  everything else", &|it| {
            Some(operation(everything_else(it), it))
        });
    }
    table
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

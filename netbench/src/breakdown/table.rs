//! Breakdowns as tables: messages and operations as rows, suite and group as columns.

use std::io::{self, Write};

use crate::results::{Breakdown, Part};

/// Columns side by side; more go below.
const COLUMNS: usize = 4;
const NAME: usize = 26;
const COLUMN: usize = 19;

/// Writes one table for each side, provider, certificate and mode.
pub(super) fn write(out: &mut impl Write, breakdowns: &[Breakdown]) -> io::Result<()> {
    let mut rest: Vec<&Breakdown> = breakdowns.iter().collect();
    while let Some(first) = rest.first().copied() {
        let (same, others): (Vec<_>, Vec<_>) = rest
            .into_iter()
            .partition(|it| heading(it) == heading(first));
        for columns in same.chunks(COLUMNS) {
            table(out, columns)?;
        }
        rest = others;
    }
    writeln!(
        out,
        "µs: medians; with % those of the total. B: bytes of the message."
    )
}

fn heading(of: &Breakdown) -> String {
    format!(
        "{}, {}, {}, {}",
        of.side, of.provider, of.certificate, of.mode
    )
}

fn table(out: &mut impl Write, columns: &[&Breakdown]) -> io::Result<()> {
    let Some(first) = columns.first() else {
        return Ok(());
    };
    line(
        out,
        &heading(first),
        columns.iter().map(|it| it.group.clone()),
    )?;
    line(
        out,
        "",
        columns
            .iter()
            .map(|it| it.suite.trim_start_matches("TLS_").to_lowercase()),
    )?;
    for name in names(columns.iter().map(|it| &it.messages)) {
        line(
            out,
            &name,
            columns.iter().map(|it| {
                part(&it.messages, &name).map_or_else(missing, |part| {
                    format!("{:.1} µs {:>5} B", part.us.median, part.bytes)
                })
            }),
        )?;
    }
    line(
        out,
        "total",
        columns.iter().map(|it| {
            format!(
                "{:.1} µs {:>5} B",
                it.total_us.median,
                it.messages.iter().map(|it| it.bytes).sum::<u64>()
            )
        }),
    )?;
    line(
        out,
        "  95 %",
        columns
            .iter()
            .map(|it| format!("{:.1} – {:.1}", it.total_us.low, it.total_us.high)),
    )?;
    let operations = names(columns.iter().map(|it| &it.operations));
    if !operations.is_empty() {
        writeln!(out, "  of which")?;
    }
    for name in operations {
        line(
            out,
            &format!("  {name}"),
            columns.iter().map(|it| {
                part(&it.operations, &name).map_or_else(missing, |part| share(part.us.median, it))
            }),
        )?;
    }
    if columns.iter().any(|it| !it.operations.is_empty()) {
        line(
            out,
            "  everything else",
            columns.iter().map(|it| {
                let known: f64 = it.operations.iter().map(|part| part.us.median).sum();
                share((it.total_us.median - known).max(0.0), it)
            }),
        )?;
    }
    writeln!(out)
}

fn share(us: f64, of: &Breakdown) -> String {
    format!("{us:.1} µs {:>5.1} %", us / of.total_us.median * 100.0)
}

fn missing() -> String {
    "–".to_owned()
}

fn part<'a>(parts: &'a [Part], name: &str) -> Option<&'a Part> {
    parts.iter().find(|part| part.name == name)
}

/// The names of all, in the order of the first that has each.
fn names<'a>(parts: impl Iterator<Item = &'a Vec<Part>>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for part in parts.flatten() {
        if !names.contains(&part.name) {
            names.push(part.name.clone());
        }
    }
    names
}

fn line(out: &mut impl Write, name: &str, cells: impl Iterator<Item = String>) -> io::Result<()> {
    write!(out, "{name:<NAME$}")?;
    for cell in cells {
        write!(out, " {cell:>COLUMN$}")?;
    }
    writeln!(out)
}

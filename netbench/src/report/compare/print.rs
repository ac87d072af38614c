//! A comparison as a table on the terminal.

use std::fmt::Write as _;
use std::io::{self, Write};

use super::{Comparison, Line, Verdict};
use crate::report::charts::number::{NONE, change, change_interval, with_unit};

impl Comparison {
    /// Prints the differences, one table, and a summary line.
    pub(crate) fn print(&self, out: &mut impl Write) -> io::Result<()> {
        for warning in &self.warnings {
            writeln!(out, "! {warning}")?;
        }
        if self.rows.is_empty() {
            return Ok(());
        }
        if !self.warnings.is_empty() {
            writeln!(out)?;
        }
        let of = |verdict: Verdict| self.count(verdict);
        writeln!(
            out,
            "{} better, {} worse, {} the same, {} cannot be told; threshold {} %",
            of(Verdict::Better),
            of(Verdict::Worse),
            of(Verdict::Same),
            of(Verdict::CannotTell),
            self.threshold
        )?;
        let is_change = |line: &&Line| matches!(line.verdict, Verdict::Better | Verdict::Worse);
        let (changed, others): (Vec<&Line>, Vec<&Line>) = self.rows.iter().partition(is_change);
        for lines in [changed, others] {
            if !lines.is_empty() {
                writeln!(out)?;
                print_table(out, &table(&lines))?;
            }
        }
        Ok(())
    }
}

fn table(lines: &[&Line]) -> Vec<Vec<String>> {
    let head = [
        "cell",
        "metric",
        "before",
        "after",
        "change",
        "95 % interval",
        "verdict",
    ];
    let mut table = vec![head.map(str::to_owned).to_vec()];
    let mut before = "";
    for line in lines {
        let cell = if line.cell == before { "" } else { &line.cell };
        before = &line.cell;
        table.push(row(cell, line));
    }
    table
}

fn row(cell: &str, line: &Line) -> Vec<String> {
    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
    vec![
        cell.to_owned(),
        line.of.title.to_owned(),
        with_unit(line.before.median, line.of.unit),
        with_unit(line.after.median, line.of.unit),
        line.ratio
            .map_or(NONE.to_owned(), |ratio| change(percent(ratio))),
        match line.interval {
            Some((low, high)) => change_interval(Some((percent(low), percent(high)))),
            None => NONE.to_owned(),
        },
        if line.disturbed {
            format!("{} !", line.verdict.words())
        } else {
            line.verdict.words().to_owned()
        },
    ]
}

/// Prints columns as wide as their widest cell: names to the left, numbers to the right.
fn print_table(out: &mut impl Write, table: &[Vec<String>]) -> io::Result<()> {
    let width = |column: usize| {
        let cells = table.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    for row in table {
        let mut text = String::new();
        for (column, cell) in row.iter().enumerate() {
            let width = width(column);
            let between = if column == 0 { "" } else { "  " };
            let _ = match column {
                0 | 1 | 6 => write!(text, "{between}{cell:<width$}"),
                _ => write!(text, "{between}{cell:>width$}"),
            };
        }
        writeln!(out, "{}", text.trim_end())?;
    }
    Ok(())
}

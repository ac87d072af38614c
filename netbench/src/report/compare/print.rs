//! A comparison as a table on the terminal.

use std::io::{self, Write};

use super::{Comparison, Line, Verdict};
use crate::report::charts::Table;
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
                table(&lines).print(out, 1)?;
            }
        }
        Ok(())
    }
}

fn table(lines: &[&Line]) -> Table {
    let head = [
        "cell",
        "metric",
        "before",
        "after",
        "change",
        "95 % interval",
        "verdict",
    ];
    let before = std::iter::once("").chain(lines.iter().map(|line| line.cell.as_str()));
    let rows = lines.iter().zip(before).map(|(line, before)| {
        let cell = if line.cell == before { "" } else { &line.cell };
        row(cell, line)
    });
    Table::of_texts(head, rows)
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

//! Stacks side by side: a table with a column for each, and a goal for each row.

use std::collections::BTreeMap;

use super::file::{Direction, Row, Side, Versus};
use super::measured::{Measured, begin, figure};
use crate::report::charts::{
    Chart, Column, Figure, Intervals, Measured as Cell, Row as Change, Table, Value,
};
use crate::report::document::{Finding, Section, Verdict};
use crate::report::ratio::Ratio;
use crate::report::results::{Better, Results, Summary};

/// A row with its figures.
struct Judged<'a> {
    row: &'a Row,
    figures: Vec<Option<(Summary, bool)>>,
    best: Option<usize>,
    now: Option<Ratio>,
    verdict: Verdict,
}

impl Versus {
    fn judged<'a>(&'a self, row: &'a Row, measured: &Measured<'_>) -> Judged<'a> {
        let parts = &measured.experiment.parts;
        let part = parts.iter().position(|part| part.id == row.part);
        let figures: Vec<Option<(Summary, bool)>> = self
            .contenders
            .iter()
            .map(|who| {
                let cells = &measured.experiment.cells;
                let cell = |name: &str| match name {
                    "it" => measured.find(part?, &[&who.cell, &row.cell]),
                    _ => measured.find(part?, &[&who.cell, &row.cell, cells.get(name)?]),
                };
                // Resident memory is the same with other work on the machine.
                let disturbed = cell("it").is_some_and(|it| it.disturbed) && row.unit != "B";
                Some((figure(&row.figure.0, cell)?, disturbed))
            })
            .collect();
        let best = |sides: &[Side]| {
            let all = self.contenders.iter().zip(&figures).enumerate();
            let medians = all
                .filter(|(_, (who, _))| sides.contains(&who.side))
                .filter_map(|(index, (_, figure))| Some((index, (*figure)?)));
            medians.min_by(|(_, (a, _)), (_, (b, _))| match row.better.better() {
                Better::Lower => a.median.total_cmp(&b.median),
                Better::Higher => b.median.total_cmp(&a.median),
            })
        };
        let pair = best(&[Side::Ours]).zip(best(&[Side::Peer]));
        let now = pair.and_then(|((_, (ours, _)), (_, (peer, _)))| Ratio::of(ours, peer));
        let disturbed = pair.is_some_and(|((_, (_, one)), (_, (_, other)))| one || other);
        Judged {
            best: best(&[Side::Ours, Side::Peer]).map(|(index, _)| index),
            verdict: verdict(now, row, disturbed),
            row,
            figures,
            now,
        }
    }

    fn rows<'a>(&'a self, measured: &Measured<'_>) -> Vec<Judged<'a>> {
        self.rows
            .iter()
            .map(|row| self.judged(row, measured))
            .collect()
    }

    fn table(&self, rows: &[Judged<'_>]) -> Table {
        let mut columns: Vec<(&str, &str)> = Vec::new();
        columns.extend(self.contenders.iter().map(|who| (who.name.as_str(), "")));
        columns.extend([("now", ""), ("goal", ""), ("", "")]);
        let mut table = Table::new("", "", &columns);
        for judged in rows {
            let row = judged.row;
            let figure = |(index, figure): (usize, &Option<(Summary, bool)>)| match *figure {
                None => Value::Missing("not measured".to_owned()),
                Some((summary, disturbed)) => Value::Measured(Cell {
                    summary,
                    digits: Some(row.digits),
                    best: judged.best == Some(index),
                    disturbed,
                }),
            };
            let mut figures: Vec<Value> = judged.figures.iter().enumerate().map(figure).collect();
            let sign = match row.better {
                Direction::Higher => '≥',
                Direction::Lower => '≤',
            };
            figures.extend([
                judged.now.map(factor).into(),
                format!("{sign} {}", row.goal).into(),
                state(judged.verdict).into(),
            ]);
            table.push(format!("{}, {}", row.title, row.unit), figures);
        }
        table
    }

    /// Returns the rows as one chart: ours relative to the best peer, more is better.
    pub(super) fn chart(&self, measured: &Measured<'_>) -> Figure {
        let rows = self.rows(measured);
        let change = |judged: &Judged<'_>| {
            Some(Change {
                heading: String::new(),
                name: judged.row.title.clone(),
                series: 0,
                ratios: vec![Some(match judged.row.better {
                    Direction::Higher => judged.now?,
                    Direction::Lower => judged.now?.inverse(),
                })],
            })
        };
        Figure {
            id: "peers".to_owned(),
            title: "hybriq compared with the best other QUIC stack".to_owned(),
            caption: "Our better column relative to the best other QUIC stack, with its 95 % interval: right is better. Costs are inverted. Grey rows are undecided.".to_owned(),
            chart: Chart::Intervals(Intervals {
                columns: vec![Column {
                    title: "ours".to_owned(),
                    note: "more is better",
                }],
                rows: rows.iter().filter_map(change).collect(),
            }),
            table: self.table(&rows),
        }
    }

    /// Returns the section of a comparison.
    pub(super) fn section(&self, measured: &Measured<'_>) -> Section {
        let rows = self.rows(measured);
        let count = |verdict| rows.iter().filter(|row| row.verdict == verdict).count();
        let mut counts = BTreeMap::new();
        for row in &rows {
            *counts.entry(state(row.verdict)).or_insert(0_usize) += 1;
        }
        let counts = counts
            .iter()
            .map(|(state, count)| format!("{count} {state}"));
        let is_measured = |row: &Judged<'_>| row.figures.iter().any(Option::is_some);
        let verdict = if !rows.iter().any(is_measured) {
            Verdict::Unknown
        } else if count(Verdict::Differs) > 0 {
            Verdict::Differs
        } else if count(Verdict::Agrees) == rows.len() {
            Verdict::Agrees
        } else {
            Verdict::Unclear
        };
        let sentence = format!("Goals: {}.", counts.collect::<Vec<_>>().join(", "));
        let experiment = measured.experiment;
        let each = experiment.parts.iter().zip(measured.results);
        let named = |told: fn(&Results) -> Vec<String>| {
            let lines = each.clone().flat_map(|(part, results)| {
                let lines = told(results).into_iter();
                lines.map(|line| format!("{}: {line}", part.id))
            });
            lines.collect::<Vec<String>>()
        };
        let mut section = begin(experiment);
        let unclear = rows.iter().filter(|row| row.verdict == Verdict::Unclear);
        let unclear: Vec<&str> = unclear.map(|row| row.row.title.as_str()).collect();
        if !unclear.is_empty() {
            section
                .notes
                .push(format!("Unclear in this run: {}.", unclear.join("; ")));
        }
        let missing = self.contenders.iter().zip(0..);
        let is_missing = |column: usize| rows.iter().all(|row| row.figures[column].is_none());
        let missing: Vec<&str> = missing
            .filter(|(_, column)| is_missing(*column))
            .map(|(who, _)| who.name.as_str())
            .collect();
        if !missing.is_empty() {
            let missing = missing.join("; ");
            section
                .notes
                .push(format!("Not measured: {missing} (`netbench drivers`)."));
        }
        for line in named(|results| results.noise().into_iter().collect()) {
            section.notes.push(format!("Disturbed: {line}"));
        }
        Section {
            ours: vec![self.table(&rows)],
            finding: Finding::of(verdict, sentence),
            problems: named(|results| results.problems.clone()),
            results: measured.results.to_vec(),
            ..section
        }
    }
}

/// Judges a factor. A verdict needs an interval that excludes the other.
fn verdict(now: Option<Ratio>, row: &Row, disturbed: bool) -> Verdict {
    let Some(now) = now else {
        return Verdict::Unknown;
    };
    let Some((low, high)) = now.interval().filter(|_| !disturbed) else {
        return Verdict::Unclear;
    };
    let value = Summary {
        median: now.value,
        low,
        high,
        n: 2,
    };
    match row.better {
        Direction::Higher => Verdict::within(value, row.goal, f64::INFINITY),
        Direction::Lower => Verdict::within(value, 0.0, row.goal),
    }
}

fn state(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Agrees => "met",
        Verdict::Differs => "not met",
        Verdict::Unclear => "unclear",
        Verdict::Unknown => "not measured",
    }
}

/// Formats a factor with its interval: `1.10 (1.02–1.19)`.
fn factor(factor: Ratio) -> String {
    match factor.interval() {
        None => format!("{:.2} (one repetition)", factor.value),
        Some((_, high)) if high.is_infinite() => format!("{:.2} (no bound)", factor.value),
        Some((low, high)) => format!("{:.2} ({low:.2}–{high:.2})", factor.value),
    }
}

//! Figures of a comparison: changes relative to the best peer, goodput over time, and its table.

use super::{Download, Outcome, Report, Row, Stack};
use crate::experiments::links::child::SAMPLE;
use crate::report::charts::number::{change_interval, number};
use crate::report::charts::{
    Axis, Chart, Column, Figure, Intervals, Kind, Line, Lines, Plot, Row as Change, Table,
};
use crate::report::ratio::Ratio;

/// Samples that are drawn as one point.
const TOGETHER: usize = 5;

impl Report {
    /// Returns the figures that the runs so far allow.
    pub(crate) fn figures(&self) -> Vec<Figure> {
        [self.changes(), self.over_time()]
            .into_iter()
            .flatten()
            .collect()
    }

    /// Returns our goodput relative to the best other stack, for each link.
    fn changes(&self) -> Option<Figure> {
        let ours = || self.rows.iter().filter(|row| row.of_best_peer().is_some());
        let rows: Vec<Change> = ours()
            .map(|row| Change {
                heading: row.case.to_owned(),
                name: row.stack.clone(),
                series: self.series(&row.stack),
                ratios: vec![row.of_best_peer(), row.second_half_of_best_peer()],
            })
            .collect();
        if rows.is_empty() {
            return None;
        }
        let columns = ["goodput", "goodput of the second half"].map(|title| Column {
            title: title.to_owned(),
            note: "more is better",
        });
        Some(Figure {
            id: "of-best-peer".to_owned(),
            title: "Goodput relative to the best other stack".to_owned(),
            caption: "A dot is the ratio of the medians, the line its 95 % confidence interval, which takes at least two repetitions. Grey rows are undecided.".to_owned(),
            table: self.table(),
            chart: Chart::Intervals(Intervals {
                columns: columns.to_vec(),
                rows,
            }),
        })
    }

    fn over_time(&self) -> Option<Figure> {
        let plots: Vec<Plot> = self
            .cases
            .iter()
            .map(|case| Plot {
                title: case.name.to_owned(),
                lines: self
                    .stacks
                    .iter()
                    .filter_map(|stack| self.line(case.name, stack))
                    .collect(),
            })
            .filter(|plot| !plot.lines.is_empty())
            .collect();
        if plots.is_empty() {
            return None;
        }
        Some(Figure {
            id: "goodput".to_owned(),
            title: "Goodput over time".to_owned(),
            caption: "Mbit/s in each half second since the call that connects. A line is the median of the repetitions at that time, the shade is from the lowest to the highest.".to_owned(),
            table: Table::default(),
            chart: Chart::Lines(Lines {
                x: Axis {
                    title: "since the call that connects".to_owned(),
                    unit: "µs",
                    kind: Kind::Linear,
                },
                y: Axis {
                    title: "Mbit/s".to_owned(),
                    unit: "",
                    kind: Kind::Linear,
                },
                plots,
            }),
        })
    }

    fn line(&self, case: &str, stack: &Stack) -> Option<Line> {
        let downloads: Vec<Vec<f64>> = self.downloads(case, stack).map(rates).collect();
        let longest = downloads.iter().map(Vec::len).max()?;
        let mut points = Vec::new();
        let mut band = Vec::new();
        for index in 0..longest {
            let mut at: Vec<f64> = downloads
                .iter()
                .filter_map(|d| d.get(index).copied())
                .collect();
            at.sort_by(f64::total_cmp);
            let micros = SAMPLE.as_secs_f64() * 1e6 * (TOGETHER * index) as f64;
            points.push((micros, super::median(at.iter().copied())));
            if let (Some(low), Some(high)) = (at.first(), at.last()) {
                band.push((*low, *high));
            }
        }
        if downloads.len() < 2 {
            band.clear();
        }
        Some(Line {
            name: stack.label.clone(),
            series: self.series(&stack.label),
            points,
            band,
        })
    }

    pub(super) fn downloads<'a>(
        &'a self,
        case: &'a str,
        stack: &'a Stack,
    ) -> impl Iterator<Item = &'a Download> {
        let runs = self.runs.iter();
        runs.filter(move |run| run.case == case && run.stack == stack.label)
            .filter_map(|run| match &run.outcome {
                Outcome::Done(download) => Some(&**download),
                Outcome::Failed(_) => None,
            })
    }

    fn series(&self, label: &str) -> usize {
        let mut labels = self.stacks.iter().map(|stack| &stack.label);
        labels.position(|stack| stack == label).unwrap_or(0)
    }

    /// Returns the rows as a table.
    pub(crate) fn table(&self) -> Table {
        let head = [
            "link and stack",
            "goodput, Mbit/s",
            "interval",
            "second half",
            "of the best peer",
            "its interval",
            "lost",
            "queue, mean and most, ms",
            "CPU, server and client, s",
            "failed",
        ];
        Table {
            head: head.map(str::to_owned).to_vec(),
            rows: self.rows.iter().map(Row::texts).collect(),
        }
    }
}

impl Row {
    fn texts(&self) -> Vec<String> {
        let best = self.of_best_peer();
        vec![
            format!("{}, {}", self.case, self.stack),
            number(self.goodput_mbit),
            self.goodput_interval
                .map(|[low, high]| format!("{} … {}", number(low), number(high)))
                .unwrap_or_default(),
            number(self.second_half_mbit),
            best.map(|ratio| format!("{:.2}", ratio.value))
                .unwrap_or_default(),
            best.and_then(Ratio::percent_interval)
                .map(|interval| change_interval(Some(interval)))
                .unwrap_or_default(),
            format!("{:.2} %", self.lost_share * 100.0),
            format!("{:.0}, {:.0}", self.mean_queue_ms, self.max_queue_ms),
            format!("{:.1}, {:.1}", self.server_cpu_s, self.client_cpu_s),
            self.failures.to_string(),
        ]
    }
}

/// Returns the rates of a download in Mbit/s, each of several samples.
fn rates(download: &Download) -> Vec<f64> {
    download
        .client
        .samples
        .chunks_exact(TOGETHER)
        .map(super::rate)
        .collect()
}

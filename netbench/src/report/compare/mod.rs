//! Comparison of two results: is the second better, worse, or the same?
//!
//! ```text
//!  A.json ─┐  cells by      ratio of medians   threshold
//!          ├─► identity ─► with its interval ─► verdict ─► table, JSON, exit code
//!  B.json ─┘
//! ```

mod args;
mod print;
mod verdict;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::report::ratio::Ratio;
use crate::report::results::{Better, CellResult, Metric, Results, Summary};

pub(crate) use args::Compare;
pub(crate) use verdict::Verdict;

/// A comparison of two results.
#[derive(Debug, Serialize)]
pub(crate) struct Comparison {
    /// Differences that make the two hard to compare.
    pub(crate) warnings: Vec<String>,
    pub(crate) rows: Vec<Line>,
    /// Threshold in percent.
    pub(crate) threshold: f64,
}

/// One metric of one cell.
#[derive(Debug, Serialize)]
pub(crate) struct Line {
    pub(crate) cell: String,
    pub(crate) metric: &'static str,
    #[serde(skip)]
    pub(crate) of: &'static Metric,
    pub(crate) before: Summary,
    pub(crate) after: Summary,
    /// `None` if one of the two is 0.
    pub(crate) ratio: Option<f64>,
    pub(crate) interval: Option<(f64, f64)>,
    /// True if other work on the machine disturbed either measurement.
    pub(crate) disturbed: bool,
    pub(crate) verdict: Verdict,
}

impl Comparison {
    /// Compares these metrics for all cells that both results have.
    pub(crate) fn new(
        before: &Results,
        after: &Results,
        metrics: &[&'static Metric],
        threshold: f64,
    ) -> Self {
        let mut warnings = differences(before, after);
        let mut rows = Vec::new();
        for old in &before.cells {
            match counterpart(old, &after.cells) {
                Some(new) => rows.extend(lines(old, new, metrics, threshold)),
                None => warnings.push(format!("only the first has the cell {}", old.name)),
            }
        }
        for new in &after.cells {
            if counterpart(new, &before.cells).is_none() {
                warnings.push(format!("only the second has the cell {}", new.name));
            }
        }
        Self {
            warnings,
            rows,
            threshold,
        }
    }

    pub(crate) fn count(&self, verdict: Verdict) -> usize {
        self.rows
            .iter()
            .filter(|line| line.verdict == verdict)
            .count()
    }
}

/// Finds the cell with the same values of all axes, whatever its name.
fn counterpart<'a>(cell: &CellResult, among: &'a [CellResult]) -> Option<&'a CellResult> {
    among.iter().find(|other| other.cell == cell.cell)
}

fn lines(
    old: &CellResult,
    new: &CellResult,
    metrics: &[&'static Metric],
    threshold: f64,
) -> Vec<Line> {
    let values = |cell: &CellResult, metric: &Metric| -> Vec<f64> {
        let repetitions = cell.repetitions.iter();
        repetitions
            .filter_map(|r| r.metrics.get(metric.name).copied())
            .collect()
    };
    let line = |metric: &&'static Metric| {
        let before = *old.summary.get(metric.name)?;
        let after = *new.summary.get(metric.name)?;
        let ratio = Ratio::of(after, before);
        let is_identical = before == after && values(old, metric) == values(new, metric);
        Some(Line {
            cell: old.name.clone(),
            metric: metric.name,
            of: metric,
            before,
            after,
            ratio: ratio.map(|ratio| ratio.value),
            interval: ratio.and_then(Ratio::interval),
            disturbed: old.disturbed || new.disturbed,
            verdict: if is_identical {
                Verdict::Same
            } else {
                Verdict::of(metric.better, before, after, threshold)
            },
        })
    };
    metrics.iter().filter_map(line).collect()
}

/// Returns the differences except the stacks.
fn differences(before: &Results, after: &Results) -> Vec<String> {
    let mut lines = Vec::new();
    let mut differ = |what: &str, old: &str, new: &str| {
        if old != new {
            lines.push(format!("{what} differs: {old} before, {new} after"));
        }
    };
    let (old, new) = (&before.about, &after.about);
    differ("the build", &old.build, &new.build);
    differ("the processor", &old.machine.cpu, &new.machine.cpu);
    differ("the kernel", &old.machine.kernel, &new.machine.kernel);
    let cores = |results: &Results| results.about.machine.cores.to_string();
    differ("the number of cores", &cores(before), &cores(after));
    differ("the scenario", &before.scenario.name, &after.scenario.name);
    if before.scenario.name == after.scenario.name {
        differ(
            "the content of the scenario",
            &before.scenario_id,
            &after.scenario_id,
        );
    }
    differ("the version of netbench", &old.netbench, &new.netbench);
    for (name, results) in [("first", before), ("second", after)] {
        if results.about.build != "release" {
            lines.push(format!(
                "the {name} is of a {} build: its figures say nothing",
                results.about.build
            ));
        }
        if !results.complete {
            lines.push(format!("the {name} is incomplete"));
        }
        lines.extend(results.noise().map(|noise| format!("the {name}: {noise}")));
    }
    lines.extend(crates(&old.crates, &new.crates));
    lines
}

/// Describes different crate versions in one line, because they are often the subject of the
/// comparison.
fn crates(old: &BTreeMap<String, String>, new: &BTreeMap<String, String>) -> Option<String> {
    let changed: Vec<String> = old
        .iter()
        .filter_map(|(name, version)| {
            let other = new.get(name)?;
            (other != version).then(|| format!("{name} {version} → {other}"))
        })
        .collect();
    (!changed.is_empty()).then(|| format!("other versions: {}", changed.join(", ")))
}

/// Returns true if an increase is worse.
fn is_worse(better: Better, change: f64) -> bool {
    match better {
        Better::Higher => change < 0.0,
        Better::Lower => change > 0.0,
    }
}

#[cfg(test)]
mod tests;

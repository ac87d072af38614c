//! Shared by the experiments: running a scenario and reading metrics from its results.

use super::Budget;
use hybriq::Group;

use crate::report::results::{CellResult, Repetition, Results, Summary};
use crate::run::{self, Request};
use crate::scenario::Template;
use crate::system::failure::Failure;

/// Runs a scenario with these axes and parameters for this number of repetitions, or as many as the
/// budget allows.
pub(super) async fn measure(
    template: Template,
    axes: &[(&str, &str)],
    repetitions: u32,
    budget: &Budget,
) -> Result<Results, Failure> {
    let mut request = Request::new(template);
    for (axis, values) in axes {
        if *axis == "link" {
            request.axes.set_values(axis, &[(*values).to_owned()])?;
        } else {
            request.axes.set(axis, values)?;
        }
    }
    request.repetitions = repetitions;
    request.time = Some(budget.time);
    run::measure(&request).await
}

/// Returns the number of repetitions of each cell.
pub(super) fn turns(results: &Results) -> usize {
    let cells = results.cells.iter();
    cells.map(|cell| cell.repetitions.len()).max().unwrap_or(0)
}

/// Formats the number of repetitions: `5 repetitions`.
pub(super) fn repetitions(results: &Results) -> String {
    match turns(results) {
        1 => "1 repetition".to_owned(),
        turns => format!("{turns} repetitions"),
    }
}

/// Formats the number of successful connections in a repetition: `150`, or `90 to 150`.
pub(super) fn connections(results: &Results) -> String {
    let cells = results.cells.iter().flat_map(|cell| &cell.repetitions);
    let counts = cells.map(Repetition::completed);
    match (counts.clone().min(), counts.max()) {
        (Some(least), Some(most)) if least < most => format!("{least} to {most}"),
        (_, most) => most.unwrap_or(0).to_string(),
    }
}

/// Returns the cell with this group and these parameters.
pub(super) fn cell<'a>(
    results: &'a Results,
    group: Group,
    params: &[(&str, u64)],
) -> Option<&'a CellResult> {
    results.cells.iter().find(|result| {
        let has = |(name, value): &(&str, u64)| result.cell.params.get(*name) == Some(value);
        result.cell.group == group && params.iter().all(has)
    })
}

/// Returns a metric of a cell, by the names of [`crate::report::results::METRICS`].
pub(super) fn figure(cell: Option<&CellResult>, metric: &str) -> Option<Summary> {
    cell?.summary.get(metric).copied()
}

/// Returns the figure in other units.
pub(super) fn scaled(summary: Summary, factor: f64) -> Summary {
    Summary {
        median: summary.median * factor,
        low: summary.low * factor,
        high: summary.high * factor,
        n: summary.n,
    }
}

/// Returns the summary of a value of each repetition.
pub(super) fn of_each(
    cell: Option<&CellResult>,
    value: impl Fn(&Repetition) -> Option<f64>,
) -> Option<Summary> {
    let values: Vec<f64> = cell?.repetitions.iter().filter_map(value).collect();
    Summary::of(&values)
}

/// Returns the summary of a value of each pair of repetitions in the same turn, so that
/// disturbances affect both.
pub(super) fn paired(
    one: Option<&CellResult>,
    base: Option<&CellResult>,
    value: impl Fn(&Repetition, &Repetition) -> Option<f64>,
) -> Option<Summary> {
    let pairs = one?.repetitions.iter().zip(&base?.repetitions);
    let values: Vec<f64> = pairs
        .filter_map(|(one, base)| value(one, base))
        .filter(|value| value.is_finite())
        .collect();
    Summary::of(&values)
}

/// Returns the ratio of a metric in two cells.
pub(super) fn ratio(
    one: Option<&CellResult>,
    base: Option<&CellResult>,
    metric: &str,
) -> Option<Summary> {
    paired(one, base, |one, base| {
        Some(one.metrics.get(metric)? / base.metrics.get(metric)?)
    })
}

/// Returns the difference in percent.
pub(super) fn change(ratio: Summary) -> Summary {
    Summary {
        median: (ratio.median - 1.0) * 100.0,
        low: (ratio.low - 1.0) * 100.0,
        high: (ratio.high - 1.0) * 100.0,
        n: ratio.n,
    }
}

/// Formats a change: `−2.3 %`, with its interval if there is one.
pub(super) fn percent(change: Summary) -> String {
    let signed = |number: f64| format!("{number:+.1}").replace('-', "−");
    if change.n < 2 {
        return format!("{} %", signed(change.median));
    }
    let (low, high) = (signed(change.low), signed(change.high));
    format!("{} % [{low}, {high}]", signed(change.median))
}

#[cfg(test)]
mod tests {
    use super::{change, paired, percent, ratio};
    use crate::report::results::{CellResult, Repetition, Summary};

    fn cell(rates: &[f64]) -> CellResult {
        let repetition = |&rate: &f64| {
            let mut repetition = Repetition::default();
            repetition
                .metrics
                .insert("connections_per_second".to_owned(), rate);
            repetition
        };
        CellResult {
            repetitions: rates.iter().map(repetition).collect(),
            ..CellResult::default()
        }
    }

    #[test]
    fn ratios_are_those_of_the_same_turn() {
        // The second turn was disturbed, equally for both.
        let (one, base) = (cell(&[90.0, 45.0, 90.0]), cell(&[100.0, 50.0, 100.0]));
        let ratio = ratio(Some(&one), Some(&base), "connections_per_second").unwrap();
        assert!((ratio.low - 0.9).abs() < 1e-9 && (ratio.high - 0.9).abs() < 1e-9);
        assert_eq!(percent(change(ratio)), "−10.0 % [−10.0, −10.0]");
        assert!(paired(Some(&one), None, |_, _| Some(1.0)).is_none());
    }

    #[test]
    fn one_repetition_has_no_interval() {
        let alone = Summary {
            median: 2.25,
            low: 2.25,
            high: 2.25,
            n: 1,
        };
        assert_eq!(percent(alone), "+2.2 %");
    }
}

//! Runs of an experiment, and its figures: formulas over the repetitions of cells.

use super::budget::Budget;
use super::expression::Expression;
use super::file::{Experiment, Filter, Formula, Part, Plan, Published, Rows, axes};
use crate::report::charts::number::{change, change_interval};
use crate::report::charts::{Table, Value, three_digits};
use crate::report::document::{Finding, Section, Verdict};
use crate::report::results::{CellResult, Repetition, Results, Summary};
use crate::run::{self, Request};
use crate::scenario::Template;
use crate::scenario::axes::Cell;
use crate::scenario::units::time;
use crate::system::failure::Failure;
use crate::system::machine::Machine;

/// Bytes of each socket buffer that every stack asks for where stacks are compared. The system's
/// default loses datagrams of 256 hellos at once, and some stacks leave it to the application to
/// ask for more.
const SOCKET_BUFFER: u32 = 4 << 20;

/// Runs a part within its time.
pub(super) async fn run_part(
    experiment: &Experiment,
    part: &Part,
    repetitions: Option<u32>,
    budget: &Budget,
) -> Result<Results, Failure> {
    let mut request = Request::new(template(part, budget)?);
    request.axes = axes(&part.axes)?;
    request.time = budget.time;
    let own = part.repetitions.as_deref().map(str::parse).transpose()?;
    request.repetitions = repetitions.or(own).unwrap_or(request.repetitions);
    if experiment.versus.is_some() {
        request.gives_up = true;
        request.transport.socket_buffer = Some(SOCKET_BUFFER);
    }
    run::measure(&request).await
}

/// Returns results of a part that could not be measured.
pub(super) fn nothing(part: &Part) -> Result<Results, Failure> {
    let scenario = template(part, &Budget::default())?;
    Ok(Results::of(
        scenario.resolve(&[].into())?,
        Machine::detect(),
    ))
}

/// Returns the scenario of a part, whose repetitions may end early.
pub(super) fn template(part: &Part, budget: &Budget) -> Result<Template, Failure> {
    let template = match &part.scenario {
        serde_json::Value::String(name) => Template::load(name)?,
        scenario => Template::parse("the experiment", &scenario.to_string())?,
    };
    let cells = axes(&part.axes)?.size();
    Ok(match (part.ends.as_str(), budget.time) {
        ("", _) | ("share", None) => template,
        // Fewer than four repetitions have intervals that exclude nothing.
        ("share", Some(time)) => template.ending_after(time / (4 * cells.max(1) as u32)),
        (after, _) => template.ending_after(time(after)?),
    })
}

/// An experiment with its results, one for each part.
pub(super) struct Measured<'a> {
    pub(super) experiment: &'a Experiment,
    pub(super) results: &'a [Results],
}

impl Measured<'_> {
    /// Returns the cell of a part with these values.
    pub(super) fn find<'a>(
        &'a self,
        part: usize,
        filters: &[&'a Filter],
    ) -> Option<&'a CellResult> {
        let cells = self.results.get(part)?.cells.iter();
        // A stack that is not built in has no cells.
        let cell = |filter: &&'a Filter| {
            let cell = axes(filter).ok()?.cells(&[].into()).into_iter().next()?;
            Some((*filter, cell))
        };
        let wanted: Vec<(&Filter, Cell)> = filters.iter().map(cell).collect::<Option<_>>()?;
        cells.into_iter().find(|result| {
            wanted.iter().all(|(filter, cell)| {
                let mut axes = filter.keys();
                axes.all(|axis| result.cell.value(axis) == cell.value(axis))
            })
        })
    }

    fn named(&self, name: &str) -> Option<&CellResult> {
        self.find(0, &[self.experiment.cells.get(name)?])
    }

    /// Returns a figure of these cells.
    fn figure(&self, of: &Expression, it: Option<&CellResult>) -> Option<Summary> {
        figure(of, |name| if name == "it" { it } else { self.named(name) })
    }

    /// Returns a table of ours.
    fn table(&self, plan: &Plan) -> Table {
        let columns: Vec<(&str, &str)> = plan
            .columns
            .iter()
            .map(|(title, unit, _)| (title.as_str(), unit.as_str()))
            .collect();
        let mut table = Table::new(&plan.title, &plan.of, &columns);
        match &plan.rows {
            Rows::Each(name) => {
                let cells = self.results.first().map(|results| &results.cells);
                for cell in cells.into_iter().flatten() {
                    let figure = |(_, _, Formula(of)): &_| Value::from(self.figure(of, Some(cell)));
                    let value = |axis: &str| Some(cell.cell.value(axis));
                    table.push(fill(name, value), plan.columns.iter().map(figure));
                }
            }
            Rows::These(rows) => {
                for row in rows {
                    let it = self.named(&row.it);
                    let less = row.less.as_deref().map(|name| self.named(name));
                    let figure = |(_, _, Formula(of)): &_| {
                        Value::from(match less {
                            None => self.figure(of, it),
                            Some(less) => self.difference(of, it, less),
                        })
                    };
                    table.push(row.name.clone(), plan.columns.iter().map(figure));
                }
            }
        }
        table
    }

    /// Returns the difference of a figure of two cells, turn by turn.
    fn difference(
        &self,
        of: &Expression,
        it: Option<&CellResult>,
        less: Option<&CellResult>,
    ) -> Option<Summary> {
        let named = |it| {
            let of = of.clone();
            move |turn: usize| {
                value(&of, turn, &|name| {
                    if name == "it" { it } else { self.named(name) }
                })
            }
        };
        let (it_at, less_at) = (named(it), named(less));
        let turns = it?.repetitions.len().min(less?.repetitions.len());
        let values = (0..turns).filter_map(|turn| Some(it_at(turn)? - less_at(turn)?));
        Summary::of(&values.filter(|value| value.is_finite()).collect::<Vec<_>>())
    }

    /// Judges the figures, and says in one sentence what they come to.
    fn finding(&self) -> Finding {
        let figures = &self.experiment.figures;
        let value = |name: &str| self.figure(&figures.get(name)?.0, None);
        if let Some(missing) = figures.keys().find(|name| value(name).is_none()) {
            let sentence = format!("a figure that is compared could not be measured: {missing}");
            return Finding::of(Verdict::Unknown, sentence);
        }
        let ranges = self.experiment.agrees.iter();
        let verdict = ranges.fold(Verdict::Agrees, |verdict, range| {
            let within = |value| Verdict::within(value, range.least, range.most);
            verdict.and(value(&range.figure).map_or(Verdict::Unknown, within))
        });
        let text = |figure: &str| {
            let (name, form) = figure.split_once(':').unwrap_or((figure, ""));
            Some(written(value(name)?, form))
        };
        Finding::of(verdict, fill(&self.experiment.finding, text))
    }

    /// Returns the section of an experiment of runs.
    pub(super) fn section(&self) -> Section {
        let experiment = self.experiment;
        let results = self.results.iter();
        let told = |name: &str| match name {
            "repetitions" => Some(repetitions(self.results)),
            "connections" => Some(connections(self.results)),
            _ => None,
        };
        Section {
            ours: experiment.ours.iter().map(|it| self.table(it)).collect(),
            finding: self.finding(),
            notes: experiment.notes.iter().map(|it| fill(it, told)).collect(),
            problems: results
                .flat_map(|results| results.problems.clone())
                .collect(),
            results: self.results.to_vec(),
            ..begin(experiment)
        }
    }
}

/// Returns a section with what is known before anything is measured.
pub(super) fn begin(experiment: &Experiment) -> Section {
    Section {
        id: experiment.id.clone(),
        title: experiment.title.clone(),
        source: experiment.source.clone(),
        published: experiment.published.iter().map(Published::table).collect(),
        finding: Finding::of(Verdict::Unknown, "nothing could be measured"),
        rule: experiment.rule.clone(),
        notes: experiment.notes.clone(),
        charts: experiment.charts.clone(),
        ..Section::default()
    }
}

/// Returns the summary of a formula over all turns that all of its cells have: a disturbance
/// affects every cell of a turn.
pub(super) fn figure<'a>(
    of: &Expression,
    cell: impl Fn(&str) -> Option<&'a CellResult>,
) -> Option<Summary> {
    let mut turns = usize::MAX;
    of.cells(&mut |name| {
        turns = turns.min(cell(name).map_or(0, |cell| cell.repetitions.len()));
    });
    let values: Vec<f64> = (0..turns.min(usize::from(u16::MAX)))
        .filter_map(|turn| value(of, turn, &cell))
        .filter(|value| value.is_finite())
        .collect();
    Summary::of(&values)
}

fn value<'a>(
    of: &Expression,
    turn: usize,
    cell: &impl Fn(&str) -> Option<&'a CellResult>,
) -> Option<f64> {
    of.value(&|name, metric| reading(cell(name)?, turn, metric))
}

/// Returns a metric of a repetition, a parameter of its cell, or what no other report asks for.
fn reading(cell: &CellResult, turn: usize, metric: &str) -> Option<f64> {
    let repetition = cell.repetitions.get(turn)?;
    if let Some(value) = repetition.metrics.get(metric) {
        return Some(*value);
    }
    let whole = || repetition.error.is_none();
    match metric {
        "completed" => Some(repetition.completed() as f64),
        "requests" => {
            let samples = repetition.samples.iter();
            Some(samples.map(|sample| sample.requests as f64).sum())
        }
        "server_kib" => whole().then_some(repetition.server.rss_at_start_kib as f64),
        "client_kib" => whole().then_some(repetition.client.rss_at_start_kib as f64),
        _ => match metric.strip_prefix("request_rate_p") {
            Some(percent) => rate(repetition, percent.parse().ok()?),
            None => cell.cell.params.get(metric).map(|value| *value as f64),
        },
    }
}

/// Returns the rate of requests that this percentage of the samples do not exceed, without a
/// shorter last one: the nearest rank.
fn rate(repetition: &Repetition, percent: u32) -> Option<f64> {
    let samples = &repetition.samples;
    let longest = samples.iter().map(|it| it.lasted_ms).fold(0.0, f64::max);
    let mut rates: Vec<f64> = samples
        .iter()
        .filter(|sample| sample.lasted_ms > longest / 2.0)
        .map(|sample| sample.requests as f64 * 1e3 / sample.lasted_ms)
        .collect();
    rates.sort_by(f64::total_cmp);
    let rank = (rates.len() * percent as usize).div_ceil(100);
    rates.get(rank.saturating_sub(1)).copied()
}

/// Writes a figure for a sentence: with a number of digits, as a change in percent with its
/// interval (`%`), or with three digits.
fn written(value: Summary, form: &str) -> String {
    match form {
        "%" if value.n > 1 => {
            let interval = change_interval(Some((value.low, value.high)));
            format!("{} [{interval}]", change(value.median))
        }
        "%" => change(value.median),
        "" => three_digits(value.median),
        digits => format!("{:.*}", digits.parse().unwrap_or(0), value.median),
    }
}

/// Replaces `{name}` by what `text` returns for the name; what it does not know stays.
pub(super) fn fill(template: &str, text: impl Fn(&str) -> Option<String>) -> String {
    let mut filled = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        filled += before;
        let named = after.split_once('}');
        if let Some((text, after)) = named.and_then(|(name, after)| Some((text(name)?, after))) {
            filled += &text;
            rest = after;
        } else {
            filled.push('{');
            rest = after;
        }
    }
    filled + rest
}

/// Formats the number of repetitions of each cell: `5 repetitions`.
fn repetitions(results: &[Results]) -> String {
    let cells = results.iter().flat_map(|results| &results.cells);
    match cells.map(|cell| cell.repetitions.len()).max().unwrap_or(0) {
        1 => "1 repetition".to_owned(),
        turns => format!("{turns} repetitions"),
    }
}

/// Formats the number of successful connections in a repetition: `150`, or `90 to 150`.
fn connections(results: &[Results]) -> String {
    let cells = results.iter().flat_map(|results| &results.cells);
    let counts = cells
        .flat_map(|cell| &cell.repetitions)
        .map(Repetition::completed);
    match (counts.clone().min(), counts.max()) {
        (Some(least), Some(most)) if least < most => format!("{least} to {most}"),
        (_, most) => most.unwrap_or(0).to_string(),
    }
}

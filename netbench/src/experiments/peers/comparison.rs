//! Everything that was measured, and the table made of it.

use std::collections::BTreeMap;

use serde::Serialize;

use super::rows::{CONTENDERS, ROWS, Spec};
use crate::report::ratio::Ratio;
use crate::report::results::{About, Better, Results, Summary};
use crate::system::failure::Failure;
use crate::system::machine::Machine;

/// Version of the format.
const FORMAT: u32 = 1;

/// Our stack next to the others.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Comparison {
    /// [`FORMAT`].
    pub(super) netbench_peers: u32,
    /// True if every part was measured without failures.
    pub(super) complete: bool,
    #[serde(skip)]
    pub(super) interrupted: bool,
    /// True if its time was limited.
    pub(super) limited: bool,
    pub(super) about: About,
    /// Names of the columns.
    pub(super) contenders: Vec<&'static str>,
    pub(super) rows: Vec<Row>,
    /// Failures, each in a line.
    pub(super) problems: Vec<String>,
    /// Warnings about work of other processes, each with its part.
    pub(super) noise: Vec<String>,
    /// All measurements, by part.
    pub(super) results: BTreeMap<&'static str, Results>,
}

/// A row of the table.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    pub(super) title: &'static str,
    pub(super) unit: &'static str,
    /// True if more is better.
    pub(super) higher_is_better: bool,
    #[serde(skip)]
    pub(super) digits: usize,
    /// Figures, in the order of the columns.
    pub(super) figures: Vec<Option<Figure>>,
    /// Our best median divided by that of the best peer.
    pub(super) now: Option<Factor>,
    /// Factor that we want.
    pub(super) goal: f64,
    pub(super) state: State,
}

/// A figure of a contender.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Figure {
    #[serde(flatten)]
    pub(super) summary: Summary,
    /// True if other work on the machine disturbed it.
    pub(super) disturbed: bool,
}

/// A ratio with its 95 % interval, if it has one.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Factor {
    pub(super) value: f64,
    pub(super) interval: Option<(f64, f64)>,
}

/// Relation of a row to its goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum State {
    Met,
    NotMet,
    /// The interval holds both answers, there was one repetition, or other work disturbed it.
    Unclear,
    NotMeasured,
}

impl State {
    /// Judges a factor. A verdict needs an interval that excludes the other.
    fn of(now: Option<Factor>, better: Better, goal: f64, disturbed: bool) -> Self {
        let Some(now) = now else {
            return Self::NotMeasured;
        };
        let Some((low, high)) = now.interval.filter(|_| !disturbed) else {
            return Self::Unclear;
        };
        let (is_met, is_missed) = match better {
            Better::Higher => (low >= goal, high < goal),
            Better::Lower => (high <= goal, low > goal),
        };
        match (is_met, is_missed) {
            (true, _) => Self::Met,
            (_, true) => Self::NotMet,
            _ => Self::Unclear,
        }
    }

    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::NotMet => "not met",
            Self::Unclear => "unclear",
            Self::NotMeasured => "not measured",
        }
    }
}

impl Comparison {
    pub(super) fn begin(limited: bool) -> Self {
        Self {
            netbench_peers: FORMAT,
            complete: true,
            interrupted: false,
            limited,
            about: About::this_run(Machine::detect()),
            contenders: CONTENDERS.iter().map(|who| who.name).collect(),
            rows: Vec::new(),
            problems: Vec::new(),
            noise: Vec::new(),
            results: BTreeMap::new(),
        }
    }

    /// Adds the results of a part; returns true if the user interrupted it.
    pub(super) fn add(&mut self, part: &'static str, results: Result<Results, Failure>) -> bool {
        match results {
            Ok(results) => {
                let problems = results.problems.iter();
                self.problems
                    .extend(problems.map(|problem| format!("{part}: {problem}")));
                let noise = results.noise();
                self.noise
                    .extend(noise.map(|noise| format!("{part}: {noise}")));
                self.results.insert(part, results);
            }
            Err(failure) => self.problems.push(format!("{part}: {failure}")),
        }
        self.complete = self.problems.is_empty();
        self.interrupted = self.problems.iter().any(|it| it.contains("interrupted"));
        self.interrupted
    }

    /// Makes the rows.
    pub(super) fn sum_up(&mut self) {
        self.rows = ROWS.iter().map(|spec| self.row(spec)).collect();
    }

    fn row(&self, spec: &Spec) -> Row {
        let results = self.results.get(spec.part);
        let figures: Vec<Option<Figure>> = CONTENDERS
            .iter()
            .map(|who| {
                let (summary, disturbed) = spec.of(results?, *who)?;
                Some(Figure { summary, disturbed })
            })
            .collect();
        let best = |is: fn(super::rows::Contender) -> bool| {
            let all = CONTENDERS.iter().zip(&figures);
            let found = all.filter_map(|(who, figure)| figure.filter(|_| is(*who)));
            found.min_by(|a, b| {
                let (a, b) = (a.summary.median, b.summary.median);
                match spec.better {
                    Better::Lower => a.total_cmp(&b),
                    Better::Higher => b.total_cmp(&a),
                }
            })
        };
        let (ours, peer) = (
            best(super::rows::Contender::is_ours),
            best(super::rows::Contender::is_peer),
        );
        let pair = ours.zip(peer);
        let ratio = pair.and_then(|(ours, peer)| Ratio::of(ours.summary, peer.summary));
        let now = ratio.map(|ratio| Factor {
            value: ratio.value,
            interval: ratio.interval(),
        });
        let disturbed = pair.is_some_and(|(ours, peer)| ours.disturbed || peer.disturbed);
        Row {
            title: spec.title,
            unit: spec.unit,
            higher_is_better: spec.better == Better::Higher,
            digits: spec.digits,
            figures,
            now,
            goal: spec.goal,
            state: State::of(now, spec.better, spec.goal, disturbed),
        }
    }
}

//! Experiment files: what is measured, what was published, and when the two agree.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::expression::Expression;
use crate::report::charts::{Table, TableColumn, Value};
use crate::report::document::Source;
use crate::report::results::Better;
use crate::scenario::axes::Axes;
use crate::system::failure::Failure;

/// An experiment.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Experiment {
    /// Name on the command line, in JSON, and as the anchor in the report.
    pub(super) id: String,
    /// Headline of its section.
    pub(super) title: String,
    #[serde(default)]
    pub(super) source: Source,
    /// Its share of the time of a quick run.
    pub(super) weight: u32,
    /// Minutes that it may take in a full run.
    pub(super) minutes: u64,
    /// Texts that replace `$NAME` in the file, for each size of a run.
    #[serde(default, rename = "sizes")]
    _sizes: BTreeMap<String, BTreeMap<String, String>>,
    /// Measured in this process rather than by runs.
    pub(super) handshakes: Option<Handshakes>,
    #[serde(default)]
    pub(super) parts: Vec<Part>,
    /// Names of cells, with the values of axes and parameters that they have.
    #[serde(default)]
    pub(super) cells: BTreeMap<String, Filter>,
    #[serde(default)]
    pub(super) published: Vec<Published>,
    #[serde(default)]
    pub(super) ours: Vec<Plan>,
    /// Stacks side by side, with goals.
    pub(super) versus: Option<Versus>,
    /// Figures with names, for rules and for the sentence.
    #[serde(default)]
    pub(super) figures: BTreeMap<String, Formula>,
    /// Ranges of figures in which the shape agrees.
    #[serde(default)]
    pub(super) agrees: Vec<Range>,
    /// The same in words.
    #[serde(default)]
    pub(super) rule: String,
    /// What it comes to: a sentence with `{figure}`.
    #[serde(default)]
    pub(super) finding: String,
    #[serde(default)]
    pub(super) notes: Vec<String>,
    /// Ids of the charts that show its subject.
    #[serde(default)]
    pub(super) charts: Vec<String>,
}

/// Values of axes and parameters by name.
pub(super) type Filter = BTreeMap<String, String>;

/// What is measured in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Handshakes {
    Breakdown,
    Algorithms,
    Negotiation,
    Hierarchy,
}

/// A run of one scenario.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Part {
    #[serde(default)]
    pub(super) id: String,
    /// Name of a scenario, or a scenario.
    pub(super) scenario: serde_json::Value,
    /// Axes and parameters, in the form of the command line.
    pub(super) axes: Filter,
    #[serde(default)]
    pub(super) repetitions: Option<String>,
    /// When a repetition ends before its scenario does: a time, or `share` of the part's time.
    #[serde(default)]
    pub(super) ends: String,
    /// Its share of the experiment's time.
    #[serde(default = "one")]
    pub(super) weight: u32,
}

fn one() -> u32 {
    1
}

/// A published table: a text or a number for each column.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Published {
    title: String,
    of: String,
    columns: Vec<(String, String)>,
    rows: Vec<(String, Vec<Figure>)>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Figure {
    Number(f64),
    Text(String),
    Missing(()),
}

/// A table of ours: a formula for each column, which calls the row's cell `it`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plan {
    pub(super) title: String,
    pub(super) of: String,
    /// Title, unit and formula.
    pub(super) columns: Vec<(String, String, Formula)>,
    pub(super) rows: Rows,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Rows {
    /// A row for every cell, with this name, in which `{axis}` stands for the cell's value.
    Each(String),
    These(Vec<Named>),
}

/// A row for a cell, less the same figures of another.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Named {
    pub(super) name: String,
    pub(super) it: String,
    pub(super) less: Option<String>,
}

/// A range of a figure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Range {
    pub(super) figure: String,
    #[serde(default = "lowest")]
    pub(super) least: f64,
    #[serde(default = "highest")]
    pub(super) most: f64,
}

fn lowest() -> f64 {
    f64::NEG_INFINITY
}

fn highest() -> f64 {
    f64::INFINITY
}

/// The columns and rows of a comparison.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Versus {
    pub(super) contenders: Vec<Contender>,
    pub(super) rows: Vec<Row>,
}

/// A column: a stack with its TLS library.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Contender {
    pub(super) name: String,
    pub(super) cell: Filter,
    pub(super) side: Side,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Side {
    Ours,
    /// Another QUIC stack, to which goals refer.
    Peer,
    /// What is shown beside.
    Beside,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Row {
    pub(super) title: String,
    pub(super) unit: String,
    /// Id of the part that measures it.
    pub(super) part: String,
    /// Values of axes that its cells have beside the contender's.
    #[serde(default)]
    pub(super) cell: Filter,
    /// Formula over `it`, or over the experiment's cells of the contender.
    pub(super) figure: Formula,
    pub(super) better: Direction,
    #[serde(default)]
    pub(super) digits: usize,
    /// Factor of our best to the best peer's that we want.
    pub(super) goal: f64,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Direction {
    Higher,
    Lower,
}

impl Direction {
    pub(super) fn better(self) -> Better {
        match self {
            Self::Higher => Better::Higher,
            Self::Lower => Better::Lower,
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Formula(pub(super) Expression);

impl TryFrom<String> for Formula {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Expression::parse(&text).map(Self)
    }
}

/// Amount of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    /// As small as possible: only shows that everything works.
    Tiny,
    Quick,
    Full,
}

impl Experiment {
    /// Reads a file for a size of run.
    pub(super) fn read(text: &str, size: Size) -> Result<Self, Failure> {
        #[derive(Deserialize)]
        struct Sizes {
            #[serde(default)]
            sizes: BTreeMap<String, BTreeMap<String, String>>,
        }
        let Sizes { sizes } = serde_json::from_str(text)?;
        let of = |name: &str| sizes.get(name).cloned().unwrap_or_default();
        let words = match size {
            // What a tiny run does not say is as in a quick one.
            Size::Tiny => {
                let mut words = of("quick");
                words.extend(of("tiny"));
                words
            }
            Size::Quick => of("quick"),
            Size::Full => of("full"),
        };
        let mut text = text.to_owned();
        // A name may begin as another does: the longest first.
        for (name, value) in words.iter().rev() {
            text = text.replace(&format!("${name}$"), value);
        }
        Ok(serde_json::from_str(&text)?)
    }
}

/// Returns the axes that a filter sets.
pub(super) fn axes(filter: &Filter) -> Result<Axes, Failure> {
    let mut axes = Axes::default();
    for (axis, values) in filter {
        if axis == "link" {
            axes.set_values(axis, std::slice::from_ref(values))?;
        } else {
            axes.set(axis, values)?;
        }
    }
    Ok(axes)
}

impl Published {
    pub(super) fn table(&self) -> Table {
        let columns = self.columns.iter().map(|(title, unit)| TableColumn {
            title: title.clone(),
            unit: unit.clone(),
        });
        let mut table = Table {
            title: self.title.clone(),
            of: self.of.clone(),
            columns: columns.collect(),
            rows: Vec::new(),
        };
        for (name, figures) in &self.rows {
            let value = |figure: &Figure| match figure {
                Figure::Number(number) => Value::Number(*number),
                Figure::Text(text) => Value::Text(text.clone()),
                Figure::Missing(()) => Value::Missing(String::new()),
            };
            table.push(name.clone(), figures.iter().map(value));
        }
        table
    }
}

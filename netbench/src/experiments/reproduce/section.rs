//! Section of one experiment in the report.

use std::error::Error;

use serde::{Deserialize, Serialize};

use super::Experiment;
use crate::report::charts::number::{group_digits, minus};
use crate::report::results::{Results, Summary};
use crate::system::failure::with_causes;

/// The published figures of one experiment, and ours.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Section {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) source: Source,
    /// Published figures; empty if the source only has a claim.
    pub(crate) published: Vec<ValueTable>,
    pub(crate) ours: Vec<ValueTable>,
    pub(crate) finding: Finding,
    /// Condition under which the shape agrees with the published one.
    #[serde(default)]
    pub(crate) rule: String,
    /// Method of our run, its differences from the original, and its limits.
    pub(crate) notes: Vec<String>,
    /// Measurements that failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) problems: Vec<String>,
    /// All measurements in the form of `netbench run --json`, for the charts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) results: Option<Box<Results>>,
}

/// Publication of the original values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Source {
    /// Author, title and year: `AWS, "…", 2023`.
    pub(crate) text: String,
    /// The published experiment, in a sentence.
    pub(crate) experiment: String,
}

/// Comparison of the measured shape with the published one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Finding {
    pub(crate) verdict: Verdict,
    /// One sentence with the ratios that support it.
    pub(crate) sentence: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    Agrees,
    Differs,
    /// The intervals are too wide for a verdict.
    Unclear,
    /// The compared values were not measured.
    Unknown,
}

/// Figures with a name for each row.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ValueTable {
    pub(crate) title: String,
    /// Heading over the names of the rows.
    pub(crate) of: String,
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Row>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Column {
    pub(crate) title: String,
    /// Unit of all numbers below; empty for none.
    pub(crate) unit: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    /// One figure for each column.
    pub(crate) figures: Vec<Value>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Value {
    /// Published or counted number.
    Number(f64),
    /// Median of repetitions with its 95 % interval.
    Measured(Summary),
    Text(String),
    /// Reason why there is none; empty if it is obvious.
    Missing(String),
}

impl Section {
    /// Returns the section of an experiment that failed.
    pub(super) fn failed(experiment: &Experiment, failure: &(dyn Error + 'static)) -> Self {
        Self {
            problems: vec![with_causes(failure)],
            ..Self::begin(experiment)
        }
    }

    /// Returns a section without content.
    pub(super) fn begin(experiment: &Experiment) -> Self {
        Self {
            id: experiment.id.to_owned(),
            title: experiment.title.to_owned(),
            source: Source::default(),
            published: Vec::new(),
            ours: Vec::new(),
            finding: Finding::unknown("nothing could be measured"),
            rule: String::new(),
            notes: Vec::new(),
            problems: Vec::new(),
            results: None,
        }
    }
}

impl Section {
    /// Marks a finding from repetitions that other work still disturbed after they were measured
    /// again.
    pub(super) fn with_noise(mut self) -> Self {
        if let Some(noise) = self.results.as_deref().and_then(Results::noise) {
            self.finding.sentence = format!("{} Disturbed: {noise}.", self.finding.sentence);
        }
        self
    }
}

impl Finding {
    /// Returns a finding with a verdict, or with true if the shape agrees.
    pub(crate) fn of(verdict: impl Into<Verdict>, sentence: impl Into<String>) -> Self {
        Self {
            verdict: verdict.into(),
            sentence: sentence.into(),
        }
    }

    /// Returns the finding of an experiment that lacks the compared values.
    pub(crate) fn unknown(sentence: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::Unknown,
            sentence: sentence.into(),
        }
    }
}

impl From<bool> for Verdict {
    fn from(agrees: bool) -> Self {
        if agrees { Self::Agrees } else { Self::Differs }
    }
}

impl Verdict {
    /// Judges whether a value is in a range. The interval has to exclude the other answer, and one
    /// repetition has none.
    pub(crate) fn within(value: Summary, low: f64, high: f64) -> Self {
        if value.n < 2 {
            Self::Unclear
        } else if value.low >= low && value.high <= high {
            Self::Agrees
        } else if value.low > high || value.high < low {
            Self::Differs
        } else {
            Self::Unclear
        }
    }

    /// Judges whether a value is at least this one.
    pub(crate) fn at_least(value: Summary, low: f64) -> Self {
        Self::within(value, low, f64::INFINITY)
    }

    /// Returns the worse of two verdicts.
    pub(crate) fn and(self, other: Self) -> Self {
        let worse = [Self::Unknown, Self::Differs, Self::Unclear];
        let found = worse.into_iter().find(|it| [self, other].contains(it));
        found.unwrap_or(Self::Agrees)
    }

    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::Differs => "differs",
            Self::Unclear => "unclear",
            Self::Unknown => "unknown",
        }
    }
}

impl ValueTable {
    pub(crate) fn new(title: &str, of: &str, columns: &[(&str, &str)]) -> Self {
        Self {
            title: title.to_owned(),
            of: of.to_owned(),
            columns: columns.iter().copied().map(Column::from).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row, which has a figure for every column.
    pub(crate) fn row<F: Into<Value>>(
        mut self,
        name: impl Into<String>,
        figures: impl IntoIterator<Item = F>,
    ) -> Self {
        self.push(name, figures);
        self
    }

    pub(crate) fn push<F: Into<Value>>(
        &mut self,
        name: impl Into<String>,
        figures: impl IntoIterator<Item = F>,
    ) {
        let mut figures: Vec<Value> = figures.into_iter().map(Into::into).collect();
        figures.resize(self.columns.len(), Value::Missing(String::new()));
        self.rows.push(Row {
            name: name.into(),
            figures,
        });
    }
}

impl From<(&str, &str)> for Column {
    fn from((title, unit): (&str, &str)) -> Self {
        Self {
            title: title.to_owned(),
            unit: unit.to_owned(),
        }
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Summary> for Value {
    fn from(summary: Summary) -> Self {
        Self::Measured(summary)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(figure: Option<T>) -> Self {
        figure.map_or_else(|| Self::Missing(String::new()), Into::into)
    }
}

impl Value {
    /// Returns the text for tables: published numbers as they are, measurements with three digits
    /// and their interval.
    pub(crate) fn parts(&self) -> (String, Option<String>) {
        match self {
            Self::Number(number) => (minus(group_digits(&number.to_string())), None),
            Self::Measured(summary) => {
                let interval = || {
                    let (low, high) = (three_digits(summary.low), three_digits(summary.high));
                    format!("{low} – {high}")
                };
                let text = three_digits(summary.median);
                (text, (summary.n > 1).then(interval))
            }
            Self::Text(text) => (text.clone(), None),
            Self::Missing(_) => ("–".to_owned(), None),
        }
    }
}

/// Rounds to three digits, but keeps all digits before the point; counts stay whole.
pub(crate) fn three_digits(number: f64) -> String {
    let decimals = match number.abs() {
        size if size >= 100.0 || size.fract() == 0.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    minus(group_digits(&format!("{number:.decimals$}")))
}

#[cfg(test)]
mod tests {
    use super::{Section, Value, ValueTable, Verdict, three_digits};
    use crate::report::results::Summary;

    #[test]
    fn a_verdict_needs_an_interval_that_excludes_the_other() {
        let of = |n, median, low, high| {
            let value = Summary {
                median,
                low,
                high,
                n,
            };
            Verdict::within(value, 80.0, 100.0)
        };
        let verdict = |median, low, high| of(5, median, low, high);
        assert_eq!(verdict(92.0, 90.0, 95.0), Verdict::Agrees);
        assert_eq!(verdict(92.0, 60.0, 120.0), Verdict::Unclear);
        assert_eq!(verdict(92.0, 70.0, 95.0), Verdict::Unclear);
        assert_eq!(of(1, 92.0, 92.0, 92.0), Verdict::Unclear, "one repetition");
        assert_eq!(of(1, 154.0, 154.0, 154.0), Verdict::Unclear);
        assert_eq!(verdict(70.0, 60.0, 85.0), Verdict::Unclear);
        assert_eq!(verdict(110.0, 99.0, 120.0), Verdict::Unclear);
        assert_eq!(verdict(70.0, 60.0, 79.0), Verdict::Differs);
    }

    #[test]
    fn a_finding_beside_other_work_says_so() {
        use crate::experiments::reproduce::fixed::{cell, results};
        let mut noisy = cell(hybriq::Group::X25519, &[], &[("handshake_p50_us", &[1.0])]);
        let sentence = |cell| {
            let section = Section {
                results: Some(Box::new(results(vec![cell]))),
                ..Section::begin(&crate::experiments::reproduce::experiments::ALL[0])
            };
            section.with_noise().finding.sentence
        };
        assert!(!sentence(noisy.clone()).contains("Disturbed"));
        noisy.repetitions[0].other_cores = Some(4.8);
        noisy.summarize();
        assert!(sentence(noisy).contains("Disturbed: other work"));
    }

    #[test]
    fn of_two_verdicts_the_worse_stands() {
        let (agrees, unclear, differs) = (Verdict::Agrees, Verdict::Unclear, Verdict::Differs);
        assert_eq!(agrees.and(agrees), agrees);
        assert_eq!(agrees.and(unclear), unclear);
        assert_eq!(unclear.and(differs), differs);
        assert_eq!(differs.and(Verdict::Unknown), Verdict::Unknown);
    }

    #[test]
    fn figures_are_written_for_people() {
        let text = |figure: Value| figure.parts().0;
        assert_eq!(text(Value::Number(54367.0)), "54,367");
        assert_eq!(text(Value::Number(108.7)), "108.7");
        assert_eq!(text(Value::Number(-1_234_567.25)), "−1,234,567.25");
        let summary = Summary {
            median: 1234.56,
            low: 99.96,
            high: 1300.0,
            n: 5,
        };
        let (median, interval) = Value::Measured(summary).parts();
        assert_eq!(
            (median.as_str(), interval.as_deref()),
            ("1,235", Some("100.0 – 1,300"))
        );
        assert_eq!(text(Value::Missing("no such group".to_owned())), "–");
        assert_eq!(three_digits(0.0456), "0.046");
    }

    #[test]
    fn a_row_has_a_figure_for_every_column() {
        let table = ValueTable::new("t", "group", &[("a", "1/s"), ("b", "")]).row("x", [1.0]);
        assert_eq!(table.rows[0].figures.len(), 2);
    }
}

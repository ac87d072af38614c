//! The one table of all reports: on the terminal, in pages, as Markdown and as CSV.

use std::fmt::Write as _;
use std::io;

use maud::{Markup, html};
use serde::{Deserialize, Serialize};

use super::number::{NONE, group_digits, minus};
use crate::report::results::Summary;

/// Figures with a name for each row.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Table {
    #[serde(default)]
    pub(crate) title: String,
    /// Heading over the names of the rows.
    #[serde(default)]
    pub(crate) of: String,
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Row>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Column {
    pub(crate) title: String,
    /// Unit of all numbers below; empty for none.
    #[serde(default)]
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
    Measured(Measured),
    Text(String),
    /// Text with its interval.
    Written(String, Option<String>),
    /// Reason why there is none; empty if it is obvious.
    Missing(String),
}

/// Median of repetitions with its 95 % interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Measured {
    #[serde(flatten)]
    pub(crate) summary: Summary,
    /// Digits behind the point, without an interval; `None`: three digits, with one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) digits: Option<usize>,
    /// True for the best of the row.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) best: bool,
    /// True if other work on the machine disturbed it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) disturbed: bool,
}

/// Spaces between two columns on the terminal.
const GAP: usize = 2;

impl Table {
    pub(crate) fn new(title: &str, of: &str, columns: &[(&str, &str)]) -> Self {
        Self {
            title: title.to_owned(),
            of: of.to_owned(),
            columns: columns.iter().copied().map(Column::from).collect(),
            rows: Vec::new(),
        }
    }

    /// Returns a table of texts; the first of a row is its name.
    pub(crate) fn of_texts<T: Into<String>>(
        head: impl IntoIterator<Item = T>,
        rows: impl IntoIterator<Item = Vec<String>>,
    ) -> Self {
        let mut head = head.into_iter().map(Into::into);
        let mut table = Self {
            of: head.next().unwrap_or_default(),
            columns: head
                .map(|title| Column {
                    title,
                    unit: String::new(),
                })
                .collect(),
            ..Self::default()
        };
        for row in rows {
            let mut texts = row.into_iter();
            table.push(texts.next().unwrap_or_default(), texts);
        }
        table
    }

    /// Adds a row, which has a figure for every column.
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

    /// Returns the head and all rows as texts.
    fn texts(&self, text: impl Fn(&Value) -> String) -> Vec<Vec<String>> {
        let titles = self.columns.iter().map(Column::text);
        let head = std::iter::once(self.of.clone()).chain(titles).collect();
        let row = |row: &Row| {
            let figures = row.figures.iter().map(&text);
            std::iter::once(row.name.clone()).chain(figures).collect()
        };
        std::iter::once(head)
            .chain(self.rows.iter().map(row))
            .collect()
    }

    /// Returns the width on the terminal.
    pub(crate) fn width(&self) -> usize {
        let widths = widths(&self.texts(Value::text));
        (widths.iter().sum::<usize>() + GAP * widths.len()).saturating_sub(GAP)
    }

    /// Prints the table: names to the left, figures to the right, except in the first `left` columns.
    pub(crate) fn print(&self, out: &mut impl io::Write, left: usize) -> io::Result<()> {
        let texts = self.texts(Value::text);
        let widths = widths(&texts);
        for row in texts {
            let mut line = String::new();
            for (index, (text, width)) in row.iter().zip(&widths).enumerate() {
                let gap = if index == 0 { 0 } else { GAP };
                let _ = if index <= left {
                    write!(line, "{:gap$}{text:<width$}", "")
                } else {
                    write!(line, "{:gap$}{text:>width$}", "")
                };
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }

    /// Returns the table as Markdown; the best figure of a row is bold.
    pub(crate) fn markdown(&self) -> String {
        let bold = |value: &Value| match value {
            Value::Measured(measured) if measured.best => {
                let text = value.text();
                let (number, mark) = text.split_at(text.find(" !").unwrap_or(text.len()));
                format!("**{number}**{mark}")
            }
            Value::Missing(_) => String::new(),
            _ => value.text(),
        };
        let mut text = String::new();
        for (index, row) in self.texts(bold).iter().enumerate() {
            for cell in row {
                let _ = write!(text, "| {}", cell.replace('|', "\\|"));
                text.push_str(if cell.is_empty() { "" } else { " " });
            }
            text.push_str("|\n");
            if index == 0 {
                text.push_str("|---");
                text.push_str(&"|---:".repeat(self.columns.len()));
                text.push_str("|\n");
            }
        }
        text
    }

    /// Returns a line for each figure.
    pub(crate) fn csv(&self) -> String {
        let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
        let mut text = String::from("row,column,unit,value,low,high,repetitions,disturbed\r\n");
        for row in &self.rows {
            for (column, value) in self.columns.iter().zip(&row.figures) {
                let value = match value {
                    Value::Number(number) => format!("{number},,,,"),
                    Value::Text(text) | Value::Written(text, _) => format!("{},,,,", quoted(text)),
                    Value::Missing(_) => continue,
                    Value::Measured(of) => {
                        let Summary {
                            median,
                            low,
                            high,
                            n,
                        } = of.summary;
                        format!("{median},{low},{high},{n},{}", of.disturbed)
                    }
                };
                let (name, title) = (quoted(&row.name), quoted(&column.title));
                let _ = write!(text, "{name},{title},{},{value}\r\n", column.unit);
            }
        }
        text
    }

    /// Returns a table that scrolls on its own if it is wider than the page.
    pub(crate) fn html(&self, label: &str) -> Markup {
        html! {
            div.scroll tabindex="0" role="region" aria-label=(label) {
                table {
                    thead { tr {
                        th scope="col" { (self.of) }
                        @for column in &self.columns {
                            th scope="col" {
                                (column.title)
                                @if !column.unit.is_empty() { small { (column.unit) } }
                            }
                        }
                    } }
                    tbody {
                        @for row in &self.rows {
                            tr {
                                th scope="row" { (row.name) }
                                @for value in &row.figures { (value.html()) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn widths(rows: &[Vec<String>]) -> Vec<usize> {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| {
        let texts = rows.iter().filter_map(|row: &Vec<String>| row.get(column));
        texts.map(|text| text.chars().count()).max().unwrap_or(0)
    };
    (0..columns).map(width).collect()
}

impl Column {
    fn text(&self) -> String {
        match self.unit.as_str() {
            "" => self.title.clone(),
            unit => format!("{}, {unit}", self.title),
        }
    }
}

impl Value {
    /// Returns the text without an interval.
    pub(crate) fn text(&self) -> String {
        self.parts().0
    }

    /// Returns the text for tables, and the interval: published numbers as they are, measurements
    /// with three digits unless they say how many.
    pub(crate) fn parts(&self) -> (String, Option<String>) {
        match self {
            Self::Number(number) => (minus(group_digits(&number.to_string())), None),
            Self::Measured(measured) => measured.parts(),
            Self::Text(text) => (text.clone(), None),
            Self::Written(text, interval) => (text.clone(), interval.clone()),
            Self::Missing(_) => (NONE.to_owned(), None),
        }
    }

    fn html(&self) -> Markup {
        let (text, interval) = self.parts();
        let why = match self {
            Self::Missing(why) if !why.is_empty() => Some(why),
            _ => None,
        };
        html! {
            td title=[why] {
                (text)
                @if let Some(interval) = interval { small { (interval) } }
            }
        }
    }
}

impl Measured {
    fn parts(&self) -> (String, Option<String>) {
        let Summary {
            median,
            low,
            high,
            n,
        } = self.summary;
        let mark = if self.disturbed { " !" } else { "" };
        if let Some(digits) = self.digits {
            let number = minus(group_digits(&format!("{median:.digits$}")));
            return (number + mark, None);
        }
        let interval = || format!("{} – {}", three_digits(low), three_digits(high));
        (three_digits(median) + mark, (n > 1).then(interval))
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
        Self::Measured(Measured {
            summary,
            ..Measured::default()
        })
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(figure: Option<T>) -> Self {
        figure.map_or_else(|| Self::Missing(String::new()), Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::{Measured, Summary, Table, Value, three_digits};

    const SUMMARY: Summary = Summary {
        median: 1234.56,
        low: 99.96,
        high: 1300.0,
        n: 5,
    };

    #[test]
    fn figures_are_written_for_people() {
        let text = |figure: Value| figure.text();
        assert_eq!(text(Value::Number(54367.0)), "54,367");
        assert_eq!(text(Value::Number(108.7)), "108.7");
        assert_eq!(text(Value::Number(-1_234_567.25)), "−1,234,567.25");
        let (median, interval) = Value::from(SUMMARY).parts();
        assert_eq!(
            (median.as_str(), interval.as_deref()),
            ("1,235", Some("100.0 – 1,300"))
        );
        assert_eq!(text(Value::Missing("no such group".to_owned())), "–");
        assert_eq!(three_digits(0.0456), "0.046");
    }

    #[test]
    fn one_table_is_text_markdown_and_csv() {
        let mut table = Table::new("t", "group", &[("a", "1/s"), ("b", "")]);
        let best = Measured {
            summary: SUMMARY,
            digits: Some(1),
            best: true,
            disturbed: true,
        };
        table.push("x|y", [Value::Measured(best)]);
        table.push("z", [Value::from(2.5), "say \"no\"".into()]);
        assert_eq!(table.rows[0].figures.len(), 2, "a figure for every column");
        let mut text = Vec::new();
        table.print(&mut text, 0).unwrap();
        let text = String::from_utf8(text).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "group     a, 1/s         b");
        assert_eq!(lines[1], "x|y    1,234.6 !         –");
        assert_eq!(table.width(), lines[0].chars().count());
        let markdown = table.markdown();
        assert!(
            markdown.contains("| x\\|y | **1,234.6** ! | |\n"),
            "{markdown}"
        );
        let csv = table.csv();
        assert_eq!(csv.lines().count(), 1 + 3, "{csv}");
        assert!(
            csv.contains("\"x|y\",\"a\",1/s,1234.56,99.96,1300,5,true"),
            "{csv}"
        );
        assert!(csv.contains("\"say \"\"no\"\"\""), "{csv}");
        assert!(table.html("t").into_string().contains("<small>1/s</small>"));
    }
}

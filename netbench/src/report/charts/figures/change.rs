//! Changes of each cell relative to a common baseline.

use crate::report::charts::figures::matrix::{Entry, Matrix, Panel};
use crate::report::charts::figures::{metric, summary};
use crate::report::charts::number::{NONE, change, change_interval};
use crate::report::charts::{Chart, Column, Figure, Intervals, Row, Table};
use crate::report::ratio::Ratio;
use crate::report::results::{Better, Metric, Results};

/// Metrics that best answer the question, in order, with their column headings.
const TELLING: [(&str, &str); 9] = [
    ("server_cpu_us", "Server CPU"),
    ("connections_per_second", "Connections/s"),
    ("handshake_p50_us", "Handshake, p50"),
    ("client_cpu_us", "Client CPU"),
    ("goodput_bits_per_second", "Goodput"),
    ("requests_per_second", "Requests/s"),
    ("request_p50_us", "Request, p50"),
    ("handshake_bytes_to_client", "Bytes to client"),
    ("handshake_bytes_to_server", "Bytes to server"),
];

/// Maximum number of readable columns.
const MOST: usize = 5;

/// Maximum number of axes; nobody compares more at once.
const MOST_AXES: usize = 3;

/// Returns a figure for each axis that varies.
pub(super) fn figures(results: &Results, axes: &[String]) -> Vec<Figure> {
    let axes = axes.iter().take(MOST_AXES);
    axes.filter_map(|axis| figure(axis, &Matrix::along(results, axis)))
        .collect()
}

fn figure(axis: &str, matrix: &Matrix) -> Option<Figure> {
    if !matrix.is_comparison() {
        return None;
    }
    let (metrics, columns): (Vec<&Metric>, Vec<Column>) = TELLING
        .into_iter()
        .filter_map(|(name, title)| Some((metric(name)?, title)))
        .filter(|(metric, _)| is_compared(matrix, metric))
        .map(|(metric, title)| (metric, column(metric, title)))
        .take(MOST)
        .unzip();
    let rows: Vec<Row> = matrix
        .panels
        .iter()
        .flat_map(|panel| rows(panel, &metrics))
        .collect();
    if metrics.is_empty() || rows.is_empty() {
        return None;
    }
    let bases: Vec<&str> = matrix
        .panels
        .iter()
        .filter_map(|panel| Some(panel.baseline()?.name.as_str()))
        .collect();
    let base = match bases.split_first() {
        Some((first, others)) if others.iter().all(|other| other == first) => *first,
        _ => "the first of each",
    };
    Some(Figure {
        id: format!("change-{}", file_name(axis)),
        title: format!("{} compared with {base}", things(axis)),
        caption: format!(
            "Change of the median against {base}, in percent. A line is the 95 % interval; where it \
             crosses 0, no difference was shown."
        ),
        table: table(&metrics, &rows),
        chart: Chart::Intervals(Intervals { columns, rows }),
    })
}

fn is_compared(matrix: &Matrix, metric: &Metric) -> bool {
    matrix.panels.iter().any(|panel| {
        panel.baseline().is_some_and(|base| {
            let others = panel.entries.iter().filter(|entry| !is_same(entry, base));
            others
                .clone()
                .any(|entry| ratio(entry, base, metric).is_some())
        })
    })
}

fn rows(panel: &Panel, metrics: &[&Metric]) -> Vec<Row> {
    let Some(base) = panel.baseline() else {
        return Vec::new();
    };
    let others = panel.entries.iter().filter(|entry| !is_same(entry, base));
    others
        .map(|entry| Row {
            heading: panel.title.clone(),
            name: entry.name.clone(),
            series: entry.series,
            ratios: metrics
                .iter()
                .map(|metric| ratio(entry, base, metric))
                .collect(),
        })
        .collect()
}

fn is_same(entry: &Entry, base: &Entry) -> bool {
    std::ptr::eq(entry.result, base.result)
}

fn ratio(entry: &Entry, base: &Entry, metric: &Metric) -> Option<Ratio> {
    Ratio::of(
        summary(entry.result, metric.name)?,
        summary(base.result, metric.name)?,
    )
}

fn column(metric: &Metric, title: &str) -> Column {
    Column {
        title: title.to_owned(),
        note: match metric.better {
            Better::Higher => "more is better",
            Better::Lower => "less is better",
        },
    }
}

/// Returns a valid file name for an axis: parameters may have any name.
fn file_name(axis: &str) -> String {
    let letters = axis.chars().filter(char::is_ascii_graphic);
    let plain = letters.map(|letter| {
        if letter.is_ascii_alphanumeric() {
            letter.to_ascii_lowercase()
        } else {
            '-'
        }
    });
    plain.take(40).collect()
}

/// Returns the noun for the values of an axis.
fn things(axis: &str) -> String {
    let known = match axis {
        "group" => "Groups",
        "stack" => "Stacks",
        "resumption" => "Resumption",
        "certificate" => "Certificates",
        "provider" => "TLS providers",
        "suite" => "Cipher suites",
        "hello_retry" => "HelloRetryRequest",
        "chain" => "Chains",
        "workers" => "Workers",
        "client_auth" => "Client certificates",
        "congestion" => "Congestion controllers",
        "link" => "Links",
        _ => "",
    };
    match known {
        "" => format!("Values of {}", axis.replace('_', " ")),
        known => known.to_owned(),
    }
}

fn table(metrics: &[&Metric], rows: &[Row]) -> Table {
    let heads = metrics.iter().map(|metric| metric.title.to_owned());
    let text = |ratio: &Option<Ratio>| match ratio {
        Some(ratio) => format!(
            "{} ({})",
            change(ratio.percent()),
            change_interval(ratio.percent_interval())
        ),
        None => NONE.to_owned(),
    };
    let row = |row: &Row| {
        let name = match row.heading.as_str() {
            "" => row.name.clone(),
            heading => format!("{} ({heading})", row.name),
        };
        let ratios = row.ratios.iter().map(text);
        std::iter::once(name).chain(ratios).collect()
    };
    Table::of_texts(
        std::iter::once(String::new()).chain(heads),
        rows.iter().map(row),
    )
}

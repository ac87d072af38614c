//! Time of handshakes, by message and by operation.

use crate::report::charts::canvas::theme::Ink;
use crate::report::charts::number::{NONE, number, with_unit};
use crate::report::charts::{Bar, Bars, Chart, Figure, Table};
use crate::report::results::{Breakdown, Part, Results};

/// Selects the parts of the bars.
type Parts = fn(&Breakdown) -> &[Part];

pub(super) fn figures(results: &Results) -> Vec<Figure> {
    let breakdowns = &results.breakdowns;
    let messages = figure(
        breakdowns,
        ("handshake-messages", "A handshake, message by message"),
        "CPU time to make or to handle each message of one handshake.",
        |breakdown| &breakdown.messages,
    );
    let operations = figure(
        breakdowns,
        (
            "handshake-operations",
            "A handshake, operation by operation",
        ),
        "CPU time of each kind of operation in one handshake. Operations happen inside of messages: \
         the two charts show the same time.",
        |breakdown| &breakdown.operations,
    );
    messages.into_iter().chain(operations).collect()
}

fn figure(
    breakdowns: &[Breakdown],
    (id, title): (&str, &str),
    caption: &str,
    parts: Parts,
) -> Option<Figure> {
    let mut names: Vec<String> = Vec::new();
    for part in breakdowns.iter().flat_map(parts) {
        if !names.contains(&part.name) {
            names.push(part.name.clone());
        }
    }
    if names.is_empty() {
        return None;
    }
    let labels = labels(breakdowns);
    let us = |breakdown: &Breakdown, name: &String| -> f64 {
        let found = parts(breakdown).iter().filter(|part| part.name == *name);
        found.map(|part| part.us.median).sum()
    };
    let mut bars = Vec::new();
    for (breakdown, (heading, name)) in breakdowns.iter().zip(&labels) {
        if parts(breakdown).is_empty() {
            continue;
        }
        let mut values: Vec<f64> = names.iter().map(|name| us(breakdown, name)).collect();
        let known: f64 = values.iter().sum();
        values.push((breakdown.total_us.median - known).max(0.0));
        bars.push(Bar {
            heading: heading.clone(),
            name: name.clone(),
            values,
        });
    }
    // The sides are headings: the bars of a side belong together.
    bars.sort_by(|a, b| a.heading.cmp(&b.heading));
    let inks = names
        .iter()
        .enumerate()
        .map(|(index, name)| (name.clone(), Ink::Part(index)));
    Some(Figure {
        id: id.to_owned(),
        title: title.to_owned(),
        caption: caption.to_owned(),
        table: table(breakdowns, &labels, parts),
        chart: Chart::Bars(Bars {
            title: "CPU time of one handshake".to_owned(),
            unit: "µs",
            parts: inks.chain([("the rest".to_owned(), Ink::Rest)]).collect(),
            rows: bars,
        }),
    })
}

/// Returns the side as heading, and the varying values as name.
fn labels(breakdowns: &[Breakdown]) -> Vec<(String, String)> {
    let fields: [fn(&Breakdown) -> String; 5] = [
        |b| b.group.to_string(),
        |b| b.suite.to_string(),
        |b| b.certificate.clone(),
        |b| b.mode.clone(),
        |b| b.provider.to_string(),
    ];
    let varying: Vec<_> = fields
        .into_iter()
        .filter(|field| {
            let first = breakdowns.first().map(field);
            breakdowns
                .iter()
                .any(|breakdown| Some(field(breakdown)) != first)
        })
        .collect();
    let label = |breakdown: &Breakdown| {
        let values: Vec<String> = varying.iter().map(|field| field(breakdown)).collect();
        let name = match values.join(", ") {
            name if name.is_empty() => breakdown.group.to_string(),
            name => name,
        };
        (breakdown.side.to_string(), name)
    };
    breakdowns.iter().map(label).collect()
}

fn table(breakdowns: &[Breakdown], labels: &[(String, String)], parts: Parts) -> Table {
    let mut rows = Vec::new();
    for (breakdown, (side, name)) in breakdowns.iter().zip(labels) {
        for part in parts(breakdown) {
            let share = part.us.median / breakdown.total_us.median * 100.0;
            let summary = part.us;
            rows.push(vec![
                format!("{name}, {side}"),
                part.name.clone(),
                number(part.count),
                if part.bytes == 0 {
                    NONE.to_owned()
                } else {
                    with_unit(part.bytes as f64, "B")
                },
                with_unit(summary.median, "µs"),
                format!(
                    "{} … {}",
                    with_unit(summary.low, "µs"),
                    with_unit(summary.high, "µs")
                ),
                format!("{}\u{202f}%", number(share)),
            ]);
        }
    }
    let head = [
        "handshake",
        "part",
        "count",
        "bytes",
        "time",
        "95 % interval",
        "share",
    ];
    Table::of_texts(head, rows)
}

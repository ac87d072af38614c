//! Bytes on the wire of one connection, by phase and direction.

use crate::report::charts::canvas::theme::Ink;
use crate::report::charts::figures::matrix::{Entry, Matrix};
use crate::report::charts::figures::median;
use crate::report::charts::number::{NONE, number, with_unit};
use crate::report::charts::{Bar, Bars, Chart, Figure, Table};

/// Metrics, in the order of the bars.
const PARTS: [(&str, Ink); 4] = [
    ("handshake, to the server", Ink::Part(0)),
    ("handshake, to the client", Ink::Part(4)),
    ("data, to the server", Ink::Part(5)),
    ("data, to the client", Ink::Part(1)),
];

pub(super) fn figure(matrix: &Matrix) -> Option<Figure> {
    let mut bars = Vec::new();
    let mut rows = Vec::new();
    for (panel, entry) in matrix.entries() {
        let Some(values) = parts(entry) else {
            continue;
        };
        let text = |metric: &str| match median(entry.result, metric) {
            Some(value) => number(value),
            None => NONE.to_owned(),
        };
        let mut row = vec![entry.full_name(panel)];
        row.extend(values.map(|bytes| with_unit(bytes, "B")));
        row.extend(["datagrams_to_server", "datagrams_to_client"].map(text));
        rows.push(row);
        bars.push(Bar {
            heading: panel.title.clone(),
            name: entry.name.clone(),
            values: values.into(),
        });
    }
    if bars.is_empty() {
        return None;
    }
    let heads = PARTS.map(|(name, _)| name.to_owned()).into_iter();
    let heads = std::iter::once(String::new())
        .chain(heads)
        .chain(["datagrams to the server", "datagrams to the client"].map(str::to_owned));
    Some(Figure {
        id: "bytes".to_owned(),
        title: "Bytes of one connection".to_owned(),
        caption: "Payload of UDP datagrams, or of TCP segments, in both directions: what it took \
                  until the handshake was complete, and what came after."
            .to_owned(),
        table: Table::of_texts(heads, rows),
        chart: Chart::Bars(Bars {
            title: "bytes of one connection".to_owned(),
            unit: "B",
            parts: PARTS.map(|(name, ink)| (name.to_owned(), ink)).into(),
            rows: bars,
        }),
    })
}

/// Returns `None` if the stack does not tell; everything is data if it cannot separate the
/// handshake.
fn parts(entry: &Entry) -> Option<[f64; 4]> {
    let of = |metric| median(entry.result, metric);
    let up = of("bytes_to_server")?;
    let down = of("bytes_to_client")?;
    let first_up = of("handshake_bytes_to_server").unwrap_or(0.0).min(up);
    let first_down = of("handshake_bytes_to_client").unwrap_or(0.0).min(down);
    Some([first_up, first_down, up - first_up, down - first_down])
}

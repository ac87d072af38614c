//! Time of a connection: the client's CPU, the server's, and the rest.

use crate::report::charts::canvas::theme::Ink;
use crate::report::charts::figures::matrix::{Entry, Matrix};
use crate::report::charts::figures::median;
use crate::report::charts::number::{NONE, with_unit};
use crate::report::charts::{Bar, Bars, Chart, Figure, Table};

pub(super) fn figure(matrix: &Matrix) -> Option<Figure> {
    let mut bars = Vec::new();
    let mut rows = Vec::new();
    for (panel, entry) in matrix.entries() {
        let (Some(client), Some(server)) = (
            median(entry.result, "client_cpu_us"),
            median(entry.result, "server_cpu_us"),
        ) else {
            continue;
        };
        let rest = wall(entry).map(|wall| (wall - client - server).max(0.0));
        bars.push(Bar {
            heading: panel.title.clone(),
            name: entry.name.clone(),
            values: vec![client, server, rest.unwrap_or(0.0)],
        });
        let text = |us: f64| with_unit(us, "µs");
        rows.push(vec![
            entry.full_name(panel),
            text(client),
            text(server),
            rest.map_or(NONE.to_owned(), text),
            wall(entry).map_or(NONE.to_owned(), text),
        ]);
    }
    if bars.is_empty() {
        return None;
    }
    Some(Figure {
        id: "time".to_owned(),
        title: "Where a connection's time goes".to_owned(),
        caption:
            "CPU time of both ends for one connection, and what remains of its mean duration: \
                  the network, and waiting for a turn."
                .to_owned(),
        table: Table::of_texts(
            [
                "",
                "client CPU",
                "server CPU",
                "network and waiting",
                "mean duration",
            ],
            rows,
        ),
        chart: Chart::Bars(Bars {
            title: "time of one connection".to_owned(),
            unit: "µs",
            parts: vec![
                ("client CPU".to_owned(), Ink::Part(0)),
                ("server CPU".to_owned(), Ink::Part(1)),
                ("network and waiting".to_owned(), Ink::Rest),
            ],
            rows: bars,
        }),
    })
}

/// Returns the mean time of a connection.
fn wall(entry: &Entry) -> Option<f64> {
    let kinds = entry
        .result
        .repetitions
        .iter()
        .flat_map(|r| r.kinds.values());
    let (sum, count) = kinds.fold((0.0, 0.0), |(sum, count), kind| {
        let connections = kind.connection.count() as f64;
        let mean = if connections > 0.0 {
            kind.connection.mean_us()
        } else {
            0.0
        };
        (sum + mean * connections, count + connections)
    });
    (count > 0.0).then(|| sum / count)
}

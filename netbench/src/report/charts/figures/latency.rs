//! Percentile curves of latencies.

use crate::report::charts::figures::matrix::{Entry, Matrix};
use crate::report::charts::number::{NONE, count, with_unit};
use crate::report::charts::{Axis, Chart, Figure, Kind, Line, Lines, Plot, Table};
use crate::report::results::{Histogram, KindResult};

/// Selects the histogram of one kind of latency.
type Pick = fn(&KindResult) -> Histogram;

/// Latencies to draw: the figure's id, its title, its start and end, and its source.
const LATENCIES: [(&str, &str, &str, Pick); 5] = [
    (
        "handshake-latency",
        "Handshake latency",
        "From the intended start until the handshake was complete.",
        |kind| kind.handshake.clone(),
    ),
    (
        "first-byte-latency",
        "Time to the first byte",
        "From the intended start until the first byte of the peer's application.",
        |kind| kind.first_byte.clone(),
    ),
    (
        "connection-latency",
        "Connection latency",
        "From the intended start until the connection's script was done.",
        |kind| kind.connection.clone(),
    ),
    (
        "request-latency",
        "Request latency",
        "From the intended start of a request until it was answered.",
        |kind| sum(kind.requests.values()),
    ),
    (
        "datagram-latency",
        "Round trips of datagrams",
        "From sending a datagram until it came back.",
        |kind| kind.datagrams.clone(),
    ),
];

/// Number of points of a curve for each nine of the quantile.
const POINTS_A_NINE: usize = 20;

pub(super) fn figures(matrix: &Matrix) -> Vec<Figure> {
    let figures = LATENCIES
        .into_iter()
        .filter_map(|(id, title, caption, pick)| figure(matrix, (id, title, caption), pick));
    figures.collect()
}

fn figure(matrix: &Matrix, (id, title, caption): (&str, &str, &str), pick: Pick) -> Option<Figure> {
    let mut all: Vec<(String, Histogram)> = Vec::new();
    let mut plots = Vec::new();
    for panel in &matrix.panels {
        let mut lines = Vec::new();
        for entry in &panel.entries {
            let histogram = latencies(entry, pick);
            if !histogram.is_empty() {
                lines.push(line(entry, &histogram));
                all.push((entry.full_name(panel), histogram));
            }
        }
        if !lines.is_empty() {
            plots.push(Plot {
                title: panel.title.clone(),
                lines,
            });
        }
    }
    let medians = all.iter().map(|(_, histogram)| histogram.us_at(0.5));
    let lowest = medians.fold(f64::INFINITY, f64::min);
    let highest = all
        .iter()
        .map(|(_, histogram)| histogram.max_us())
        .fold(0.0, f64::max);
    if plots.is_empty() {
        return None;
    }
    let kind = if highest > 20.0 * lowest {
        Kind::Log
    } else {
        Kind::Linear
    };
    let reading = match kind {
        Kind::Log => {
            "both axes are logarithmic: each nine of the percentiles is as wide as the last"
        }
        _ => "each nine of the percentiles is as wide as the last",
    };
    Some(Figure {
        id: id.to_owned(),
        title: title.to_owned(),
        caption: format!("{caption} So many percent took at most so long; {reading}."),
        table: table(&all),
        chart: Chart::Lines(Lines {
            x: Axis {
                title: "percentile".to_owned(),
                unit: "",
                kind: Kind::Tail,
            },
            y: Axis {
                title: title.to_owned(),
                unit: "µs",
                kind,
            },
            plots,
        }),
    })
}

fn sum<'a>(histograms: impl Iterator<Item = &'a Histogram>) -> Histogram {
    histograms.fold(Histogram::default(), |mut sum, histogram| {
        sum.add(histogram);
        sum
    })
}

/// Returns the histogram over all repetitions and kinds of connections.
fn latencies(entry: &Entry, pick: Pick) -> Histogram {
    let kinds = entry
        .result
        .repetitions
        .iter()
        .flat_map(|r| r.kinds.values());
    let picked: Vec<Histogram> = kinds.map(pick).collect();
    sum(picked.iter())
}

fn line(entry: &Entry, histogram: &Histogram) -> Line {
    // If less than one value lies beyond a percentile, it is that value and no percentile.
    let nines = (histogram.count().max(10) as f64).log10().min(6.0);
    let points = (nines * POINTS_A_NINE as f64) as usize;
    let quantile = |index: usize| 1.0 - 10_f64.powf(-(index as f64) / POINTS_A_NINE as f64);
    Line {
        name: entry.name.clone(),
        series: entry.series,
        points: (0..=points)
            .map(|index| (quantile(index), histogram.us_at(quantile(index))))
            .collect(),
        band: Vec::new(),
    }
}

fn table(all: &[(String, Histogram)]) -> Table {
    let quantiles = [0.5, 0.75, 0.9, 0.99, 0.999, 0.9999];
    let head = [
        "", "count", "mean", "p50", "p75", "p90", "p99", "p99.9", "p99.99", "max",
    ];
    let row = |(name, histogram): &(String, Histogram)| {
        let enough = |quantile: f64| histogram.count() as f64 * (1.0 - quantile) >= 0.999;
        let mut row = vec![
            name.clone(),
            count(histogram.count()),
            with_unit(histogram.mean_us(), "µs"),
        ];
        row.extend(quantiles.map(|quantile| {
            if enough(quantile) {
                with_unit(histogram.us_at(quantile), "µs")
            } else {
                NONE.to_owned()
            }
        }));
        row.push(with_unit(histogram.max_us(), "µs"));
        row
    };
    Table::of_texts(head, all.iter().map(row))
}

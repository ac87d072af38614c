//! Connections and requests over time.

use crate::report::charts::figures::matrix::{Entry, Matrix};
use crate::report::charts::number::{count, number};
use crate::report::charts::{Axis, Chart, Figure, Kind, Line, Lines, Plot, Table};
use crate::report::results::{Repetition, Sample};

/// Selects the counter of a sample.
type Counted = fn(&Sample) -> u64;

/// Percentiles of rates that are published most often.
pub(crate) const PERCENTILES: [f64; 7] = [0.01, 0.10, 0.25, 0.50, 0.75, 0.90, 0.99];

pub(super) fn figures(matrix: &Matrix) -> Vec<Figure> {
    let total = |counted: Counted| -> u64 {
        let samples = matrix.entries().flat_map(|(_, entry)| samples(entry));
        samples.map(counted).fold(0, u64::saturating_add)
    };
    let (connections, requests) = (total(|s| s.connections), total(|s| s.requests));
    let mut figures = Vec::new();
    if connections > 0 {
        figures.extend(figure(matrix, "rate", "Connections per second", |s| {
            s.connections
        }));
    }
    // If each connection makes one request, both rates are equal.
    if requests > connections.saturating_add(connections / 10) {
        figures.extend(figure(matrix, "request-rate", "Requests per second", |s| {
            s.requests
        }));
    }
    figures
}

fn figure(matrix: &Matrix, id: &str, what: &str, counted: Counted) -> Option<Figure> {
    let plots: Vec<Plot> = matrix
        .panels
        .iter()
        .map(|panel| Plot {
            title: panel.title.clone(),
            lines: panel
                .entries
                .iter()
                .map(|entry| line(entry, counted))
                .filter(|line| !line.points.is_empty())
                .collect(),
        })
        .filter(|plot| !plot.lines.is_empty())
        .collect();
    if plots.is_empty() {
        return None;
    }
    let repeated = plots
        .iter()
        .flat_map(|plot| &plot.lines)
        .any(|line| !line.band.is_empty());
    let reading = if repeated {
        " A line is the median of the repetitions at that time, the shade is from the lowest to the highest."
    } else {
        ""
    };
    Some(Figure {
        id: id.to_owned(),
        title: format!("{what} over time"),
        caption: format!("{what} in each interval of the measurement, that ended well.{reading}"),
        table: percentiles(matrix, counted),
        chart: Chart::Lines(Lines {
            x: Axis {
                title: "since the start of the measurement".to_owned(),
                unit: "µs",
                kind: Kind::Linear,
            },
            y: Axis {
                title: what.to_owned(),
                unit: "",
                kind: Kind::Linear,
            },
            plots,
        }),
    })
}

fn samples<'a>(entry: &'a Entry) -> impl Iterator<Item = &'a Sample> {
    let repetitions = entry.result.repetitions.iter();
    repetitions.flat_map(full_samples)
}

/// Returns the samples without a last one that is too short for a rate.
fn full_samples(repetition: &Repetition) -> &[Sample] {
    let samples = &repetition.samples;
    let longest = samples.iter().map(|s| s.lasted_ms).fold(0.0, f64::max);
    match samples.split_last() {
        Some((last, others)) if !others.is_empty() && last.lasted_ms < longest / 2.0 => others,
        _ => samples,
    }
}

fn rate(sample: &Sample, counted: Counted) -> f64 {
    counted(sample) as f64 / sample.lasted_ms.max(1e-3) * 1e3
}

/// Returns the median of each sample over the repetitions, with the minimum and maximum.
fn line(entry: &Entry, counted: Counted) -> Line {
    let repetitions: Vec<&[Sample]> = entry.result.repetitions.iter().map(full_samples).collect();
    let longest = repetitions.iter().map(|samples| samples.len()).max();
    let mut points = Vec::new();
    let mut band = Vec::new();
    for index in 0..longest.unwrap_or(0) {
        let at: Vec<&Sample> = repetitions.iter().filter_map(|s| s.get(index)).collect();
        // A tail that only some repetitions have would show as a jump.
        if at.len() * 2 <= repetitions.len() {
            break;
        }
        let mut rates: Vec<f64> = at.iter().map(|sample| rate(sample, counted)).collect();
        rates.sort_by(f64::total_cmp);
        points.push((at[0].at_ms * 1e3, quantile(&rates, 0.5)));
        band.push((rates[0], rates[rates.len() - 1]));
    }
    if repetitions.len() < 2 {
        band.clear();
    }
    Line {
        name: entry.name.clone(),
        series: entry.series,
        points,
        band,
    }
}

/// Returns the quantile of sorted numbers, interpolated between the two nearest.
fn quantile(sorted: &[f64], quantile: f64) -> f64 {
    let place = quantile * (sorted.len().saturating_sub(1)) as f64;
    let below = sorted
        .get(place.floor() as usize)
        .copied()
        .unwrap_or(f64::NAN);
    let above = sorted.get(place.ceil() as usize).copied().unwrap_or(below);
    below + (above - below) * place.fract()
}

/// Returns the table in the form of published results: count, mean, and percentiles of the samples.
fn percentiles(matrix: &Matrix, counted: Counted) -> Table {
    let names = PERCENTILES.map(|quantile| format!("p{:02.0}", quantile * 100.0));
    let head = ["", "total", "samples", "mean /s"].map(str::to_owned);
    let rows = matrix.entries().filter_map(|(panel, entry)| {
        let mut rates: Vec<f64> = samples(entry).map(|sample| rate(sample, counted)).collect();
        if rates.is_empty() {
            return None;
        }
        rates.sort_by(f64::total_cmp);
        let all = entry.result.repetitions.iter().flat_map(|r| &r.samples);
        let total = all.map(counted).fold(0, u64::saturating_add);
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        let mut row = vec![
            entry.full_name(panel),
            count(total),
            rates.len().to_string(),
            number(mean),
        ];
        row.extend(PERCENTILES.map(|share| number(quantile(&rates, share))));
        Some(row)
    });
    Table::of_texts(head.into_iter().chain(names), rows)
}

#[cfg(test)]
mod tests {
    use super::quantile;

    #[test]
    fn quantiles_lie_between_the_nearest_figures() {
        let sorted = [1.0, 2.0, 3.0, 4.0];
        assert!((quantile(&sorted, 0.0) - 1.0).abs() < 1e-12);
        assert!((quantile(&sorted, 0.5) - 2.5).abs() < 1e-12);
        assert!((quantile(&sorted, 1.0) - 4.0).abs() < 1e-12);
        assert!((quantile(&[7.0], 0.99) - 7.0).abs() < 1e-12);
        assert!(quantile(&[], 0.5).is_nan());
    }
}

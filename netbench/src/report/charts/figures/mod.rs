//! The figures of results. A figure is left out if the results lack its data.

mod breakdown;
mod bytes;
mod change;
mod latency;
pub(crate) mod matrix;
mod rate;
mod time;

use self::matrix::Matrix;
use super::Figure;
use crate::report::results::{CellResult, METRICS, Metric, Results, Summary};

/// Returns every figure that these results allow, in reading order.
pub(crate) fn all(results: &Results) -> Vec<Figure> {
    let matrix = Matrix::of(results);
    let mut figures = Vec::new();
    figures.extend(change::figures(results, &matrix.varying));
    figures.extend(rate::figures(&matrix));
    figures.extend(latency::figures(&matrix));
    figures.extend(time::figure(&matrix));
    figures.extend(bytes::figure(&matrix));
    figures.extend(breakdown::figures(results));
    figures
}

/// Returns a metric's summary if the cell has a meaningful one.
pub(crate) fn summary(cell: &CellResult, metric: &str) -> Option<Summary> {
    let summary = cell.summary.get(metric).copied();
    summary.filter(|summary| summary.median.is_finite())
}

pub(crate) fn median(cell: &CellResult, metric: &str) -> Option<f64> {
    summary(cell, metric).map(|summary| summary.median)
}

pub(crate) fn metric(name: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| metric.name == name)
}

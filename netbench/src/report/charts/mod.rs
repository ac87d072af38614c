//! Charts of results: for the page, and as files for documents.
//!
//! ```text
//!  Results ─► Matrix ─► figures ─► Chart ─► SVG ─┬─► in the page, wide and narrow
//!             what       what is    lines,       └─► files for documents, and PNG
//!             varies     drawn      bars, …
//! ```

mod bars;
pub(crate) mod canvas;
pub(crate) mod figures;
mod intervals;
mod lines;
pub(crate) mod number;
mod table;

use std::fs;
use std::path::{Path, PathBuf};

use maud::Markup;

use crate::report::results::Results;
use crate::system::failure::Failure;
use crate::system::files;

pub(crate) use bars::{Bar, Bars};
pub(crate) use canvas::Place;
pub(crate) use canvas::scale::Kind;
pub(crate) use intervals::{Column, Intervals, Row};
pub(crate) use lines::{Axis, Line, Lines, Plot};
pub(crate) use table::{Column as TableColumn, Measured, Table, Value, three_digits};

/// A drawing.
#[derive(Clone, Debug)]
pub(crate) enum Chart {
    Lines(Lines),
    Bars(Bars),
    Intervals(Intervals),
}

/// A chart with its texts.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    /// Name of its file and of its anchor in the page.
    pub(crate) id: String,
    pub(crate) title: String,
    /// Content and unit of the chart, and how to read it.
    pub(crate) caption: String,
    pub(crate) chart: Chart,
    /// The same data as a table, for readers who cannot see the chart.
    pub(crate) table: Table,
}

impl Figure {
    /// The drawing as SVG.
    pub(crate) fn svg(&self, place: Place) -> Markup {
        match &self.chart {
            Chart::Lines(lines) => lines.svg(self, place),
            Chart::Bars(bars) => bars.svg(self, place),
            Chart::Intervals(intervals) => intervals.svg(self, place),
        }
    }
}

/// Writes every chart of results; returns the files.
pub(crate) fn write_all(results: &Results, directory: &Path) -> Result<Vec<PathBuf>, Failure> {
    write_figures(&figures::all(results), directory)
}

/// Writes every chart as `<id>.svg`, and if PNG is built in as `<id>.png`; returns the files.
pub(crate) fn write_figures(figures: &[Figure], directory: &Path) -> Result<Vec<PathBuf>, Failure> {
    let cannot = |path: &Path, error: &dyn std::fmt::Display| -> Failure {
        format!(
            "cannot write {}: {error}; choose another --charts",
            path.display()
        )
        .into()
    };
    fs::create_dir_all(directory).map_err(|error| cannot(directory, &error))?;
    let mut written = Vec::new();
    for figure in figures {
        let svg = figure.svg(Place::Document).into_string();
        let path = directory.join(&figure.id).with_extension("svg");
        files::write(&path, svg.as_bytes()).map_err(|error| cannot(&path, &error))?;
        written.push(path);
        #[cfg(feature = "png")]
        {
            let path = directory.join(&figure.id).with_extension("png");
            let png = canvas::png::render(&svg).map_err(|error| cannot(&path, &error))?;
            files::write(&path, &png).map_err(|error| cannot(&path, &error))?;
            written.push(path);
        }
    }
    Ok(written)
}

#[cfg(test)]
mod tests;

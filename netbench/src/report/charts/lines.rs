//! Lines over a horizontal axis, in one or several plots side by side.

use std::fmt::Write as _;

use maud::{Markup, html};

use super::Figure;
use super::canvas::scale::{Kind, Scale};
use super::canvas::theme::{Ink, SERIES, fit};
use super::canvas::{Anchor, Area, Mark, Pen, Place, Shape};
use super::number::{Unit, px, short, tick};

/// Plots with common axes.
#[derive(Clone, Debug)]
pub(crate) struct Lines {
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) plots: Vec<Plot>,
}

/// An axis of a plot.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    pub(crate) title: String,
    /// Unit, as metrics name it.
    pub(crate) unit: &'static str,
    pub(crate) kind: Kind,
}

/// Lines that are compared.
#[derive(Clone, Debug)]
pub(crate) struct Plot {
    pub(crate) title: String,
    pub(crate) lines: Vec<Line>,
}

/// One of the compared lines.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) series: usize,
    pub(crate) points: Vec<(f64, f64)>,
    /// Minimum and maximum of the repetitions at the same places; empty with one repetition.
    pub(crate) band: Vec<(f64, f64)>,
}

/// Maximum number of points drawn of a line: more cannot be seen.
const MOST_POINTS: usize = 160;

/// Maximum number of points of all lines together, to limit the size of pages with many cells.
const MOST_POINTS_OF_ALL: usize = 4000;

/// Maximum number of places at which a plot shows its numbers.
const MOST_TIPS: usize = 40;

/// Maximum number of such places in all plots together.
const MOST_TIPS_OF_ALL: usize = 120;

struct Scales {
    x: Scale,
    y: Scale,
    x_unit: Unit,
    y_unit: Unit,
}

impl Lines {
    pub(crate) fn svg(&self, figure: &Figure, place: Place) -> Markup {
        let pen = Pen(place);
        pen.drawing(figure, &self.legend(), |area| self.body(pen, area))
    }

    fn most_points(&self) -> usize {
        let lines: usize = self.plots.iter().map(|plot| plot.lines.len()).sum();
        (MOST_POINTS_OF_ALL / lines.max(1)).clamp(16, MOST_POINTS)
    }

    fn most_tips(&self) -> usize {
        (MOST_TIPS_OF_ALL / self.plots.len().max(1)).clamp(6, MOST_TIPS)
    }

    fn legend(&self) -> Vec<Mark> {
        let mut marks: Vec<Mark> = Vec::new();
        for line in self.plots.iter().flat_map(|plot| &plot.lines) {
            if marks.iter().all(|mark| mark.name != line.name) {
                marks.push(Mark {
                    name: line.name.clone(),
                    ink: Ink::Series(line.series),
                    shape: Shape::Line {
                        dashed: line.series >= SERIES,
                    },
                });
            }
        }
        if marks.len() == 1 {
            marks.clear();
        }
        marks
    }

    fn body(&self, pen: Pen, area: Area) -> (Markup, f64) {
        let columns = match (pen.0.is_narrow(), self.plots.len()) {
            (true, _) | (_, 0 | 1) => 1,
            (_, 2 | 4) => 2,
            _ => 3,
        };
        let gap = 20.0;
        let width = (area.width - gap * (columns - 1) as f64) / columns as f64;
        let height = match (pen.0.is_narrow(), columns) {
            (true, _) => 230.0,
            (_, 1) => 330.0,
            (_, 2) => 250.0,
            _ => 200.0,
        };
        let titled = self.plots.iter().any(|plot| !plot.title.is_empty());
        let (head, foot) = (if titled { 50.0 } else { 30.0 }, 46.0);
        let place_of = |index: usize| Area {
            left: area.left + (index % columns) as f64 * (width + gap),
            top: area.top + (index / columns) as f64 * (head + height + foot + 8.0),
            width,
            height: head + height + foot,
        };
        let markup = html! {
            @for (index, plot) in self.plots.iter().enumerate() {
                @let outer = place_of(index);
                @if titled {
                    (pen.bold((outer.left, outer.top + 14.0), Anchor::Start, &fit(&plot.title, 12.5, width)))
                }
                (self.plot(pen, outer, (head, foot), plot))
            }
        };
        let rows = self.plots.len().max(1).div_ceil(columns);
        (markup, place_of((rows - 1) * columns).bottom())
    }

    fn plot(&self, pen: Pen, outer: Area, (head, foot): (f64, f64), plot: &Plot) -> Markup {
        let left = 56.0;
        let area = Area {
            left: outer.left + left,
            top: outer.top + head,
            width: outer.width - left - 14.0,
            height: outer.height - head - foot,
        };
        let scales = self.scales(area);
        let y_title = match scales.y_unit.name {
            "" => self.y.title.clone(),
            unit => format!("{}, {unit}", self.y.title),
        };
        let x_title = match scales.x_unit.name {
            "" => self.x.title.clone(),
            unit => format!("{}, {unit}", self.x.title),
        };
        html! {
            (pen.text((outer.left, area.top - 14.0), Anchor::Start, Ink::Soft, &y_title))
            (pen.upright_axis(area, &scales.y, |value| match self.y.kind {
                Kind::Log => short(value / scales.y_unit.factor),
                _ => tick(value / scales.y_unit.factor, scales.y.step() / scales.y_unit.factor),
            }))
            (pen.lying_axis(area, &scales.x, |value| match self.x.kind {
                Kind::Tail => percentile(value),
                _ => tick(value / scales.x_unit.factor, scales.x.step() / scales.x_unit.factor),
            }))
            (pen.line((area.left, area.bottom()), (area.right(), area.bottom()), Ink::Soft))
            (pen.text((area.right(), area.bottom() + 36.0), Anchor::End, Ink::Soft, &x_title))
            @for line in &plot.lines { (band(pen, line, &scales, self.most_points())) }
            @for line in &plot.lines { (stroke(pen, line, &scales, self.most_points())) }
            (self.tips(area, plot, &scales))
        }
    }

    /// Returns axes that cover all plots, so that these can be compared.
    fn scales(&self, area: Area) -> Scales {
        let lines = || self.plots.iter().flat_map(|plot| &plot.lines);
        let xs = bounds(lines().flat_map(|line| line.points.iter().map(|point| point.0)));
        let of_line = |line: &Line| -> Vec<f64> {
            let points = line.points.iter().map(|point| point.1);
            points
                .chain(line.band.iter().flat_map(|b| [b.0, b.1]))
                .collect()
        };
        let ys = bounds(lines().flat_map(of_line));
        let from_zero = self.y.kind == Kind::Linear && ys.0 < 0.65 * ys.1 && ys.0 >= 0.0;
        let shown = if from_zero { (0.0, ys.1) } else { ys };
        let x_ticks = (area.width / 80.0) as usize;
        let x = match self.x.kind {
            Kind::Linear => Scale::exactly(xs, x_ticks),
            kind => Scale::covering(kind, xs, x_ticks),
        };
        Scales {
            x: x.between(area.left, area.right()),
            y: Scale::covering(self.y.kind, shown, (area.height / 52.0) as usize)
                .between(area.bottom(), area.top),
            x_unit: Unit::fitting(self.x.unit, xs.1),
            y_unit: Unit::fitting(
                self.y.unit,
                if self.y.kind == Kind::Log {
                    ys.0 * 10.0
                } else {
                    ys.1
                },
            ),
        }
    }

    /// Draws invisible columns that show the numbers of every line at their place.
    fn tips(&self, area: Area, plot: &Plot, scales: &Scales) -> Markup {
        let Some(longest) = plot.lines.iter().max_by_key(|line| line.points.len()) else {
            return html! {};
        };
        let every = longest.points.len().div_ceil(self.most_tips()).max(1);
        let places: Vec<f64> = longest.points.iter().step_by(every).map(|p| p.0).collect();
        let middle = |index: usize| {
            let (Some(a), Some(b)) = (places.get(index), places.get(index + 1)) else {
                return area.right();
            };
            f64::midpoint(scales.x.at(*a), scales.x.at(*b))
        };
        html! {
            g fill="transparent" {
                @for (index, x) in places.iter().enumerate() {
                    @let left = if index == 0 { area.left } else { middle(index - 1) };
                    rect class="tip" x=(px(left)) y=(px(area.top)) width=(px(middle(index) - left)) height=(px(area.height)) {
                        title { (self.tip(*x, plot, scales)) }
                    }
                }
            }
        }
    }

    fn tip(&self, x: f64, plot: &Plot, scales: &Scales) -> String {
        let place = match self.x.kind {
            Kind::Tail => format!("p{}", percentile(x)),
            _ => scales.x_unit.text(x),
        };
        let mut text = place;
        for line in &plot.lines {
            let near =
                |a: &&(f64, f64), b: &&(f64, f64)| (a.0 - x).abs().total_cmp(&(b.0 - x).abs());
            if let Some(point) = line.points.iter().min_by(near) {
                let figure = scales.y_unit.text(point.1);
                let _ = write!(text, "\n{}  {figure}", line.name);
            }
        }
        text
    }
}

/// Formats 0.999 as `99.9`, without the noise of binary fractions.
fn percentile(quantile: f64) -> String {
    let text = format!("{:.4}", quantile * 100.0);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn bounds(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let finite = values.filter(|value| value.is_finite());
    finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(value), high.max(value))
    })
}

/// Returns evenly spaced points, and the last.
fn thinned<T>(points: &[T], most: usize) -> impl Iterator<Item = (usize, &T)> {
    let every = points.len().div_ceil(most).max(1);
    let last = points.len().saturating_sub(1);
    points
        .iter()
        .enumerate()
        .filter(move |(index, _)| index % every == 0 || *index == last)
}

fn path<'a>(points: impl Iterator<Item = (f64, f64)> + 'a) -> String {
    let mut text = String::new();
    for (x, y) in points {
        text.push(if text.is_empty() { 'M' } else { 'L' });
        let _ = write!(text, "{} {}", px(x), px(y));
    }
    text
}

fn stroke(pen: Pen, line: &Line, scales: &Scales, most: usize) -> Markup {
    let points: Vec<(f64, f64)> = thinned(&line.points, most)
        .filter(|(_, (x, y))| x.is_finite() && y.is_finite())
        .map(|(_, (x, y))| (scales.x.at(*x), scales.y.at(*y)))
        .collect();
    let paint = pen.paint(Ink::Series(line.series));
    if let [(x, y)] = points[..] {
        return html! { circle cx=(px(x)) cy=(px(y)) r="3.5" fill=(paint) {} };
    }
    html! {
        path d=(path(points.into_iter())) fill="none" stroke=(paint) stroke-width="2"
            stroke-linejoin="round" stroke-linecap="round"
            stroke-dasharray=[(line.series >= SERIES).then_some("5 3")] {}
    }
}

/// Draws the area between the minimum and maximum of the repetitions.
fn band(pen: Pen, line: &Line, scales: &Scales, most: usize) -> Markup {
    if line.band.len() != line.points.len() || line.band.len() < 2 {
        return html! {};
    }
    let edge = |pick: fn(&(f64, f64)) -> f64| -> Vec<(f64, f64)> {
        thinned(&line.points, most)
            .filter_map(|(index, point)| {
                let y = pick(line.band.get(index)?);
                y.is_finite()
                    .then(|| (scales.x.at(point.0), scales.y.at(y)))
            })
            .collect()
    };
    let (low, high) = (edge(|band| band.0), edge(|band| band.1));
    let around = path(low.into_iter().chain(high.into_iter().rev())) + "Z";
    html! {
        path d=(around) fill=(pen.paint(Ink::Series(line.series))) fill-opacity="0.13" {}
    }
}

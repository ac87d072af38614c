//! Changes with their intervals: a dot and a line for each, relative to the line of no change.

use maud::{Markup, html};

use super::Figure;
use super::canvas::scale::Scale;
use super::canvas::theme::{Ink, fit, text_width};
use super::canvas::{Anchor, Area, Pen, Place, TEXT};
use super::number::{change, change_interval, px, tick};
use crate::report::ratio::Ratio;

/// Chart of intervals: the compared cells are rows, the metrics columns.
#[derive(Clone, Debug)]
pub(crate) struct Intervals {
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Row>,
}

/// A metric.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) title: String,
    /// Direction of improvement, in a word or two.
    pub(crate) note: &'static str,
}

/// One of the compared cells.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// Heading above the first of several rows that share it; empty for none.
    pub(crate) heading: String,
    pub(crate) name: String,
    pub(crate) series: usize,
    /// Intervals, in the order of the columns.
    pub(crate) ratios: Vec<Option<Ratio>>,
}

const PITCH: f64 = 38.0;

/// Part of the changes' range by which the axis may exceed it for the intervals' sake.
const REACH: f64 = 1.5;

impl Intervals {
    pub(crate) fn svg(&self, figure: &Figure, place: Place) -> Markup {
        let pen = Pen(place);
        pen.drawing(figure, &[], |area| {
            if place.is_narrow() {
                self.below_each_other(pen, area)
            } else {
                self.beside_each_other(pen, area)
            }
        })
    }

    fn beside_each_other(&self, pen: Pen, area: Area) -> (Markup, f64) {
        let widest = self.rows.iter().map(|row| text_width(&row.name, TEXT));
        let names = (widest.fold(0.0, f64::max) + 16.0).min(area.width * 0.28);
        let gap = 26.0;
        let count = self.columns.len().max(1) as f64;
        let width = (area.width - names - gap * (count - 1.0)) / count;
        let top = area.top + 44.0;
        let (places, bottom) = self.places(top);
        let markup = html! {
            @for (row, (heading, y)) in self.rows.iter().zip(&places) {
                @if let Some(heading) = heading {
                    (pen.bold((area.left, *heading), Anchor::Start, &fit(&row.heading, TEXT, area.width)))
                }
                (pen.text((area.left + names - 12.0, y + 4.0), Anchor::End, Ink::Text, &fit(&row.name, TEXT, names - 14.0)))
            }
            @for (index, column) in self.columns.iter().enumerate() {
                @let left = area.left + names + index as f64 * (width + gap);
                @let inner = Area { left, top, width, height: bottom - top };
                (self.column(pen, inner, index, column, &places))
            }
        };
        (markup, bottom + 30.0)
    }

    fn below_each_other(&self, pen: Pen, area: Area) -> (Markup, f64) {
        let names = area.width * 0.42;
        let mut top = area.top;
        let mut pieces = Vec::new();
        for (index, column) in self.columns.iter().enumerate() {
            let (places, bottom) = self.places(top + 44.0);
            let inner = Area {
                left: area.left + names,
                top: top + 44.0,
                width: area.width - names,
                height: bottom - top - 44.0,
            };
            pieces.push(html! {
                @for (row, (heading, y)) in self.rows.iter().zip(&places) {
                    @if let Some(heading) = heading {
                        (pen.bold((area.left, *heading), Anchor::Start, &fit(&row.heading, TEXT, area.width)))
                    }
                    (pen.text((area.left, y + 4.0), Anchor::Start, Ink::Text, &fit(&row.name, TEXT, names - 6.0)))
                }
                (self.column(pen, inner, index, column, &places))
            });
            top = bottom + 42.0;
        }
        (html! { @for piece in &pieces { (piece) } }, top)
    }

    /// Returns the positions of headings, rows and the end.
    fn places(&self, mut y: f64) -> (Vec<(Option<f64>, f64)>, f64) {
        let mut places = Vec::new();
        let mut before = "";
        for row in &self.rows {
            let heading = (row.heading != before).then(|| {
                y += 28.0;
                y - 8.0
            });
            before = &row.heading;
            places.push((heading, y + PITCH - 14.0));
            y += PITCH;
        }
        (places, y)
    }

    fn column(
        &self,
        pen: Pen,
        area: Area,
        index: usize,
        column: &Column,
        places: &[(Option<f64>, f64)],
    ) -> Markup {
        let ratio = |row: &Row| row.ratios.get(index).copied().flatten();
        let (low, high) = span(self.rows.iter().filter_map(ratio));
        let room = (high - low) * 0.06;
        let scale = Scale::exactly((low - room, high + room), 3)
            .between(area.left + 4.0, area.right() - 4.0);
        let left = area.left;
        html! {
            (pen.bold((left, area.top - 26.0), Anchor::Start, &fit(&column.title, TEXT, area.width)))
            (pen.text((left, area.top - 9.0), Anchor::Start, Ink::Soft, &fit(column.note, TEXT, area.width)))
            (pen.lying_axis(area, &scale, |value| tick(value, scale.step()) + "%"))
            (pen.line((scale.at(0.0), area.top), (scale.at(0.0), area.bottom()), Ink::Soft))
            @for (row, (_, y)) in self.rows.iter().zip(places) {
                @if let Some(ratio) = ratio(row) { (dot(pen, area, &scale, row, ratio, *y)) }
            }
        }
    }
}

/// Returns the ends of the axis: all changes are on it, and of an interval as much as leaves the
/// changes apart. The rest of a longer one is drawn as an arrow.
fn span(ratios: impl Iterator<Item = Ratio> + Clone) -> (f64, f64) {
    let cover = |(low, high): (f64, f64), end: f64| (low.min(end), high.max(end));
    let changes = ratios.clone().map(Ratio::percent);
    // Small changes are not magnified.
    let dots = changes.fold((-2.0, 2.0), cover);
    let room = REACH * (dots.1 - dots.0);
    let bounded = |end: f64| end.clamp((dots.0 - room).max(-100.0), dots.1 + room);
    let ends = ratios.map(ends).flat_map(|(low, high)| [low, high]);
    ends.map(bounded).fold(dots, cover)
}

/// Returns an arrow's head at the end of an axis that an interval exceeds.
fn arrow(pen: Pen, ink: Ink, x: f64, y: f64, ahead: f64) -> Markup {
    let tip = x + ahead;
    let points = format!(
        "{},{} {},{} {},{}",
        px(tip),
        px(y),
        px(x),
        px(y - 5.0),
        px(x),
        px(y + 5.0)
    );
    html! { polygon class="beyond" points=(points) fill=(pen.paint(ink)) {} }
}

/// Returns the ends of the interval; with one repetition, the change itself.
fn ends(ratio: Ratio) -> (f64, f64) {
    let change = ratio.percent();
    ratio.percent_interval().unwrap_or((change, change))
}

fn dot(pen: Pen, area: Area, scale: &Scale, row: &Row, ratio: Ratio, y: f64) -> Markup {
    let (low, high) = ends(ratio);
    // A change that may be none has no colour.
    let ink = if ratio.is_certain() {
        Ink::Series(row.series)
    } else {
        Ink::Soft
    };
    let paint = pen.paint(ink);
    let text = change(ratio.percent());
    let half = text_width(&text, TEXT) / 2.0;
    let x = scale.at(ratio.percent());
    let text_x = x.clamp(
        area.left + half,
        (area.right() - half).max(area.left + half),
    );
    html! {
        g class="tip" {
            title { (row.name) "  " (text) "\n95 % interval " (change_interval(ratio.percent_interval())) }
            line x1=(px(scale.at(low))) x2=(px(scale.at(high))) y1=(px(y)) y2=(px(y))
                stroke=(paint) stroke-width="4" stroke-opacity="0.4" stroke-linecap="round" {}
            @if low < scale.low() { (arrow(pen, ink, area.left + 4.0, y, -6.0)) }
            @if high > scale.high() { (arrow(pen, ink, area.right() - 4.0, y, 6.0)) }
            circle cx=(px(x)) cy=(px(y)) r="4.5" fill=(paint) {}
            g paint-order="stroke" stroke=(pen.paint(Ink::Paper)) stroke-width="4" stroke-linejoin="round" {
                (pen.text((text_x, y - 9.0), Anchor::Middle, Ink::Text, &text))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Column, Intervals, Row, span};
    use crate::report::charts::{Chart, Figure, Place, Table};
    use crate::report::ratio::Ratio;
    use crate::report::results::Summary;

    fn ratio(low: f64, median: f64, high: f64) -> Ratio {
        let summary = |low, median, high| Summary {
            median,
            low,
            high,
            n: 5,
        };
        let base = summary(100.0, 100.0, 100.0);
        Ratio::of(summary(low, median, high), base).unwrap()
    }

    fn svg(ratios: &[Ratio]) -> String {
        let row = |ratio: &Ratio| Row {
            heading: String::new(),
            name: "it".to_owned(),
            series: 1,
            ratios: vec![Some(*ratio)],
        };
        let column = Column {
            title: "CPU".to_owned(),
            note: "",
        };
        let figure = Figure {
            id: "change".to_owned(),
            title: "Change".to_owned(),
            caption: String::new(),
            table: Table::default(),
            chart: Chart::Intervals(Intervals {
                columns: vec![column],
                rows: ratios.iter().map(row).collect(),
            }),
        };
        figure.svg(Place::Document).into_string()
    }

    #[test]
    fn an_endless_interval_does_not_flatten_the_others() {
        let ratios = [ratio(119.0, 120.0, 121.0), ratio(0.0, 110.0, f64::INFINITY)];
        let (low, high) = span(ratios.into_iter());
        assert!(low >= -100.0 && high < 100.0, "{low} … {high}");
        let drawing = svg(&ratios);
        assert_eq!(drawing.matches("class=\"beyond\"").count(), 2, "{drawing}");
        assert!(drawing.contains("not bounded"), "{drawing}");
        assert_eq!(svg(&ratios[..1]).matches("beyond").count(), 0);
    }

    #[test]
    fn a_change_that_may_be_none_is_grey() {
        let (coloured, grey) = ("fill=\"#d55e00\"", "circle");
        let certain = svg(&[ratio(119.0, 120.0, 121.0)]);
        assert!(certain.contains(coloured) && certain.contains(grey));
        let undecided = svg(&[ratio(80.0, 110.0, 140.0)]);
        assert!(!undecided.contains(coloured), "{undecided}");
    }
}

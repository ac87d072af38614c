//! Horizontal bars, each stacked from parts.

use maud::{Markup, html};

use super::Figure;
use super::canvas::scale::{Kind, Scale};
use super::canvas::theme::{Ink, fit, text_width};
use super::canvas::{Anchor, Area, Mark, Pen, Place, Shape, TEXT};
use super::number::{Unit, px, tick};

/// A chart of wholes and their parts.
#[derive(Clone, Debug)]
pub(crate) struct Bars {
    /// Title of the axis.
    pub(crate) title: String,
    pub(crate) unit: &'static str,
    pub(crate) parts: Vec<(String, Ink)>,
    pub(crate) rows: Vec<Bar>,
}

/// One whole.
#[derive(Clone, Debug)]
pub(crate) struct Bar {
    /// Heading above the first of several bars that share it; empty for none.
    pub(crate) heading: String,
    pub(crate) name: String,
    /// Values, in the order of the parts.
    pub(crate) values: Vec<f64>,
}

impl Bar {
    fn total(&self) -> f64 {
        self.values.iter().map(|value| sane(*value)).sum()
    }
}

/// Replaces negative and infinite values by 0.
fn sane(value: f64) -> f64 {
    if value.is_finite() {
        value.max(0.0)
    } else {
        0.0
    }
}

const THICKNESS: f64 = 20.0;

/// Layout of bars in an area.
struct Layout {
    /// Space for names to the left; 0 puts them above the bars.
    names: f64,
    pitch: f64,
}

impl Bars {
    pub(crate) fn svg(&self, figure: &Figure, place: Place) -> Markup {
        let pen = Pen(place);
        let marks: Vec<Mark> = self
            .parts
            .iter()
            .map(|(name, ink)| Mark {
                name: name.clone(),
                ink: *ink,
                shape: Shape::Box,
            })
            .collect();
        pen.drawing(figure, &marks, |area| self.body(pen, area))
    }

    fn body(&self, pen: Pen, area: Area) -> (Markup, f64) {
        let layout = self.layout(pen, area.width);
        let (tops, bottom) = self.tops(area.top + 6.0, &layout);
        let longest = self.rows.iter().map(Bar::total).fold(0.0, f64::max);
        let unit = Unit::fitting(self.unit, longest);
        let left = area.left + layout.names;
        let inner = Area {
            left,
            top: area.top + 6.0,
            width: (area.right() - left - 76.0).max(80.0),
            height: bottom - area.top - 6.0,
        };
        let scale = Scale::covering(Kind::Linear, (0.0, longest), (inner.width / 90.0) as usize)
            .between(inner.left, inner.right());
        let title = match unit.name {
            "" => self.title.clone(),
            name => format!("{}, {name}", self.title),
        };
        let markup = html! {
            (pen.lying_axis(inner, &scale, |value| tick(value / unit.factor, scale.step() / unit.factor)))
            @for (bar, (heading, top)) in self.rows.iter().zip(&tops) {
                @if let Some(y) = heading {
                    (pen.bold((area.left, *y), Anchor::Start, &fit(&bar.heading, TEXT, area.width)))
                }
                (Self::name(pen, bar, area, &layout, *top))
                (self.bar(pen, bar, *top, &scale, &unit))
            }
            (pen.text((area.right(), bottom + 38.0), Anchor::End, Ink::Soft, &title))
        };
        (markup, bottom + 44.0)
    }

    fn layout(&self, pen: Pen, width: f64) -> Layout {
        if pen.0.is_narrow() {
            return Layout {
                names: 0.0,
                pitch: THICKNESS + 30.0,
            };
        }
        let widest = self.rows.iter().map(|bar| text_width(&bar.name, TEXT));
        Layout {
            names: (widest.fold(0.0, f64::max) + 14.0).min(width * 0.34),
            pitch: THICKNESS + 12.0,
        }
    }

    /// Returns the positions of headings, bars and the end.
    fn tops(&self, mut y: f64, layout: &Layout) -> (Vec<(Option<f64>, f64)>, f64) {
        let mut tops = Vec::new();
        let mut before = "";
        for bar in &self.rows {
            let heading = (bar.heading != before).then(|| {
                y += 30.0;
                y - 6.0
            });
            before = &bar.heading;
            tops.push((heading, y + layout.pitch - THICKNESS - 6.0));
            y += layout.pitch;
        }
        (tops, y + 4.0)
    }

    fn name(pen: Pen, bar: &Bar, area: Area, layout: &Layout, top: f64) -> Markup {
        if layout.names == 0.0 {
            let name = fit(&bar.name, TEXT, area.width);
            return pen.text((area.left, top - 6.0), Anchor::Start, Ink::Text, &name);
        }
        let name = fit(&bar.name, TEXT, layout.names - 12.0);
        let x = area.left + layout.names - 10.0;
        pen.text((x, top + 14.5), Anchor::End, Ink::Text, &name)
    }

    fn bar(&self, pen: Pen, bar: &Bar, top: f64, scale: &Scale, unit: &Unit) -> Markup {
        let mut sum = 0.0;
        let mut pieces = Vec::new();
        for ((name, ink), value) in self.parts.iter().zip(&bar.values) {
            let from = scale.at(sum);
            sum += sane(*value);
            let to = scale.at(sum);
            if to - from >= 0.05 {
                pieces.push((name, *ink, *value, from, to));
            }
        }
        html! {
            @for (name, ink, value, from, to) in pieces {
                // A thin line of background separates neighbours.
                rect class="tip" x=(px(from)) y=(px(top)) height=(px(THICKNESS))
                    width=(px((to - from - 1.0).max(0.4))) fill=(pen.paint(ink)) {
                    title { (bar.name) "\n" (name) "  " (unit.text(value)) " of " (unit.text(sum)) }
                }
            }
            (pen.text((scale.at(sum) + 7.0, top + 14.5), Anchor::Start, Ink::Text, &unit.text(sum)))
        }
    }
}

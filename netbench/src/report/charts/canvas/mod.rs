//! Parts of all charts: place, title, legend, axes and text.

#[cfg(feature = "png")]
pub(super) mod png;
pub(super) mod scale;
pub(crate) mod theme;

use maud::{Markup, html};

use self::scale::Scale;
use self::theme::{Ink, Theme, fit, text_width};
use super::Figure;
use super::number::px;

/// Place where a chart is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Page on a wide screen.
    Wide,
    /// Page on a phone.
    Narrow,
    /// Separate file, with the title.
    Document,
}

impl Place {
    pub(crate) fn theme(self) -> Theme {
        match self {
            Self::Wide | Self::Narrow => Theme::Page,
            Self::Document => Theme::Document,
        }
    }

    /// Returns the width of the drawing.
    pub(crate) fn width(self) -> f64 {
        match self {
            Self::Wide => 920.0,
            Self::Narrow => 340.0,
            Self::Document => 960.0,
        }
    }

    /// Returns the margin around the drawing.
    pub(crate) fn margin(self) -> f64 {
        match self {
            Self::Wide | Self::Narrow => 0.0,
            Self::Document => 24.0,
        }
    }

    pub(crate) fn is_narrow(self) -> bool {
        self == Self::Narrow
    }
}

/// Size of most text.
pub(crate) const TEXT: f64 = 12.5;

const FONTS: &str =
    "ui-sans-serif, system-ui, 'Segoe UI', 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif";

/// A rectangle of the drawing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Area {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

impl Area {
    pub(crate) fn right(self) -> f64 {
        self.left + self.width
    }

    pub(crate) fn bottom(self) -> f64 {
        self.top + self.height
    }
}

/// Position of a text relative to its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// Draws in one place.
#[derive(Clone, Copy)]
pub(crate) struct Pen(pub(crate) Place);

impl Pen {
    pub(crate) fn paint(self, ink: Ink) -> String {
        self.0.theme().paint(ink)
    }

    pub(crate) fn text(self, (x, y): (f64, f64), anchor: Anchor, ink: Ink, text: &str) -> Markup {
        self.sized_text((x, y), anchor, (ink, TEXT, ""), text)
    }

    pub(crate) fn bold(self, (x, y): (f64, f64), anchor: Anchor, text: &str) -> Markup {
        self.sized_text((x, y), anchor, (Ink::Text, TEXT, "600"), text)
    }

    fn sized_text(
        self,
        (x, y): (f64, f64),
        anchor: Anchor,
        (ink, size, weight): (Ink, f64, &str),
        text: &str,
    ) -> Markup {
        let anchor = match anchor {
            Anchor::Start => None,
            Anchor::Middle => Some("middle"),
            Anchor::End => Some("end"),
        };
        let weight = (!weight.is_empty()).then_some(weight);
        let size = (size != TEXT).then(|| px(size));
        html! {
            text x=(px(x)) y=(px(y)) text-anchor=[anchor] fill=(self.paint(ink))
                font-size=[size] font-weight=[weight] { (text) }
        }
    }

    pub(crate) fn line(self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), ink: Ink) -> Markup {
        html! {
            line x1=(px(x1)) y1=(px(y1)) x2=(px(x2)) y2=(px(y2)) stroke=(self.paint(ink)) {}
        }
    }

    /// Draws lines across at the ticks of a vertical axis, with their numbers to the left.
    pub(crate) fn upright_axis(
        self,
        area: Area,
        scale: &Scale,
        name: impl Fn(f64) -> String,
    ) -> Markup {
        html! {
            @for tick in scale.ticks() {
                @let y = scale.at(tick);
                (self.line((area.left, y), (area.right(), y), Ink::Grid))
                (self.text((area.left - 8.0, y + 4.0), Anchor::End, Ink::Soft, &name(tick)))
            }
        }
    }

    /// Draws vertical lines at the ticks of a horizontal axis, with their numbers below.
    pub(crate) fn lying_axis(
        self,
        area: Area,
        scale: &Scale,
        name: impl Fn(f64) -> String,
    ) -> Markup {
        html! {
            @for tick in scale.ticks() {
                @let x = scale.at(tick);
                (self.line((x, area.top), (x, area.bottom()), Ink::Grid))
                (self.text((x, area.bottom() + 18.0), Anchor::Middle, Ink::Soft, &name(tick)))
            }
        }
    }

    /// Draws title and legend, and below them the body, which gets its top and returns its bottom.
    pub(crate) fn drawing(
        self,
        figure: &Figure,
        legend: &[Mark],
        body: impl FnOnce(Area) -> (Markup, f64),
    ) -> Markup {
        let place = self.0;
        let margin = place.margin();
        let width = place.width() - 2.0 * margin;
        let mut top = margin;
        let head = if place == Place::Document {
            let (head, bottom) = self.title(figure, margin, width);
            top = bottom;
            head
        } else {
            html! {}
        };
        let (legend, legend_bottom) = self.legend(legend, (margin, top), width);
        let area = Area {
            left: margin,
            top: legend_bottom,
            width,
            height: 0.0,
        };
        let (body, bottom) = body(area);
        let height = bottom + margin;
        html! {
            svg xmlns="http://www.w3.org/2000/svg" viewBox={ "0 0 " (px(place.width())) " " (px(height)) }
                width=(px(place.width())) height=(px(height))
                font-family=(FONTS) font-size=(TEXT)
                role="img" aria-label={ (figure.title) ". " (figure.caption) } {
                @if place == Place::Document {
                    rect width="100%" height="100%" fill=(self.paint(Ink::Paper)) {}
                }
                (head) (legend) (body)
            }
        }
    }

    fn title(self, figure: &Figure, left: f64, width: f64) -> (Markup, f64) {
        let lines = wrap(&figure.caption, TEXT, width);
        let bottom = left + 24.0 + 18.0 * lines.len() as f64 + 18.0;
        let markup = html! {
            (self.sized_text((left, left + 14.0), Anchor::Start, (Ink::Text, 18.0, "600"), &figure.title))
            @for (index, line) in lines.iter().enumerate() {
                @let y = left + 38.0 + 18.0 * index as f64;
                (self.text((left, y), Anchor::Start, Ink::Soft, line))
            }
        };
        (markup, bottom)
    }

    /// Draws the marks in as many rows as needed; returns where the next thing may begin.
    fn legend(self, marks: &[Mark], (left, top): (f64, f64), width: f64) -> (Markup, f64) {
        if marks.is_empty() {
            return (html! {}, top);
        }
        let (mut x, mut y) = (left, top + 12.0);
        let mut placed = Vec::new();
        for mark in marks {
            let name = fit(&mark.name, TEXT, width - 26.0);
            let needed = 24.0 + text_width(&name, TEXT) + 14.0;
            if x > left && x + needed - 14.0 > left + width {
                (x, y) = (left, y + 22.0);
            }
            placed.push((mark, x, y, name));
            x += needed;
        }
        let markup = html! {
            @for (mark, x, y, name) in &placed {
                (self.swatch(mark, *x, *y))
                (self.text((x + 24.0, *y), Anchor::Start, Ink::Text, name))
            }
        };
        (markup, y + 18.0)
    }

    fn swatch(self, mark: &Mark, x: f64, y: f64) -> Markup {
        match mark.shape {
            Shape::Box => html! {
                rect x=(px(x + 4.0)) y=(px(y - 10.0)) width="12" height="12" rx="2" fill=(self.paint(mark.ink)) {}
            },
            Shape::Line { dashed } => html! {
                line x1=(px(x)) x2=(px(x + 18.0)) y1=(px(y - 4.0)) y2=(px(y - 4.0))
                    stroke=(self.paint(mark.ink)) stroke-width="2.5"
                    stroke-dasharray=[dashed.then_some("5 3")] {}
            },
        }
    }
}

/// Entry of a legend.
pub(crate) struct Mark {
    pub(crate) name: String,
    pub(crate) ink: Ink,
    pub(crate) shape: Shape,
}

pub(crate) enum Shape {
    Box,
    Line { dashed: bool },
}

/// Breaks a text between words into lines.
fn wrap(text: &str, size: f64, width: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        match lines.last_mut() {
            Some(line) if text_width(&format!("{line} {word}"), size) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

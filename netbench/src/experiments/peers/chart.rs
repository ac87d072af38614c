//! The comparison as one picture for a slide: every row on one axis, where the best other QUIC
//! stack is 1 and right is better.

use maud::{Markup, html};

use super::comparison::{Comparison, Row, State};
use super::rows::CONTENDERS;
use crate::report::charts::canvas::theme::{Ink, Theme};
use crate::report::charts::number::px;

const WIDTH: f64 = 1280.0;
const TOP: f64 = 128.0;
const PITCH: f64 = 36.0;
const LEFT: f64 = 410.0;
const RIGHT: f64 = 1090.0;

/// Ends of the axis, a logarithmic one.
const ENDS: (f64, f64) = (0.25, 4.0);

/// Columns that are drawn, by the stack's name and the colour: those of one stack share a colour.
const INKS: [usize; 8] = [1, 1, 0, 0, 2, 3, 4, 6];

/// Returns the drawing.
pub(super) fn svg(comparison: &Comparison) -> String {
    let rows: Vec<(&Row, f64)> = comparison
        .rows
        .iter()
        .filter_map(|row| Some((row, best_peer(row)?)))
        .collect();
    let bottom = TOP + PITCH * rows.len() as f64;
    let height = bottom + 84.0;
    let about = &comparison.about;
    let note = format!(
        "{}, {} cores; server and client on a core each, loopback, ECDSA P-256; {}; lines: 95 % intervals",
        about.machine.cpu,
        about.machine.cores,
        about.started.get(..10).unwrap_or_default()
    );
    html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 0 {WIDTH} {}", px(height)))
            width=(WIDTH) height=(px(height)) font-family="system-ui, sans-serif" role="img"
            aria-label="hybriq beside other QUIC stacks" {
            rect width=(WIDTH) height=(px(height)) fill=(paint(Ink::Paper)) {}
            (text((40.0, 48.0), ("start", 28.0), Ink::Text, "hybriq beside the best other QUIC stack"))
            (text((40.0, 78.0), ("start", 15.0), Ink::Soft, "Each row: how many times better than the best peer (= 1). Right is better. Open mark: the goal."))
            (legend())
            @for (tick, is_peer) in [(0.25, false), (0.5, false), (1.0, true), (2.0, false), (4.0, false)] {
                @let weight = if is_peer { "2" } else { "1" };
                @let ink = if is_peer { Ink::Soft } else { Ink::Grid };
                line x1=(px(at(tick))) x2=(px(at(tick))) y1=(px(TOP - 10.0)) y2=(px(bottom)) stroke=(paint(ink)) stroke-width=(weight) {}
                (text((at(tick), bottom + 22.0), ("middle", 14.0), Ink::Soft, &format!("{tick} ×")))
            }
            @for (index, (row, peer)) in rows.iter().enumerate() {
                (self::row(row, *peer, TOP + PITCH * (index as f64 + 0.5)))
            }
            (text((40.0, bottom + 58.0), ("start", 13.0), Ink::Soft, &note))
        }
    }
    .into_string()
}

fn legend() -> Markup {
    let mut shown = Vec::new();
    for (who, ink) in CONTENDERS.iter().zip(INKS) {
        let name = who.name.split(',').next().unwrap_or(who.name);
        if !shown.iter().any(|(other, _)| *other == name) {
            shown.push((name, ink));
        }
    }
    html! {
        @for (index, (name, ink)) in shown.iter().enumerate() {
            @let x = LEFT + 130.0 * index as f64;
            circle cx=(px(x)) cy="101" r="6" fill=(paint(Ink::Series(*ink))) {}
            (text((x + 12.0, 106.0), ("start", 14.0), Ink::Text, name))
        }
    }
}

fn row(row: &Row, peer: f64, y: f64) -> Markup {
    let better = |value: f64| {
        if row.higher_is_better {
            value / peer
        } else {
            peer / value
        }
    };
    let marks = CONTENDERS.iter().zip(INKS).zip(&row.figures);
    let others = marks.filter_map(|((who, ink), figure)| {
        let value = better(figure.as_ref()?.summary.median);
        (!who.is_ours() && value > 0.0).then_some((ink, value))
    });
    let now = row.now.map(|now| {
        let factor = |it: f64| if row.higher_is_better { it } else { 1.0 / it };
        let ends = now.interval.map(|(low, high)| (factor(low), factor(high)));
        (factor(now.value), ends)
    });
    let goal = if row.higher_is_better {
        row.goal
    } else {
        1.0 / row.goal
    };
    let (ink, state) = match row.state {
        State::Met => (Ink::Text, "goal met"),
        State::NotMet => (Ink::Soft, "goal not met"),
        State::Unclear => (Ink::Soft, "unclear"),
        State::NotMeasured => (Ink::Soft, "not measured"),
    };
    html! {
        (text((LEFT - 24.0, y + 5.0), ("end", 15.0), Ink::Text, row.title))
        circle cx=(px(at(goal))) cy=(px(y)) r="8" fill="none" stroke=(paint(Ink::Soft)) stroke-width="1.5" {}
        @for (ink, value) in others {
            circle cx=(px(at(value))) cy=(px(y)) r="5" fill=(paint(Ink::Series(ink))) fill-opacity="0.75" {}
        }
        @if let Some((value, ends)) = now {
            @if let Some((one, other)) = ends {
                line x1=(px(at(one))) x2=(px(at(other))) y1=(px(y)) y2=(px(y)) stroke=(paint(Ink::Series(INKS[0]))) stroke-width="5" stroke-opacity="0.45" stroke-linecap="round" {}
            }
            circle cx=(px(at(value))) cy=(px(y)) r="9" fill=(paint(Ink::Series(INKS[0]))) {}
            (text((RIGHT + 24.0, y + 5.0), ("start", 16.0), Ink::Text, &format!("{value:.2} ×")))
        }
        (text((RIGHT + 92.0, y + 5.0), ("start", 13.0), ink, state))
    }
}

/// Returns the best median of another QUIC stack.
fn best_peer(row: &Row) -> Option<f64> {
    let peers = CONTENDERS.iter().zip(&row.figures);
    let medians = peers.filter_map(|(who, figure)| {
        let median = figure.as_ref()?.summary.median;
        (who.is_peer() && median > 0.0).then_some(median)
    });
    medians.reduce(|best, other| {
        if row.higher_is_better {
            best.max(other)
        } else {
            best.min(other)
        }
    })
}

/// Returns the place of a factor; beyond an end, that end.
fn at(factor: f64) -> f64 {
    let bounded = if factor.is_nan() { 1.0 } else { factor };
    let bounded = bounded.clamp(ENDS.0, ENDS.1);
    LEFT + (bounded / ENDS.0).ln() / (ENDS.1 / ENDS.0).ln() * (RIGHT - LEFT)
}

fn paint(ink: Ink) -> String {
    Theme::Document.paint(ink)
}

fn text((x, y): (f64, f64), (anchor, size): (&str, f64), ink: Ink, text: &str) -> Markup {
    html! {
        text x=(px(x)) y=(px(y)) text-anchor=(anchor) font-size=(size) fill=(paint(ink)) { (text) }
    }
}

//! Findings from results, as text.

use crate::report::charts::figures::matrix::{Entry, Matrix, Panel};
use crate::report::charts::figures::{metric, summary};
use crate::report::charts::number::{THIN_SPACE, change, change_interval, number, with_unit};
use crate::report::ratio::Ratio;
use crate::report::results::{CellResult, Results, Summary};

/// The main sentence, and further remarks.
#[derive(Debug, PartialEq)]
pub(super) struct Findings {
    pub(super) headline: String,
    pub(super) more: Vec<String>,
    pub(super) cards: Vec<Card>,
}

/// A large figure.
#[derive(Debug, PartialEq)]
pub(super) struct Card {
    pub(super) label: String,
    pub(super) figure: String,
    pub(super) note: String,
}

/// Metrics in the order of preference for a headline, with the verbs that go with them.
const SENTENCES: [(&str, Verb); 6] = [
    (
        "server_cpu_us",
        Verb::Costs("this server", "CPU a connection"),
    ),
    (
        "connections_per_second",
        Verb::Makes("connections per second"),
    ),
    ("handshake_p50_us", Verb::Takes("median handshake")),
    ("requests_per_second", Verb::Makes("requests per second")),
    ("request_p50_us", Verb::Takes("median request")),
    ("goodput_bits_per_second", Verb::Makes("bits per second")),
];

#[derive(Clone, Copy)]
enum Verb {
    Costs(&'static str, &'static str),
    Makes(&'static str),
    Takes(&'static str),
}

/// Two entries of a panel that are compared.
struct Pair<'a> {
    panel: &'a Panel<'a>,
    this: &'a Entry<'a>,
    base: &'a Entry<'a>,
}

pub(super) fn findings(results: &Results) -> Findings {
    let matrix = Matrix::of(results);
    let pair = matrix.panels.iter().find_map(pair);
    let (headline, more, cards) = match &pair {
        Some(pair) => (compared(pair), details(pair), changes(pair)),
        None => alone(&matrix),
    };
    Findings {
        headline: headline.unwrap_or_else(|| nothing(results)),
        more,
        cards,
    }
}

fn nothing(results: &Results) -> String {
    match results.cells.iter().find_map(|cell| cell.left_out.as_ref()) {
        Some(_) => "Nothing was measured: every cell was left out".to_owned(),
        None if !results.breakdowns.is_empty() => "Where a handshake's time goes".to_owned(),
        None => "Nothing was measured".to_owned(),
    }
}

/// Returns the most interesting pair: the most used hybrid and the most used classical group;
/// otherwise the baseline and the last entry.
fn pair<'a>(panel: &'a Panel<'a>) -> Option<Pair<'a>> {
    let base = panel.baseline()?;
    let others = || {
        panel
            .entries
            .iter()
            .filter(|entry| !std::ptr::eq(entry.result, base.result))
    };
    let this = others()
        .find(|entry| entry.name == "X25519MLKEM768")
        .or(others().find(|entry| entry.name.contains("MLKEM")))
        .or(others().next())?;
    Some(Pair { panel, this, base })
}

impl Pair<'_> {
    fn ratio(&self, metric: &str) -> Option<Ratio> {
        Ratio::of(
            summary(self.this.result, metric)?,
            summary(self.base.result, metric)?,
        )
    }

    fn medians(&self, metric: &str) -> Option<(f64, f64)> {
        let median = |entry: &Entry| summary(entry.result, metric).map(|s| s.median);
        Some((median(self.this)?, median(self.base)?))
    }
}

/// Half width of an interval in percent that shows that there is no relevant difference.
const NARROW: f64 = 5.0;

/// Returns the headline of a comparison.
fn compared(pair: &Pair) -> Option<String> {
    let (ratio, verb) = SENTENCES
        .iter()
        .find_map(|(metric, verb)| Some((pair.ratio(metric)?, *verb)))?;
    let (this, base) = (&pair.this.name, &pair.base.name);
    let within = interval(ratio);
    if !ratio.is_certain() {
        let is_narrow = ratio
            .percent_interval()
            .is_some_and(|(low, high)| low >= -NARROW && high <= NARROW);
        let what = match verb {
            Verb::Costs(_, what) | Verb::Makes(what) | Verb::Takes(what) => what,
        };
        return Some(if is_narrow {
            format!("{this} and {base} do not differ in {what} ({within})")
        } else {
            format!("This run cannot tell {this} from {base} in {what} ({within})")
        });
    }
    let amount = percent(ratio.percent().abs());
    let is_more = ratio.value > 1.0;
    let either = |more: &'static str, less: &'static str| if is_more { more } else { less };
    let text = match verb {
        Verb::Costs(whom, what) => {
            let more = either("more", "less");
            format!("{this} costs {whom} {amount} {more} {what} than {base}")
        }
        Verb::Makes(what) => {
            let more = either("more", "fewer");
            format!("{this} makes {amount} {more} {what} than {base}")
        }
        Verb::Takes(what) => {
            let longer = either("longer", "less");
            format!("With {this} the {what} takes {amount} {longer} than with {base}")
        }
    };
    Some(format!("{text} ({within})"))
}

/// Formats an interval: `9–15 %`, or with different signs `−1 to +3 %`.
fn interval(ratio: Ratio) -> String {
    let Some((low, high)) = ratio.percent_interval() else {
        return "one repetition, no interval".to_owned();
    };
    if low <= -100.0 || high.is_infinite() {
        return change_interval(Some((low, high)));
    }
    if low < 0.0 && high > 0.0 {
        return format!(
            "{} to {}",
            change(low).trim_end_matches(['%', THIN_SPACE]),
            change(high)
        );
    }
    let (near, far) = if low < 0.0 {
        (-high, -low)
    } else {
        (low, high)
    };
    format!("{}–{}", whole(near), percent(far))
}

fn whole(value: f64) -> String {
    if value >= 9.95 {
        format!("{value:.0}")
    } else {
        format!("{value:.1}")
    }
}

fn percent(value: f64) -> String {
    format!("{}{THIN_SPACE}%", whole(value))
}

/// Returns further differences between the two, a sentence each.
fn details(pair: &Pair) -> Vec<String> {
    let mut lines = Vec::new();
    if !pair.panel.title.is_empty() {
        lines.push(format!(
            "This is for {}; the others are below.",
            pair.panel.title
        ));
    }
    if let Some((this, base)) = pair.medians("handshake_p50_us") {
        lines.push(format!(
            "The median handshake takes {} with {} and {} with {}.",
            with_unit(this, "µs"),
            pair.this.name,
            with_unit(base, "µs"),
            pair.base.name,
        ));
    }
    let both = ["handshake_bytes_to_server", "handshake_bytes_to_client"].map(|m| pair.medians(m));
    if let [Some(up), Some(down)] = both {
        let more = up.0 + down.0 - up.1 - down.1;
        if more.abs() >= 1.0 {
            lines.push(format!(
                "Its handshake moves {} bytes {} over the wire.",
                number(more.abs().round()),
                if more > 0.0 { "more" } else { "fewer" },
            ));
        }
    }
    lines
}

fn changes(pair: &Pair) -> Vec<Card> {
    let shown = [
        "connections_per_second",
        "server_cpu_us",
        "client_cpu_us",
        "handshake_p50_us",
        "request_p50_us",
        "handshake_bytes_to_client",
        "goodput_bits_per_second",
    ];
    let card = |name: &str| {
        let metric = metric(name)?;
        let (this, _) = pair.medians(name)?;
        let ratio = pair.ratio(name)?;
        Some(Card {
            label: metric.title.to_owned(),
            figure: with_unit(this, metric.unit),
            note: format!(
                "{} against {} ({})",
                change(ratio.percent()),
                pair.base.name,
                interval(ratio)
            ),
        })
    };
    shown.into_iter().filter_map(card).take(4).collect()
}

/// Returns the findings if there is nothing to compare.
fn alone(matrix: &Matrix) -> (Option<String>, Vec<String>, Vec<Card>) {
    let Some((_, entry)) = matrix.entries().next() else {
        return (None, Vec::new(), Vec::new());
    };
    let cell = entry.result;
    let with = format!("{} with {}", cell.cell.driver, cell.cell.group);
    let rates = [
        ("connections_per_second", "connections per second"),
        ("requests_per_second", "requests per second"),
    ];
    let headline = rates.into_iter().find_map(|(metric, what)| {
        let rate = summary(cell, metric).filter(|summary| summary.median > 0.0)?;
        let range = spread(rate, "1/s").map(|range| format!(" ({range})"));
        Some(format!(
            "{with} makes {} {what}{}",
            number(rate.median),
            range.unwrap_or_default()
        ))
    });
    (headline, Vec::new(), figures(cell))
}

fn figures(cell: &CellResult) -> Vec<Card> {
    let shown = [
        "handshake_p50_us",
        "server_cpu_us",
        "client_cpu_us",
        "bytes_to_client",
    ];
    let card = |name: &str| {
        let metric = metric(name)?;
        let summary = summary(cell, name)?;
        Some(Card {
            label: metric.title.to_owned(),
            figure: with_unit(summary.median, metric.unit),
            note: spread(summary, metric.unit).unwrap_or_default(),
        })
    };
    shown.into_iter().filter_map(card).collect()
}

/// Formats the interval, if there is one.
fn spread(summary: Summary, unit: &'static str) -> Option<String> {
    let Summary { low, high, n, .. } = summary;
    (n > 1 && low < high).then(|| match unit {
        "1/s" => format!("{}–{}", number(low), number(high)),
        _ => format!("{} – {}", with_unit(low, unit), with_unit(high, unit)),
    })
}

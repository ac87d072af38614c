//! Tables of the page.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};
use serde_json::Value as Json;

use crate::report::charts::figures::summary;
use crate::report::charts::number::{NONE, Unit, count, number};
use crate::report::charts::{Table, Value};
use crate::report::results::{CellResult, METRICS, Metric, Results, Summary};

/// Returns one line with the time and the machine of the run.
pub(super) fn about_line(results: &Results) -> String {
    let about = &results.about;
    let repetitions = results
        .cells
        .iter()
        .map(|cell| cell.repetitions.len())
        .max();
    let (amount, times) = if results.cells.is_empty() {
        let handshakes = results.scenario.params.get("connections");
        (
            format!("{} breakdowns", results.breakdowns.len()),
            format!("{} handshakes each", handshakes.copied().unwrap_or(0)),
        )
    } else {
        (
            format!("{} cells", results.cells.len()),
            format!("{} repetitions", repetitions.unwrap_or(0)),
        )
    };
    let parts = [
        about.started.clone(),
        about.machine.cpu.clone(),
        amount,
        times,
        format!("{} build", about.build),
    ];
    let parts = parts.into_iter().filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join(" · ")
}

/// Returns the table of the outcomes of connections.
pub(super) fn outcomes(results: &Results, index: usize) -> Markup {
    let cells: Vec<(&CellResult, Outcomes)> = results
        .cells
        .iter()
        .map(|cell| (cell, Outcomes::of(cell)))
        .collect();
    let kinds: BTreeSet<&String> = cells
        .iter()
        .flat_map(|(_, outcomes)| outcomes.failures.keys())
        .collect();
    let ok: u64 = cells
        .iter()
        .map(|(_, outcomes)| outcomes.ok)
        .fold(0, u64::saturating_add);
    let mut head = vec![String::new(), "ok".to_owned()];
    head.extend(kinds.iter().map(|kind| (*kind).clone()));
    let row = |(cell, outcomes): &(&CellResult, Outcomes)| {
        let mut row = vec![cell.name.clone(), count(outcomes.ok)];
        let failed = |kind: &&String| outcomes.failures.get(*kind).copied().unwrap_or(0);
        row.extend(kinds.iter().map(|kind| count(failed(kind))));
        row
    };
    let table = Table::of_texts(head, cells.iter().map(row));
    html! {
        section #{ "outcomes-" (index) } {
            h2 { "Outcomes" }
            p.caption {
                @if kinds.is_empty() && ok > 0 { "All " (count(ok)) " connections ended as they should." }
                @else { "How connections ended, over all repetitions." }
            }
            (table.html("Outcomes"))
            (left_out(results))
            (first_failures(&cells))
            details { summary { "What was negotiated" } (negotiated(results).html("What was negotiated")) }
        }
    }
}

/// Outcomes of one cell over all repetitions and labels.
#[derive(Default)]
struct Outcomes {
    ok: u64,
    failures: BTreeMap<String, u64>,
    /// First failure of each kind, as text.
    details: BTreeMap<String, String>,
}

impl Outcomes {
    fn of(cell: &CellResult) -> Self {
        let mut all = Self::default();
        for kind in cell.repetitions.iter().flat_map(|r| r.kinds.values()) {
            for (outcome, number) in &kind.outcomes {
                if outcome == "ok" {
                    all.ok = all.ok.saturating_add(*number);
                } else if *number > 0 {
                    let sum = all.failures.entry(outcome.clone()).or_default();
                    *sum = sum.saturating_add(*number);
                }
            }
            for (outcome, detail) in &kind.details {
                all.details
                    .entry(outcome.clone())
                    .or_insert_with(|| detail.clone());
            }
        }
        all
    }
}

fn left_out(results: &Results) -> Markup {
    let reasons: Vec<(&String, &String)> = results
        .cells
        .iter()
        .filter_map(|cell| Some((&cell.name, cell.left_out.as_ref()?)))
        .collect();
    let errors: Vec<(&String, &String)> = results
        .cells
        .iter()
        .flat_map(|cell| cell.repetitions.iter().map(move |r| (&cell.name, &r.error)))
        .filter_map(|(name, error)| Some((name, error.as_ref()?)))
        .collect();
    html! {
        @for (title, lines) in [("Not measured", reasons), ("Ended early", errors)] {
            @if !lines.is_empty() {
                h3 { (title) }
                ul { @for (name, reason) in lines { li { strong { (name) } ": " (reason) } } }
            }
        }
    }
}

fn first_failures(cells: &[(&CellResult, Outcomes)]) -> Markup {
    let lines: Vec<(&String, &String, &String)> = cells
        .iter()
        .flat_map(|(cell, outcomes)| {
            let details = outcomes.details.iter();
            details.map(move |(kind, detail)| (&cell.name, kind, detail))
        })
        .collect();
    html! {
        @if !lines.is_empty() {
            h3 { "The first failure of each kind" }
            ul { @for (name, kind, detail) in lines { li { strong { (name) ", " (kind) } ": " (detail) } } }
        }
    }
}

fn negotiated(results: &Results) -> Table {
    let head = [
        "",
        "group",
        "HelloRetryRequest",
        "suite",
        "signature",
        "resumed",
        "early data",
    ];
    let told = |text: &str| if text.is_empty() { NONE } else { text }.to_owned();
    let either = |is: Option<bool>| match is {
        Some(true) => "yes".to_owned(),
        Some(false) => "no".to_owned(),
        None => NONE.to_owned(),
    };
    let row = |cell: &CellResult| {
        let negotiated = &cell.repetitions.first()?.negotiated;
        Some(vec![
            cell.name.clone(),
            told(&negotiated.group),
            either(negotiated.hello_retry),
            told(&negotiated.suite),
            told(&negotiated.signature),
            either(negotiated.resumed),
            either(negotiated.early_data),
        ])
    };
    Table::of_texts(head, results.cells.iter().filter_map(row))
}

/// Returns every metric of every cell.
pub(super) fn everything(results: &Results, index: usize) -> Markup {
    let metrics: Vec<&Metric> = METRICS
        .iter()
        .filter(|metric| {
            let mut cells = results.cells.iter();
            cells.any(|cell| summary(cell, metric.name).is_some())
        })
        .collect();
    let columns: Vec<_> = metrics.iter().map(|metric| (metric.title, "")).collect();
    let mut table = Table::new("", "", &columns);
    for cell in &results.cells {
        let mark = if cell.disturbed { " !" } else { "" };
        let value = |metric: &&Metric| figure(summary(cell, metric.name), metric.unit);
        table.push(format!("{}{mark}", cell.name), metrics.iter().map(value));
    }
    html! {
        section #{ "everything-" (index) } {
            h2 { "Every figure" }
            p.caption {
                "Medians over the repetitions, and below each its 95 % interval. CPU, switches, bytes and datagrams are per connection that ended well."
            }
            div.everything { (table.html("Every figure")) }
        }
    }
}

fn figure(summary: Option<Summary>, unit: &'static str) -> Value {
    let Some(Summary {
        median,
        low,
        high,
        n,
    }) = summary
    else {
        return Value::Missing(String::new());
    };
    let unit = Unit::fitting(unit, median);
    let bounded = n > 1 && low.is_finite() && high.is_finite();
    let interval = || format!("{}–{}", unit.number(low), unit.number(high));
    Value::Written(unit.text(median), bounded.then(interval))
}

/// Returns the facts that are needed to repeat the run.
pub(super) fn method(results: &Results, index: usize) -> Markup {
    let about = &results.about;
    let machine = serde_json::to_value(&about.machine).unwrap_or_default();
    html! {
        section #{ "method-" (index) } {
            h2 { "How it was measured" }
            h3 { "Command" }
            pre tabindex="0" { code { (shell(&about.command)) } }
            div.columns {
                div {
                    h3 { "Machine" }
                    (list(&machine))
                    @for server in &about.servers {
                        h3 { "Server" }
                        (list(&serde_json::to_value(server).unwrap_or_default()))
                    }
                }
                div {
                    h3 { "Build" }
                    dl {
                        dt { "netbench" } dd { (about.netbench) ", " (about.build) " build" }
                        dt { "sources" } dd { (about.git.as_deref().unwrap_or("built without git")) }
                        dt { "started" } dd { (about.started) }
                        @if !about.merged.is_empty() { dt { "merged of" } dd { (about.merged.len()) " runs" } }
                        @if let Some(fleet) = &about.fleet { dt { "client" } dd { (fleet.client + 1) " of " (fleet.size) } }
                        dt { "scenario" } dd { (results.scenario.name) " " code { (results.scenario_id) } }
                        @for (name, version) in &about.crates { dt { (name) } dd { (version) } }
                    }
                }
            }
            details {
                summary { "The scenario" }
                pre tabindex="0" { code { (serde_json::to_string_pretty(&results.scenario).unwrap_or_default()) } }
            }
        }
    }
}

/// Returns the known facts about the machine.
fn list(value: &Json) -> Markup {
    let text = |value: &Json| match value {
        Json::String(text) => text.clone(),
        Json::Number(figure) => match (figure.as_u64(), figure.as_f64()) {
            (Some(whole), _) => whole.to_string(),
            (None, Some(fraction)) => number(fraction),
            (None, None) => figure.to_string(),
        },
        Json::Null => NONE.to_owned(),
        Json::Object(fields) => {
            let lines = fields.iter().map(|(name, value)| {
                let value = value.as_str().map_or(value.to_string(), str::to_owned);
                format!("{}: {value}", name.replace('_', " "))
            });
            lines.collect::<Vec<_>>().join("; ")
        }
        other => other.to_string(),
    };
    html! {
        dl {
            @if let Json::Object(fields) = value {
                @for (name, value) in fields { dt { (name.replace('_', " ")) } dd { (text(value)) } }
            }
        }
    }
}

/// Returns the command as it is typed.
fn shell(command: &[String]) -> String {
    let quoted = command.iter().map(|word| {
        let is_plain =
            |letter: char| letter.is_ascii_alphanumeric() || "-_./:=,%@+".contains(letter);
        if !word.is_empty() && word.chars().all(is_plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

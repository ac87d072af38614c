//! Experiment 1: how many connections a second each key-exchange group allows.

use super::measure::{cell, change, figure, measure, percent, ratio, scaled};
use super::section::{Figure, Finding, Section, Source, Table};
use super::{Budget, experiments::Experiment};
use crate::Failure;
use crate::results::Results;
use crate::scenario::Template;

const HYBRID: &str = "X25519MLKEM768";

/// How many percent of X25519's connections X25519+Kyber512 made.
const PUBLISHED: f64 = 92.0;

/// How far a hybrid of today may be from the one of then, in percent, before the shape is another:
/// ML-KEM-768 has half as many bytes again as Kyber512, and key exchange has become faster.
const TOLERANCE: f64 = 10.0;

pub(super) async fn run(experiment: &Experiment, budget: &Budget) -> Result<Section, Failure> {
    let (connections, repetitions) = budget.choose(("150", 5), ("1000", 10));
    let template = Template::load("request-response")?;
    let axes = [("group", "all"), ("connections", connections)];
    let results = measure(template, &axes, repetitions).await?;
    let base = cell(&results, "X25519", &[]);
    let hybrid = ratio(cell(&results, HYBRID, &[]), base, "connections_per_second");
    Ok(Section {
        source: Source {
            text: "AWS, blog on s2n-quic and netbench, 2023".to_owned(),
            experiment:
                "10,000 connections one after the other, each with a byte to the server, a \
                         byte back and a close, with an ECDSA P-256 certificate."
                    .to_owned(),
        },
        published: vec![published()],
        ours: vec![ours(&results)],
        finding: match hybrid.map(|hybrid| scaled(hybrid, 100.0)) {
            None => Finding::unknown("neither group's rate is known"),
            Some(hybrid) => Finding::of(
                (hybrid.median - PUBLISHED).abs() <= TOLERANCE,
                format!(
                    "{HYBRID} makes {:.0} % of the connections of X25519 ({}); X25519+Kyber512 made \
                     {PUBLISHED:.0} %.",
                    hybrid.median,
                    percent(change(scaled(hybrid, 0.01)))
                ),
            ),
        },
        notes: vec![
            format!(
                "{repetitions} repetitions of {connections} connections for each group, in turn; \
                 request and response of one byte, one connection at a time, over the loopback \
                 interface."
            ),
            "BIKE-1 has no row of ours: it was not chosen by NIST and no library ships it."
                .to_owned(),
            "SIKEp434 has no row of ours: it was broken in 2022 and withdrawn.".to_owned(),
        ],
        problems: results.problems.clone(),
        results: Some(Box::new(results)),
        ..Section::begin(experiment)
    })
}

fn published() -> Table {
    Table::new(
        "Published",
        "group",
        &[("rate, of X25519's", "%"), ("today", "")],
    )
    .row("X25519", [Figure::from(100.0), "X25519".into()])
    .row("X25519+Kyber512", [Figure::from(PUBLISHED), HYBRID.into()])
    .row("X25519+BIKE-1", [Figure::from(63.0), "withdrawn".into()])
    .row(
        "X25519+SIKEp434",
        [Figure::from(5.0), "broken and withdrawn".into()],
    )
}

fn ours(results: &Results) -> Table {
    let columns = [
        ("rate, of X25519's", "%"),
        ("connections", "1/s"),
        ("handshake, median", "µs"),
        ("server CPU", "µs"),
        ("client CPU", "µs"),
        ("to the server", "B"),
        ("to the client", "B"),
    ];
    let base = cell(results, "X25519", &[]);
    let mut table = Table::new("Here", "group", &columns);
    for result in &results.cells {
        let own = Some(result);
        let relative = ratio(own, base, "connections_per_second");
        let names = [
            "connections_per_second",
            "handshake_p50_us",
            "server_cpu_us",
            "client_cpu_us",
            "bytes_to_server",
            "bytes_to_client",
        ];
        let mut figures = vec![Figure::from(relative.map(|ratio| scaled(ratio, 100.0)))];
        figures.extend(names.iter().map(|name| Figure::from(figure(own, name))));
        table.push(result.cell.group.clone(), figures);
    }
    table
}

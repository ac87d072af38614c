//! Tests of the comparison with other stacks.

use hybriq::{Backend, Group};

use super::comparison::{Comparison, State};
use super::parts::{self, Size};
use super::rows::ROWS;
use super::{chart, markdown};
use crate::report::results::{CellResult, Repetition, Results};
use crate::scenario::axes::{Cell, Stack};
use crate::synthetic;

/// Returns results with a cell for each stack, whose metric has these values.
fn results(metric: &str, cells: &[(Stack, Backend, &[f64])]) -> Results {
    let mut results = Results::parse(&synthetic::groups().to_string()).unwrap();
    results.problems = Vec::new();
    results.cells = cells
        .iter()
        .map(|(stack, provider, values)| {
            let repetition = |value: &f64| Repetition {
                metrics: [(metric.to_owned(), *value)].into(),
                ..Repetition::default()
            };
            let mut result = CellResult {
                cell: Cell {
                    driver: *stack,
                    client: *stack,
                    provider: *provider,
                    group: Group::X25519MLKEM768,
                    ..Cell::default()
                },
                repetitions: values.iter().map(repetition).collect(),
                ..CellResult::default()
            };
            result.summarize();
            result
        })
        .collect();
    results
}

fn compared(part: &'static str, results: Results) -> Comparison {
    let mut comparison = Comparison::begin(true);
    comparison.add(part, Ok(results));
    comparison.sum_up();
    comparison
}

fn rates(ours: &[f64], peer: &[f64]) -> Results {
    results(
        "connections_per_second",
        &[
            (Stack::Hybriq, Backend::Rustls, ours),
            (Stack::Hybriq, Backend::S2nTls, &[1.0, 1.0, 1.0]),
            (Stack::S2nQuic, Backend::Rustls, peer),
            (Stack::Quinn, Backend::Rustls, &[500.0, 500.0, 500.0]),
            (Stack::TcpTls, Backend::Rustls, &[9000.0, 9000.0, 9000.0]),
        ],
    )
}

#[test]
fn every_row_has_a_part_and_every_part_a_row() {
    for size in [Size::Tiny, Size::Quick, Size::Full] {
        let parts = parts::all(size).unwrap();
        for part in &parts {
            assert!(ROWS.iter().any(|row| row.part == part.id), "{}", part.id);
            part.template.check_axes(&part.axes).unwrap();
        }
        for row in &ROWS {
            assert!(
                parts.iter().any(|part| part.id == row.part),
                "{}",
                row.title
            );
        }
    }
}

#[test]
fn our_best_is_compared_with_the_best_quic_peer_and_the_goal() {
    let row = |ours: &[f64], peer: &[f64]| {
        let comparison = compared("connect-256", rates(ours, peer));
        let mut rows = comparison.rows.into_iter();
        rows.find(|row| row.title.contains("/s, 256")).unwrap()
    };
    let peer = [999.0, 1000.0, 1001.0];
    let met = row(&[1699.0, 1700.0, 1701.0], &peer);
    assert!(
        (met.now.unwrap().value - 1.7).abs() < 1e-9,
        "TCP is no peer"
    );
    assert_eq!(met.state, State::Met);
    assert_eq!(row(&[1199.0, 1200.0, 1201.0], &peer).state, State::NotMet);
    let wide = row(&[1100.0, 1700.0, 2300.0], &peer);
    assert_eq!(wide.state, State::Unclear);
    assert_eq!(
        row(&[1700.0], &[1000.0]).state,
        State::Unclear,
        "one repetition"
    );
}

#[test]
fn a_disturbed_row_is_unclear_and_marked() {
    let mut noisy = rates(&[1699.0, 1700.0, 1701.0], &[999.0, 1000.0, 1001.0]);
    noisy.cells[2].repetitions[1].other_cores = Some(0.9);
    noisy.cells[2].summarize();
    let comparison = compared("connect-256", noisy);
    let rows = &comparison.rows;
    let row = rows
        .iter()
        .find(|row| row.title.contains("/s, 256"))
        .unwrap();
    assert_eq!(row.state, State::Unclear);
    let page = markdown::page(&comparison);
    assert!(page.contains("| **1,700** |"), "{page}");
    assert!(page.contains(" 1,000 ! |"), "{page}");
    assert!(
        page.contains("Unclear in this run: connections/s, 256"),
        "{page}"
    );
    assert!(page.contains("## Disturbed"), "{page}");
}

#[test]
fn memory_is_the_growth_between_few_and_many() {
    let mut held = rates(&[1.0, 1.0], &[1.0, 1.0]);
    let few = held.cells[0].clone();
    held.cells = vec![few.clone(), few];
    for (cell, (held, kib)) in held.cells.iter_mut().zip([(200, 10_000), (4200, 30_000)]) {
        cell.cell.params.insert("held".to_owned(), held);
        for repetition in &mut cell.repetitions {
            repetition.server.rss_at_start_kib = kib;
        }
    }
    let comparison = compared("held", held);
    let rows = &comparison.rows;
    let row = rows
        .iter()
        .find(|row| row.title.starts_with("server memory"));
    let bytes = row.unwrap().figures[0].unwrap().summary.median;
    assert!((bytes - 20_000.0 * 1024.0 / 4000.0).abs() < 1e-6, "{bytes}");
}

#[test]
fn the_chart_and_the_values_have_every_measured_figure() {
    let comparison = compared("connect-256", rates(&[1500.0, 1500.0], &[1000.0, 1000.0]));
    let svg = chart::svg(&comparison);
    assert!(svg.contains("connections/s, 256 at once") && svg.contains("1.50 ×"));
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    let csv = String::from_utf8(markdown::csv(&comparison)).unwrap();
    assert_eq!(csv.lines().count(), 6, "{csv}");
    assert!(chart::svg(&Comparison::begin(true)).contains("</svg>"));
}

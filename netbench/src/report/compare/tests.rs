//! Tests of comparisons.

use super::{Comparison, Verdict};
use crate::report::results::{METRICS, Metric, Results};
use crate::synthetic;

fn groups(seed: u64) -> Results {
    Results::parse(&synthetic::groups_at(5, seed).to_string()).unwrap()
}

fn all() -> Vec<&'static Metric> {
    METRICS.iter().collect()
}

#[test]
fn results_are_the_same_as_themselves() {
    for repetitions in [1, 2, 5] {
        let text = synthetic::groups_at(repetitions, 3).to_string();
        let results = Results::parse(&text).unwrap();
        let comparison = Comparison::new(&results, &results, &all(), 5.0);
        assert!(comparison.rows.len() > 100);
        assert_eq!(comparison.count(Verdict::Same), comparison.rows.len());
        assert_eq!(comparison.warnings, [""; 0]);
    }
}

#[test]
fn cells_are_matched_by_what_they_are_and_missing_ones_told() {
    let before = groups(1);
    let mut after = before.clone();
    after.cells.reverse();
    for cell in &mut after.cells {
        cell.name = format!("renamed {}", cell.name);
    }
    let comparison = Comparison::new(&before, &after, &all(), 5.0);
    assert_eq!(comparison.count(Verdict::Same), comparison.rows.len());

    after.cells.pop();
    let comparison = Comparison::new(&before, &after, &all(), 5.0);
    assert_eq!(comparison.warnings, ["only the first has the cell X25519"]);
}

#[test]
fn a_slower_server_is_worse_and_a_faster_one_better() {
    let before = groups(1);
    let mut after = before.clone();
    for cell in &mut after.cells {
        for repetition in &mut cell.repetitions {
            *repetition.metrics.get_mut("server_cpu_us").unwrap() *= 1.2;
        }
        let summary = cell.summary.get_mut("server_cpu_us").unwrap();
        summary.median *= 1.2;
        summary.low *= 1.2;
        summary.high *= 1.2;
    }
    let cpu = [METRICS
        .iter()
        .find(|metric| metric.name == "server_cpu_us")
        .unwrap()];
    assert_eq!(
        Comparison::new(&before, &after, &cpu, 5.0).count(Verdict::Worse),
        8
    );
    assert_eq!(
        Comparison::new(&after, &before, &cpu, 5.0).count(Verdict::Better),
        8
    );
    assert_eq!(
        Comparison::new(&before, &after, &cpu, 25.0).count(Verdict::Worse),
        0
    );
}

#[test]
fn other_machines_builds_and_scenarios_are_told() {
    let before = groups(1);
    let mut after = before.clone();
    after.about.build = "debug".to_owned();
    after.about.machine.cpu = "another".to_owned();
    after.scenario_id = "other".to_owned();
    after.complete = false;
    after
        .about
        .crates
        .insert("rustls".to_owned(), "0.24.0".to_owned());
    let warnings = Comparison::new(&before, &after, &all(), 5.0)
        .warnings
        .join("\n");
    for part in [
        "build",
        "processor",
        "scenario",
        "incomplete",
        "rustls 0.23.46 → 0.24.0",
    ] {
        assert!(warnings.contains(part), "{part}: {warnings}");
    }
}

#[test]
fn disturbed_cells_are_told_and_marked() {
    let before = groups(1);
    let mut after = before.clone();
    after.cells[0].repetitions[0].other_cores = Some(0.7);
    after.cells[0].summarize();
    let comparison = Comparison::new(&before, &after, &all(), 5.0);
    let warning = comparison.warnings.join("\n");
    assert!(warning.contains("the second: other work"), "{warning}");
    assert!(warning.contains("up to 0.7 cores"), "{warning}");
    let marked = comparison.rows.iter().filter(|row| row.disturbed).count();
    assert!(marked > 10 && marked < comparison.rows.len() / 2);
    let mut text = Vec::new();
    comparison.print(&mut text).unwrap();
    assert!(String::from_utf8(text).unwrap().contains("the same !"));
}

#[test]
fn the_summary_and_the_changes_stand_first() {
    let before = groups(1);
    let mut after = before.clone();
    let cell = after.cells.last_mut().unwrap();
    let summary = cell.summary.get_mut("server_cpu_us").unwrap();
    summary.median *= 2.0;
    summary.low *= 2.0;
    summary.high *= 2.0;
    let mut text = Vec::new();
    let comparison = Comparison::new(&before, &after, &all(), 5.0);
    comparison.print(&mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("0 better, 1 worse"), "{}", lines[0]);
    assert!(lines[3].contains("WORSE"), "{}", lines[3]);
}

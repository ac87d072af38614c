//! Tests of the report and its table.

use super::{Download, Outcome, Report, Run, Stack, median};
use crate::experiments::links::cases::CASES;
use crate::experiments::links::child::{ClientReport, ServerReport};
use crate::run::link::Summary;
use crate::scenario::axes;
use crate::scenario::axes::Named as _;
use crate::system::machine::Machine;

fn stack(label: &str) -> Stack {
    Stack {
        label: label.to_owned(),
        driver: axes::Stack::from_text(label.split('/').next().unwrap()).unwrap(),
        version: "1.2.3",
        chosen: None,
        congestion: "cubic".to_owned(),
    }
}

/// Returns a second of download at this many Mbit/s on average, the first half idle.
fn run(stack: &str, mbit: u64) -> Run {
    let samples = [[0; 5], [mbit * 25_000; 5]].concat();
    let client = ClientReport {
        samples,
        ..ClientReport::default()
    };
    let server = ServerReport {
        packets_sent: 1000,
        packets_lost: 15,
        cpu_s: 0.5,
    };
    Run {
        case: CASES[0].name,
        stack: stack.to_owned(),
        repetition: 1,
        link_command: String::new(),
        outcome: Outcome::Done(Box::new(Download::new(client, server, &Summary::default()))),
    }
}

fn report(runs: Vec<Run>) -> (Report, String) {
    let mut report = Report {
        netbench: "0",
        build: "debug",
        machine: Machine::detect(),
        seconds: 1.0,
        window_bytes: 1 << 20,
        stacks: ["hybriq/bbr", "quinn", "s2n-quic"].map(stack).to_vec(),
        cases: vec![CASES[0]],
        runs,
        rows: Vec::new(),
    };
    report.sum_up();
    let mut table = Vec::new();
    report.print_rows(&mut table).unwrap();
    (report, String::from_utf8(table).unwrap())
}

#[test]
fn ours_is_compared_with_the_best_of_the_others() {
    let runs = vec![run("quinn", 40), run("s2n-quic", 50), run("hybriq/bbr", 60)];
    let (report, table) = report(runs);
    let ratios: Vec<_> = report.rows.iter().map(|row| row.of_best_peer).collect();
    assert!((ratios[0].unwrap() - 60.0 / 50.0).abs() < 1e-9);
    assert_eq!(ratios[1..], [None, None]);
    assert!((report.rows[0].goodput_mbit - 60.0).abs() < 1e-9);
    assert!((report.rows[0].second_half_mbit - 120.0).abs() < 1e-9);
    assert!(table.contains("1.20") && table.contains("1.50%"), "{table}");
    assert!(report.is_complete());
}

#[test]
fn a_failure_is_shown_and_takes_no_part_in_the_medians() {
    let mut failed = run("quinn", 0);
    failed.outcome = Outcome::Failed("nothing came".to_owned());
    let (report, table) = report(vec![run("quinn", 40), failed, run("hybriq/bbr", 40)]);
    assert_eq!(report.rows[1].failures, 1);
    assert_eq!(report.rows[0].of_best_peer, Some(1.0));
    assert!(table.contains("1 failed"), "{table}");
    assert!(!report.is_complete());
}

#[test]
fn a_median_is_the_middle() {
    assert_eq!(median([].into_iter()).to_bits(), 0.0_f64.to_bits());
    assert_eq!(
        median([3.0, 1.0, 2.0].into_iter()).to_bits(),
        2.0_f64.to_bits()
    );
    assert_eq!(
        median([4.0, 1.0, 2.0, 3.0].into_iter()).to_bits(),
        2.5_f64.to_bits()
    );
}

/// Returns three downloads each, ours twice as fast.
fn repeated() -> Report {
    let runs = [40, 50, 60].into_iter().flat_map(|mbit| {
        let mut runs = [run("quinn", mbit), run("hybriq/bbr", 2 * mbit)];
        for (index, run) in runs.iter_mut().enumerate() {
            run.repetition = index as u32;
        }
        runs
    });
    report(runs.collect()).0
}

#[test]
fn repetitions_give_intervals() {
    let report = repeated();
    let ours = &report.rows[0];
    assert!((ours.of_best_peer.unwrap() - 2.0).abs() < 1e-9);
    let [low, high] = ours.of_best_peer_interval.unwrap();
    assert!(low.unwrap() < 2.0 && high.unwrap() > 2.0);
    let [low, high] = ours.goodput_interval.unwrap();
    assert!(low < 100.0 && high > 100.0);
    let (lone, table) = self::report(vec![run("quinn", 40), run("hybriq/bbr", 80)]);
    assert_eq!(lone.rows[0].goodput_interval, None);
    assert_eq!(lone.rows[0].of_best_peer_interval, None);
    assert!(table.contains("interval"), "{table}");
}

#[test]
fn every_download_is_a_row() {
    let mut report = repeated();
    report.runs[0].outcome = Outcome::Failed("nothing, came".to_owned());
    let text = String::from_utf8(report.csv().unwrap()).unwrap();
    assert_eq!(text.lines().count(), 1 + 6, "{text}");
    assert!(text.contains("\"nothing, came\""), "{text}");
    let commas = |line: &str| line.replace("\"nothing, came\"", "").matches(',').count();
    assert!(text.lines().all(|line| commas(line) == 15), "{text}");
}

#[test]
fn figures_show_changes_and_goodput_over_time() {
    let report = repeated();
    let ids: Vec<_> = report
        .figures()
        .into_iter()
        .map(|figure| figure.id)
        .collect();
    assert_eq!(ids, ["of-best-peer", "goodput"]);
    let (alone, _) = self::report(vec![run("quinn", 40)]);
    assert_eq!(alone.figures().len(), 1, "there is nothing to compare with");
    let table = report.table();
    assert!(table.rows.iter().all(|row| row.len() == table.head.len()));
}

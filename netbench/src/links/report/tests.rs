//! Tests of the report and its table.

use super::{Download, Outcome, Report, Run, Stack, median};
use crate::axes::{self, Named as _};
use crate::link::Summary;
use crate::links::cases::CASES;
use crate::links::child::{ClientReport, ServerReport};
use crate::machine::Machine;

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
    assert_eq!(ratios, [Some(60.0 / 50.0), None, None]);
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

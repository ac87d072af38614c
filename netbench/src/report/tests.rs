use hybriq::{Backend, Group};

use super::{Report, Row};
use crate::groups::Plan;
use crate::machine::Machine;
use crate::measure::Traffic;
use crate::message::{ClientReport, ServerReport, Work};

const REQUESTS: Work = Work::RequestResponse {
    request: 1,
    response: 1,
};

fn row(group: Group, client: ClientReport) -> Row {
    let plan = Plan::new(group, Backend::Rustls).unwrap();
    Row::new(&plan, ServerReport::default(), client)
}

fn report(work: Work, rows: Vec<Row>) -> Report {
    let mut report = Report::new(work, 1, Machine::detect());
    report.rows = rows;
    report
}

fn printed(report: &Report) -> String {
    let mut out = Vec::new();
    report.print_rows(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn columns_stay_apart_and_aligned_whatever_the_counts() {
    let huge = ClientReport {
        completed: 1,
        elapsed_us: 1e15,
        cpu_us: 1e15,
        traffic: Traffic {
            sent_datagrams: u64::MAX,
            sent_bytes: u64::MAX,
            received_datagrams: u64::MAX,
            received_bytes: u64::MAX,
        },
        ..ClientReport::default()
    };
    let small = ClientReport {
        completed: 1,
        elapsed_us: 1.0,
        ..ClientReport::default()
    };
    for (work, columns) in [(REQUESTS, 9), (Work::Bulk { bytes: u64::MAX }, 7)] {
        let rows = vec![
            row(Group::SECP256R1MLKEM768, huge.clone()),
            row(Group::X25519, small.clone()),
        ];
        let text = printed(&report(work, rows));
        let table: Vec<&str> = text.lines().take(3).collect();
        for line in &table[1..] {
            assert_eq!(line.split_whitespace().count(), columns, "{text}");
        }
        let widths: Vec<_> = table.iter().map(|line| line.chars().count()).collect();
        assert!(widths.iter().all(|width| *width == widths[0]), "{text}");
    }
}

#[test]
fn where_nothing_was_measured_only_the_failures_are_told() {
    let failed = ClientReport {
        failed: 10,
        first_error: Some("no answer".to_owned()),
        ..ClientReport::default()
    };
    for work in [REQUESTS, Work::Bulk { bytes: 1 }] {
        let all_failed = report(work, vec![row(Group::X25519, failed.clone())]);
        assert_eq!(printed(&all_failed), "");
        assert_eq!(
            all_failed.failures(),
            ["X25519: 10 connections failed at the client, the first: no answer"]
        );
        assert_eq!(printed(&report(work, Vec::new())), "");
    }
}

#[test]
fn a_group_that_failed_has_no_row_among_the_others() {
    let failed = ClientReport {
        failed: 10,
        ..ClientReport::default()
    };
    let completed = ClientReport {
        completed: 1,
        ..ClientReport::default()
    };
    let text = printed(&report(
        REQUESTS,
        vec![row(Group::X25519, completed), row(Group::MLKEM768, failed)],
    ));
    assert!(text.contains("X25519"), "{text}");
    assert!(text.contains("server memory"), "{text}");
    assert!(!text.contains("MLKEM768"), "{text}");
}

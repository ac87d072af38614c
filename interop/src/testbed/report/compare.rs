//! Two reports side by side.

use std::fmt::Write as _;

use super::{Line, Outcome, Report};

/// Differences between two reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// Runs that passed before and do not now.
    pub worse: Vec<String>,
    /// Runs that pass now and did not before.
    pub better: Vec<String>,
    /// Runs that are only in one of the reports.
    pub unmatched: usize,
}

impl Report {
    /// Compares with a former report.
    pub fn since(&self, before: &Self) -> Comparison {
        let mut comparison = Comparison {
            worse: Vec::new(),
            better: Vec::new(),
            unmatched: 0,
        };
        for line in &self.lines {
            let Some(former) = before.line(&line.client, &line.server, &line.case) else {
                comparison.unmatched += 1;
                continue;
            };
            match (former.outcome, line.outcome) {
                (Outcome::Passed, Outcome::Passed) => {}
                (Outcome::Passed, _) => comparison.worse.push(change(former, line)),
                (_, Outcome::Passed) => comparison.better.push(change(former, line)),
                _ => {}
            }
        }
        let gone = before
            .lines
            .iter()
            .filter(|line| self.line(&line.client, &line.server, &line.case).is_none());
        comparison.unmatched += gone.count();
        comparison
    }
}

fn change(before: &Line, now: &Line) -> String {
    let (was, is) = (before.outcome.name(), now.outcome.name());
    let mut text = format!("{}: {was}, now {is}", now.title());
    if !now.text.is_empty() {
        text = format!("{text}: {}", now.text);
    }
    text
}

impl Comparison {
    /// Returns the differences as lines for a terminal.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (name, changes) in [("worse", &self.worse), ("better", &self.better)] {
            for change in changes {
                // Writing into a text does not fail.
                let _ = writeln!(text, "{name:<7} {change}");
            }
        }
        let _ = writeln!(
            text,
            "{} worse, {} better, {} in one report only",
            self.worse.len(),
            self.better.len(),
            self.unmatched
        );
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed::report::tests::report;

    #[test]
    fn what_passed_before_and_fails_now_is_worse() {
        let before = report(&[
            ("handshake", Outcome::Passed, ""),
            ("retry", Outcome::Passed, ""),
            ("v2", Outcome::Failed, ""),
            ("ecn", Outcome::Passed, ""),
        ]);
        let now = report(&[
            ("handshake", Outcome::Passed, ""),
            ("retry", Outcome::Hung, "killed"),
            ("v2", Outcome::Passed, ""),
        ]);
        let comparison = now.since(&before);
        let worse = ["hybriq → aioquic, retry: passed, now HUNG: killed".to_owned()];
        assert_eq!(comparison.worse, worse);
        assert_eq!(comparison.better.len(), 1);
        assert_eq!(comparison.unmatched, 1);
        assert!(comparison.text().contains("1 worse, 1 better, 1 in one"));
    }
}

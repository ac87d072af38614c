//! Results of the runs: lines while they go on, a table, and a document for machines.

use std::fmt::Write as _;

use super::{cases::Case, peers::Peer};

/// Result of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Passed,
    Failed,
    /// An endpoint says that it cannot do the case.
    Unsupported,
    /// An endpoint is not installed.
    Skipped,
    /// An endpoint did not end in time and was killed.
    Hung,
}

impl Outcome {
    const fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "FAILED",
            Self::Unsupported => "unsupported",
            Self::Skipped => "skipped",
            Self::Hung => "HUNG",
        }
    }
}

/// A run and its result.
#[derive(Clone, Debug)]
pub(super) struct Line {
    case: &'static str,
    letters: &'static str,
    client: &'static str,
    server: &'static str,
    outcome: Outcome,
    /// What was measured, or the reason.
    text: String,
}

impl Line {
    pub(super) fn new(
        case: &Case,
        client: &Peer,
        server: &Peer,
        outcome: Outcome,
        text: String,
    ) -> Self {
        Self {
            case: case.name,
            letters: case.letters,
            client: client.name,
            server: server.name,
            outcome,
            text,
        }
    }
}

/// Results of all runs.
#[derive(Clone, Debug, Default)]
pub struct Report {
    lines: Vec<Line>,
    pub(super) interrupted: bool,
}

impl Report {
    pub(super) fn add(&mut self, line: Line) {
        let Line {
            case,
            client,
            server,
            outcome,
            text,
            ..
        } = &line;
        println!(
            "{:<11} {case:<20} {client} → {server}  {text}",
            outcome.name()
        );
        self.lines.push(line);
    }

    /// Returns true if nothing failed and all chosen runs were done.
    pub fn is_good(&self) -> bool {
        let bad = |line: &Line| matches!(line.outcome, Outcome::Failed | Outcome::Hung);
        !self.interrupted && !self.lines.iter().any(bad)
    }

    /// Returns the results as a table of Markdown: a row for each pair, the letters of the cases.
    pub fn markdown(&self) -> String {
        let mut pairs: Vec<(&str, &str)> = Vec::new();
        for line in &self.lines {
            if !pairs.contains(&(line.client, line.server)) {
                pairs.push((line.client, line.server));
            }
        }
        let mut text = String::from(
            "| client | server | passed | failed | unsupported |\n|---|---|---|---|---|\n",
        );
        for (client, server) in pairs {
            let letters = |outcomes: &[Outcome]| {
                let of_pair = self.lines.iter().filter(|line| {
                    (line.client, line.server) == (client, server)
                        && outcomes.contains(&line.outcome)
                });
                of_pair
                    .map(|line| line.letters)
                    .collect::<Vec<_>>()
                    .join(" ")
            };
            let passed = letters(&[Outcome::Passed]);
            let failed = letters(&[Outcome::Failed, Outcome::Hung]);
            let unsupported = letters(&[Outcome::Unsupported, Outcome::Skipped]);
            // Writing into a text does not fail.
            let _ = writeln!(
                text,
                "| {client} | {server} | {passed} | {failed} | {unsupported} |"
            );
        }
        text
    }
}

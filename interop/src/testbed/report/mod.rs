//! Results of the runs: lines while they are in progress, a document for machines, tables and a
//! page for people.

mod compare;
mod page;
mod table;

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Write as _},
    path::Path,
    time::SystemTime,
};

pub use compare::Comparison;
pub use page::logs_from;
use serde::{Deserialize, Serialize};

use super::{
    Failure,
    cases::{self, Case},
    dissect::{Datagram, Dissection},
    peers::{self, Peer},
};
use crate::runner::Role;

/// Result of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
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

    const fn is_bad(self) -> bool {
        matches!(self, Self::Failed | Self::Hung)
    }
}

/// A datagram of a failed run, for a diagram.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Step {
    /// Time since the first datagram, in milliseconds.
    at: f64,
    from_client: bool,
    /// True if it also arrived at the other side of the link.
    arrived: bool,
    /// Datagrams that are left out before this one.
    #[serde(default, skip_serializing_if = "is_none")]
    left_out: usize,
    text: String,
}

/// Datagrams of a failed run that are kept from its beginning, and from its end.
const KEPT: (usize, usize) = (40, 15);

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
const fn is_none(count: &usize) -> bool {
    *count == 0
}

/// Returns the datagrams of a run as its client's side of the link saw them, and those that did not arrive there,
/// with a gap where there are too many.
pub(super) fn steps(client: &Dissection, server: &Dissection) -> Vec<Step> {
    let Some(first) = client.datagrams.first() else {
        return Vec::new();
    };
    let (mut at_server, mut at_client) = (
        arrivals(server, Role::Client),
        arrivals(client, Role::Server),
    );
    let mut all = Vec::new();
    for datagram in &client.datagrams {
        let arrived = datagram.from == Role::Server || take(&mut at_server, datagram);
        all.push((datagram, arrived));
    }
    for datagram in &server.datagrams {
        if datagram.from == Role::Server && !take(&mut at_client, datagram) {
            all.push((datagram, false));
        }
    }
    all.sort_by_key(|(datagram, _)| datagram.at);
    let (begin, end) = KEPT;
    let left_out = all.len().saturating_sub(begin + end);
    all.drain(begin.min(all.len())..(begin + left_out).min(all.len()));
    let steps = all.into_iter().enumerate();
    let steps = steps.map(|(number, (datagram, arrived))| Step {
        at: datagram.at.saturating_sub(first.at).as_secs_f64() * 1000.0,
        from_client: datagram.from == Role::Client,
        arrived,
        left_out: if number == begin { left_out } else { 0 },
        text: datagram.to_string(),
    });
    steps.collect()
}

/// Counts of datagrams by their marks.
type Arrivals<'a> = BTreeMap<&'a [u8], usize>;

/// Counts the datagrams of an end in a capture.
fn arrivals(capture: &Dissection, from: Role) -> Arrivals<'_> {
    let mut counts = Arrivals::new();
    for datagram in capture.datagrams.iter().filter(|it| it.from == from) {
        *counts.entry(datagram.mark.as_slice()).or_default() += 1;
    }
    counts
}

/// Returns true if there is a count of a datagram left, and takes one.
fn take(counts: &mut Arrivals<'_>, datagram: &Datagram) -> bool {
    let count = counts.get_mut(datagram.mark.as_slice());
    let count = count.filter(|left| **left > 0);
    count.map(|left| *left -= 1).is_some()
}

/// A run and its result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Line {
    case: String,
    letters: String,
    client: String,
    server: String,
    outcome: Outcome,
    /// What was measured, or the reason.
    text: String,
    /// Folder of captures and logs, below that of the report.
    logs: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    steps: Vec<Step>,
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
            case: case.name.to_owned(),
            letters: case.letters.to_owned(),
            client: client.name.to_owned(),
            server: server.name.to_owned(),
            outcome,
            text,
            logs: format!("{}_{}/{}", client.name, server.name, case.name),
            steps: Vec::new(),
        }
    }

    /// Adds the datagrams to a run that failed.
    pub(super) fn with_steps(mut self, steps: Vec<Step>) -> Self {
        if self.outcome.is_bad() {
            self.steps = steps;
        }
        self
    }

    /// Returns true if the run failed.
    pub(super) const fn is_bad(&self) -> bool {
        self.outcome.is_bad()
    }

    /// Returns the pair and the case.
    fn title(&self) -> String {
        format!("{} → {}, {}", self.client, self.server, self.case)
    }

    /// Place in the report: rows of clients and servers, then cases.
    fn place(&self) -> [usize; 3] {
        [
            peers::position(&self.client),
            peers::position(&self.server),
            cases::position(&self.case),
        ]
    }
}

/// Results of all runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Date of the runs (RFC 9110 §5.6.7).
    date: String,
    /// Versions of the implementations by name.
    versions: BTreeMap<String, String>,
    /// Cases in the order of the table: name and letters.
    cases: Vec<(String, String)>,
    pub(super) interrupted: bool,
    lines: Vec<Line>,
}

impl Report {
    /// Begins a report of today.
    pub(super) fn begin() -> Self {
        Self {
            date: httpdate::fmt_http_date(SystemTime::now()),
            ..Self::default()
        }
    }

    /// Notes the version of an implementation.
    pub(super) fn add_version(&mut self, peer: &str, version: String) {
        self.versions.insert(peer.to_owned(), version);
    }

    /// Adds a run, in place of an earlier one of the same pair and case.
    pub(super) fn add(&mut self, line: Line) {
        let pair = format!("{} → {}", line.client, line.server);
        // Nobody may be listening any longer.
        let _ = writeln!(
            io::stdout(),
            "{:<11} {:<29} {pair}  {}",
            line.outcome.name(),
            line.case,
            line.text
        );
        self.lines.retain(|earlier| earlier.title() != line.title());
        self.lines.push(line);
    }

    /// Keeps the runs of a former report that were not done again.
    pub fn keep(&mut self, former: Self) {
        for line in former.lines {
            if self.line(&line.client, &line.server, &line.case).is_none() {
                self.lines.push(line);
            }
        }
        for (name, version) in former.versions {
            self.versions.entry(name).or_insert(version);
        }
        self.finish();
    }

    /// Returns the report as if the runs had been interrupted now.
    pub(super) fn so_far(&self) -> Self {
        let mut report = self.clone();
        report.interrupted = true;
        report.finish();
        report
    }

    /// Puts the lines in order.
    pub(super) fn finish(&mut self) {
        self.lines.sort_by_key(Line::place);
        let mut cases: Vec<_> = self
            .lines
            .iter()
            .map(|line| (line.case.clone(), line.letters.clone()))
            .collect();
        cases.sort_by_key(|(name, _)| cases::position(name));
        cases.dedup();
        self.cases = cases;
    }

    /// Returns true if nothing failed and all chosen runs were done.
    pub fn is_good(&self) -> bool {
        !self.interrupted && self.bad().next().is_none()
    }

    /// Returns the runs that failed.
    fn bad(&self) -> impl Iterator<Item = &Line> {
        self.lines.iter().filter(|line| line.is_bad())
    }

    /// Reads a report that [`Report::json`] wrote.
    ///
    /// # Errors
    /// There is no such file, or it is no report.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let name = path.display();
        let text = fs::read_to_string(path).map_err(|error| format!("{name}: {error}"))?;
        let report = serde_json::from_str(&text);
        Ok(report.map_err(|error| format!("{name} is no report of the matrix: {error}"))?)
    }

    /// Returns the report for machines.
    ///
    /// # Errors
    /// None that is known.
    pub fn json(&self) -> Result<String, Failure> {
        Ok(serde_json::to_string_pretty(self)?)
    }

    /// Returns the pairs in the order of the lines.
    fn pairs(&self) -> Vec<(&str, &str)> {
        let mut pairs = Vec::new();
        for line in &self.lines {
            let pair = (line.client.as_str(), line.server.as_str());
            if !pairs.contains(&pair) {
                pairs.push(pair);
            }
        }
        pairs
    }

    fn line(&self, client: &str, server: &str, case: &str) -> Option<&Line> {
        self.lines
            .iter()
            .find(|line| line.client == client && line.server == server && line.case == case)
    }

    fn count(&self, outcome: Outcome) -> usize {
        let of_kind = self.lines.iter().filter(|line| line.outcome == outcome);
        of_kind.count()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::testbed::packet::Udp;

    /// A datagram of IPv4 without a payload.
    const PACKET: [u8; 28] = [
        0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 9, 1, 187, 0, 8, 0,
        0,
    ];

    /// Returns a report of runs: case, outcome and text.
    pub(super) fn report(runs: &[(&str, Outcome, &str)]) -> Report {
        let mut report = Report::begin();
        report.add_version("hybriq", "1.2.3".to_owned());
        for &(name, outcome, text) in runs {
            let case = cases::select(&[name.to_owned()], false).expect("a case")[0];
            let peers = peers::select(&["hybriq".to_owned(), "aioquic".to_owned()]);
            let [client, server] = peers.expect("two peers")[..] else {
                unreachable!("two peers");
            };
            let step = Step {
                at: 1.5,
                from_client: true,
                arrived: false,
                left_out: 7,
                text: "Initial 0: CRYPTO".to_owned(),
            };
            let line = Line::new(case, client, server, outcome, text.to_owned());
            report.add(line.with_steps(vec![step]));
        }
        report.finish();
        report
    }

    #[test]
    fn a_report_is_read_again() {
        let runs = [("retry", Outcome::Passed, ""), ("v2", Outcome::Hung, "why")];
        let before = report(&runs);
        let now: Report = serde_json::from_str(&before.json().expect("JSON")).expect("a report");
        assert_eq!(now, before);
        assert!(!now.is_good());
        assert_eq!(now.lines[0].steps, []);
        assert_eq!(now.lines[1].steps.len(), 1);
    }

    #[test]
    fn a_datagram_that_did_not_cross_the_link_is_a_lost_step() {
        let datagram = |at, from, mark: u8| Datagram {
            at: Duration::from_millis(at),
            from,
            udp: Udp::find(&PACKET).expect("a datagram"),
            len: 1200,
            mark: vec![mark; 16],
            packets: Vec::new(),
        };
        let side = |datagrams| Dissection {
            datagrams,
            ..Dissection::default()
        };
        let client = side(vec![
            datagram(10, Role::Client, 1),
            datagram(11, Role::Client, 2),
            datagram(12, Role::Client, 1),
            datagram(40, Role::Server, 3),
        ]);
        let server = side(vec![
            datagram(25, Role::Client, 1),
            datagram(26, Role::Server, 3),
            datagram(27, Role::Server, 4),
        ]);
        let steps = steps(&client, &server);
        let arrived: Vec<_> = steps.iter().map(|step| step.arrived).collect();
        assert_eq!(arrived, [true, false, false, false, true]);
        let from_client: Vec<_> = steps.iter().map(|step| step.from_client).collect();
        assert_eq!(from_client, [true, true, true, false, false]);
        let times: Vec<_> = steps.iter().map(|step| step.at.round()).collect();
        assert_eq!(times, [0.0, 1.0, 2.0, 17.0, 30.0]);
        let many: Vec<_> = (0..100).map(|at| datagram(at, Role::Client, 1)).collect();
        let steps = super::steps(&side(many), &Dissection::default());
        assert_eq!(steps.len(), KEPT.0 + KEPT.1);
        let gaps = steps.iter().map(|step| step.left_out).enumerate();
        let gaps: Vec<_> = gaps.filter(|(_, left_out)| *left_out > 0).collect();
        assert_eq!(gaps, [(KEPT.0, 100 - KEPT.0 - KEPT.1)]);
    }

    #[test]
    fn lines_stand_in_the_order_of_the_cases() {
        let runs = [
            ("v2", Outcome::Passed, ""),
            ("handshake", Outcome::Unsupported, ""),
        ];
        let report = report(&runs);
        assert!(report.is_good());
        let cases: Vec<_> = report.lines.iter().map(|line| line.case.as_str()).collect();
        assert_eq!(cases, ["handshake", "v2"]);
    }

    #[test]
    fn a_run_that_was_repeated_has_its_last_result() {
        let report = report(&[
            ("retry", Outcome::Failed, ""),
            ("retry", Outcome::Passed, ""),
        ]);
        assert!(report.is_good());
        assert_eq!(report.lines.len(), 1);
    }

    #[test]
    fn runs_that_were_not_done_again_are_kept() {
        let former = report(&[
            ("handshake", Outcome::Passed, "before"),
            ("retry", Outcome::Failed, "before"),
        ]);
        let mut now = report(&[("retry", Outcome::Passed, "now")]);
        now.keep(former);
        let texts: Vec<_> = now.lines.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(texts, ["before", "now"]);
        assert_eq!(now.cases.len(), 2);
    }

    #[test]
    fn a_missing_report_is_named() {
        let error = Report::read(Path::new("/nowhere/report.json")).expect_err("no file");
        assert!(error.to_string().contains("/nowhere"), "{error}");
        let error = Report::read(Path::new("/dev/null")).expect_err("no report");
        assert!(error.to_string().contains("no report"), "{error}");
    }
}

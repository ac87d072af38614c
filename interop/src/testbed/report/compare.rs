//! Two reports side by side.

use std::fmt::Write as _;

use super::{Line, Outcome, Report};

/// Share of a former rate below which a run is named as slower.
const SLOWER: f64 = 0.97;

/// Differences between two reports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Runs that passed before and do not now.
    pub worse: Vec<String>,
    /// Runs that pass now and did not before.
    pub better: Vec<String>,
    /// Runs whose rate fell by more than 3 %.
    pub slower: Vec<String>,
    /// Runs that only the new report has.
    pub new: Vec<String>,
    /// Runs that only the former report has.
    pub gone: Vec<String>,
    /// True if the new report is not whole.
    pub interrupted: bool,
}

impl Report {
    /// Compares with a former report.
    pub fn since(&self, before: &Self) -> Comparison {
        let mut comparison = Comparison {
            interrupted: self.interrupted,
            ..Comparison::default()
        };
        for line in &self.lines {
            let Some(former) = before.line(&line.client, &line.server, &line.case) else {
                comparison.new.push(result(line));
                continue;
            };
            match (former.outcome, line.outcome) {
                (Outcome::Passed, Outcome::Passed) => {
                    if let Some((was, is)) = rate(former).zip(rate(line))
                        && is < was * SLOWER
                    {
                        let slower = format!("{}: {was} kbit/s, now {is}", line.title());
                        comparison.slower.push(slower);
                    }
                }
                (Outcome::Passed, _) => comparison.worse.push(change(former, line)),
                (_, Outcome::Passed) => comparison.better.push(change(former, line)),
                _ => {}
            }
        }
        let is_gone = |line: &&Line| self.line(&line.client, &line.server, &line.case).is_none();
        let gone = before.lines.iter().filter(is_gone).map(result);
        comparison.gone.extend(gone);
        comparison
    }
}

/// Returns the rate that was measured, in kbit/s.
fn rate(line: &Line) -> Option<f64> {
    line.text.strip_suffix(" kbit/s")?.parse().ok()
}

/// Returns a run with its result.
fn result(line: &Line) -> String {
    with_text(format!("{}: {}", line.title(), line.outcome.name()), line)
}

fn change(before: &Line, now: &Line) -> String {
    let (was, is) = (before.outcome.name(), now.outcome.name());
    with_text(format!("{}: {was}, now {is}", now.title()), now)
}

fn with_text(text: String, line: &Line) -> String {
    if line.text.is_empty() {
        text
    } else {
        format!("{text}: {}", line.text)
    }
}

impl Comparison {
    /// Returns the differences as lines for a terminal, those that matter most at the end.
    pub fn text(&self) -> String {
        let kinds = [
            ("gone", &self.gone),
            ("new", &self.new),
            ("better", &self.better),
            ("slower", &self.slower),
            ("worse", &self.worse),
        ];
        let mut text = String::new();
        for (name, changes) in kinds {
            for change in changes {
                // Writing into a text does not fail.
                let _ = writeln!(text, "{name:<7} {change}");
            }
        }
        let counts = kinds.map(|(name, changes)| format!("{} {name}", changes.len()));
        let ended = if self.interrupted {
            "; the new run was interrupted"
        } else {
            ""
        };
        let _ = writeln!(text, "{}{ended}", counts.join(", "));
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
            ("goodput", Outcome::Passed, "9000 kbit/s"),
            ("crosstraffic", Outcome::Passed, "4000 kbit/s"),
        ]);
        let mut now = report(&[
            ("handshake", Outcome::Passed, ""),
            ("retry", Outcome::Hung, "killed"),
            ("v2", Outcome::Passed, ""),
            ("ipv6", Outcome::Failed, "not all by IPv6"),
            ("goodput", Outcome::Passed, "8000 kbit/s"),
            ("crosstraffic", Outcome::Passed, "3900 kbit/s"),
        ]);
        let comparison = now.since(&before);
        let one = |text: &str| vec![format!("hybriq → aioquic, {text}")];
        assert_eq!(comparison.worse, one("retry: passed, now HUNG: killed"));
        assert_eq!(comparison.better, one("v2: FAILED, now passed"));
        assert_eq!(comparison.slower, one("goodput: 9000 kbit/s, now 8000"));
        assert_eq!(comparison.new, one("ipv6: FAILED: not all by IPv6"));
        assert_eq!(comparison.gone, one("ecn: passed"));
        let text = comparison.text();
        let counts = "1 gone, 1 new, 1 better, 1 slower, 1 worse\n";
        assert!(text.ends_with(counts), "{text}");
        now.interrupted = true;
        assert!(now.since(&before).text().contains("was interrupted"));
    }
}

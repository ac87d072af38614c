//! The report as Markdown.

use std::fmt::Write as _;

use super::{Line, Outcome, Report};

/// Returns lines below their header, or nothing if there are none.
fn part(header: &str, lines: impl Iterator<Item = String>) -> String {
    let lines: String = lines.collect();
    if lines.is_empty() {
        lines
    } else {
        format!("{header}{lines}")
    }
}

impl Report {
    /// Returns the results as Markdown: a row for each pair with the letters of the cases, the failures with
    /// their reasons, the meaning of the letters, and the versions.
    pub fn markdown(&self) -> String {
        let mut text = format!("{}\n\n", self.summary());
        text += "| client | server | passed | failed | unsupported |\n|---|---|---|---|---|\n";
        for (client, server) in self.pairs() {
            let letters = |outcomes: &[Outcome]| {
                let of_pair = self.lines.iter().filter(|line| {
                    (line.client.as_str(), line.server.as_str()) == (client, server)
                        && outcomes.contains(&line.outcome)
                });
                let letters: Vec<_> = of_pair.map(|line| line.letters.as_str()).collect();
                letters.join(" ")
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
        let failures = self
            .bad()
            .map(|line| format!("- {}: {}\n", line.title(), line.text));
        text += &part("\nFailures:\n\n", failures);
        let rates = self
            .lines
            .iter()
            .filter(|line| line.outcome == Outcome::Passed && line.text.ends_with("bit/s"));
        let rates = rates.map(|line| {
            let Line {
                case,
                client,
                server,
                text,
                ..
            } = line;
            format!("| {case} | {client} | {server} | {text} |\n")
        });
        let header = "\n| goodput | client | server | measured |\n|---|---|---|---|\n";
        text += &part(header, rates);
        let names: Vec<_> = self
            .cases
            .iter()
            .map(|(name, letters)| format!("{letters} {name}"))
            .collect();
        let _ = writeln!(text, "\nCases: {}.", names.join(", "));
        let versions: Vec<_> = self
            .versions
            .iter()
            .map(|(name, version)| format!("{name} {version}"))
            .collect();
        let _ = writeln!(text, "\nVersions: {}.", versions.join(", "));
        text
    }

    /// Returns date and counts.
    pub(super) fn summary(&self) -> String {
        let count = |outcome| self.count(outcome);
        let ended = if self.interrupted {
            " Interrupted: not all runs were done."
        } else {
            ""
        };
        format!(
            "{}: {} runs, {} passed, {} failed, {} hung, {} unsupported, {} skipped.{ended}",
            self.date,
            self.lines.len(),
            count(Outcome::Passed),
            count(Outcome::Failed),
            count(Outcome::Hung),
            count(Outcome::Unsupported),
            count(Outcome::Skipped),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed::report::tests::report;

    #[test]
    fn a_pair_is_a_row_and_a_failure_has_its_reason() {
        let text = report(&[
            ("handshake", Outcome::Passed, ""),
            ("retry", Outcome::Failed, "no Retry was sent"),
            ("v2", Outcome::Unsupported, "by the server"),
            ("goodput", Outcome::Passed, "9000 kbit/s"),
        ])
        .markdown();
        assert!(
            text.contains("| hybriq | aioquic | H G | S | V2 |"),
            "{text}"
        );
        assert!(text.contains("aioquic, retry: no Retry was sent"), "{text}");
        assert!(text.contains("4 runs, 2 passed, 1 failed"), "{text}");
        assert!(text.contains("| 9000 kbit/s |"), "{text}");
        assert!(text.contains("S retry") && text.contains("hybriq 1.2.3"));
    }
}

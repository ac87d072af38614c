//! The report of all experiments as data.

use std::io::{self, Write};

use serde::{Deserialize, Serialize};

use super::args::Outputs;
use super::budget::Length;
use super::{Section, Verdict};
use crate::report::results::About;
use crate::system::machine::Machine;

/// Version of the format.
const FORMAT: u32 = 1;

/// Report of all experiments.
#[expect(
    clippy::struct_field_names,
    reason = "the format's field tells it from other files"
)]
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Reproduction {
    /// [`FORMAT`].
    pub(crate) netbench_reproduction: u32,
    /// True if every requested experiment is present and complete.
    pub(crate) complete: bool,
    /// True if it was a quick run.
    pub(crate) quick: bool,
    /// Facts that are needed to repeat the run.
    pub(crate) about: About,
    /// Sections in the order of the report.
    pub(crate) sections: Vec<Section>,
}

impl Reproduction {
    /// Returns a report without sections.
    pub(super) fn begin(length: Length) -> Self {
        Self {
            netbench_reproduction: FORMAT,
            complete: false,
            quick: length != Length::Full,
            about: About::this_run(Machine::detect()),
            sections: Vec::new(),
        }
    }

    /// Notes whether all requested experiments are present; `asked` is their number.
    pub(super) fn finish(&mut self, asked: usize) {
        let are_complete = self.sections.iter().all(Section::is_complete);
        self.complete = are_complete && self.sections.len() == asked;
    }

    /// Prints the findings, and the files of the report.
    pub(super) fn print(&self, out: &mut impl Write, to: &Outputs) -> io::Result<()> {
        let id = |section: &Section| section.id.chars().count();
        let width = self.sections.iter().map(id).max().unwrap_or(0);
        for section in &self.sections {
            let Section { id, finding, .. } = section;
            let verdict = finding.verdict.text();
            writeln!(out, "{id:width$}  {verdict:8} {}", finding.sentence)?;
        }
        writeln!(out, "\n{}\n{}", to.html.display(), to.json.display())
    }
}

impl Section {
    /// Returns true if the user interrupted the experiment.
    pub(super) fn was_interrupted(&self) -> bool {
        let mut problems = self.problems.iter();
        problems.any(|problem| problem.contains("interrupted"))
    }

    fn is_complete(&self) -> bool {
        self.problems.is_empty() && self.finding.verdict != Verdict::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::{Length, Reproduction, Section, Verdict};
    use crate::experiments::reproduce::budget::QUICK;
    use crate::experiments::reproduce::experiments::ALL;
    use crate::experiments::reproduce::section::Finding;

    fn section(verdict: Verdict) -> Section {
        Section {
            finding: Finding::of(verdict, "so it is"),
            ..Section::begin(&ALL[0])
        }
    }

    fn is_complete(sections: Vec<Section>, asked: usize) -> bool {
        let mut reproduction = Reproduction::begin(Length::Quick(QUICK));
        reproduction.sections = sections;
        reproduction.finish(asked);
        reproduction.complete
    }

    #[test]
    fn a_shape_that_differs_is_a_result_and_one_that_is_missing_is_none() {
        for verdict in [Verdict::Agrees, Verdict::Differs, Verdict::Unclear] {
            assert!(is_complete(vec![section(verdict)], 1), "{verdict:?}");
        }
        assert!(!is_complete(vec![section(Verdict::Unknown)], 1));
        assert!(!is_complete(vec![section(Verdict::Agrees)], 2));
    }

    #[test]
    fn an_experiment_that_failed_is_kept_with_its_reason() {
        let failed = Section::failed(&ALL[0], &std::io::Error::other("no server"));
        assert!(failed.problems[0].contains("no server"), "{failed:?}");
        assert!(!is_complete(vec![failed, section(Verdict::Agrees)], 2));
    }
}

//! A report of several measurements: sections with tables, a finding each, and the results.

mod verdict;

use std::io::{self, Write};

use serde::{Deserialize, Serialize};

use crate::report::charts::Table;
use crate::report::results::{About, Results};
use crate::system::machine::Machine;

pub(crate) use verdict::Verdict;

/// Version of the format.
const FORMAT: u32 = 2;

/// A report of several measurements.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Document {
    /// [`FORMAT`].
    pub(crate) netbench_report: u32,
    /// Command that made it: `reproduce`, `peers`.
    pub(crate) command: String,
    /// True if every requested section is present and complete.
    pub(crate) complete: bool,
    /// True if it was a quick run.
    pub(crate) quick: bool,
    /// Facts that are needed to repeat the run.
    pub(crate) about: About,
    /// Sections in the order of the report.
    pub(crate) sections: Vec<Section>,
}

/// An experiment: what was published of it, ours, and what it comes to.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Section {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) source: Source,
    /// Published figures; empty if the source only has a claim.
    pub(crate) published: Vec<Table>,
    pub(crate) ours: Vec<Table>,
    pub(crate) finding: Finding,
    /// Condition under which the shape agrees with the published one.
    #[serde(default)]
    pub(crate) rule: String,
    /// Method of our run, its differences from the original, and its limits.
    pub(crate) notes: Vec<String>,
    /// Measurements that failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) problems: Vec<String>,
    /// Ids of the charts that show its subject.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) charts: Vec<String>,
    /// All measurements in the form of `netbench run --json`, one for each part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) results: Vec<Results>,
}

/// Publication of the original values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Source {
    /// Author, title and year: `AWS, "…", 2023`.
    pub(crate) text: String,
    /// The published experiment, in a sentence.
    pub(crate) experiment: String,
}

/// Comparison of the measured shape with the published one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Finding {
    pub(crate) verdict: Verdict,
    /// One sentence with the ratios that support it.
    pub(crate) sentence: String,
}

impl Document {
    /// Returns a report without sections.
    pub(crate) fn begin(command: &str, quick: bool) -> Self {
        Self {
            netbench_report: FORMAT,
            command: command.to_owned(),
            complete: false,
            quick,
            about: About::this_run(Machine::detect()),
            sections: Vec::new(),
        }
    }

    /// Notes whether all requested experiments are present; `asked` is their number.
    pub(crate) fn finish(&mut self, asked: usize) {
        let are_complete = self.sections.iter().all(Section::is_complete);
        self.complete = are_complete && self.sections.len() == asked;
    }

    /// Prints the findings.
    pub(crate) fn print(&self, out: &mut impl Write) -> io::Result<()> {
        let id = |section: &Section| section.id.chars().count();
        let width = self.sections.iter().map(id).max().unwrap_or(0);
        for section in &self.sections {
            let Section { id, finding, .. } = section;
            let verdict = finding.verdict.text();
            writeln!(out, "{id:width$}  {verdict:8} {}", finding.sentence)?;
        }
        Ok(())
    }
}

impl Section {
    /// Returns true if the user interrupted the experiment.
    pub(crate) fn was_interrupted(&self) -> bool {
        let mut problems = self.problems.iter();
        problems.any(|problem| problem.contains("interrupted"))
    }

    fn is_complete(&self) -> bool {
        self.problems.is_empty() && self.finding.verdict != Verdict::Unknown
    }

    /// Marks a finding from repetitions that other work still disturbed after they were measured
    /// again.
    pub(crate) fn with_noise(mut self) -> Self {
        if let Some(noise) = self.results.iter().find_map(Results::noise) {
            self.finding.sentence = format!("{} Disturbed: {noise}.", self.finding.sentence);
        }
        self
    }
}

impl Finding {
    /// Returns a finding with a verdict, or with true if the shape agrees.
    pub(crate) fn of(verdict: impl Into<Verdict>, sentence: impl Into<String>) -> Self {
        Self {
            verdict: verdict.into(),
            sentence: sentence.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Document, Finding, Section, Verdict};

    fn section(verdict: Verdict) -> Section {
        Section {
            finding: Finding::of(verdict, "so it is"),
            ..Section::default()
        }
    }

    fn is_complete(sections: Vec<Section>, asked: usize) -> bool {
        let mut document = Document::begin("reproduce", true);
        document.sections = sections;
        document.finish(asked);
        document.complete
    }

    #[test]
    fn a_shape_that_differs_is_a_result_and_one_that_is_missing_is_none() {
        for verdict in [Verdict::Agrees, Verdict::Differs, Verdict::Unclear] {
            assert!(is_complete(vec![section(verdict)], 1), "{verdict:?}");
        }
        assert!(!is_complete(vec![section(Verdict::Unknown)], 1));
        assert!(!is_complete(vec![section(Verdict::Agrees)], 2));
        let mut failed = section(Verdict::Agrees);
        failed.problems.push("no server".to_owned());
        assert!(!is_complete(vec![failed], 1));
    }

    #[test]
    fn a_finding_beside_other_work_says_so() {
        let text = crate::synthetic::groups().to_string();
        let mut results = crate::report::results::Results::parse(&text).unwrap();
        let sentence = |results| {
            let mut section = section(Verdict::Agrees);
            section.results = vec![results];
            section.with_noise().finding.sentence
        };
        assert!(!sentence(results.clone()).contains("Disturbed"));
        results.cells[0].repetitions[0].other_cores = Some(4.8);
        results.cells[0].summarize();
        assert!(sentence(results).contains("Disturbed: other work"));
    }
}

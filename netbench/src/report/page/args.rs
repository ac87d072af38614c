//! `netbench report`.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::{Chapter, write_chapters};
use crate::report::charts;
use crate::report::results::Results;
use crate::system::failure::Failure;
use crate::system::terminal;

/// Makes a page, and charts, of results.
#[derive(Args)]
pub(crate) struct Report {
    /// Files that `netbench run --json` wrote; each is a chapter.
    #[arg(required = true, value_name = "RESULTS")]
    results: Vec<PathBuf>,

    /// The page, one HTML file that needs nothing else.
    #[arg(long, default_value = "report.html", value_name = "PATH")]
    out: PathBuf,

    /// Also writes every chart as SVG, and as PNG where netbench was built with the feature `png`,
    /// into this directory; of several files of results into one directory each.
    #[arg(long, value_name = "DIRECTORY")]
    charts: Option<PathBuf>,
}

impl Report {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        let results = self
            .results
            .iter()
            .map(|path| Results::read(path))
            .collect::<Result<Vec<_>, _>>()?;
        let chapters: Vec<Chapter<'_>> = results.iter().map(Chapter::new).collect();
        write_chapters("netbench", &chapters, &self.out)?;
        let mut written = vec![self.out];
        for (path, results) in self.results.iter().zip(&results) {
            let Some(directory) = &self.charts else {
                continue;
            };
            let directory = match (self.results.len(), path.file_stem()) {
                (2.., Some(stem)) => directory.join(stem),
                _ => directory.clone(),
            };
            written.extend(charts::write_all(results, &directory)?);
        }
        terminal::print(|out| {
            written
                .iter()
                .try_for_each(|path| writeln!(out, "{}", path.display()))
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

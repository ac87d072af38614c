//! Files that a run writes.

pub(crate) mod csv;
mod print;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::report::results::Results;
use crate::report::{charts, page};
use crate::system::failure::Failure;
use crate::system::files;

/// Exit code of a program that SIGINT ended.
pub(crate) const INTERRUPTED: u8 = 130;

/// Files for results, in addition to the terminal.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outputs {
    pub(crate) json: Option<PathBuf>,
    pub(crate) csv: Option<PathBuf>,
    pub(crate) html: Option<PathBuf>,
    pub(crate) charts: Option<PathBuf>,
    /// Prints the JSON on one line instead of the table.
    pub(crate) print_json: bool,
}

impl Outputs {
    /// Checks that all files can be written, before anything is measured.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let files = [
            ("--json", &self.json),
            ("--csv", &self.csv),
            ("--html", &self.html),
        ];
        for (flag, path) in files {
            if let Some(path) = path {
                files::check(path).map_err(|error| cannot_write(flag, path, &error))?;
            }
        }
        match &self.charts {
            Some(folder) => {
                fs::create_dir_all(folder).map_err(|error| cannot_write("--charts", folder, &error))
            }
            None => Ok(()),
        }
    }

    /// Writes the JSON file with the results so far.
    pub(crate) fn write_part(&self, results: &Results) -> Result<(), Failure> {
        match &self.json {
            Some(path) if files::is_replaced(path) => write_json(path, results),
            _ => Ok(()),
        }
    }

    /// Writes all files, after the results were printed. The failure of one does not keep the
    /// others from being written, and results that are in no file are rescued to another place.
    ///
    /// # Errors
    ///
    /// All failures, that of printing too, in one line with the name of the file that has the
    /// results.
    pub(crate) fn write(
        &self,
        results: &Results,
        printed: Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut failures: Vec<Failure> = printed.err().into_iter().collect();
        let mut stands_in = None;
        if let Some(path) = &self.json {
            match write_json(path, results) {
                Ok(()) => stands_in = files::is_replaced(path).then(|| path.clone()),
                Err(failure) => failures.push(failure),
            }
        }
        if let Some(path) = &self.csv {
            failures.extend(csv::write(results, path).err());
        }
        if let Some(path) = &self.html {
            failures.extend(page::write(results, path).err());
        }
        if let Some(folder) = &self.charts {
            failures.extend(charts::write_all(results, folder).err());
        }
        if failures.is_empty() {
            return Ok(());
        }
        let rescue = || files::rescue(&serde_json::to_vec(results).ok()?);
        Err(told(&failures, stands_in.or_else(rescue)))
    }
}

/// Joins failures, and names the file that has the results nevertheless.
pub(crate) fn told(failures: &[Failure], rescued: Option<PathBuf>) -> Failure {
    let mut lines: Vec<String> = failures.iter().map(ToString::to_string).collect();
    lines.push(match rescued {
        Some(path) => format!("all results are in {}", path.display()),
        None => "no folder took the results: only what was printed is left".to_owned(),
    });
    lines.join("; ").into()
}

fn write_json(path: &Path, results: &Results) -> Result<(), Failure> {
    let mut text = serde_json::to_vec_pretty(results)?;
    text.push(b'\n');
    files::write(path, &text).map_err(|error| cannot_write("--json", path, &error))
}

fn cannot_write(flag: &str, path: &Path, error: &io::Error) -> Failure {
    format!(
        "cannot write {}: {error}; choose another {flag} path",
        path.display()
    )
    .into()
}

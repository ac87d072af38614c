//! Files that a run writes.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::results::Results;
use crate::{Failure, charts, csv, page};

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
                check_file(path).map_err(|error| cannot_write(flag, path, &error))?;
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
            Some(path) if is_replaced(path) => write_json(path, results),
            _ => Ok(()),
        }
    }

    /// Writes all files.
    pub(crate) fn write(&self, results: &Results) -> Result<(), Failure> {
        if let Some(path) = &self.json {
            write_json(path, results)?;
        }
        if let Some(path) = &self.csv {
            csv::write(results, path)?;
        }
        if let Some(path) = &self.html {
            page::write(results, path)?;
        }
        if let Some(folder) = &self.charts {
            charts::write_all(results, folder)?;
        }
        Ok(())
    }
}

/// Returns true if a file is replaced as a whole, so that a reader never sees half of it; a pipe or
/// a device is written only once.
fn is_replaced(path: &Path) -> bool {
    fs::metadata(path).map_or(true, |it| it.is_file())
}

fn check_file(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if is_replaced(path) {
        let part = part(path);
        File::create(&part)?;
        fs::remove_file(part)?;
    }
    Ok(())
}

fn part(path: &Path) -> PathBuf {
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    part.into()
}

fn write_json(path: &Path, results: &Results) -> Result<(), Failure> {
    let mut text = serde_json::to_vec_pretty(results)?;
    text.push(b'\n');
    let written = if is_replaced(path) {
        let part = part(path);
        fs::write(&part, text).and_then(|()| fs::rename(&part, path))
    } else {
        File::options()
            .write(true)
            .open(path)
            .and_then(|mut file| file.write_all(&text))
    };
    written.map_err(|error| cannot_write("--json", path, &error))
}

fn cannot_write(flag: &str, path: &Path, error: &io::Error) -> Failure {
    format!(
        "cannot write {}: {error}; choose another {flag} path",
        path.display()
    )
    .into()
}

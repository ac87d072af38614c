//! The command line of `netbench run peers`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::parts::Size;
use crate::system::failure::Failure;
use crate::system::files;

/// Measures our stack against all other built-in stacks, and writes one table with goals.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// Measures less of everything, for at most nine minutes.
    #[arg(long)]
    quick: bool,

    /// Number of repetitions of each cell; results are their medians [default: 5, quick 3].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    repetitions: Option<u32>,

    /// Largest number of minutes; repetitions for which there is no time are left out.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=600))]
    minutes: Option<u64>,

    /// A directory for RESULTS.md, peers.json, peers.csv and peers.svg.
    #[arg(long, value_name = "DIRECTORY", default_value = "netbench-peers")]
    out: PathBuf,

    /// As small as possible, for tests of netbench.
    #[arg(long, hide = true)]
    tiny: bool,
}

/// Time of a quick run. The rest of its nine minutes is for starting processes beyond the time of
/// the last turn, and for writing.
const QUICK: Duration = Duration::from_secs(500);

impl Args {
    pub(super) fn size(&self) -> Size {
        match (self.tiny, self.quick) {
            (true, _) => Size::Tiny,
            (_, true) => Size::Quick,
            _ => Size::Full,
        }
    }

    pub(super) fn repetitions(&self) -> u32 {
        let default = match self.size() {
            Size::Tiny => 1,
            Size::Quick => 3,
            Size::Full => 5,
        };
        self.repetitions.unwrap_or(default)
    }

    /// Returns the time that everything may take.
    pub(super) fn limit(&self) -> Option<Duration> {
        let minutes = self.minutes.map(Duration::from_mins);
        minutes.or(self.quick.then_some(QUICK))
    }

    pub(super) fn paths(&self) -> Paths {
        Paths {
            markdown: self.out.join("RESULTS.md"),
            json: self.out.join("peers.json"),
            csv: self.out.join("peers.csv"),
            svg: self.out.join("peers.svg"),
        }
    }
}

/// Files of a comparison.
#[derive(Clone, Debug)]
pub(super) struct Paths {
    pub(super) markdown: PathBuf,
    pub(super) json: PathBuf,
    pub(super) csv: PathBuf,
    pub(super) svg: PathBuf,
}

impl Paths {
    pub(super) fn all(&self) -> [&Path; 4] {
        [&self.markdown, &self.json, &self.csv, &self.svg]
    }

    /// Checks that all files can be written, before anything is measured.
    pub(super) fn check(&self) -> Result<(), Failure> {
        for path in self.all() {
            let folder = path.parent().unwrap_or(Path::new("."));
            fs::create_dir_all(folder)
                .and_then(|()| files::check(path))
                .map_err(|error| {
                    format!(
                        "cannot write {}: {error}; choose another --out",
                        path.display()
                    )
                })?;
        }
        Ok(())
    }
}

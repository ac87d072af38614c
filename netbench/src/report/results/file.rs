//! Results in a file.

use std::path::Path;

use serde::Deserialize;

use super::{FORMAT, Results};
use crate::system::failure::Failure;

impl Results {
    /// Reads a file that `netbench run --json` wrote.
    ///
    /// # Errors
    ///
    /// One line with the path: what is wrong with the file and what to do.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        Self::parse(&text).map_err(|reason| format!("{}: {reason}", path.display()).into())
    }

    /// Reads the text of such a file.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Version {
            netbench_results: Option<u32>,
            /// Key of reports of several runs.
            netbench_report: Option<u32>,
        }
        let value: serde_json::Value =
            serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?;
        let version = Version::deserialize(&value).ok();
        if version
            .as_ref()
            .is_some_and(|version| version.netbench_report.is_some())
        {
            return Err(
                "a report of several runs, which has no cells of one scenario; give results of \
                 `netbench run SCENARIO --json FILE`"
                    .to_owned(),
            );
        }
        let found = version.and_then(|version| version.netbench_results);
        match found {
            None => Err("no results of netbench (`netbench_results` is missing); \
                 `netbench run … --json FILE` writes them"
                .to_owned()),
            Some(FORMAT) => Self::deserialize(value)
                .map_err(|error| format!("results that cannot be read: {error}; measure again")),
            Some(newer) if newer > FORMAT => Err(format!(
                "format {newer}; this netbench reads format {FORMAT}: use a newer netbench"
            )),
            Some(older) => Err(format!(
                "format {older}; this netbench reads format {FORMAT}: measure again"
            )),
        }
    }
}

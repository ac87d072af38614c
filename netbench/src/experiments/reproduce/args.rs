//! The command line of `netbench reproduce`.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use super::budget::{Length, QUICK};

/// Repeats published experiments, and writes a report with the published figures next to ours.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Uses fewer connections and repetitions and shorter waits, about 5 minutes in all.
    #[arg(long)]
    pub(crate) quick: bool,

    /// Time of all experiments of a quick run. Each gets its share, and takes longer where it cannot
    /// measure anything in it.
    #[arg(long, value_name = "MINUTES", requires = "quick", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) minutes: Option<u64>,

    /// Runs only these experiments, by their ids, separated by commas.
    #[arg(long, value_name = "IDS", value_delimiter = ',')]
    pub(crate) only: Vec<String>,

    /// A directory for report.html and report.json, or the HTML file's name.
    #[arg(long, value_name = "PATH", default_value = "netbench-reproduce")]
    pub(crate) out: PathBuf,
}

impl Args {
    /// Returns the length of the run.
    pub(super) fn length(&self) -> Length {
        if self.quick {
            Length::Quick(self.minutes.map_or(QUICK, Duration::from_mins))
        } else {
            Length::Full
        }
    }
}

/// Files of the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outputs {
    pub(crate) html: PathBuf,
    pub(crate) json: PathBuf,
}

impl Args {
    pub(crate) fn outputs(&self) -> Outputs {
        Outputs::at(&self.out)
    }
}

impl Outputs {
    fn at(path: &Path) -> Self {
        let html = match path.extension() {
            Some(extension) if extension.eq_ignore_ascii_case("html") => path.to_owned(),
            _ => path.join("report.html"),
        };
        Self {
            json: html.with_extension("json"),
            html,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::Outputs;

    #[test]
    fn the_output_is_a_directory_or_an_html_file() {
        let directory = Outputs::at(Path::new("some/where"));
        assert_eq!(directory.html, PathBuf::from("some/where/report.html"));
        assert_eq!(directory.json, PathBuf::from("some/where/report.json"));
        let file = Outputs::at(Path::new("some/where.HTML"));
        assert_eq!(file.html, PathBuf::from("some/where.HTML"));
        assert_eq!(file.json, PathBuf::from("some/where.json"));
    }
}

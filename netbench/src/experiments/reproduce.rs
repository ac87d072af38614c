//! `netbench reproduce`: repeats published experiments, and compares with what was published.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use std::io::Write as _;

use super::all;
use super::budget::{Length, Purse, QUICK};
use super::file::{Experiment, Size};
use crate::report::document::Document;
use crate::report::outputs;
use crate::report::page::document;
use crate::system::failure::Failure;
use crate::system::files;
use crate::system::terminal::{complain, print};

/// Repeats published experiments, and writes a report with the published figures next to ours.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Uses fewer connections and repetitions and shorter waits, about 5 minutes in all.
    #[arg(long)]
    quick: bool,

    /// Time of all experiments of a quick run. Each gets its share, and takes longer where it cannot
    /// measure anything in it.
    #[arg(long, value_name = "MINUTES", requires = "quick", value_parser = clap::value_parser!(u64).range(1..))]
    minutes: Option<u64>,

    /// Runs only these experiments, by their ids, separated by commas.
    #[arg(long, value_name = "IDS", value_delimiter = ',')]
    only: Vec<String>,

    /// A directory for report.html and report.json, or the HTML file's name.
    #[arg(long, value_name = "PATH", default_value = "netbench-reproduce")]
    out: PathBuf,
}

/// Runs the experiments in sequence. The report is rewritten after each one, so that measurements
/// before a failure are kept.
pub(crate) async fn run(args: Args) -> Result<ExitCode, Failure> {
    let length = if args.quick {
        Length::Quick(args.minutes.map_or(QUICK, Duration::from_mins))
    } else {
        Length::Full
    };
    let chosen = choose(length.size(), &args.only)?;
    let out = at(&args.out);
    let started = Instant::now();
    let weights = all(length.size())?.iter().map(|it| it.weight).sum();
    let mut purse = Purse::new(length, weights);
    let mut report = Document::begin("reproduce", args.quick);
    write(&report, &out)?;
    for (index, experiment) in chosen.iter().enumerate() {
        complain(&format!(
            "{}/{} {}",
            index + 1,
            chosen.len(),
            experiment.title
        ));
        let budget = purse.share(experiment, started.elapsed());
        let section = super::run(experiment, None, &budget).await;
        for problem in &section.problems {
            complain(&format!("{}: {problem}", experiment.id));
        }
        let was_interrupted = section.was_interrupted();
        report.sections.push(section);
        if let Err(failure) = write(&report, &out) {
            complain(&failure.to_string());
        }
        if was_interrupted {
            break;
        }
    }
    report.finish(chosen.len());
    let printed = print(|to| {
        report.print(to)?;
        writeln!(to, "\n{}\n{}", out[0].display(), out[1].display())
    });
    let written = write(&report, &out);
    let failures: Vec<Failure> = printed.err().into_iter().chain(written.err()).collect();
    if !failures.is_empty() {
        let rescued = files::rescue(&serde_json::to_vec(&report)?);
        return Err(outputs::told(&failures, rescued));
    }
    Ok(if report.complete {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Returns the experiments with these ids, in the order of the list; all without ids.
fn choose(size: Size, ids: &[String]) -> Result<Vec<Experiment>, Failure> {
    let mut experiments = all(size)?;
    if let Some(unknown) = ids
        .iter()
        .find(|id| experiments.iter().all(|it| it.id != **id))
    {
        let known: Vec<&str> = experiments.iter().map(|it| it.id.as_str()).collect();
        let known = known.join(", ");
        return Err(format!("no experiment is called `{unknown}`; there are {known}").into());
    }
    experiments.retain(|experiment| ids.is_empty() || ids.contains(&experiment.id));
    Ok(experiments)
}

/// Returns the files of the report, HTML and JSON: in a directory, or beside an HTML file.
fn at(path: &Path) -> [PathBuf; 2] {
    let html = match path.extension() {
        Some(extension) if extension.eq_ignore_ascii_case("html") => path.to_owned(),
        _ => path.join("report.html"),
    };
    let json = html.with_extension("json");
    [html, json]
}

/// Writes the report so far.
fn write(report: &Document, [html, json]: &[PathBuf; 2]) -> Result<(), Failure> {
    if let Some(folder) = html.parent() {
        fs::create_dir_all(folder)
            .map_err(|error| format!("cannot make the folder {}: {error}", folder.display()))?;
    }
    let text = serde_json::to_vec_pretty(report)?;
    for (path, content) in [(json, text), (html, document::html(report).into_bytes())] {
        files::write(path, &content)
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::{Size, all, at, choose};

    #[test]
    fn the_output_is_a_directory_or_an_html_file() {
        let directory = ["some/where/report.html", "some/where/report.json"];
        assert_eq!(at(Path::new("some/where")), directory.map(PathBuf::from));
        let file = ["some/where.HTML", "some/where.json"];
        assert_eq!(at(Path::new("some/where.HTML")), file.map(PathBuf::from));
    }

    #[test]
    fn an_unknown_experiment_is_refused_with_the_list_of_known_ones() {
        let refused = choose(Size::Quick, &["nonsense".to_owned()]);
        let refused = refused.err().unwrap().to_string();
        assert!(refused.contains("`nonsense`"), "{refused}");
        for experiment in all(Size::Quick).unwrap() {
            assert!(refused.contains(&experiment.id), "{refused}");
        }
        let chosen = choose(Size::Full, &["ml-dsa".to_owned(), "rate".to_owned()]).unwrap();
        let ids: Vec<&str> = chosen.iter().map(|it| it.id.as_str()).collect();
        assert_eq!(ids, ["rate", "ml-dsa"]);
    }
}

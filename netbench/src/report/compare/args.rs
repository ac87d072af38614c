//! `netbench compare`.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::{Comparison, Verdict};
use crate::report::results::{METRICS, Metric, Results};
use crate::system::failure::Failure;
use crate::system::terminal;

/// Compares two results, with a verdict for each metric of each cell. Fails if any metric got worse
/// by more than the threshold.
#[derive(Args)]
pub(crate) struct Compare {
    /// File that `netbench run --json` wrote before the change.
    #[arg(value_name = "BEFORE")]
    before: PathBuf,

    /// File that it wrote after the change.
    #[arg(value_name = "AFTER")]
    after: PathBuf,

    /// Largest change that counts as no change.
    #[arg(long, default_value = "5%", value_name = "PERCENT", value_parser = percent)]
    threshold: f64,

    /// Compares only these metrics, by their names in JSON, separated by commas.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = metric)]
    metric: Vec<&'static Metric>,

    /// Prints the comparison as JSON.
    #[arg(long)]
    json: bool,
}

impl Compare {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        let (before, after) = (Results::read(&self.before)?, Results::read(&self.after)?);
        let metrics = if self.metric.is_empty() {
            METRICS.iter().collect()
        } else {
            self.metric
        };
        let comparison = Comparison::new(&before, &after, &metrics, self.threshold);
        if self.json {
            let text = serde_json::to_string_pretty(&comparison)?;
            terminal::print(|out| writeln!(out, "{text}"))?;
        } else {
            terminal::print(|out| comparison.print(out))?;
        }
        if comparison.rows.is_empty() {
            return Err("the two have no cell and metric in common: nothing was compared".into());
        }
        Ok(match comparison.count(Verdict::Worse) {
            0 => ExitCode::SUCCESS,
            _ => ExitCode::FAILURE,
        })
    }
}

/// Reads `5%`, `5 %` or `5`.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim_end();
    match number.parse::<f64>() {
        Ok(percent) if percent >= 0.0 && percent.is_finite() => Ok(percent),
        _ => Err("expected a percentage, for example 5%".to_owned()),
    }
}

fn metric(name: &str) -> Result<&'static Metric, String> {
    METRICS
        .iter()
        .find(|metric| metric.name == name)
        .ok_or_else(|| {
            let names: Vec<&str> = METRICS.iter().map(|metric| metric.name).collect();
            format!("no such metric; there are {}", names.join(", "))
        })
}

#[cfg(test)]
mod tests {
    use super::{metric, percent};

    #[test]
    fn thresholds_are_percentages() {
        assert_eq!(percent("5%"), Ok(5.0));
        assert_eq!(percent("2.5 %"), Ok(2.5));
        assert_eq!(percent("0"), Ok(0.0));
        for bad in ["", "%", "-1%", "NaN", "inf", "five"] {
            assert!(percent(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_unknown_metric_is_told_the_known_ones() {
        assert_eq!(metric("server_cpu_us").map(|metric| metric.unit), Ok("µs"));
        assert!(metric("speed").is_err_and(|error| error.contains("server_cpu_us")));
    }
}

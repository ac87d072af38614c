//! Findings of a comparison, as a table and as JSON.

mod figures;
mod files;

use std::io::{self, Write};

use serde::Serialize;

use super::cases::Case;
use super::child::{ClientReport, SAMPLE, ServerReport};
use crate::drivers;
use crate::report::ratio::Ratio;
use crate::report::results::Summary as Spread;
use crate::run::link::Summary;
use crate::scenario::axes;
use crate::system::machine::Machine;
use crate::system::machine::crates;

/// Mean lateness beyond which a relay disturbs the measurement.
const LATE_MS: f64 = 1.0;

#[derive(Serialize)]
pub(crate) struct Report {
    pub(crate) netbench: &'static str,
    pub(crate) build: &'static str,
    pub(crate) machine: Machine,
    pub(crate) seconds: f64,
    /// Receive windows of streams and connections of every stack, and their limit of unacknowledged
    /// bytes.
    pub(crate) window_bytes: u32,
    pub(crate) stacks: Vec<Stack>,
    pub(crate) cases: Vec<Case>,
    pub(crate) runs: Vec<Run>,
    pub(crate) rows: Vec<Row>,
}

/// A stack with its controller in the comparison.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Stack {
    /// `hybriq/bbr`, `quinn`
    pub(crate) label: String,
    #[serde(with = "crate::scenario::axes::named")]
    pub(crate) driver: axes::Stack,
    pub(crate) version: &'static str,
    /// Requested congestion controller, for our stack only.
    pub(crate) chosen: Option<String>,
    pub(crate) congestion: String,
}

/// One download.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Run {
    pub(crate) case: &'static str,
    pub(crate) stack: String,
    pub(crate) repetition: u32,
    /// Command that makes this link again.
    pub(crate) link_command: String,
    #[serde(flatten)]
    pub(crate) outcome: Outcome,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    Done(Box<Download>),
    Failed(String),
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Download {
    /// Goodput from the call that connects to the end.
    pub(crate) goodput_mbit: f64,
    /// Goodput in the second half, after the start.
    pub(crate) second_half_mbit: f64,
    pub(crate) client: ClientReport,
    pub(crate) server: ServerReport,
    pub(crate) link: Summary,
}

/// Medians of a stack's repetitions over a link.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) case: &'static str,
    pub(crate) stack: String,
    pub(crate) goodput_mbit: f64,
    /// Interval in which the median of as many further repetitions lies (95 %).
    pub(crate) goodput_interval: Option<[f64; 2]>,
    pub(crate) second_half_mbit: f64,
    /// Goodput divided by that of the best other stack, for our stack only.
    pub(crate) of_best_peer: Option<f64>,
    /// Its 95 % confidence interval; an end that the repetitions do not bound is `null`.
    pub(crate) of_best_peer_interval: Option<[Option<f64>; 2]>,
    pub(crate) lost_share: f64,
    pub(crate) mean_queue_ms: f64,
    pub(crate) max_queue_ms: f64,
    pub(crate) server_cpu_s: f64,
    pub(crate) client_cpu_s: f64,
    /// Mean lateness of the relay; with more than a little, the link was a different one.
    pub(crate) relay_late_ms: f64,
    pub(crate) failures: usize,
    /// Goodput and that of the second half, with their spread.
    #[serde(skip)]
    spreads: [Option<Spread>; 2],
    /// Their ratios to those of the best other stack.
    #[serde(skip)]
    ratios: [Option<Ratio>; 2],
}

impl Download {
    pub(crate) fn new(client: ClientReport, server: ServerReport, link: &Summary) -> Self {
        Self {
            goodput_mbit: rate(&client.samples),
            second_half_mbit: rate(client.samples.split_at(client.samples.len() / 2).1),
            client,
            server,
            link: *link,
        }
    }

    fn lost_share(&self) -> f64 {
        self.server.packets_lost as f64 / self.server.packets_sent.max(1) as f64
    }
}

fn rate(samples: &[u64]) -> f64 {
    let seconds = SAMPLE.as_secs_f64() * samples.len() as f64;
    samples.iter().sum::<u64>() as f64 * 8e-6 / seconds.max(1e-9)
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => 0.0,
        len if len % 2 == 1 => values.get(middle).copied().unwrap_or(0.0),
        _ => values.iter().skip(middle - 1).take(2).sum::<f64>() / 2.0,
    }
}

impl Report {
    /// Makes the rows from the runs so far.
    pub(crate) fn sum_up(&mut self) {
        self.rows = self
            .cases
            .iter()
            .flat_map(|case| self.stacks.iter().map(|stack| self.row(case.name, stack)))
            .collect();
        let ratios: Vec<[Option<Ratio>; 2]> =
            self.rows.iter().map(|row| self.ratios(row)).collect();
        for (row, ratios) in self.rows.iter_mut().zip(ratios) {
            row.ratios = ratios;
            row.of_best_peer = ratios[0].map(|ratio| ratio.value);
            row.of_best_peer_interval = ratios[0].and_then(Ratio::interval).map(|(low, high)| {
                let bound = |end: f64| (end.is_finite() && end > 0.0).then_some(end);
                [bound(low), bound(high)]
            });
        }
    }

    /// Returns the ratios of our goodput, whole and of the second half, to that of the best other
    /// stack.
    fn ratios(&self, row: &Row) -> [Option<Ratio>; 2] {
        let is_ours = |label: &str| {
            let mut stacks = self.stacks.iter();
            stacks.any(|stack| stack.label == label && stack.is_ours())
        };
        [0, 1].map(|figure| {
            let spread = |row: &Row| row.spreads.get(figure).copied().flatten();
            let peers = self.rows.iter();
            let best = peers
                .filter(|peer| peer.case == row.case && !is_ours(&peer.stack))
                .filter_map(spread)
                .filter(|peer| peer.median > 0.0)
                .max_by(|a, b| a.median.total_cmp(&b.median))?;
            Ratio::of(spread(row).filter(|_| is_ours(&row.stack))?, best)
        })
    }

    fn row(&self, case: &'static str, stack: &Stack) -> Row {
        let runs = || {
            self.runs
                .iter()
                .filter(|run| run.case == case && run.stack == stack.label)
        };
        let downloads = || self.downloads(case, stack);
        let of = |figure: fn(&Download) -> f64| median(downloads().map(figure));
        let spread = |figure: fn(&Download) -> f64| {
            let values: Vec<f64> = downloads().map(figure).collect();
            Spread::of(&values)
        };
        let spreads = [
            spread(|done| done.goodput_mbit),
            spread(|done| done.second_half_mbit),
        ];
        let interval = spreads[0].filter(|spread| spread.n > 1);
        Row {
            case,
            stack: stack.label.clone(),
            goodput_mbit: of(|done| done.goodput_mbit),
            goodput_interval: interval.map(|spread| [spread.low, spread.high]),
            second_half_mbit: of(|done| done.second_half_mbit),
            of_best_peer: None,
            of_best_peer_interval: None,
            spreads,
            ratios: [None; 2],
            lost_share: of(Download::lost_share),
            mean_queue_ms: of(|done| done.link.down.mean_queue_delay_us / 1e3),
            max_queue_ms: of(|done| done.link.down.max_queue_delay_us / 1e3),
            server_cpu_s: of(|done| done.server.cpu_s),
            client_cpu_s: of(|done| done.client.cpu_s),
            relay_late_ms: of(|done| {
                let link = &done.link;
                link.down.mean_late_us.max(link.up.mean_late_us) / 1e3
            }),
            failures: runs().count() - downloads().count(),
        }
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.rows.iter().all(|row| row.failures == 0)
    }

    pub(crate) fn print_head(&self, out: &mut impl Write) -> io::Result<()> {
        let machine = &self.machine;
        writeln!(
            out,
            "{}, {} cores, {}, load {}, {} build",
            machine.cpu, machine.cores, machine.kernel, machine.load, self.build
        )?;
        for stack in &self.stacks {
            writeln!(
                out,
                "{}: {} {}, {}",
                stack.label, stack.driver, stack.version, stack.congestion
            )?;
        }
        writeln!(
            out,
            "downloads of {} s, one stream; windows and send buffers of up to {} MiB; link MTU {} \
             bytes of UDP payload",
            self.seconds,
            self.window_bytes >> 20,
            super::cases::MTU
        )
    }

    pub(crate) fn print_rows(&self, out: &mut impl Write) -> io::Result<()> {
        for case in &self.cases {
            writeln!(out, "\n{}: {}", case.name, case.about)?;
            writeln!(
                out,
                "{:<18}{:>9}{:>16}{:>10}{:>9}{:>15}{:>8}{:>12}{:>14}",
                "Mbit/s",
                "goodput",
                "interval",
                "2nd half",
                "of best",
                "interval",
                "lost",
                "queue ms",
                "CPU s s/c"
            )?;
            for row in self.rows.iter().filter(|row| row.case == case.name) {
                let ratio = row
                    .of_best_peer
                    .map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"));
                writeln!(
                    out,
                    "{:<18}{:>9.1}{:>16}{:>10.1}{:>9}{:>15}{:>7.2}%{:>12}{:>14}{}",
                    row.stack,
                    row.goodput_mbit,
                    ends(row.goodput_interval.map(|[low, high]| (low, high)), 1),
                    row.second_half_mbit,
                    ratio,
                    ends(row.of_best_peer().and_then(Ratio::interval), 2),
                    row.lost_share * 100.0,
                    format!("{:.0}/{:.0}", row.mean_queue_ms, row.max_queue_ms),
                    format!("{:.1}/{:.1}", row.server_cpu_s, row.client_cpu_s),
                    row.remarks()
                )?;
            }
        }
        Ok(())
    }
}

/// Formats an interval; an end without a bound is left out, and so is one of a lone repetition.
fn ends(interval: Option<(f64, f64)>, decimals: usize) -> String {
    let Some((low, high)) = interval else {
        return "-".to_owned();
    };
    let end = |value: f64| {
        if value.is_finite() {
            format!("{value:.decimals$}")
        } else {
            String::new()
        }
    };
    format!("{}…{}", end(low), end(high))
}

impl Row {
    /// Returns the goodput relative to the best other stack, for our stack only.
    pub(super) fn of_best_peer(&self) -> Option<Ratio> {
        self.ratios[0]
    }

    /// Returns the same of the second half.
    pub(super) fn second_half_of_best_peer(&self) -> Option<Ratio> {
        self.ratios[1]
    }

    /// Returns notes without which the figures would mislead.
    fn remarks(&self) -> String {
        let failed = match self.failures {
            0 => String::new(),
            failures => format!("  {failures} failed"),
        };
        if self.relay_late_ms > LATE_MS {
            let late = self.relay_late_ms;
            return format!("{failed}  busy machine: relay {late:.1} ms late");
        }
        failed
    }
}

impl Stack {
    pub(crate) fn is_ours(&self) -> bool {
        self.driver == axes::Stack::Hybriq
    }

    pub(crate) fn new(
        driver: axes::Stack,
        chosen: Option<&str>,
    ) -> Result<Self, crate::system::failure::Failure> {
        let made = drivers::driver(driver)?;
        if let Some(wanted) = chosen
            && !made.controllers().contains(&wanted)
        {
            let valid = made.controllers().join(", ");
            return Err(format!("unknown congestion controller '{wanted}'; valid: {valid}").into());
        }
        let label = match chosen {
            Some(congestion) => format!("{driver}/{congestion}"),
            None => driver.to_string(),
        };
        Ok(Self {
            label,
            driver,
            version: crates::version(driver.name()),
            chosen: chosen.map(str::to_owned),
            congestion: chosen.map_or_else(|| made.congestion(), str::to_owned),
        })
    }
}

#[cfg(test)]
mod tests;

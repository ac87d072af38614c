//! Findings of a comparison, as a table and as JSON.

use std::io::{self, Write};

use serde::Serialize;

use super::cases::Case;
use super::child::{ClientReport, SAMPLE, ServerReport};
use crate::link::Summary;
use crate::machine::Machine;
use crate::{axes, crates, drivers};

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
    #[serde(with = "crate::axes::named")]
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
    pub(crate) second_half_mbit: f64,
    /// Goodput divided by that of the best other stack, for our stack only.
    pub(crate) of_best_peer: Option<f64>,
    pub(crate) lost_share: f64,
    pub(crate) mean_queue_ms: f64,
    pub(crate) max_queue_ms: f64,
    pub(crate) server_cpu_s: f64,
    pub(crate) client_cpu_s: f64,
    /// Mean lateness of the relay; with more than a little, the link was a different one.
    pub(crate) relay_late_ms: f64,
    pub(crate) failures: usize,
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
        let peers: Vec<_> = self
            .cases
            .iter()
            .map(|case| (case.name, self.best_peer(case.name)))
            .collect();
        for row in &mut self.rows {
            let best = peers.iter().find(|(case, _)| *case == row.case);
            if let Some((_, Some(best))) = best
                && self
                    .stacks
                    .iter()
                    .any(|s| s.label == row.stack && s.is_ours())
            {
                row.of_best_peer = Some(row.goodput_mbit / best);
            }
        }
    }

    fn row(&self, case: &'static str, stack: &Stack) -> Row {
        let runs = || {
            self.runs
                .iter()
                .filter(|run| run.case == case && run.stack == stack.label)
        };
        let downloads = || {
            runs().filter_map(|run| match &run.outcome {
                Outcome::Done(download) => Some(download),
                Outcome::Failed(_) => None,
            })
        };
        let of = |figure: fn(&Download) -> f64| median(downloads().map(|done| figure(done)));
        Row {
            case,
            stack: stack.label.clone(),
            goodput_mbit: of(|done| done.goodput_mbit),
            second_half_mbit: of(|done| done.second_half_mbit),
            of_best_peer: None,
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

    fn best_peer(&self, case: &str) -> Option<f64> {
        let peers = self.stacks.iter().filter(|stack| !stack.is_ours());
        peers
            .filter_map(|stack| {
                let row = self
                    .rows
                    .iter()
                    .find(|row| row.case == case && row.stack == stack.label)?;
                (row.goodput_mbit > 0.0).then_some(row.goodput_mbit)
            })
            .reduce(f64::max)
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
                "{:<18}{:>9}{:>10}{:>9}{:>8}{:>12}{:>14}",
                "Mbit/s", "goodput", "2nd half", "of best", "lost", "queue ms", "CPU s s/c"
            )?;
            for row in self.rows.iter().filter(|row| row.case == case.name) {
                let ratio = row
                    .of_best_peer
                    .map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"));
                writeln!(
                    out,
                    "{:<18}{:>9.1}{:>10.1}{:>9}{:>7.2}%{:>12}{:>14}{}",
                    row.stack,
                    row.goodput_mbit,
                    row.second_half_mbit,
                    ratio,
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

impl Row {
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

    pub(crate) fn new(driver: axes::Stack, chosen: Option<&str>) -> Result<Self, crate::Failure> {
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

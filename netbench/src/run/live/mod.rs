//! Progress on standard error: a live view on a terminal, otherwise one line per repetition.
//!
//! ```text
//! X25519MLKEM768      3/5  1682 conn/s, handshake p50 442 µs p99 640 µs
//! X25519              2/5  1975 conn/s, handshake p50 367 µs p99 542 µs
//! X25519, repetition 3: 1968/s, handshake p50 368 µs p99 530 µs
//! [############------------------] 5/10, 4 s left
//! ```

pub(super) mod allowance;
pub(super) mod interrupt;

use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::engine::Progress;
use crate::report::results::Repetition;
use crate::report::results::brief;
use crate::system::terminal::complain;

/// Maximum number of cells with a line of their own; with more, results scroll by.
const MOST_LINES: usize = 16;

/// Number of steps of the bar for the whole run.
const STEPS: u64 = 1000;

/// The progress of a run.
pub(crate) struct Live {
    names: Vec<String>,
    repetitions: u32,
    /// Number of finished repetitions, and of all.
    done: usize,
    of: usize,
    started: Instant,
    view: Option<View>,
}

/// Bars on a terminal.
struct View {
    all: MultiProgress,
    cells: Vec<ProgressBar>,
    now: ProgressBar,
    whole: ProgressBar,
}

impl Live {
    /// Starts to show the progress of cells with these names, with this total number of
    /// repetitions.
    pub(crate) fn start(names: Vec<String>, repetitions: u32, of: usize) -> Self {
        let view = stderr()
            .is_terminal()
            .then(|| View::new(&names, repetitions));
        Self {
            names,
            repetitions,
            done: 0,
            of,
            started: Instant::now(),
            view,
        }
    }

    /// Shows that a repetition of a cell begins: its processes start and warm up.
    pub(crate) fn begin(&self, cell: usize, repetition: u32) {
        if let Some(view) = &self.view {
            let text = format!("{}, repetition {repetition}: warming up", self.name(cell));
            view.now.set_message(text);
            view.show(self.share(0.0), self.left(0.0));
        }
    }

    /// Shows the progress of a measurement.
    pub(crate) fn update(&self, cell: usize, repetition: u32, progress: &Progress) {
        if let Some(view) = &self.view {
            let text = now(progress);
            let head = format!("{}, repetition {repetition}", self.name(cell));
            view.now.set_message(format!("{head}: {text}"));
            let share = progress.share.unwrap_or(0.0);
            view.show(self.share(share), self.left(share));
        }
    }

    /// Shows the result of a repetition.
    pub(crate) fn end(&mut self, cell: usize, repetition: u32, result: &Repetition) {
        self.done += 1;
        let text = match &result.error {
            Some(_) if result.metrics.is_empty() => "failed".to_owned(),
            _ => brief(&result.metrics),
        };
        match &self.view {
            Some(view) if view.cells.is_empty() => {
                self.say(&format!("{}: {text}", self.name(cell)));
            }
            Some(view) => {
                if let Some(bar) = view.cells.get(cell) {
                    bar.set_position(repetition.into());
                    bar.set_message(text);
                }
            }
            None => complain(&format!(
                "[{}/{}] {} {repetition}/{}: {text}",
                self.done,
                self.of,
                self.name(cell),
                self.repetitions
            )),
        }
    }

    /// Notes that this number of repetitions will not be measured.
    pub(crate) fn skip(&mut self, repetitions: usize) {
        self.of = self.of.saturating_sub(repetitions).max(self.done);
    }

    /// Prints a line without disturbing the view.
    pub(crate) fn say(&self, line: &str) {
        match &self.view {
            Some(view) => view.all.suspend(|| complain(line)),
            None => complain(line),
        }
    }

    fn name(&self, cell: usize) -> &str {
        self.names.get(cell).map_or("", String::as_str)
    }

    fn share(&self, of_this: f64) -> f64 {
        (self.done as f64 + of_this) / self.of.max(1) as f64
    }

    /// Returns the time left, once a repetition has been measured.
    fn left(&self, of_this: f64) -> Option<Duration> {
        time_left(self.started.elapsed(), self.share(of_this))
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if let Some(view) = &self.view {
            let _ = view.all.clear();
        }
    }
}

impl View {
    fn new(names: &[String], repetitions: u32) -> Self {
        // No ticking thread: it would run on a measured core.
        let all = MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(10));
        let width = names.iter().map(|name| name.chars().count()).max();
        let cells = match names.len() {
            0..=MOST_LINES => names
                .iter()
                .map(|name| {
                    let bar = all.add(ProgressBar::new(repetitions.into()));
                    bar.set_style(style("{prefix}  {pos}/{len}  {wide_msg}"));
                    bar.set_prefix(format!("{name:0$}", width.unwrap_or(0)));
                    bar
                })
                .collect(),
            _ => Vec::new(),
        };
        let now = all.add(ProgressBar::new_spinner());
        now.set_style(style("{wide_msg}"));
        let whole = all.add(ProgressBar::new(STEPS));
        whole.set_style(style("[{bar:30}] {msg}"));
        for bar in cells.iter().chain([&now, &whole]) {
            bar.tick();
        }
        Self {
            all,
            cells,
            now,
            whole,
        }
    }

    fn show(&self, share: f64, left: Option<Duration>) {
        self.whole.set_position((share * STEPS as f64) as u64);
        let percent = share * 100.0;
        self.whole.set_message(match left {
            Some(left) => format!("{percent:.0} %, {} left", HumanDuration(left)),
            None => format!("{percent:.0} %"),
        });
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

fn time_left(elapsed: Duration, share: f64) -> Option<Duration> {
    // Before a hundredth is done any estimate is useless.
    (share >= 0.01).then(|| elapsed.mul_f64((1.0 - share).max(0.0) / share))
}

/// Formats the rates of the last interval, and the percentiles so far.
fn now(progress: &Progress) -> String {
    let sample = &progress.sample;
    let seconds = (sample.lasted_ms / 1e3).max(1e-3);
    let mut parts = vec![match progress.of {
        Some(of) => format!("{} of {of} connections", progress.connections),
        None => format!("{} connections", progress.connections),
    }];
    let each_second = |count: u64| count as f64 / seconds;
    if sample.connections > 0 {
        parts.push(format!("{:.0} conn/s", each_second(sample.connections)));
    }
    if sample.requests > 0 && sample.requests != sample.connections {
        parts.push(format!("{:.0} req/s", each_second(sample.requests)));
    }
    let bits = each_second(sample.bytes_sent + sample.bytes_received) * 8.0;
    if bits >= 1e6 {
        parts.push(format!("{:.0} Mbit/s", bits / 1e6));
    }
    let percentiles = [
        (
            "handshake",
            progress.handshake_p50_us,
            progress.handshake_p99_us,
        ),
        ("request", progress.request_p50_us, progress.request_p99_us),
    ];
    for (name, p50, p99) in percentiles {
        if p50 > 0.0 {
            parts.push(format!("{name} p50 {p50:.0} µs p99 {p99:.0} µs"));
        }
    }
    if progress.failures > 0 {
        parts.push(format!("{} failed", progress.failures));
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Live, Progress, now, time_left};
    use crate::report::results::Sample;

    #[test]
    fn the_time_left_follows_from_the_time_so_far() {
        let elapsed = Duration::from_secs(10);
        assert_eq!(time_left(elapsed, 0.0), None);
        assert_eq!(time_left(elapsed, 0.25), Some(Duration::from_secs(30)));
        assert_eq!(time_left(elapsed, 1.0), Some(Duration::ZERO));
    }

    #[test]
    fn cells_that_are_given_up_shorten_the_run() {
        let mut live = Live::start(vec!["a".to_owned(), "b".to_owned()], 5, 10);
        live.skip(5);
        assert!((live.share(1.0) - 0.2).abs() < 1e-9);
        live.skip(50);
        assert_eq!(live.of, 0);
    }

    #[test]
    fn rates_are_those_of_the_last_interval() {
        let progress = Progress {
            connections: 50,
            of: Some(200),
            failures: 2,
            handshake_p50_us: 400.0,
            handshake_p99_us: 900.0,
            sample: Sample {
                lasted_ms: 100.0,
                connections: 20,
                requests: 20,
                ..Sample::default()
            },
            ..Progress::default()
        };
        assert_eq!(
            now(&progress),
            "50 of 200 connections, 200 conn/s, handshake p50 400 µs p99 900 µs, 2 failed"
        );
    }
}

//! How far a run is: a bar on a terminal, else one line, on standard error.

use std::cell::Cell;
use std::io::{IsTerminal, stderr};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::terminal::complain;

/// The progress of a run.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// Units that rounds before this one made, and units of one connection.
    before: Cell<u64>,
    per_connection: u64,
    /// Whether a measured connection was under way.
    measuring: Cell<bool>,
}

impl Progress {
    /// Starts to show it. `unit` is what is counted: `connections`, `bytes`.
    pub(crate) fn start(total: u64, per_connection: u64, unit: &str) -> Self {
        let bar = if stderr().is_terminal() {
            // No ticking thread: it would take turns on a measured core.
            ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr_with_hz(10))
        } else {
            complain(&format!("{total} {unit}"));
            ProgressBar::hidden()
        };
        let template = "{prefix:19} [{bar:30}] {pos}/{len} {msg}, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(unit.to_owned());
        Self {
            bar,
            before: Cell::new(0),
            per_connection,
            measuring: Cell::new(false),
        }
    }

    /// Says whose turn it is.
    pub(crate) fn name(&self, name: &str) {
        self.bar.set_prefix(name.to_owned());
    }

    /// Units of the round so far. The first call starts the clock: what the start of the processes
    /// and the warm-up took says nothing about what is left.
    pub(crate) fn set(&self, done: u64) {
        if !self.measuring.replace(true) {
            self.bar.reset();
        }
        self.bar.set_position(self.before.get() + done);
    }

    /// A round is over.
    pub(crate) fn advance(&self, connections: u64) {
        self.before
            .set(self.before.get() + connections.saturating_mul(self.per_connection));
        self.set(0);
    }

    /// Prints a line without disturbing the bar.
    pub(crate) fn say(&self, line: &str) {
        self.bar.suspend(|| complain(line));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::Progress;

    #[test]
    fn the_clock_starts_with_the_first_measured_connection_and_once() {
        let progress = Progress::start(10, 1, "connections");
        while progress.bar.elapsed() < Duration::from_millis(2) {
            std::thread::yield_now();
        }
        let first = Instant::now();
        progress.set(0);
        assert!(progress.bar.elapsed() <= first.elapsed());

        let second = Instant::now();
        while second.elapsed() < Duration::from_millis(2) {
            std::thread::yield_now();
        }
        progress.set(1);
        assert!(progress.bar.elapsed() >= second.elapsed().min(Duration::from_millis(2)));
        assert_eq!(progress.bar.position(), 1);
    }
}

//! How far a run is: a bar on a terminal, else one line a group, on standard error.

use std::io::{IsTerminal, stderr};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The progress of one group.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// Starts to show it. `unit` is what is counted: `connections`, `bytes`.
    pub(crate) fn start(name: &str, total: u64, unit: &str) -> Self {
        if !stderr().is_terminal() {
            eprintln!("{name}: {total} {unit}");
            return Self(ProgressBar::hidden());
        }
        // No ticking thread: it would take turns on a measured core.
        let bar =
            ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr_with_hz(10));
        let template = "{prefix:19} [{bar:30}] {pos}/{len} {msg} {per_sec} {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_prefix(name.to_owned());
        bar.set_message(unit.to_owned());
        Self(bar)
    }

    pub(crate) fn set(&self, done: u64) {
        self.0.set_position(done);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

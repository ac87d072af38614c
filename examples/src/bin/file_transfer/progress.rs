//! The progress bar.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// A bar on the terminal; nothing where there is none.
#[derive(Clone, Debug)]
pub(crate) struct Progress(ProgressBar);

/// What is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Show {
    /// A bar, if the error output is a terminal.
    Bar,
    Nothing,
}

impl Progress {
    /// Begins with a phase of unknown length.
    pub(crate) fn begin(show: Show, phase: &'static str) -> Self {
        let bar = match show {
            Show::Bar => ProgressBar::new_spinner(),
            Show::Nothing => ProgressBar::hidden(),
        };
        bar.set_message(phase);
        bar.enable_steady_tick(Duration::from_millis(200));
        Self(bar)
    }

    /// Removes the bar until bytes are counted, for a question.
    pub(crate) fn pause(&self) {
        self.0.finish_and_clear();
    }

    /// Begins to count the bytes of a transfer.
    pub(crate) fn transfer(&self, bytes: u64) {
        let style = ProgressStyle::with_template(
            "{bar:30} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left",
        );
        self.0.set_length(bytes);
        self.0.reset();
        if let Ok(style) = style {
            self.0.set_style(style);
        }
    }

    /// Counts bytes.
    pub(crate) fn add(&self, bytes: u64) {
        self.0.inc(bytes);
    }

    /// Removes the bar.
    pub(crate) fn end(&self) {
        self.0.finish_and_clear();
    }
}

//! Handshake load, which decides when clients must prove their address.

use std::time::{Duration, Instant};

use crate::wire::limits;

/// Time over which the share of handshakes is measured.
const WINDOW: Duration = Duration::from_millis(100);

/// Windows without handshakes after which the measured share is zero.
const MOST_WINDOWS: u32 = 32;

/// Share of time spent in handshakes, in thousandths, at which Retry starts.
const BUSY: u32 = 750;
const CALM: u32 = 300;

/// Shortest duration of Retry.
const SHORTEST: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_secs(60);

/// Measures whether the load of handshakes is so high that clients must prove their address first.
///
/// Clients that were sent a Retry do not count as load, so an attack that Retry stops is invisible.
/// Retry therefore ends after a while to check for the attack, later each time the attack is still
/// there. Until the attack is detected again, it costs no more than the load at which Retry starts.
#[derive(Debug)]
pub(in crate::endpoint) struct Load {
    /// End of the current window.
    window_ends: Option<Instant>,
    /// Time that handshakes took in the current window.
    spent: Duration,
    /// Smoothed share of handshakes, in thousandths.
    share: u32,
    retry: Retry,
    /// Shortest duration of the next Retry phase.
    hold: Duration,
}

#[derive(Clone, Copy, Debug)]
enum Retry {
    /// Retry is off; contains the time at which it last ended.
    Off(Option<Instant>),
    On {
        until: Instant,
    },
}

impl Default for Load {
    fn default() -> Self {
        Self {
            window_ends: None,
            spent: Duration::ZERO,
            share: 0,
            retry: Retry::Off(None),
            hold: SHORTEST,
        }
    }
}

impl Load {
    /// Counts the time that a handshake took from the worker.
    pub(in crate::endpoint) fn on_handshake(&mut self, now: Instant, took: Duration) {
        self.advance(now);
        self.spent += took;
    }

    /// Returns true if Retry is on, given the number of unfinished handshakes.
    pub(in crate::endpoint) fn is_high(&mut self, now: Instant, unfinished: usize) -> bool {
        self.advance(now);
        match self.retry {
            Retry::Off(ended) => {
                let high = self.share >= BUSY || unfinished >= limits::RETRY_AT;
                if high {
                    self.start(now, ended);
                }
                high
            }
            Retry::On { until } => {
                let over =
                    now >= until && self.share < CALM && unfinished < limits::RETRY_UNTIL_BELOW;
                if over {
                    self.retry = Retry::Off(Some(now));
                }
                !over
            }
        }
    }

    /// Returns true if Retry was on when last asked.
    pub(in crate::endpoint) const fn is_on(&self) -> bool {
        matches!(self.retry, Retry::On { .. })
    }

    fn start(&mut self, now: Instant, ended: Option<Instant>) {
        let at_once = ended.is_some_and(|ended| now.saturating_duration_since(ended) < SHORTEST);
        self.hold = if at_once {
            LONGEST.min(self.hold * 2)
        } else {
            SHORTEST
        };
        self.retry = Retry::On {
            until: now + self.hold,
        };
    }

    /// Closes the windows that have ended.
    fn advance(&mut self, now: Instant) {
        let ends = *self.window_ends.get_or_insert(now + WINDOW);
        if now < ends {
            return;
        }
        let behind = now.saturating_duration_since(ends).as_nanos() / WINDOW.as_nanos();
        let windows = MOST_WINDOWS.min(1 + behind as u32);
        for _ in 0..windows {
            let share = self.spent.as_micros() * 1000 / WINDOW.as_micros();
            self.share = (self.share * 3 + share.min(1000) as u32) / 4;
            self.spent = self.spent.saturating_sub(WINDOW);
        }
        self.window_ends = Some(now + WINDOW);
    }
}

#[cfg(test)]
mod tests;

//! Challenges that validate the peer's address (RFC 9000 §8.2).

use std::time::{Duration, Instant};

use arrayvec::ArrayVec;

use crate::wire::limits;

#[cfg(test)]
mod tests;

/// Size of the datagram that a challenge was sent in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Expanded {
    /// The full 1200 bytes: an answer also shows that the path carries them.
    Full,
    /// Fewer bytes, because of the anti-amplification limit (RFC 9000 §8.2.1).
    Short,
}

/// How long to wait for an answer.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Patience {
    /// Time until the first repetition; it doubles each time, as for an Initial packet.
    pub interval: Duration,
    /// Time until the validation fails.
    pub limit: Duration,
}

impl Patience {
    /// Computes the times from the probe timeout of the path in use and that of an unknown path
    /// (RFC 9000 §8.2.4).
    pub fn new(current: Duration, unknown: Duration) -> Self {
        Self {
            interval: current,
            limit: current.max(unknown).saturating_mul(3),
        }
    }
}

/// The answer to a challenge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Answered {
    /// Time at which the challenge was sent.
    pub sent_at: Instant,
    /// Size of its datagram.
    pub expanded: Expanded,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    data: [u8; 8],
    at: Instant,
    expanded: Expanded,
}

/// The validation of one path.
#[derive(Debug, Default)]
pub struct Validation(Option<Box<Running>>);

#[derive(Debug)]
struct Running {
    /// Challenges sent, any of which may be answered; the oldest is dropped first.
    sent: ArrayVec<Sent, { limits::PATH_CHALLENGES }>,
    is_due: bool,
    repeat_at: Option<Instant>,
    interval: Duration,
    fails_at: Instant,
}

impl Validation {
    /// Creates a validation that is not running.
    pub const fn none() -> Self {
        Self(None)
    }

    /// Returns the number of challenges that may be answered, plus one if another is to be sent.
    pub(in crate::owners::path) fn challenges(&self) -> usize {
        let running = self.0.as_ref();
        running.map_or(0, |running| {
            running.sent.len() + usize::from(running.is_due)
        })
    }

    /// Starts the validation, unless it is running.
    pub fn start(&mut self, now: Instant, patience: Patience) {
        if self.0.is_none() {
            self.0 = Some(Box::new(Running {
                sent: ArrayVec::new(),
                is_due: true,
                repeat_at: None,
                interval: patience.interval,
                fails_at: now + patience.limit,
            }));
        }
    }

    /// Stops the validation.
    pub fn stop(&mut self) {
        self.0 = None;
    }

    /// Returns true if a PATH_CHALLENGE must be sent.
    #[inline]
    pub fn is_due(&self) -> bool {
        self.0.as_ref().is_some_and(|running| running.is_due)
    }

    /// Notes that a PATH_CHALLENGE was sent. Each has different data, so that its answer identifies
    /// the send time.
    pub fn on_sent(&mut self, now: Instant, data: [u8; 8], expanded: Expanded) {
        let Some(running) = &mut self.0 else {
            return;
        };
        if running.sent.is_full() {
            running.sent.remove(0);
        }
        running.sent.push(Sent {
            data,
            at: now,
            expanded,
        });
        running.is_due = false;
        running.repeat_at = Some(now + running.interval);
        running.interval = running.interval.saturating_mul(2);
    }

    /// Takes the data of a PATH_RESPONSE, received on any path (RFC 9000 §8.2.3). An answer to any
    /// of the challenges ends the validation.
    pub fn on_response(&mut self, data: [u8; 8]) -> Option<Answered> {
        let running = self.0.as_ref()?;
        let sent = running.sent.iter().find(|sent| sent.data == data)?;
        let answered = Answered {
            sent_at: sent.at,
            expanded: sent.expanded,
        };
        self.0 = None;
        Some(answered)
    }

    /// Returns the time at which [`Validation::on_timeout`] must be called.
    pub fn next_timeout(&self) -> Option<Instant> {
        let running = self.0.as_ref()?;
        let repeat = running.repeat_at.filter(|_| !running.is_due);
        Some(repeat.map_or(running.fails_at, |at| at.min(running.fails_at)))
    }

    /// Handles expired timers. Returns true if the validation just failed; otherwise a challenge
    /// may be due again.
    pub fn on_timeout(&mut self, now: Instant) -> bool {
        let Some(running) = &mut self.0 else {
            return false;
        };
        if running.fails_at <= now {
            self.0 = None;
            return true;
        }
        running.is_due |= running.repeat_at.is_some_and(|at| at <= now);
        false
    }
}

//! Careful Resume (RFC 9959): state that an earlier connection saved about a path lets the next one
//! skip most of slow start, while a wrong guess harms others no more than slow start would have.
//!
//! ```text
//!                     saved              initial window acknowledged,
//!   Normal ◄─────┐  ┌───────► Reconnaissance ──────────┐  window full, round trip confirmed
//!  (observes)    └──┤               │ congestion,      ▼
//!      ▲            │               │ other path   Unvalidated: half the saved capacity, paced
//!      │            │               ▼                  │ all of it sent, first of it acknowledged,
//!      ├────────────┴────────── Normal                 │ or a round trip passed
//!      │ all of it acknowledged                        ▼
//!      ├─────────────────────────────────────────── Validating: what was in flight, and slow start
//!      │                                               │ congestion, here or in Unvalidated
//!      │ all of it acknowledged or lost                ▼
//!      └─────────────────────────────────────────── SafeRetreat: half of what got through
//! ```

mod observer;
#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

pub use self::observer::Observed;
use self::observer::Observer;
use super::{
    Acked, Controller, Ecn, Lost, Marked, Phase, Resume, Sent, Severity, Spurious, Usage,
    initial_window,
};
use crate::owners::congestion::delivery::rate;

/// Divisor of the saved round trip: a round trip no longer than the result indicates another path
/// (RFC 9959 §4.2.1), on which the jump would be sent faster than was seen to work.
const SHORTEST_RTT: u32 = 2;

/// Multiple of the saved round trip from which on the path counts as another one.
const LONGEST_RTT: u32 = 10;

/// Stage of a resumed connection (RFC 9959 §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// The controller works on its own, and the path is observed.
    Normal,
    /// Saved state exists, but is not yet confirmed for this path.
    Reconnaissance,
    /// More is sent than the controller would allow.
    Unvalidated,
    /// All of the jump is sent, and its acknowledgements are awaited.
    Validating,
    /// The jump was too large.
    SafeRetreat,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Normal,
    Reconnaissance(Observed),
    Unvalidated(Jump),
    Validating(Jump),
    SafeRetreat(Retreat),
}

#[derive(Clone, Copy, Debug)]
struct Jump {
    at: Instant,
    window: u64,
    /// Bytes known to have arrived, and those in flight before the jump (PipeSize).
    pipe: u64,
    /// Time at which the last packet of the jump was sent.
    last_sent: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Retreat {
    /// Time at which the window was last reduced.
    at: Instant,
    window: u64,
    pipe: u64,
    /// Time at which the last packet was sent that may still meet the queue of the jump.
    last_sent: Instant,
}

/// Controller of a path, wrapped in Careful Resume.
///
/// Careful Resume works on windows, so every controller that accepts one
/// ([`Controller::on_resume`]) can resume. BBR starts from that window and the rate that follows
/// from it, and otherwise keeps to its model: it measures the jump like any other delivery, and
/// keeps its measurements after a retreat.
#[derive(Debug)]
pub struct Resuming {
    inner: Box<dyn Controller>,
    /// Largest window in bytes that a jump may reach; `None` if Careful Resume is off.
    max_jump: Option<u64>,
    state: State,
    observer: Observer,
    datagram_size: u64,
    smoothed: Duration,
    /// Bytes acknowledged so far.
    acked: u64,
    /// True if there has been congestion.
    congested: bool,
    last_sent: Instant,
}

impl Resuming {
    /// Wraps the controller of a new path, and leaves it alone until [`Resuming::enable`].
    pub fn new(now: Instant, inner: Box<dyn Controller>, datagram_size: u16) -> Self {
        Self {
            inner,
            max_jump: None,
            state: State::Normal,
            observer: Observer::new(now),
            datagram_size: datagram_size.into(),
            smoothed: Duration::ZERO,
            acked: 0,
            congested: false,
            last_sent: now,
        }
    }

    /// Observes the path, and resumes saved state with jumps to at most `max_jump` bytes.
    pub const fn enable(&mut self, max_jump: u64) {
        self.max_jump = Some(max_jump);
    }

    /// Takes the state that an earlier connection saved for what may be the same path. Once the
    /// round trip and the initial window confirm it, the window jumps to half the capacity, or to
    /// `max_jump`.
    pub fn resume(&mut self, saved: Observed) {
        let is_new = matches!(self.state, State::Normal);
        if self.max_jump.is_some() && is_new && !self.congested {
            self.state = State::Reconnaissance(saved);
        }
    }

    /// Returns the observed capacity once it is meaningful. `None` during a jump, and if it is too
    /// small to be worth saving.
    pub fn observed(&self) -> Option<Observed> {
        let is_own = matches!(self.state, State::Normal | State::Reconnaissance(_));
        let worthwhile = 4 * initial_window(self.datagram_size);
        self.observer
            .observed()
            .filter(|observed| is_own && observed.capacity >= worthwhile)
    }

    /// Returns the current stage.
    pub const fn stage(&self) -> Stage {
        match self.state {
            State::Normal => Stage::Normal,
            State::Reconnaissance(_) => Stage::Reconnaissance,
            State::Unvalidated(_) => Stage::Unvalidated,
            State::Validating(_) => Stage::Validating,
            State::SafeRetreat(_) => Stage::SafeRetreat,
        }
    }

    fn minimum_window(&self) -> u64 {
        2 * self.datagram_size
    }

    /// Jumps if everything seen so far confirms the saved path.
    fn reconnoitre(&mut self, acked: &Acked, saved: Observed) {
        // Only a sender that its window limits can gain.
        if self.acked < initial_window(self.datagram_size) || acked.usage == Usage::Underused {
            return;
        }
        let window = (saved.capacity / 2).min(self.max_jump.unwrap_or_default());
        let min = acked.rtt.min;
        let is_same_path =
            min > saved.rtt / SHORTEST_RTT && min < saved.rtt.saturating_mul(LONGEST_RTT);
        self.state = if is_same_path && window > self.inner.window() {
            State::Unvalidated(Jump {
                at: acked.now,
                window,
                pipe: acked.bytes_in_flight,
                last_sent: acked.now,
            })
        } else {
            State::Normal
        };
    }

    /// Ends the jump with the bytes in flight as the window. A sender that did not use the jump has
    /// validated nothing, and continues with its previous window.
    fn end_jump(&mut self, now: Instant, jump: Jump, in_flight: u64) {
        let least = initial_window(self.datagram_size);
        let is_used = in_flight >= least && in_flight > jump.pipe;
        let window = if is_used {
            in_flight
        } else {
            jump.pipe.max(least).max(self.inner.window())
        };
        self.inner.on_resume(&Resume {
            now,
            window,
            slow_start_threshold: None,
        });
        self.state = if is_used {
            State::Validating(jump)
        } else {
            State::Normal
        };
    }

    /// Retreats from a jump based on a wrong guess. Half of what arrived leaves room for the flows
    /// that the jump disturbed; the controller's own reduction is meant for windows that it grew
    /// itself.
    fn retreat(&mut self, now: Instant, jump: Jump) {
        self.observer.restart();
        self.state = State::SafeRetreat(Retreat {
            at: now,
            window: (jump.pipe / 2).max(self.minimum_window()),
            pipe: jump.pipe,
            last_sent: self.last_sent,
        });
    }

    fn on_congestion(&mut self, now: Instant, newest_sent: Instant, severity: Severity) {
        self.congested = true;
        self.state = match self.state {
            State::Normal | State::Reconnaissance(_) => State::Normal,
            _ if severity == Severity::PersistentCongestion => State::Normal,
            State::Unvalidated(jump) | State::Validating(jump) => {
                return self.retreat(now, jump);
            }
            // Even the reduced window is too large.
            State::SafeRetreat(retreat) if newest_sent > retreat.at => {
                State::SafeRetreat(Retreat {
                    at: now,
                    window: (retreat.window / 2).max(self.minimum_window()),
                    last_sent: self.last_sent,
                    ..retreat
                })
            }
            state @ State::SafeRetreat(_) => state,
        };
    }

    /// Ends the retreat once all packets sent before it, or one sent after it, have arrived.
    fn end_retreat(&mut self, now: Instant, retreat: Retreat) {
        self.inner.on_resume(&Resume {
            now,
            window: retreat.window,
            slow_start_threshold: Some((retreat.pipe / 2).max(retreat.window)),
        });
        self.state = State::Normal;
    }

    fn advance(&mut self, acked: &Acked) {
        match &mut self.state {
            State::Normal => {}
            State::Reconnaissance(saved) => {
                let saved = *saved;
                self.reconnoitre(acked, saved);
            }
            State::Unvalidated(jump) => {
                jump.pipe = jump.pipe.saturating_add(acked.bytes);
                let jump = *jump;
                let passed = acked.now.saturating_duration_since(jump.at);
                if acked.newest_sent >= jump.at || passed > self.smoothed {
                    self.end_jump(acked.now, jump, acked.bytes_in_flight);
                }
            }
            State::Validating(jump) => {
                jump.pipe = jump.pipe.saturating_add(acked.bytes);
                if acked.newest_sent >= jump.last_sent {
                    self.state = State::Normal;
                }
            }
            State::SafeRetreat(retreat) => {
                retreat.pipe = retreat.pipe.saturating_add(acked.bytes);
                let retreat = *retreat;
                if acked.newest_sent >= retreat.last_sent {
                    self.end_retreat(acked.now, retreat);
                }
            }
        }
    }
}

impl Controller for Resuming {
    fn on_sent(&mut self, sent: &Sent) {
        self.inner.on_sent(sent);
        self.last_sent = sent.now;
        if let State::Unvalidated(jump) = &mut self.state {
            jump.last_sent = sent.now;
            let jump = *jump;
            let is_full = sent.bytes_in_flight.saturating_add(self.datagram_size) > jump.window;
            let passed = sent.now.saturating_duration_since(jump.at);
            if is_full || passed > self.smoothed {
                self.end_jump(sent.now, jump, sent.bytes_in_flight);
            }
        }
    }

    fn on_acked(&mut self, acked: &Acked) {
        self.inner.on_acked(acked);
        if self.max_jump.is_none() {
            return;
        }
        self.smoothed = acked.rtt.smoothed;
        self.acked = self.acked.saturating_add(acked.bytes);
        self.observer.on_acked(acked);
        self.advance(acked);
    }

    fn on_lost(&mut self, lost: &Lost<'_>) {
        self.inner.on_lost(lost);
        self.on_congestion(lost.now, lost.newest_sent, lost.severity);
    }

    fn on_marked(&mut self, marked: &Marked) {
        self.inner.on_marked(marked);
        self.on_congestion(marked.now, marked.newest_sent, Severity::Congestion);
    }

    /// Continues a retreat even if it proves unnecessary: slow start makes up for it.
    fn on_spurious(&mut self, spurious: &Spurious) {
        self.inner.on_spurious(spurious);
    }

    fn on_resume(&mut self, resume: &Resume) {
        self.inner.on_resume(resume);
    }

    fn on_datagram_size(&mut self, bytes: u16) {
        self.datagram_size = bytes.into();
        self.inner.on_datagram_size(bytes);
    }

    #[inline]
    fn window(&self) -> u64 {
        match &self.state {
            State::Unvalidated(jump) => jump.window,
            State::SafeRetreat(retreat) => retreat.window,
            _ => self.inner.window().max(self.minimum_window()),
        }
    }

    /// Spreads a jump over the whole round trip (RFC 9959 §3.3).
    fn pacing_rate(&self) -> Option<u64> {
        match &self.state {
            State::Unvalidated(jump) => Some(rate(jump.window, self.smoothed)),
            State::SafeRetreat(retreat) => Some(rate(retreat.window, self.smoothed)),
            _ => self.inner.pacing_rate(),
        }
    }

    fn burst(&self) -> u64 {
        self.inner.burst()
    }

    fn phase(&self) -> Phase {
        match &self.state {
            State::SafeRetreat(_) => Phase::Recovery,
            _ => self.inner.phase(),
        }
    }

    fn slow_start_threshold(&self) -> Option<u64> {
        self.inner.slow_start_threshold()
    }

    fn ecn(&self) -> Ecn {
        match self.inner.ecn() {
            // Only the network sets CE.
            Ecn::Ce => Ecn::Ect0,
            mark => mark,
        }
    }

    fn name(&self) -> &'static str {
        self.inner.name()
    }
}

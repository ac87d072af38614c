//! The Prague congestion controller.

use std::time::{Duration, Instant};

use self::marking::Marking;
use super::{
    Acked, Controller, Ecn, Lost, Marked, Phase, Resume, Sent, Severity, Spurious, Start, Usage,
};

mod marking;
#[cfg(test)]
mod tests;

/// Round trip at whose speed shorter paths grow (RTT_virt of
/// draft-briscoe-iccrg-prague-congestion-control-04 §2.4.4).
const REFERENCE_RTT: Duration = Duration::from_millis(25);

/// Number of congestion avoidance rounds after which growth depends less on the round trip, so that
/// a new flow finds its share at the speed of its own path (§2.4.4).
const YOUNG_ROUNDS: u32 = 500;

/// Constant of CUBIC's growth (RFC 9438 §5.1), datagrams per cubic second.
const CUBIC: f64 = 0.4;

/// Part of the window that a search adds in a round trip, which limits its overshoot: the queue is
/// at most this part of a round trip, for one round trip.
const SEARCH: f64 = 1.0 / 8.0;

/// Factor by which the window must exceed the last marked one to show that the capacity grew.
const OUTGROWN: f64 = 1.25;

/// Factor above one window per round trip; without it, noise in the round trip would keep the
/// window from being filled.
const PACING_GAIN: f64 = 1.03;

/// Prague for L4S (draft-briscoe-iccrg-prague-congestion-control-04): packets are ECT(1), and the
/// window falls in proportion to the share of packets marked with CE, so that a queue that marks
/// early stays short (RFC 9331 §4).
///
/// Until the first mark, and again from each loss to the next mark, another controller decides as
/// it would without L4S (RFC 9331 §4.3: a flow responds to a loss as a classic flow does). A path
/// that does not mark, or whose ECN proved to be broken, is used as that controller uses it.
///
/// Marks of a classic queue (RFC 3168) are not distinguished from those of an L4S queue: such a
/// queue sees the window reduced by less than the half it expects, and classic flows in it get less
/// than their share. RFC 9331 leaves the detection to the implementation; the known methods mistake
/// ordinary variation of the delay for such a queue, so none is used here. Choose Prague if the
/// network is known to separate the two.
#[derive(Debug)]
pub struct Prague {
    datagram_size: u64,
    /// Controller that decides while there are losses instead of marks.
    classic: Box<dyn Controller>,
    /// Controller that decides while there are marks.
    scalable: Option<Scalable>,
    marking: Marking,
    /// Send time up to which packets belong to congestion that has already been answered.
    answered: Option<Instant>,
    rtt: Duration,
}

/// Window while marks control it.
#[derive(Clone, Copy, Debug)]
struct Scalable {
    /// Bytes, with a fraction: a small window changes by less than one byte at a time.
    window: f64,
    /// Number of round trips in this state.
    rounds: u32,
    round_start: Instant,
    /// The last reduction; the next one may follow a round trip later.
    reduced: Reduction,
    /// Seconds since then during which the window was used.
    epoch: f64,
    last_acked: Instant,
    /// True during a search for capacity: after slow start, which a mark ends early if bursts fill
    /// the queue for a moment, or after the old capacity was outgrown.
    searches: bool,
}

#[derive(Clone, Copy, Debug)]
struct Reduction {
    at: Instant,
    /// Window before.
    from: f64,
    /// Window after.
    to: f64,
}

impl Reduction {
    /// Returns CUBIC's window in bytes after this many seconds (RFC 9438 §4.2).
    fn cubic(&self, seconds: f64, datagram: f64) -> f64 {
        let missing = (self.from - self.to) / datagram;
        let time = seconds - (missing / CUBIC).cbrt();
        self.from + CUBIC * time.powi(3) * datagram
    }
}

impl Prague {
    /// Creates a controller that starts as `classic` and extends it.
    pub fn new(start: &Start, classic: Box<dyn Controller>) -> Self {
        Self {
            datagram_size: start.datagram_size.into(),
            classic,
            scalable: None,
            marking: Marking::new(start.now),
            answered: None,
            rtt: start.initial_rtt,
        }
    }

    /// Returns the estimated fraction of packets that are marked, or `None` before the first mark.
    pub fn alpha(&self) -> Option<f64> {
        self.marking.alpha()
    }

    fn minimum_window(&self) -> f64 {
        (2 * self.datagram_size) as f64
    }

    /// Returns the round trip with which growth and rounds are measured.
    fn virtual_rtt(&self) -> Duration {
        self.rtt.max(REFERENCE_RTT)
    }

    fn is_answered(&self, time_sent: Instant) -> bool {
        self.answered.is_some_and(|answered| time_sent <= answered)
    }

    /// Returns the factor, at most 1, by which growth is slower than a datagram per round trip, so
    /// that on short paths the rate does not depend on the round trip.
    fn growth(&self, rounds: u32) -> f64 {
        if rounds < YOUNG_ROUNDS {
            return 1.0;
        }
        let ratio = self.rtt.as_secs_f64() / self.virtual_rtt().as_secs_f64();
        ratio * ratio
    }

    /// Grows by a datagram per window of unmarked bytes, also during reductions, so that the two
    /// can balance (§2.4.3). Grows like CUBIC if that is faster, after a large reduction or a long
    /// time without a mark, and faster still in a search.
    fn grow(&mut self, acked: &Acked) {
        let datagram = self.datagram_size as f64;
        let Some(mut state) = self.scalable else {
            return;
        };
        if acked.newest_sent > state.round_start {
            state.round_start = acked.now;
            state.rounds = state.rounds.saturating_add(1);
        }
        let passed = acked.now.saturating_duration_since(state.last_acked);
        state.last_acked = acked.now;
        if acked.usage == Usage::Full {
            state.epoch += passed.min(self.rtt).as_secs_f64();
            let target = state
                .reduced
                .cubic(state.epoch + self.rtt.as_secs_f64(), datagram)
                .min(1.5 * state.window);
            let packets = acked.packets.max(1);
            let unmarked = packets.saturating_sub(acked.marks) as f64 / packets as f64;
            let windows = acked.bytes as f64 / state.window * unmarked;
            state.searches |= state.window > OUTGROWN * state.reduced.from;
            let search = f64::from(u8::from(state.searches)) * SEARCH * state.window;
            let per_window = (self.growth(state.rounds) * datagram)
                .max(target - state.window)
                .max(search);
            state.window += windows * per_window;
        }
        self.scalable = Some(state);
    }

    /// Applies the multiplicative decrease (§2.4.2). `alpha` is one at the first mark, which halves
    /// the overshoot of slow start.
    fn reduce(&mut self, now: Instant, alpha: f64) {
        let from = self.settled_window();
        let is_start = self.phase() == Phase::SlowStart;
        let (rounds, round_start) = self
            .scalable
            .map_or((0, now), |state| (state.rounds, state.round_start));
        let to = (from * (1.0 - alpha / 2.0)).max(self.minimum_window());
        self.scalable = Some(Scalable {
            window: to,
            rounds,
            round_start,
            reduced: Reduction { at: now, from, to },
            epoch: 0.0,
            last_acked: now,
            searches: is_start,
        });
        self.answered = Some(now);
    }

    fn window_bytes(&self) -> f64 {
        self.scalable
            .map_or(self.classic.window() as f64, |state| state.window)
    }

    /// Returns the window, or during the classic controller's recovery, when its window follows the
    /// bytes in flight, the target of that recovery.
    fn settled_window(&self) -> f64 {
        match (self.scalable, self.classic.slow_start_threshold()) {
            (None, Some(threshold)) if self.classic.phase() == Phase::Recovery => threshold as f64,
            _ => self.window_bytes(),
        }
    }

    /// Returns true if the window was already reduced in the same round trip or, if growth is
    /// slower than the round trip allows, in the same virtual one.
    fn is_reduced(&self, now: Instant, time_sent: Instant) -> bool {
        let is_recent = |state: Scalable| {
            let age = now.saturating_duration_since(state.reduced.at);
            state.rounds >= YOUNG_ROUNDS && age < self.virtual_rtt()
        };
        self.is_answered(time_sent) || self.scalable.is_some_and(is_recent)
    }

    /// Hands the window over to the classic controller. A reduction in the round trip of the loss
    /// was due to the same congestion and is undone first.
    fn become_classic(&mut self, now: Instant, time_sent: Instant) {
        let Some(scalable) = self.scalable.take() else {
            return;
        };
        let window = if self.is_answered(time_sent) {
            scalable.reduced.from
        } else {
            scalable.window
        };
        self.classic.on_resume(&Resume {
            now,
            window: window as u64,
            slow_start_threshold: Some(window as u64),
        });
    }
}

impl Controller for Prague {
    fn on_sent(&mut self, sent: &Sent) {
        self.classic.on_sent(sent);
    }

    fn on_acked(&mut self, acked: &Acked) {
        self.rtt = acked.rtt.smoothed;
        self.marking.on_acked(acked, self.virtual_rtt());
        if self.scalable.is_some() {
            self.grow(acked);
        } else {
            self.classic.on_acked(acked);
        }
    }

    fn on_lost(&mut self, lost: &Lost<'_>) {
        self.become_classic(lost.now, lost.newest_sent);
        self.classic.on_lost(lost);
        self.answered = Some(lost.now);
        if lost.severity == Severity::PersistentCongestion {
            self.marking = Marking::new(lost.now);
            self.answered = None;
        }
    }

    fn on_marked(&mut self, marked: &Marked) {
        let first = self.marking.on_marked(marked.now);
        if let Some(alpha) = first.or(self.marking.alpha()) {
            if !self.is_reduced(marked.now, marked.newest_sent) {
                self.reduce(marked.now, alpha);
            }
        }
    }

    fn on_spurious(&mut self, spurious: &Spurious) {
        if self.scalable.is_none() {
            self.classic.on_spurious(spurious);
        }
    }

    fn on_resume(&mut self, resume: &Resume) {
        self.scalable = None;
        self.classic.on_resume(resume);
    }

    fn on_datagram_size(&mut self, bytes: u16) {
        self.datagram_size = bytes.into();
        self.classic.on_datagram_size(bytes);
        let minimum = self.minimum_window();
        if let Some(scalable) = &mut self.scalable {
            scalable.window = scalable.window.max(minimum);
        }
    }

    fn window(&self) -> u64 {
        self.window_bytes() as u64
    }

    fn pacing_rate(&self) -> Option<u64> {
        let Some(scalable) = self.scalable else {
            return self.classic.pacing_rate();
        };
        let rtt = self.rtt.as_secs_f64();
        (rtt > 0.0).then(|| (scalable.window * PACING_GAIN / rtt) as u64)
    }

    /// Returns a small burst, because a queue that marks early marks bursts.
    fn burst(&self) -> u64 {
        2
    }

    fn phase(&self) -> Phase {
        self.scalable
            .map_or_else(|| self.classic.phase(), |_| Phase::Avoidance)
    }

    fn slow_start_threshold(&self) -> Option<u64> {
        self.scalable.map_or_else(
            || self.classic.slow_start_threshold(),
            |state| Some(state.window as u64),
        )
    }

    fn ecn(&self) -> Ecn {
        Ecn::Ect1
    }

    fn name(&self) -> &'static str {
        "Prague"
    }
}

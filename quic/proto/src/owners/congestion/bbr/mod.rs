//! BBR version 3 (draft-ietf-ccwg-bbr-06 and the editors' copy of August 2026): what is sent is
//! decided not by each loss, but by a model of the path, with its delivery rate and its round trip.
//!
//! ```text
//!    Startup ──> Drain ──> Down ──> Cruise ──> Refill ──> Up ─┐      any ──> ProbeRtt ──> Cruise
//!                           ^                                 │                      └──> Startup
//!                           └─────────────────────────────────┘
//! ```
//!
//! Names and the order of steps are the draft's. There are deviations where the draft leaves
//! something open or measured worse:
//! - A mark (ECN CE) counts as a loss that shows too much in flight, once per round; a second round
//!   with marks ends Startup.
//! - The position of a lost packet, and so the number of gaps in a round, follows from its
//!   snapshot.
//! - One lost datagram above the threshold is tolerated: out of fifty, a single one would be 2 %.
//! - Rounds with no more losses than that cost at most 5 % of the bandwidth in total. The draft
//!   takes the same share again each round, so that 1 % of random loss takes a third of the rate
//!   between two probes.
//! - Probes are at least twenty rounds apart, however little is in flight.
//! - State for an undo is saved once per episode of losses, because that is the unit that recovery
//!   can refute.
//! - There is no packet conservation in recovery, which the draft dropped as well: the short-term
//!   bounds replace it.

mod control;
mod filters;
mod loss;
mod model;
mod params;
mod probe_bw;
mod probe_rtt;
mod startup;

use std::time::{Duration, Instant};

use self::{
    loss::{Signals, Undo},
    model::Model,
    params::Gain,
    probe_bw::Cycle,
    probe_rtt::ProbeRtt,
    startup::FullPipe,
};
use super::{
    Acked, Controller, Lost, LostPacket, Marked, Phase, Resume, Sent, Severity, Spurious, Start,
    initial_window,
};
use crate::random::SplitMix;

#[cfg(test)]
mod tests;

/// State of the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Doubles its rate each round.
    Startup,
    /// Drains the queue that Startup built up.
    Drain,
    /// ProbeBW: sends a little less than is delivered.
    Down,
    /// ProbeBW: sends what is delivered.
    Cruise,
    /// ProbeBW: fills the pipe before it probes for more.
    Refill,
    /// ProbeBW: sends more than is delivered, to find more bandwidth.
    Up,
    /// Keeps little in flight, to measure the round trip of the empty path.
    ProbeRtt,
}

impl State {
    const fn pacing_gain(self) -> Gain {
        match self {
            Self::Startup => Gain::STARTUP_PACING,
            Self::Drain => Gain::DRAIN_PACING,
            Self::Down => Gain::DOWN_PACING,
            Self::Up => Gain::UP_PACING,
            Self::Cruise | Self::Refill | Self::ProbeRtt => Gain::ONE,
        }
    }

    const fn window_gain(self) -> Gain {
        match self {
            Self::Up => Gain::UP_WINDOW,
            Self::ProbeRtt => Gain::PROBE_RTT_WINDOW,
            _ => Gain::DEFAULT_WINDOW,
        }
    }

    const fn is_probe_bw(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }

    /// Returns true if the state accepts losses in search of more bandwidth.
    const fn is_probing(self) -> bool {
        matches!(self, Self::Startup | Self::Refill | Self::Up)
    }
}

/// One acknowledgement in the draft's terms (§2.3).
#[derive(Clone, Copy, Debug)]
struct Sample {
    now: Instant,
    newly_acked: u64,
    /// Bytes per second; 0 if the sample means nothing.
    rate: u64,
    /// Bytes delivered while the newest packet acknowledged was in flight.
    delivered: u64,
    prior_delivered: u64,
    /// Bytes lost since that packet was sent.
    lost: u64,
    /// Bytes in flight when it was sent.
    tx_in_flight: u64,
    app_limited: bool,
    rtt: Option<Duration>,
    /// Bytes in flight before the acknowledgement.
    prior_in_flight: u64,
    in_flight: u64,
    total_delivered: u64,
    /// True if the window was full at some time in the last round trip.
    window_limited: bool,
}

/// BBR version 3 (draft-ietf-ccwg-bbr).
#[derive(Clone, Debug)]
pub struct Bbr {
    datagram_size: u64,
    initial_window: u64,
    /// Source of randomness, so that the waits between probes differ between connections.
    random: SplitMix,
    state: State,
    model: Model,
    full_pipe: FullPipe,
    drain_start_round: u64,
    cycle: Cycle,
    probe_rtt: ProbeRtt,
    signals: Signals,
    undo: Undo,
    /// Start of the last episode of losses; losses of packets sent before belong to it.
    episode: Option<Instant>,
    /// True until a packet sent after the loss is acknowledged.
    in_recovery: bool,
    idle_restart: bool,
    /// Bytes delivered so far.
    delivered: u64,
    /// The round trip, once it was measured.
    smoothed_rtt: Option<Duration>,
    /// Time at which the window was last full.
    window_full_at: Option<Instant>,
    window: u64,
    prior_window: u64,
    pacing_rate: u64,
}

impl Bbr {
    /// Creates a controller in Startup with the initial window of RFC 9002 §7.2.
    pub fn new(start: &Start) -> Self {
        let datagram_size = u64::from(start.datagram_size).max(1);
        let window = initial_window(datagram_size);
        let mut bbr = Self {
            datagram_size,
            initial_window: window,
            random: SplitMix::new(start.seed),
            state: State::Startup,
            model: Model::new(start.now),
            full_pipe: FullPipe::default(),
            drain_start_round: 0,
            cycle: Cycle::new(start.now),
            probe_rtt: ProbeRtt::new(start.now),
            signals: Signals::default(),
            undo: Undo::new(),
            episode: None,
            in_recovery: false,
            idle_restart: false,
            delivered: 0,
            smoothed_rtt: None,
            window_full_at: None,
            window,
            prior_window: 0,
            pacing_rate: 0,
        };
        bbr.init_pacing_rate(start.initial_rtt);
        bbr
    }

    fn restart_round(&mut self) {
        self.model.round.restart(self.delivered);
    }

    fn sample(&self, acked: &Acked) -> Sample {
        let rate = &acked.rate;
        Sample {
            now: acked.now,
            newly_acked: acked.bytes,
            rate: rate.rate.unwrap_or(0),
            delivered: rate.delivered,
            prior_delivered: rate.prior_delivered,
            lost: rate.lost,
            tx_in_flight: rate.in_flight,
            app_limited: rate.app_limited || self.probe_rtt.limited(rate.prior_delivered),
            rtt: acked.rtt.sample,
            prior_in_flight: acked.prior_in_flight,
            in_flight: acked.bytes_in_flight,
            total_delivered: acked.delivered,
            window_limited: self
                .window_full_at
                .is_some_and(|full| acked.newest_sent <= full),
        }
    }

    /// Updates model and state in the order of the draft (§5.2.3).
    fn update_model_and_state(&mut self, sample: &Sample) {
        self.handle_marks(sample);
        self.update_latest_delivery_signals(sample);
        self.update_congestion_signals(sample);
        self.update_ack_aggregation(sample);
        if self.model.round.started {
            self.full_pipe.on_round(sample);
        }
        self.check_startup_done(sample);
        self.check_drain_done(sample);
        self.update_probe_bw_cycle(sample);
        self.update_min_rtt(sample);
        self.check_probe_rtt(sample);
        self.advance_latest_delivery_signals(sample);
        self.model.bound_bw();
    }
}

impl Controller for Bbr {
    fn on_sent(&mut self, sent: &Sent) {
        if sent.bytes_in_flight <= sent.bytes && sent.app_limited {
            self.handle_restart_from_idle(sent.now);
        }
        if sent.bytes_in_flight.saturating_add(self.datagram_size) > self.window() {
            self.window_full_at = Some(sent.now);
        }
    }

    fn on_acked(&mut self, acked: &Acked) {
        self.delivered = acked.delivered;
        if self.smoothed_rtt.is_none() && acked.rtt.sample.is_some() {
            self.init_pacing_rate(acked.rtt.smoothed);
        }
        if acked.rtt.sample.is_some() {
            self.smoothed_rtt = Some(acked.rtt.smoothed);
        }
        let sample = self.sample(acked);
        self.check_recovery_done(acked.newest_sent);
        self.update_model_and_state(&sample);
        self.set_pacing_rate(self.state.pacing_gain());
        self.set_window(&sample);
    }

    fn on_lost(&mut self, lost: &Lost<'_>) {
        self.delivered = self.delivered.max(lost.delivered);
        self.handle_losses(lost);
    }

    fn on_marked(&mut self, _: &Marked) {
        // The acknowledgement follows, and reports what was in flight.
        self.signals.marked = true;
    }

    fn on_spurious(&mut self, _: &Spurious) {
        self.handle_spurious_loss();
    }

    fn on_resume(&mut self, resume: &Resume) {
        self.handle_resume(resume);
    }

    fn on_datagram_size(&mut self, bytes: u16) {
        self.datagram_size = u64::from(bytes).max(1);
    }

    fn window(&self) -> u64 {
        self.window.max(self.min_pipe_window())
    }

    fn pacing_rate(&self) -> Option<u64> {
        Some(self.pacing_rate)
    }

    fn target_rate(&self) -> Option<u64> {
        Some(self.model.bw).filter(|&bw| bw > 0)
    }

    fn phase(&self) -> Phase {
        if self.state == State::Startup {
            Phase::SlowStart
        } else if self.in_recovery {
            Phase::Recovery
        } else {
            Phase::Avoidance
        }
    }

    fn name(&self) -> &'static str {
        "BBRv3"
    }
}

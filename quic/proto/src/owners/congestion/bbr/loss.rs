//! Effect of losses and marks on the model (draft §5.5.10), and how it is undone (§5.5.11).

use std::time::Instant;

use super::{
    Bbr, Lost, LostPacket, Sample, Severity, State,
    params::{Gain, LOSS_SAMPLE_DATAGRAMS, UNBOUNDED},
};

/// Signs of congestion seen in a round so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Congestion {
    #[default]
    None,
    Lost,
    Marked,
}

/// Share of lost packets, compared with what a probe tolerates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LossRate {
    Tolerated,
    Excessive,
}

/// Signs of congestion in the current round, and what the path delivered in it.
#[derive(Clone, Debug, Default)]
pub(super) struct Signals {
    /// The best rate and volume of the round.
    pub(super) bw_latest: u64,
    pub(super) inflight_latest: u64,
    /// True if the acknowledgement being processed begins a round. Loss rounds begin with the first
    /// loss.
    pub(super) round_started: bool,
    in_round: Congestion,
    /// Bytes delivered when a packet was sent whose acknowledgement ends the round.
    round_end: u64,
    /// Gaps that the losses of the round left.
    pub(super) lost_ranges: u32,
    /// Bytes lost since the last judgement, to be judged together.
    lost: u64,
    lost_since: u64,
    /// Position of the end of the last lost packet, counted in all bytes ever sent.
    lost_end: Option<u64>,
    /// Rounds of Startup with marks.
    pub(super) startup_marked_rounds: u8,
    /// True if marks were reported with the next acknowledgement.
    pub(super) marked: bool,
}

impl Signals {
    pub(super) fn reset(&mut self) {
        self.in_round = Congestion::None;
        self.bw_latest = 0;
        self.inflight_latest = 0;
    }

    /// Counts a gap for each packet that does not directly follow the previously lost one. The
    /// position of a packet, counted in all bytes ever sent, is the sum of bytes delivered, lost
    /// and in flight when it left.
    pub(super) fn count_range(&mut self, packet: &LostPacket) {
        let snapshot = &packet.snapshot;
        let end = snapshot
            .delivered
            .saturating_add(snapshot.lost)
            .saturating_add(snapshot.in_flight);
        if self.lost_end != Some(end.saturating_sub(packet.bytes)) {
            self.lost_ranges = self.lost_ranges.saturating_add(1);
        }
        self.lost_end = Some(end);
    }
}

/// State before the current round of losses, to restore if they were spurious.
#[derive(Clone, Debug)]
pub(super) struct Undo {
    /// State that the losses ended.
    pub(super) state: Option<State>,
    bw_shortterm: u64,
    inflight_shortterm: u64,
    inflight_longterm: u64,
}

impl Undo {
    pub(super) const fn new() -> Self {
        Self {
            state: None,
            bw_shortterm: 0,
            inflight_shortterm: 0,
            inflight_longterm: 0,
        }
    }
}

impl Bbr {
    /// Returns true if losses exceed the draft's threshold by more than a datagram: with fifty or
    /// fewer in flight, a single loss exceeds the threshold but means nothing.
    pub(super) fn is_inflight_too_high(&self, lost: u64, tx_in_flight: u64) -> bool {
        lost.saturating_sub(self.datagram_size) > Gain::LOSS_THRESHOLD.of(tx_in_flight)
    }

    pub(super) fn handle_losses(&mut self, lost: &Lost<'_>) {
        if self.episode.is_none_or(|start| lost.newest_sent > start) {
            self.save_state_upon_loss();
            self.episode = Some(lost.now);
            self.in_recovery = true;
        }
        let mut total = lost.lost.saturating_sub(lost.bytes);
        for packet in lost.packets {
            total = total.saturating_add(packet.bytes);
            self.handle_lost_packet(lost.now, packet, total);
        }
        if lost.severity == Severity::PersistentCongestion {
            self.save_window();
            self.window = lost.bytes_in_flight.saturating_add(self.datagram_size);
        }
    }

    /// Handles one lost packet; `total` is the number of bytes lost so far, this packet included.
    fn handle_lost_packet(&mut self, now: Instant, packet: &LostPacket, total: u64) {
        self.note(Congestion::Lost);
        self.signals.count_range(packet);
        self.signals.lost = self.signals.lost.saturating_add(packet.bytes);
        if !self.cycle.is_probe_sample {
            return;
        }
        let tx_in_flight = packet.snapshot.in_flight;
        let lost = total.saturating_sub(packet.snapshot.lost);
        if self.is_inflight_too_high(lost, tx_in_flight) {
            let limited =
                packet.snapshot.app_limited || self.probe_rtt.limited(packet.snapshot.delivered);
            let at_loss = inflight_at_loss(packet.bytes, lost, tx_in_flight);
            self.handle_inflight_too_high(now, (!limited).then_some(at_loss));
        }
    }

    fn note(&mut self, congestion: Congestion) {
        if self.signals.in_round == Congestion::None {
            self.signals.round_end = self.delivered;
        }
        self.signals.in_round = self.signals.in_round.max(congestion);
    }

    /// Responds once to a probe that put more in flight (`tx_in_flight`) than the path can carry.
    /// `None` means that less was sent than the path allowed, so that the amount says nothing about
    /// it.
    fn handle_inflight_too_high(&mut self, now: Instant, tx_in_flight: Option<u64>) {
        self.cycle.prev_too_high = true;
        self.cycle.is_probe_sample = false;
        if let Some(tx_in_flight) = tx_in_flight {
            self.model.inflight_longterm = tx_in_flight
                .max(Gain::BETA.of(self.target_inflight()))
                .max(self.min_pipe_window());
        }
        if self.state == State::Up {
            self.undo.state = Some(State::Up);
            self.start_down(now);
        }
    }

    /// Counts the first mark of a round as a loss that shows too much in flight. The draft leaves
    /// ECN open but asks that marks count as congestion (§3.7).
    pub(super) fn handle_marks(&mut self, sample: &Sample) {
        let marked = std::mem::take(&mut self.signals.marked);
        if !marked || self.signals.in_round == Congestion::Marked {
            return;
        }
        self.note(Congestion::Marked);
        if self.state == State::Startup {
            let rounds = &mut self.signals.startup_marked_rounds;
            *rounds = rounds.saturating_add(1);
        }
        if self.cycle.is_probe_sample {
            let in_flight = (!sample.app_limited).then_some(sample.tx_in_flight);
            self.handle_inflight_too_high(sample.now, in_flight);
        }
    }

    /// Updates the best values of the round so far, near the start of an acknowledgement.
    pub(super) fn update_latest_delivery_signals(&mut self, sample: &Sample) {
        let signals = &mut self.signals;
        signals.bw_latest = signals.bw_latest.max(sample.rate);
        signals.inflight_latest = signals.inflight_latest.max(sample.delivered);
        signals.round_started = sample.prior_delivered >= signals.round_end;
        if signals.round_started {
            signals.round_end = sample.total_delivered;
        }
    }

    /// Starts the next round with the values of this acknowledgement, near its end.
    pub(super) fn advance_latest_delivery_signals(&mut self, sample: &Sample) {
        if self.signals.round_started {
            self.signals.bw_latest = sample.rate;
            self.signals.inflight_latest = sample.delivered;
            self.signals.lost_ranges = 0;
            self.signals.lost_end = None;
        }
    }

    pub(super) fn update_congestion_signals(&mut self, sample: &Sample) {
        self.model.update_max_bw(sample);
        if !self.signals.round_started {
            return;
        }
        let rate = self.judge_losses(sample);
        if self.signals.in_round != Congestion::None && !self.state.is_probing() {
            self.adapt_lower_bounds(rate);
        }
        self.signals.in_round = Congestion::None;
    }

    /// Judges the losses. Rounds of few packets are judged together, until they amount to
    /// [`LOSS_SAMPLE_DATAGRAMS`].
    fn judge_losses(&mut self, sample: &Sample) -> LossRate {
        let signals = &self.signals;
        let delivered = sample.total_delivered.saturating_sub(signals.lost_since);
        let sent = delivered.saturating_add(signals.lost);
        let least = LOSS_SAMPLE_DATAGRAMS * self.datagram_size;
        let is_excessive = signals.in_round == Congestion::Marked
            || self.is_inflight_too_high(signals.lost, sent.max(least));
        if is_excessive || sent >= least {
            self.signals.lost = 0;
            self.signals.lost_since = sample.total_delivered;
        }
        if is_excessive {
            LossRate::Excessive
        } else {
            LossRate::Tolerated
        }
    }

    /// Slows down towards the delivery rate after a round with losses outside of a probe. While
    /// there is a queue, more is delivered than the path holds, so a round with marks sets the
    /// volume lower.
    fn adapt_lower_bounds(&mut self, rate: LossRate) {
        let floor_bw = Gain::TOLERATED.of(self.model.max_bw.get());
        let floor_inflight = self
            .inflight(self.model.max_bw.get())
            .saturating_add(self.model.aggregation.extra_acked());
        let (signals, model) = (&self.signals, &mut self.model);
        if model.bw_shortterm == UNBOUNDED {
            model.bw_shortterm = model.max_bw.get();
        }
        if model.inflight_shortterm == UNBOUNDED {
            model.inflight_shortterm = self.window;
        }
        let delivered = if signals.in_round == Congestion::Marked {
            Gain::BETA_ECN.of(signals.inflight_latest)
        } else {
            signals.inflight_latest
        };
        let mut bw = signals.bw_latest.max(Gain::BETA.of(model.bw_shortterm));
        let mut inflight = delivered.max(Gain::BETA.of(model.inflight_shortterm));
        if rate == LossRate::Tolerated {
            bw = bw.max(floor_bw.min(model.bw_shortterm));
            inflight = inflight.max(floor_inflight.min(model.inflight_shortterm));
        }
        model.bw_shortterm = bw;
        model.inflight_shortterm = inflight;
    }

    fn save_state_upon_loss(&mut self) {
        self.save_window();
        self.undo = Undo {
            state: None,
            bw_shortterm: self.model.bw_shortterm,
            inflight_shortterm: self.model.inflight_shortterm,
            inflight_longterm: self.model.inflight_longterm,
        };
    }

    /// Restores the earlier state after spurious losses (§5.5.11.2).
    pub(super) fn handle_spurious_loss(&mut self) {
        self.restore_window();
        self.in_recovery = false;
        self.signals.in_round = Congestion::None;
        self.full_pipe.restart(0);
        let (model, undo) = (&mut self.model, &self.undo);
        model.bw_shortterm = model.bw_shortterm.max(undo.bw_shortterm);
        model.inflight_shortterm = model.inflight_shortterm.max(undo.inflight_shortterm);
        model.inflight_longterm = model.inflight_longterm.max(undo.inflight_longterm);
        match self.undo.state.take() {
            Some(State::Startup) if self.state != State::Startup => {
                self.full_pipe.reached = false;
                if self.state != State::ProbeRtt {
                    self.state = State::Startup;
                }
            }
            Some(State::Up) if !matches!(self.state, State::Up | State::ProbeRtt) => {
                self.start_refill();
            }
            _ => {}
        }
    }
}

/// Returns the bytes in flight at the point within this packet where losses passed the threshold
/// (§5.5.10.2).
fn inflight_at_loss(size: u64, lost: u64, tx_in_flight: u64) -> u64 {
    let before = tx_in_flight.saturating_sub(size);
    let lost_before = lost.saturating_sub(size);
    // (threshold × before − lost before) / (1 − threshold), with the threshold at 2 %.
    let allowed = Gain::LOSS_THRESHOLD.of(before);
    let spare = |bytes: u64| bytes.saturating_mul(100) / 98;
    if allowed >= lost_before {
        before.saturating_add(spare(allowed - lost_before))
    } else {
        before.saturating_sub(spare(lost_before - allowed))
    }
}

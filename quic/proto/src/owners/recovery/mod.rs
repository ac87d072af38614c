//! Loss detection and its timers (RFC 9002), generic over the record of what a packet carried.

mod ack;
mod census;
mod loss;
mod path;
mod pto;
mod sent;
mod state;

use std::time::{Duration, Instant};

use hybriq_tls::Side;

pub use self::{
    ack::Ack,
    path::{PathState, pacer::Pacing, rtt::Rtt},
    sent::{Held, InFlight, Outcome, SentPacket, SentPackets, Settled},
};
use self::{
    path::{ecn::PathEcn, pacer::Pacer, reordering::Reordering},
    sent::{late::Episode, left_paths::LeftPaths, skipped::Skipper},
    state::SpaceState,
};
use super::congestion::{self, Controller, LostPacket, careful_resume::Resuming};
use crate::{
    owners::congestion::delivery::Delivery,
    wire::{
        frame::EcnCounts,
        packet::{PacketNumber, Space, Spaces},
        udp::{Ecn, EcnState},
    },
};

#[cfg(test)]
mod tests;

/// Number of consecutive non-ack-eliciting packets after which one should ask for an
/// acknowledgement (RFC 9000 §13.2.4).
const SILENT_PACKETS: u16 = 32;

/// Divisor for the part of the window that may be kept free for an MTU probe.
const PROBE_SHARE: u64 = 4;

/// Progress of the handshake as far as loss detection depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress {
    /// Handshake keys are not available yet.
    InitialOnly,
    /// Handshake packets can be sent.
    Keys,
    /// The handshake is confirmed (RFC 9001 §4.1.2).
    Confirmed,
}

/// State of the anti-amplification limit (RFC 9000 §8.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Amplification {
    /// Packets may be sent.
    Open,
    /// Packets must wait until more is received: timers would fire in vain.
    Blocked,
}

/// State of the rest of the connection that loss detection depends on.
///
/// Exhaustive: whoever drives the owner must decide on every field.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// Progress of the handshake.
    pub handshake: Progress,
    /// The peer's `max_ack_delay`; its default while the parameters are unknown.
    pub peer_max_ack_delay: Duration,
    /// State of the anti-amplification limit.
    pub amplification: Amplification,
}

/// Result of a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Timeout {
    /// Packets may have been lost by the time threshold; see the outcome.
    Lost,
    /// Ack-eliciting packets should be sent in this space, at most [`Recovery::probes`] of them
    /// regardless of the congestion window. Everything outstanding in the Initial and Handshake
    /// spaces ([`Recovery::outstanding`]) should be sent again with them.
    Probe(Space),
}

/// Loss detection of one path: tracks the packets in flight in each space, and decides when they
/// count as lost and when to probe (RFC 9002).
///
/// Each record given to [`Recovery::on_packet_sent`] is returned once, as acknowledged or lost,
/// unless its space is discarded. Records of packets that are not in flight (ACK frames alone) may
/// be dropped.
#[derive(Debug)]
pub struct Recovery<R> {
    side: Side,
    spaces: Spaces<SpaceState<R>>,
    skipper: Skipper,
    ecn: PathEcn,
    reordering: Reordering,
    episode: Episode,
    rtt: Rtt,
    controller: Resuming,
    datagram_size: u16,
    bytes_in_flight: u64,
    left_paths: LeftPaths,
    delivery: Delivery,
    pacer: Pacer,
    pacing: Pacing,
    /// Time at which the window last had no room for another datagram.
    window_full_at: Option<Instant>,
    /// Packets just declared lost, for the controller. Kept to reuse the allocation.
    lost: Vec<LostPacket>,
    pto_count: u32,
    /// Time of the last event that moved the probe timer. The timer that protects a client from a
    /// deadlock starts from it (RFC 9002 §6.2.2.1), and no timer is due before it.
    timer_base: Instant,
    /// True if a Handshake packet was acknowledged.
    handshake_acked: bool,
    totals: Totals,
}

/// Counters for statistics only.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    packets_sent: u64,
    packets_lost: u64,
    spurious_losses: u64,
    ptos: u64,
}

/// Initial values of [`Recovery`].
///
/// Exhaustive: whoever drives the owner must decide on every field.
#[derive(Debug)]
pub struct Config {
    /// Side of this end.
    pub side: Side,
    /// The round trip to assume (RFC 9002 §6.2.2).
    pub initial_rtt: Duration,
    /// Bytes of a full datagram.
    pub datagram_size: u16,
    /// Congestion controller.
    pub controller: Box<dyn Controller>,
    /// Secret that selects the 1-RTT packet numbers to skip (RFC 9000 §21.4); `None` skips none.
    pub skip_seed: Option<u64>,
    /// Initial state of ECN: [`EcnState::Testing`] or [`EcnState::Disabled`].
    pub ecn: EcnState,
    /// Pacing of packets.
    pub pacing: Pacing,
}

impl<R: 'static> Recovery<R> {
    /// Creates the state of a path on which nothing was sent or measured.
    pub fn new(now: Instant, config: Config) -> Self {
        Self {
            side: config.side,
            spaces: Spaces::new(SpaceState::new()),
            skipper: Skipper::new(config.skip_seed),
            ecn: PathEcn::new(config.ecn),
            reordering: Reordering::new(now),
            episode: Episode::default(),
            rtt: Rtt::new(config.initial_rtt),
            controller: Resuming::new(now, config.controller, config.datagram_size),
            datagram_size: config.datagram_size,
            bytes_in_flight: 0,
            left_paths: LeftPaths::default(),
            delivery: Delivery::new(now),
            pacer: Pacer::new(now, config.datagram_size),
            pacing: config.pacing,
            window_full_at: None,
            lost: Vec::new(),
            pto_count: 0,
            timer_base: now,
            handshake_acked: false,
            totals: Totals::default(),
        }
    }

    fn space(&self, space: Space) -> &SpaceState<R> {
        self.spaces.get(space).unwrap_or(SpaceState::VACANT)
    }

    /// Records a packet that was sent. Packet numbers of a space only grow.
    #[inline]
    pub fn on_packet_sent(&mut self, space: Space, pn: PacketNumber, mut packet: SentPacket<R>) {
        let (now, bytes) = (packet.time_sent, u64::from(packet.size));
        let app_limited = self.delivery.is_app_limited();
        if packet.in_flight {
            let snapshot = self.delivery.on_sent(now, self.bytes_in_flight, bytes);
            packet.snapshot = Some(snapshot);
        }
        let state = self.spaces.at(space);
        self.totals.packets_sent += 1;
        if packet.ack_eliciting {
            state.last_eliciting_sent = Some(now);
            state.eliciting_in_flight += 1;
            state.silent = 0;
            state.probes = state.probes.saturating_sub(1);
            self.timer_base = now;
        } else {
            state.silent = state.silent.saturating_add(1);
        }
        let in_flight = packet.in_flight;
        debug_assert!(
            in_flight || !packet.ack_eliciting,
            "ack-eliciting packets are in flight"
        );
        self.ecn.on_sent(&mut state.ecn, packet.ecn);
        state.sent.insert(pn, packet);
        if space == Space::Data && self.skipper.is_due(pn.next()) {
            self.skipper.plan(pn.next());
            self.on_number_skipped(space, pn.next());
        }
        if in_flight {
            self.bytes_in_flight += bytes;
            if !self.can_send(self.datagram_size.into()) {
                self.window_full_at = Some(now);
            }
            if self.bytes_in_flight == bytes {
                self.pacer.on_pause(now);
            }
            self.pacer.on_sent(now, bytes);
            let bytes_in_flight = self.bytes_in_flight;
            self.controller.on_sent(&congestion::Sent {
                now,
                bytes,
                bytes_in_flight,
                app_limited,
            });
        }
    }

    /// Notes that the application had nothing more to send although the window had room.
    pub fn on_app_limited(&mut self) {
        self.pacer.on_idle();
        self.delivery.on_app_limited(self.bytes_in_flight);
    }

    /// Notes a packet number that was used without a record: its loss needs no action, and its
    /// acknowledgement is ignored.
    pub fn on_number_used(&mut self, space: Space, pn: PacketNumber) {
        self.spaces.at(space).sent.use_number(pn);
    }

    /// Notes a packet number skipped on purpose: acknowledging it closes the connection.
    pub fn on_number_skipped(&mut self, space: Space, pn: PacketNumber) {
        let state = self.spaces.at(space);
        state.sent.skip(pn);
        state.skipped.push(pn);
    }

    /// Returns the mark of the next datagram; `None` is Not-ECT. All datagrams of a train have the
    /// same mark, which changes only with received packets and timers.
    #[inline]
    pub fn ecn_mark(&self) -> Option<Ecn> {
        self.ecn.is_marking().then(|| self.controller.ecn())
    }

    /// Restarts the test of marks, on another path.
    pub const fn reset_ecn(&mut self) {
        self.ecn.reset();
    }

    /// Takes the rate from the controller, or derives it from the window once a round trip was
    /// measured.
    fn update_pace(&mut self, now: Instant) {
        if !self.can_send(self.datagram_size.into()) {
            self.pacer.on_idle();
        }
        let wanted = self.controller.pacing_rate();
        let rate = wanted.or_else(|| {
            self.rtt.first_sample()?;
            let (window, phase) = (self.controller.window(), self.controller.phase());
            Some(Pacer::rate_of(window, self.rtt.smoothed(), phase))
        });
        if let (Some(rate), Pacing::On) = (rate, self.pacing) {
            self.pacer.set_burst(self.controller.burst());
            let smoothed = self.rtt.smoothed();
            self.pacer.forgive(wanted.is_none().then_some(smoothed));
            self.pacer.set_rate(now, rate);
        }
    }

    /// Forgets a space whose keys are discarded (RFC 9002 §6.4).
    pub fn discard_space(&mut self, space: Space) {
        let Some(state) = self.spaces.get_mut(space) else {
            return;
        };
        let mut marked = 0;
        let taken = state.clear(|_, packet| marked += u64::from(packet.ecn.is_some()));
        self.on_taken(taken);
        self.ecn.on_discarded(marked);
        self.pto_count = 0;
    }

    /// Drops the state of the Initial and Handshake spaces, which are discarded. Returns their
    /// share of [`Recovery::ecn_echoed`].
    pub fn end_handshake(&mut self) -> EcnCounts {
        let counts = self
            .spaces
            .end_handshake()
            .map(|space| space.ecn.reported());
        counts.fold(EcnCounts::default(), EcnCounts::plus)
    }

    /// Returns true if the state of the Initial and Handshake spaces takes memory.
    #[cfg(test)]
    pub fn has_handshake(&self) -> bool {
        self.spaces.has_handshake()
    }

    const fn on_taken(&mut self, bytes: InFlight) {
        self.bytes_in_flight -= bytes.on_active_path;
        self.left_paths.on_settled(bytes.on_left_paths);
    }

    /// Takes all packets of a space out of flight and returns them as lost, without signalling
    /// congestion, for rejected 0-RTT data.
    pub fn abandon_space(&mut self, space: Space, outcome: &mut Outcome<R>) {
        let mut marked = 0;
        let taken = self.spaces.at(space).clear(|pn, packet| {
            marked += u64::from(packet.ecn.is_some());
            outcome.lost.push(Settled { pn, packet });
        });
        self.on_taken(taken);
        self.ecn.on_discarded(marked);
    }

    /// Starts over after a Retry: all packets are returned to be sent again. The time that the
    /// Retry took replaces the configured guess of the round trip (RFC 9002 §6.3).
    pub fn on_retry(&mut self, now: Instant, outcome: &mut Outcome<R>) {
        let first = self
            .space(Space::Initial)
            .sent
            .iter()
            .next()
            .map(|(_, first)| first.time_sent);
        if let (0, None, Some(first)) = (self.pto_count, self.rtt.first_sample(), first) {
            self.rtt = Rtt::new(now.saturating_duration_since(first));
        }
        for space in Space::ALL {
            self.abandon_space(space, outcome);
        }
        self.pto_count = 0;
        self.timer_base = now;
    }

    /// Returns the records of the outstanding packets of a space, oldest first. A probe timeout
    /// sends their content again, although they may still arrive (RFC 9002 §6.2.4).
    pub fn outstanding(&self, space: Space) -> impl Iterator<Item = &R> {
        self.space(space)
            .sent
            .iter()
            .map(|(_, packet)| &packet.record)
    }

    /// Releases memory that is not used now.
    pub fn release_memory(&mut self) {
        for space in self.spaces.iter_mut() {
            space.sent.release_memory();
        }
    }

    /// Returns the number of packets that are recorded as sent, in all spaces.
    pub fn recorded_packets(&self) -> usize {
        let spaces = self.spaces.iter();
        spaces.map(|space| space.sent.entries()).sum()
    }

    /// Returns the bytes of memory that records of packets take, both sent and lost, in all spaces.
    pub fn memory(&self) -> usize {
        let of_space = |space: &SpaceState<R>| space.sent.memory() + space.lost.memory();
        self.spaces.iter().map(of_space).sum()
    }

    /// Returns the largest number of bytes that these records take, in the one space that is left
    /// after the handshake.
    pub const fn most_memory() -> usize {
        SentPackets::<R>::most_memory() + sent::late::LostPackets::most_memory()
    }

    /// Returns the number of lost packets that are remembered, in all spaces.
    pub fn remembered_losses(&self) -> usize {
        let spaces = self.spaces.iter();
        spaces.map(|space| space.lost.len()).sum()
    }

    /// Returns true if this many more bytes may be in flight. Probes and packets that are not in
    /// flight are exempt.
    #[inline]
    pub fn can_send(&self, bytes: u64) -> bool {
        let in_flight = self.bytes_in_flight + self.left_paths.burden();
        in_flight.saturating_add(bytes) <= self.controller.window()
            && !self.spaces.iter().any(|space| space.sent.is_full())
    }

    /// Returns true if data must wait until the window has room for a probe of this size, because
    /// otherwise the probe would never be sent. Only a part of the window is kept free.
    #[inline]
    pub fn saves_room_for(&self, probe: u64) -> bool {
        !self.can_send(probe) && probe <= self.window() / PROBE_SHARE
    }

    /// Returns true if pacing allows a datagram to be sent now. Packets that are not paced are
    /// exempt.
    #[inline]
    pub fn may_send_now(&self, now: Instant) -> bool {
        self.pacer.may_send(now)
    }

    /// Returns the number of datagrams that may be sent back to back.
    pub fn train(&self) -> usize {
        let datagrams = self.pacer.train() / u64::from(self.datagram_size.max(1));
        usize::try_from(datagrams).unwrap_or(usize::MAX).max(1)
    }

    /// Returns the time at which a sender that waits only for pacing may send. Meanwhile the window
    /// counts as full.
    pub fn on_paced(&mut self, now: Instant) -> Instant {
        self.window_full_at = Some(now);
        self.pacer.release_at(now)
    }

    /// Returns the pacing rate in bytes per second, or `None` until a round trip was measured.
    pub fn pacing_rate(&self) -> Option<u64> {
        self.pacer.rate()
    }

    /// Returns the number of ack-eliciting packets of a space that may exceed the window.
    pub fn probes(&self, space: Space) -> u8 {
        self.space(space).probes
    }

    /// Returns true if a packet that carries only an ACK should also carry a PING. If the peer
    /// never acknowledged our ACK frames, the ranges in them would never be forgotten (RFC 9000
    /// §13.2.4).
    pub fn needs_ping(&self, space: Space) -> bool {
        let state = self.space(space);
        state.silent >= SILENT_PACKETS && state.eliciting_in_flight == 0
    }

    /// Returns the bytes of a full datagram.
    pub const fn datagram_size(&self) -> u16 {
        self.datagram_size
    }

    /// Updates pacing and congestion control if the path's datagram size changed.
    pub fn on_datagram_size(&mut self, bytes: u16) {
        if bytes == self.datagram_size {
            return;
        }
        self.datagram_size = bytes;
        self.pacer.set_datagram_size(bytes);
        self.controller.on_datagram_size(bytes);
    }

    /// Returns the number of the next packet in a space.
    pub fn next_number(&self, space: Space) -> PacketNumber {
        self.space(space).sent.next_number()
    }

    /// Returns the largest number the peer acknowledged in a space.
    pub fn largest_acked(&self, space: Space) -> Option<PacketNumber> {
        self.space(space).largest_acked
    }

    /// Returns true if an ack-eliciting packet of a space waits for its acknowledgement.
    pub fn has_eliciting_in_flight(&self, space: Space) -> bool {
        self.space(space).eliciting_in_flight > 0
    }

    /// Returns true if no packet of a handshake space is in flight, so that its data must not wait
    /// for the window: 1-RTT packets may fill the window, and are neither acknowledged nor timed
    /// before the handshake is over (RFC 9002 §6.2.1).
    pub fn has_no_timer(&self, space: Space) -> bool {
        space != Space::Data && !self.has_eliciting_in_flight(space)
    }

    /// Returns the number of later packets acknowledged after which a packet counts as lost (RFC
    /// 9002 §6.1.1). It grows if the path reorders packets.
    pub const fn packet_threshold(&self) -> u64 {
        self.reordering.packets()
    }

    /// Returns the time after sending at which a packet counts as lost (RFC 9002 §6.1.2). It grows
    /// if the path reorders packets.
    pub fn time_threshold(&self) -> Duration {
        self.reordering.delay(self.rtt.larger())
    }
}

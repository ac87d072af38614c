//! Changes of the path whose packets loss detection follows, and its careful resumption (RFC 9959).

pub(super) mod ecn;
pub(super) mod pacer;
pub(super) mod reordering;
pub(super) mod report;
pub(super) mod rtt;

use std::time::{Duration, Instant};

use self::{ecn::PathEcn, pacer::Pacer, reordering::Reordering};
use super::{Config, Recovery, Rtt, sent::late::Episode};
use crate::{
    owners::congestion::{
        careful_resume::{Observed, Resuming, Stage},
        delivery::Delivery,
    },
    wire::packet::Space,
};

/// State of loss detection and congestion control of a path that is not in use.
#[derive(Debug)]
pub struct PathState {
    ecn: PathEcn,
    reordering: Reordering,
    episode: Episode,
    rtt: Rtt,
    controller: Resuming,
    datagram_size: u16,
    delivery: Delivery,
    pacer: Pacer,
    window_full_at: Option<Instant>,
}

impl PathState {
    /// Creates the state of an unknown path.
    pub fn new(now: Instant, config: Config) -> Self {
        Self {
            ecn: PathEcn::new(config.ecn),
            reordering: Reordering::new(now),
            episode: Episode::default(),
            rtt: Rtt::new(config.initial_rtt),
            controller: Resuming::new(now, config.controller, config.datagram_size),
            datagram_size: config.datagram_size,
            delivery: Delivery::new(now),
            pacer: Pacer::new(now, config.datagram_size),
            window_full_at: None,
        }
    }
}

impl<R: 'static> Recovery<R> {
    /// Switches to another path (RFC 9000 §9.4). Packets in flight still count as received or lost,
    /// but do not affect the new path. Returns the state of the old one.
    pub fn change_path(&mut self, now: Instant, mut path: PathState) -> PathState {
        self.disown(now);
        path.episode.follow(&self.episode);
        path.ecn.reset();
        PathState {
            ecn: std::mem::replace(&mut self.ecn, path.ecn),
            reordering: std::mem::replace(&mut self.reordering, path.reordering),
            episode: std::mem::replace(&mut self.episode, path.episode),
            rtt: std::mem::replace(&mut self.rtt, path.rtt),
            controller: std::mem::replace(&mut self.controller, path.controller),
            datagram_size: std::mem::replace(&mut self.datagram_size, path.datagram_size),
            delivery: std::mem::replace(&mut self.delivery, path.delivery),
            pacer: std::mem::replace(&mut self.pacer, path.pacer),
            window_full_at: std::mem::replace(&mut self.window_full_at, path.window_full_at),
        }
    }

    /// Follows a path whose address changed but which is believed to be the same: its state is
    /// kept. Packets in flight to the old address may be lost just because of that, and do not
    /// affect it.
    pub fn follow_path(&mut self, now: Instant) {
        self.disown(now);
        self.ecn.reset();
    }

    /// Excludes the packets in flight from the accounting. They are still acknowledged or lost.
    fn disown(&mut self, now: Instant) {
        let state = self.spaces.at(Space::Data);
        state.sent.for_each_mut(|packet| {
            packet.snapshot = None;
            packet.ecn = None;
        });
        state.first_pn = state.sent.next_number();
        state.lost.clear();
        state.probes = 0;
        let in_flight = std::mem::take(&mut self.bytes_in_flight);
        // A peer that keeps moving and acknowledges nothing must not get two probes each time.
        if !self.left_paths.on_left(in_flight) {
            self.pto_count = 0;
        }
        self.rearm(now);
    }

    /// Ends the backoff after a path failed: packets sent there are probed for again at once.
    pub fn on_path_failed(&mut self, now: Instant) {
        self.pto_count = 0;
        self.rearm(now);
    }

    /// Sets an estimate of the round trip that is better than the configured one; has no effect
    /// after the first sample (RFC 9002 §6.2.2).
    pub fn guess_rtt(&mut self, now: Instant, rtt: Duration) {
        if self.rtt.first_sample().is_none() {
            self.rtt = Rtt::new(rtt);
            self.rearm(now);
        }
    }
}

impl<R: 'static> Recovery<R> {
    /// Enables resuming of the path, with at most `max_jump` bytes in flight (RFC 9959).
    pub const fn enable_resume(&mut self, max_jump: u64) {
        self.controller.enable(max_jump);
    }

    /// Takes the state that an earlier connection saved for the same path.
    pub fn resume(&mut self, saved: Observed) {
        self.controller.resume(saved);
    }

    /// Returns the state to save for a later connection, or `None` until there are good
    /// measurements.
    pub fn observed(&self) -> Option<Observed> {
        self.controller.observed()
    }

    /// Returns the stage of resuming.
    pub const fn resume_stage(&self) -> Stage {
        self.controller.stage()
    }
}

//! Statistics of loss detection and congestion control.

use crate::{
    owners::{
        congestion::{Controller, Phase, delivery::rate},
        recovery::{Recovery, Rtt},
    },
    stats::PathStats,
    wire::frame::EcnCounts,
};

impl<R: 'static> Recovery<R> {
    /// Returns the measurements of the path.
    pub fn path_stats(&self) -> PathStats {
        let (delivery_rate, delivery_rate_at) = self.delivery.last_rate().unzip();
        PathStats {
            latest_rtt: self.rtt.latest(),
            min_rtt: self.rtt.min(),
            smoothed_rtt: self.rtt.smoothed(),
            rtt_variance: self.rtt.variance(),
            congestion_window: self.controller.window(),
            bytes_in_flight: self.bytes_in_flight,
            slow_start_threshold: self.controller.slow_start_threshold(),
            controller: self.controller.name(),
            phase: self.phase(),
            delivery_rate,
            delivery_rate_at,
            target_rate: self.target_rate(),
            pacing_rate: self.pacer.rate(),
            packet_threshold: self.packet_threshold(),
            time_threshold: self.time_threshold(),
            pto_count: self.pto_count,
            datagram_size: self.datagram_size,
            ecn: self.ecn.state(),
        }
    }

    /// Returns the rate at which data is expected to get through, in bytes per second.
    fn target_rate(&self) -> u64 {
        let window = || rate(self.controller.window(), self.rtt.smoothed());
        self.controller.target_rate().unwrap_or_else(window)
    }

    /// Returns the phase of the congestion controller.
    pub fn phase(&self) -> Phase {
        self.controller.phase()
    }

    /// Returns the number of congestion episodes.
    pub const fn congestion_events(&self) -> u64 {
        self.episode.number() as u64
    }

    /// Returns the number of packets by the mark with which the peer received them, as far as its
    /// counts are valid.
    pub fn ecn_echoed(&self) -> EcnCounts {
        let counts = self.spaces.iter().map(|space| space.ecn.reported());
        counts.fold(EcnCounts::default(), EcnCounts::plus)
    }

    /// Returns true if the timer is set for packets that may be lost by the time threshold, not for
    /// a probe.
    pub fn awaits_loss(&self) -> bool {
        self.loss_time().is_some()
    }

    /// Returns the round-trip estimate.
    pub const fn rtt(&self) -> &Rtt {
        &self.rtt
    }

    /// Returns the bytes that may be in flight.
    pub fn window(&self) -> u64 {
        self.controller.window()
    }

    /// Returns the bytes in flight in all spaces.
    pub const fn bytes_in_flight(&self) -> u64 {
        self.bytes_in_flight
    }

    /// Returns the number of packets sent.
    pub const fn packets_sent(&self) -> u64 {
        self.totals.packets_sent
    }

    /// Returns the number of packets declared lost.
    pub const fn packets_lost(&self) -> u64 {
        self.totals.packets_lost
    }

    /// Returns the number of packets declared lost that were acknowledged later.
    pub const fn spurious_losses(&self) -> u64 {
        self.totals.spurious_losses
    }

    /// Returns the number of probe timeouts.
    pub const fn ptos(&self) -> u64 {
        self.totals.ptos
    }

    /// Returns the number of probe timeouts since the last progress.
    pub const fn pto_count(&self) -> u32 {
        self.pto_count
    }
}

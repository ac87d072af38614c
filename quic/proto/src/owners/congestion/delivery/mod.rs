//! Delivery rate (draft-ietf-ccwg-bbr §4.1): records state with each packet that is sent, and
//! computes the rate when the packet is acknowledged.

use std::time::{Duration, Instant};

use crate::wire::packet::PacketNumber;

/// No number of bytes that is ever delivered.
const NEVER: u64 = u64::MAX;

#[cfg(test)]
mod tests;

/// Deliveries on the path as known when a packet was sent.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Snapshot {
    /// Bytes delivered until then.
    pub delivered: u64,
    /// Time at which the last of them were acknowledged.
    pub delivered_at: Instant,
    /// Time at which the packet of that acknowledgement was sent: the start of the send interval.
    pub first_sent_at: Instant,
    /// Bytes lost until then.
    pub lost: u64,
    /// Bytes in flight, the packet included.
    pub in_flight: u64,
    /// True if the application did not have enough to send.
    pub app_limited: bool,
}

/// Delivery rate measured by one acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RateSample {
    /// Bytes per second; `None` if the interval is shorter than any possible round trip, so that
    /// the rate means nothing.
    pub rate: Option<u64>,
    /// Bytes delivered since the newest acknowledged packet was sent.
    pub delivered: u64,
    /// Duration of that delivery: the longer of the time to send and the time to acknowledge.
    pub interval: Duration,
    /// Bytes already delivered when that packet was sent.
    pub prior_delivered: u64,
    /// Bytes lost since that packet was sent.
    pub lost: u64,
    /// Bytes in flight when that packet was sent, itself included.
    pub in_flight: u64,
    /// True if the application did not have enough to send at that time.
    pub app_limited: bool,
}

/// Counts deliveries on a path, and takes rate samples.
#[derive(Clone, Debug)]
pub struct Delivery {
    delivered: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    lost: u64,
    /// Number of delivered bytes up to which samples are limited by the application; [`NEVER`] if it does not limit
    /// them.
    app_limited_until: u64,
    /// The last rate that was measured; 0 before the first.
    last_rate: u64,
    last_rate_at: Instant,
}

/// Packets that one acknowledgement has reported so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sampling {
    newest: Option<Acked>,
}

/// A packet that was acknowledged.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Acked {
    /// Its number.
    pub pn: PacketNumber,
    /// Time at which it was sent.
    pub time_sent: Instant,
    /// Its size in bytes.
    pub bytes: u64,
    /// State of the path when it was sent.
    pub snapshot: Snapshot,
}

impl Delivery {
    /// Creates the state of a path on which nothing was delivered.
    pub const fn new(now: Instant) -> Self {
        Self {
            delivered: 0,
            delivered_at: now,
            first_sent_at: now,
            lost: 0,
            app_limited_until: NEVER,
            last_rate: 0,
            last_rate_at: now,
        }
    }

    /// Handles a packet of `bytes` that is sent while `in_flight` bytes are in flight.
    #[inline]
    pub const fn on_sent(&mut self, now: Instant, in_flight: u64, bytes: u64) -> Snapshot {
        if in_flight == 0 {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        Snapshot {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            lost: self.lost,
            in_flight: in_flight.saturating_add(bytes),
            app_limited: self.is_app_limited(),
        }
    }

    /// Handles the acknowledgement of a packet.
    #[inline]
    pub fn on_acked(&mut self, now: Instant, sampling: &mut Sampling, packet: Acked) {
        self.delivered = self.delivered.saturating_add(packet.bytes);
        self.delivered_at = now;
        if sampling.newest.is_none_or(|newest| packet.pn > newest.pn) {
            sampling.newest = Some(packet);
        }
    }

    /// Handles the acknowledgement of a packet that was declared lost. Its bytes count as
    /// delivered, as those of its repetition do, but give no rate. They also stay counted as lost,
    /// because samples rely on that count only growing.
    pub fn on_late(&mut self, now: Instant, bytes: u64) {
        self.delivered = self.delivered.saturating_add(bytes);
        self.delivered_at = now;
    }

    /// Counts `bytes` as lost.
    pub const fn on_lost(&mut self, bytes: u64) {
        self.lost = self.lost.saturating_add(bytes);
    }

    /// Notes that the application did not fill the window, with `in_flight` bytes in flight.
    pub const fn on_app_limited(&mut self, in_flight: u64) {
        self.app_limited_until = self.delivered.saturating_add(in_flight);
    }

    /// Returns the sample of an acknowledgement after all its packets were reported. `min_rtt` is
    /// the shortest possible interval.
    pub fn finish(&mut self, sampling: &Sampling, min_rtt: Duration) -> Option<RateSample> {
        if self.delivered > self.app_limited_until {
            self.app_limited_until = NEVER;
        }
        let Acked {
            time_sent,
            snapshot,
            ..
        } = sampling.newest?;
        self.first_sent_at = time_sent;
        let to_send = time_sent.saturating_duration_since(snapshot.first_sent_at);
        let to_acknowledge = self
            .delivered_at
            .saturating_duration_since(snapshot.delivered_at);
        let interval = to_send.max(to_acknowledge);
        let delivered = self.delivered - snapshot.delivered;
        let rate = (interval >= min_rtt && !interval.is_zero()).then(|| rate(delivered, interval));
        if let Some(rate) = rate {
            self.last_rate = rate;
            self.last_rate_at = self.delivered_at;
        }
        Some(RateSample {
            rate,
            delivered,
            interval,
            prior_delivered: snapshot.delivered,
            lost: self.lost - snapshot.lost,
            in_flight: snapshot.in_flight,
            app_limited: snapshot.app_limited,
        })
    }

    /// Returns the rate of the last sample that had one, in bytes per second, and the time of its acknowledgement.
    pub const fn last_rate(&self) -> Option<(u64, Instant)> {
        match self.last_rate {
            0 => None,
            rate => Some((rate, self.last_rate_at)),
        }
    }

    /// Returns the bytes delivered so far.
    pub const fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Returns the bytes lost so far.
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// Returns true if the application limits the rate now.
    pub const fn is_app_limited(&self) -> bool {
        self.app_limited_until != NEVER
    }
}

/// Returns the rate in bytes per second.
pub fn rate(bytes: u64, interval: Duration) -> u64 {
    let nanos = interval.as_nanos().max(1);
    u64::try_from(u128::from(bytes) * 1_000_000_000 / nanos).unwrap_or(u64::MAX)
}

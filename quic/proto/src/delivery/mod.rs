//! How fast data is delivered (draft-ietf-ccwg-bbr §4.1): what is noted with each packet when it
//! leaves, and the rate that follows from it when it is acknowledged.

use std::time::{Duration, Instant};

use crate::packet::PacketNumber;

#[cfg(test)]
mod tests;

/// What was known of the path's deliveries when a packet left.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot {
    /// Bytes delivered until then.
    pub delivered: u64,
    /// When the last of them were found to be delivered.
    pub delivered_at: Instant,
    /// When the packet was sent whose delivery that was: the start of the send interval.
    pub first_sent_at: Instant,
    /// Bytes lost until then.
    pub lost: u64,
    /// Bytes in flight, the packet included.
    pub in_flight: u64,
    /// True if the application had not enough to send.
    pub app_limited: bool,
}

/// What one acknowledgement says about the rate of delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateSample {
    /// Bytes per second; `None` where the interval is shorter than a round trip can be, so that it
    /// means nothing.
    pub rate: Option<u64>,
    /// Bytes delivered between the sending of the newest packet acknowledged and now.
    pub delivered: u64,
    /// How long that took: the longer of the time to send and the time to acknowledge.
    pub interval: Duration,
    /// Bytes that had been delivered when that packet left.
    pub prior_delivered: u64,
    /// Bytes lost since that packet left.
    pub lost: u64,
    /// Bytes in flight when that packet left, itself included.
    pub in_flight: u64,
    /// True if the application had not enough to send then.
    pub app_limited: bool,
}

/// Counts what is delivered on a path, and takes rate samples.
#[derive(Clone, Debug)]
pub struct Delivery {
    delivered: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    lost: u64,
    /// Samples are the application's limit until so many bytes are delivered.
    app_limited_until: Option<u64>,
    last_rate: Option<u64>,
}

/// The packets that one acknowledgement reports, so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sampling {
    newest: Option<Newest>,
}

#[derive(Clone, Copy, Debug)]
struct Newest {
    pn: PacketNumber,
    time_sent: Instant,
    snapshot: Snapshot,
}

impl Delivery {
    /// Nothing was delivered yet.
    pub const fn new(now: Instant) -> Self {
        Self {
            delivered: 0,
            delivered_at: now,
            first_sent_at: now,
            lost: 0,
            app_limited_until: None,
            last_rate: None,
        }
    }

    /// A packet of so many bytes leaves while `in_flight` others are under way.
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
            app_limited: self.app_limited_until.is_some(),
        }
    }

    /// A packet that was sent with `snapshot` is acknowledged.
    #[inline]
    pub fn on_acked(
        &mut self,
        now: Instant,
        sampling: &mut Sampling,
        (pn, time_sent): (PacketNumber, Instant),
        bytes: u64,
        snapshot: Snapshot,
    ) {
        self.delivered = self.delivered.saturating_add(bytes);
        self.delivered_at = now;
        if sampling.newest.is_none_or(|newest| pn > newest.pn) {
            sampling.newest = Some(Newest {
                pn,
                time_sent,
                snapshot,
            });
        }
    }

    /// A packet that was declared lost is acknowledged. Its bytes did cross the path, as the bytes
    /// that repeat them do, so they count; how fast they came says nothing any more. They stay
    /// among the lost ones: that count only grows, which samples rely on.
    pub fn on_late(&mut self, now: Instant, bytes: u64) {
        self.delivered = self.delivered.saturating_add(bytes);
        self.delivered_at = now;
    }

    /// So many bytes were lost.
    pub const fn on_lost(&mut self, bytes: u64) {
        self.lost = self.lost.saturating_add(bytes);
    }

    /// There was room for more than the application had, with `in_flight` bytes under way.
    pub const fn on_app_limited(&mut self, in_flight: u64) {
        self.app_limited_until = Some(self.delivered.saturating_add(in_flight));
    }

    /// The sample of an acknowledgement whose packets were all told. `min_rtt` is the shortest time
    /// that can have passed.
    pub fn finish(&mut self, sampling: &Sampling, min_rtt: Duration) -> Option<RateSample> {
        if self
            .app_limited_until
            .is_some_and(|until| self.delivered > until)
        {
            self.app_limited_until = None;
        }
        let Newest {
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
        self.last_rate = rate.or(self.last_rate);
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

    /// The rate of the last sample that had one, in bytes per second.
    pub const fn last_rate(&self) -> Option<u64> {
        self.last_rate
    }

    /// Bytes delivered so far.
    pub const fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Bytes lost so far.
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// Returns true if the application is what limits the rate now.
    pub const fn is_app_limited(&self) -> bool {
        self.app_limited_until.is_some()
    }
}

/// Bytes per second.
pub fn rate(bytes: u64, interval: Duration) -> u64 {
    let nanos = interval.as_nanos().max(1);
    u64::try_from(u128::from(bytes) * 1_000_000_000 / nanos).unwrap_or(u64::MAX)
}

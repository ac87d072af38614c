//! Events for tests of controllers: plausible values that a test can change.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use super::{
    Acked, Controller, Lost, LostPacket, Marked, RateSample, RoundTrip, Sent, Severity, Snapshot,
    Spurious, Usage,
};

/// Creates the immediate acknowledgement of one packet of `bytes` sent at `time_sent`.
pub(super) fn acked(time_sent: Instant, bytes: u64, usage: Usage) -> Acked {
    let rtt = Duration::from_millis(100);
    Acked {
        now: time_sent,
        bytes,
        packets: bytes.div_ceil(1200),
        bytes_lost: 0,
        newest_sent: time_sent,
        prior_in_flight: bytes,
        bytes_in_flight: 0,
        usage,
        rtt: RoundTrip {
            sample: Some(rtt),
            smoothed: rtt,
            min: rtt,
        },
        rate: RateSample {
            rate: None,
            delivered: bytes,
            interval: rtt,
            prior_delivered: 0,
            lost: 0,
            in_flight: bytes,
            app_limited: usage == Usage::Underused,
        },
        delivered: bytes,
        marks: 0,
    }
}

/// Creates the loss of one packet sent at `time_sent`.
pub(super) fn lost(
    controller: &mut impl Controller,
    now: Instant,
    time_sent: Instant,
    bytes: u64,
    severity: Severity,
) {
    let packet = LostPacket {
        bytes,
        time_sent,
        snapshot: Snapshot {
            delivered: 0,
            delivered_at: time_sent,
            first_sent_at: time_sent,
            lost: 0,
            in_flight: bytes,
            app_limited: false,
        },
    };
    controller.on_lost(&Lost {
        now,
        packets: &[packet],
        bytes,
        newest_sent: time_sent,
        prior_in_flight: bytes,
        bytes_in_flight: 0,
        delivered: 0,
        lost: bytes,
        severity,
    });
}

/// A controller with packets in flight that a test acknowledges and loses, oldest first, and the
/// state that recovery keeps about them.
#[derive(Clone)]
pub(super) struct Flow<C> {
    pub(super) controller: C,
    pub(super) now: Instant,
    /// Round trip and use of the window that acknowledgements report.
    pub(super) rtt: Duration,
    pub(super) usage: Usage,
    pub(super) bytes_in_flight: u64,
    pub(super) delivered: u64,
    lost: u64,
    packets: VecDeque<LostPacket>,
}

impl<C: Controller> Flow<C> {
    pub(super) const SIZE: u64 = 1200;

    pub(super) fn new(controller: C) -> Self {
        Self {
            controller,
            now: Instant::now(),
            rtt: Duration::from_millis(100),
            usage: Usage::Full,
            bytes_in_flight: 0,
            delivered: 0,
            lost: 0,
            packets: VecDeque::new(),
        }
    }

    pub(super) fn window(&self) -> u64 {
        self.controller.window()
    }

    /// Returns the window in datagrams.
    pub(super) fn datagrams(&self) -> f64 {
        self.window() as f64 / Self::SIZE as f64
    }

    pub(super) fn in_flight(&self) -> usize {
        self.packets.len()
    }

    pub(super) fn send(&mut self) {
        self.bytes_in_flight += Self::SIZE;
        self.packets.push_back(LostPacket {
            bytes: Self::SIZE,
            time_sent: self.now,
            snapshot: Snapshot {
                delivered: self.delivered,
                delivered_at: self.now,
                first_sent_at: self.now,
                lost: self.lost,
                in_flight: self.bytes_in_flight,
                app_limited: self.usage == Usage::Underused,
            },
        });
        self.controller.on_sent(&Sent {
            now: self.now,
            bytes: Self::SIZE,
            bytes_in_flight: self.bytes_in_flight,
            app_limited: self.usage == Usage::Underused,
        });
    }

    /// Sends as much as the window allows. Returns the number of packets.
    pub(super) fn fill(&mut self) -> usize {
        let before = self.packets.len();
        while self.bytes_in_flight + Self::SIZE <= self.window() {
            self.send();
        }
        self.packets.len() - before
    }

    /// Loses the oldest packets.
    pub(super) fn lose(&mut self, count: usize, severity: Severity) {
        let prior_in_flight = self.bytes_in_flight;
        let packets: Vec<_> = self.packets.drain(..count.min(self.in_flight())).collect();
        let Some(newest) = packets.last() else {
            return;
        };
        let bytes = Self::SIZE * packets.len() as u64;
        self.bytes_in_flight -= bytes;
        self.lost += bytes;
        self.controller.on_lost(&Lost {
            now: self.now,
            packets: &packets,
            bytes,
            newest_sent: newest.time_sent,
            prior_in_flight,
            bytes_in_flight: self.bytes_in_flight,
            delivered: self.delivered,
            lost: self.lost,
            severity,
        });
    }

    /// Loses the oldest `lost` packets and acknowledges the next `count` with one ACK.
    pub(super) fn lose_and_ack(&mut self, lost: usize, count: usize) {
        let prior_in_flight = self.bytes_in_flight;
        let lost = lost.min(self.in_flight());
        let arrived: Vec<_> = {
            let end = (lost + count).min(self.in_flight());
            self.packets.drain(lost..end).collect()
        };
        let bytes = Self::SIZE * arrived.len() as u64;
        self.bytes_in_flight -= bytes;
        self.delivered += bytes;
        if lost > 0 {
            self.lose(lost, Severity::Congestion);
        }
        let Some(newest) = arrived.last() else {
            return;
        };
        self.controller.on_acked(&Acked {
            now: self.now,
            bytes_lost: lost as u64 * Self::SIZE,
            newest_sent: newest.time_sent,
            prior_in_flight,
            bytes_in_flight: self.bytes_in_flight,
            rtt: RoundTrip {
                sample: Some(self.rtt),
                smoothed: self.rtt,
                min: self.rtt,
            },
            rate: RateSample {
                rate: None,
                delivered: self.delivered - newest.snapshot.delivered,
                interval: self.rtt,
                prior_delivered: newest.snapshot.delivered,
                lost: self.lost - newest.snapshot.lost,
                in_flight: newest.snapshot.in_flight,
                app_limited: newest.snapshot.app_limited,
            },
            delivered: self.delivered,
            ..acked(newest.time_sent, bytes, self.usage)
        });
    }

    /// Acknowledges the oldest packets at once.
    pub(super) fn ack(&mut self, count: usize) {
        self.lose_and_ack(0, count);
    }

    /// Skips the oldest packets and acknowledges the next `count` with one ACK.
    pub(super) fn ack_after(&mut self, missing: usize, count: usize) {
        let missing: Vec<_> = self.packets.drain(..missing).collect();
        self.ack(count);
        for packet in missing.into_iter().rev() {
            self.packets.push_front(packet);
        }
    }

    /// Reports a mark with a packet that was just sent.
    pub(super) fn mark(&mut self) {
        self.controller.on_marked(&Marked {
            now: self.now,
            marks: 1,
            newest_sent: self.now,
            bytes_in_flight: self.bytes_in_flight,
        });
    }

    pub(super) fn spurious(&mut self) {
        self.controller.on_spurious(&Spurious {
            now: self.now,
            bytes_in_flight: self.bytes_in_flight,
        });
    }

    /// Runs a round trip: sends the window, and acknowledges two packets at a time.
    pub(super) fn round(&mut self) {
        self.fill();
        self.now += self.rtt;
        for _ in 0..self.in_flight().div_ceil(2) {
            self.ack(2);
        }
    }

    /// Runs a loss until recovery is over.
    pub(super) fn recover(&mut self) {
        self.fill();
        self.now += self.rtt;
        self.lose_and_ack(1, self.in_flight() - 1);
        self.now += Duration::from_millis(1);
        self.fill();
        self.ack(1);
    }
}

//! Events for the tests of controllers: plausible values, of which a test changes what it is about.

use std::time::{Duration, Instant};

use super::{
    Acked, Controller, Lost, LostPacket, RateSample, RoundTrip, Severity, Snapshot, Usage,
};

/// So many bytes of one packet sent at `time_sent` are acknowledged at once.
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

/// One packet sent at `time_sent` is lost.
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

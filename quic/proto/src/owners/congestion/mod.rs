//! Congestion control (RFC 9002 §7): how much may be in flight, and how fast it is sent.
//!
//! A controller is told about everything that is sent, acknowledged, lost and marked on one path,
//! and answers with a window and, if it has one, a pacing rate. Bytes in flight, round trips and
//! delivery rates are measured by `recovery` and passed with each event.

mod bbr;
pub mod careful_resume;
mod classic;
pub mod delivery;
mod prague;
#[cfg(test)]
mod testing;

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

pub use self::{
    bbr::Bbr,
    classic::{
        Avoidance, Cause, Classic,
        cubic::{Cubic, Curve},
        new_reno::{Additive, NewReno},
    },
    delivery::{RateSample, Snapshot},
    prague::Prague,
};
pub use crate::{stats::Phase, wire::udp::Ecn};

/// Initial values for a controller.
///
/// Exhaustive: whoever drives the owner must decide on every field.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// Time at which the path is first used.
    pub now: Instant,
    /// Bytes of a full datagram.
    pub datagram_size: u16,
    /// The round trip to assume until one is measured.
    pub initial_rtt: Duration,
    /// Seed for choices that must differ between connections.
    pub seed: u64,
}

/// The round trip of the path (RFC 9002 §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RoundTrip {
    /// Sample from this acknowledgement, without subtracting the peer's delay; `None` if there is
    /// none.
    pub sample: Option<Duration>,
    /// The moving average.
    pub smoothed: Duration,
    /// The smallest.
    pub min: Duration,
}

/// A packet that counts towards the bytes in flight was sent.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Sent {
    /// Time at which it was sent.
    pub now: Instant,
    /// Bytes of the packet.
    pub bytes: u64,
    /// Bytes in flight, this packet included.
    pub bytes_in_flight: u64,
    /// True if the application limited the sending rate before this packet.
    pub app_limited: bool,
}

/// Use of the congestion window while a packet was in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Usage {
    /// The window was full at some time, or would have been without pacing.
    Full,
    /// The application or flow control left room in it all the time (RFC 9002 §7.8).
    Underused,
}

/// First acknowledgement of packets in flight, by one ACK frame. Losses and marks that it revealed
/// are reported before it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Acked {
    /// Time at which the ACK frame arrived.
    pub now: Instant,
    /// Bytes it acknowledged.
    pub bytes: u64,
    /// Packets it acknowledged.
    pub packets: u64,
    /// Bytes that it showed to be lost.
    pub bytes_lost: u64,
    /// Time at which the newest of the acknowledged packets was sent.
    pub newest_sent: Instant,
    /// Bytes in flight before it, including lost ones.
    pub prior_in_flight: u64,
    /// Bytes in flight now.
    pub bytes_in_flight: u64,
    /// Use of the window by the newest packet, which decides whether the window may grow.
    pub usage: Usage,
    /// The round trip.
    pub rtt: RoundTrip,
    /// The delivery rate.
    pub rate: RateSample,
    /// Bytes delivered on the path so far.
    pub delivered: u64,
    /// Packets newly reported as marked with CE.
    pub marks: u64,
}

/// Severity of a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Severity {
    /// Packets are missing.
    Congestion,
    /// Everything was lost for so long that the old window means nothing (RFC 9002 §7.6).
    PersistentCongestion,
}

/// One packet that was declared lost.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct LostPacket {
    /// Bytes of the packet.
    pub bytes: u64,
    /// Time at which it was sent.
    pub time_sent: Instant,
    /// Deliveries on the path as known when it was sent.
    pub snapshot: Snapshot,
}

/// Packets in flight that were declared lost together.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Lost<'a> {
    /// Time at which the loss was detected.
    pub now: Instant,
    /// The packets, oldest first; never empty.
    pub packets: &'a [LostPacket],
    /// Bytes of these packets.
    pub bytes: u64,
    /// Time at which the newest of them was sent.
    pub newest_sent: Instant,
    /// Bytes in flight before.
    pub prior_in_flight: u64,
    /// Bytes in flight now.
    pub bytes_in_flight: u64,
    /// Bytes delivered on the path so far.
    pub delivered: u64,
    /// Bytes lost on the path so far, including these.
    pub lost: u64,
    /// Severity of the loss.
    pub severity: Severity,
}

/// Report of packets marked with CE, whose counts are valid (RFC 9000 §13.4.2).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Marked {
    /// Time at which the report arrived.
    pub now: Instant,
    /// Packets marked.
    pub marks: u64,
    /// Time at which the newest packet acknowledged by that frame was sent.
    pub newest_sent: Instant,
    /// Bytes in flight after the frame was processed.
    pub bytes_in_flight: u64,
}

/// Discovery that all packets that caused the last reduction of the window did arrive.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Spurious {
    /// Time of the discovery.
    pub now: Instant,
    /// Bytes in flight.
    pub bytes_in_flight: u64,
}

/// Capacity of the path as an earlier connection saw it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Resume {
    /// Time of the decision to resume.
    pub now: Instant,
    /// Bytes that may be in flight from now on.
    pub window: u64,
    /// Window at which slow start ends; `None` leaves it as it is.
    pub slow_start_threshold: Option<u64>,
}

/// Decides how many bytes may be in flight on one path, and how fast they are sent.
///
/// Each argument carries the time of its event; a controller has no clock. Windows are used in
/// whole datagrams, and a window below two datagrams counts as two.
pub trait Controller: Send + fmt::Debug {
    /// Handles a packet that was sent.
    fn on_sent(&mut self, _: &Sent) {}

    /// Handles packets that were acknowledged.
    fn on_acked(&mut self, acked: &Acked);

    /// Handles packets that were lost.
    fn on_lost(&mut self, lost: &Lost<'_>);

    /// Handles packets that were marked: congestion without a loss.
    fn on_marked(&mut self, marked: &Marked);

    /// Handles the discovery that the last reduction by [`Controller::on_lost`] was not due to a
    /// loss.
    fn on_spurious(&mut self, _: &Spurious) {}

    /// Takes over the capacity that an earlier connection saw on this path.
    fn on_resume(&mut self, _: &Resume) {}

    /// Handles a change of the path's datagram size.
    fn on_datagram_size(&mut self, bytes: u16);

    /// Returns the number of bytes that may be in flight.
    fn window(&self) -> u64;

    /// Returns the rate in bytes per second at which packets should be sent, or `None` for the rate
    /// that follows from the window and the smoothed round trip, with some headroom.
    fn pacing_rate(&self) -> Option<u64> {
        None
    }

    /// Returns the rate in bytes per second at which data is expected to get through, or `None` for the window per
    /// smoothed round trip.
    fn target_rate(&self) -> Option<u64> {
        None
    }

    /// Returns the number of datagrams, at least 2, that may be sent at once after nothing was in
    /// flight, regardless of the rate (RFC 9002 §7.7).
    fn burst(&self) -> u64 {
        10
    }

    /// Returns the current phase.
    fn phase(&self) -> Phase;

    /// Returns the window at which slow start ends, if the controller has such a threshold.
    fn slow_start_threshold(&self) -> Option<u64> {
        None
    }

    /// Returns how ECN-capable packets are marked: [`Ecn::Ect1`] by controllers that respond to
    /// marks in proportion (RFC 9331), otherwise [`Ecn::Ect0`].
    fn ecn(&self) -> Ecn {
        Ecn::Ect0
    }

    /// Returns the controller's name, for statistics and logs.
    fn name(&self) -> &'static str;
}

/// Function that creates the controller of a new path.
pub type Factory = dyn Fn(&Start) -> Box<dyn Controller> + Send + Sync;

/// Congestion controller of a connection.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum Congestion {
    /// NewReno, the controller of RFC 9002 §7.
    NewReno,
    /// CUBIC (RFC 9438) with HyStart++ (RFC 9406): the default.
    #[default]
    Cubic,
    /// BBR version 3 (draft-ietf-ccwg-bbr): follows a model of the path instead of reacting to each
    /// loss.
    Bbr,
    /// Prague (draft-briscoe-iccrg-prague-congestion-control) for L4S: marks packets ECT(1) and
    /// responds to marks in proportion (RFC 9331). Behind a queue that does not mark, it is CUBIC.
    Prague,
    /// A controller supplied by the application.
    Custom(Arc<Factory>),
}

impl Congestion {
    /// Creates the controller of a new path.
    pub fn start(&self, start: &Start) -> Box<dyn Controller> {
        match self {
            Self::NewReno => Box::new(NewReno::new(start.datagram_size)),
            Self::Cubic => Box::new(Cubic::new(start.datagram_size)),
            Self::Bbr => Box::new(Bbr::new(start)),
            Self::Prague => Box::new(Prague::new(start, Self::Cubic.start(start))),
            Self::Custom(factory) => factory(start),
        }
    }
}

impl fmt::Debug for Congestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NewReno => "NewReno",
            Self::Cubic => "Cubic",
            Self::Bbr => "Bbr",
            Self::Prague => "Prague",
            Self::Custom(_) => "Custom",
        })
    }
}

/// Returns the initial window of RFC 9002 §7.2 in bytes.
pub const fn initial_window(datagram_size: u64) -> u64 {
    let floor = if 2 * datagram_size > 14_720 {
        2 * datagram_size
    } else {
        14_720
    };
    if 10 * datagram_size < floor {
        10 * datagram_size
    } else {
        floor
    }
}

//! Congestion control (RFC 9002 §7): how much may be in flight, and how fast it leaves.
//!
//! A controller hears of everything that is sent, acknowledged, lost and marked on one path, and
//! answers with a window and, if it has one, a pacing rate. Bytes in flight, round trips and
//! delivery rates are measured by `recovery` and handed over with each event.

mod bbr;
pub mod careful_resume;
mod classic;
mod cubic;
mod hystart;
mod new_reno;
mod prague;
mod prr;
#[cfg(test)]
mod testing;

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

pub use self::{
    bbr::Bbr,
    classic::{Avoidance, Cause, Classic},
    cubic::{Cubic, Curve},
    new_reno::{Additive, NewReno},
    prague::Prague,
};

pub use super::{
    delivery::{RateSample, Snapshot},
    ecn::Ecn,
};

/// What a controller starts with.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// When the path is first used.
    pub now: Instant,
    /// Bytes of a full datagram.
    pub datagram_size: u16,
    /// The round trip to assume until one is measured.
    pub initial_rtt: Duration,
    /// For what must not happen everywhere at once.
    pub seed: u64,
}

/// The round trip of the path (RFC 9002 §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundTrip {
    /// What this acknowledgement measured, the peer's delay not taken off; `None` where it measured
    /// nothing.
    pub sample: Option<Duration>,
    /// The moving average.
    pub smoothed: Duration,
    /// The smallest.
    pub min: Duration,
}

/// A packet that counts towards the bytes in flight was sent.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// When.
    pub now: Instant,
    /// Its bytes.
    pub bytes: u64,
    /// Bytes in flight, this packet included.
    pub bytes_in_flight: u64,
    /// True if the application was what limited the rate before it.
    pub app_limited: bool,
}

/// How a sender used its window while a packet was in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    /// The window was full at some time, or only pacing kept it from being so.
    Full,
    /// The application or flow control left room all the time (RFC 9002 §7.8).
    Underused,
}

/// One ACK frame acknowledged packets in flight for the first time. Losses and marks that it
/// revealed were reported before.
#[derive(Clone, Copy, Debug)]
pub struct Acked {
    /// When it came.
    pub now: Instant,
    /// Bytes it acknowledged.
    pub bytes: u64,
    /// Packets it acknowledged.
    pub packets: u64,
    /// Bytes that it showed to be lost.
    pub bytes_lost: u64,
    /// Of the packets acknowledged, when the last was sent.
    pub newest_sent: Instant,
    /// Bytes in flight before it, lost ones included.
    pub prior_in_flight: u64,
    /// Bytes in flight now.
    pub bytes_in_flight: u64,
    /// Whether the newest packet says anything about a larger window.
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

/// How bad a loss is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Packets went missing.
    Congestion,
    /// Nothing came through for so long that the old window means nothing (RFC 9002 §7.6).
    PersistentCongestion,
}

/// One packet that was declared lost.
#[derive(Clone, Copy, Debug)]
pub struct LostPacket {
    /// Its bytes.
    pub bytes: u64,
    /// When it was sent.
    pub time_sent: Instant,
    /// What was known when it was sent.
    pub snapshot: Snapshot,
}

/// Packets in flight were declared lost together.
#[derive(Clone, Copy, Debug)]
pub struct Lost<'a> {
    /// When it was found out.
    pub now: Instant,
    /// The packets, oldest first; never empty.
    pub packets: &'a [LostPacket],
    /// Their bytes.
    pub bytes: u64,
    /// When the last of them was sent.
    pub newest_sent: Instant,
    /// Bytes in flight before.
    pub prior_in_flight: u64,
    /// Bytes in flight now.
    pub bytes_in_flight: u64,
    /// Bytes delivered on the path so far.
    pub delivered: u64,
    /// Bytes lost on the path so far, these included.
    pub lost: u64,
    /// How bad it is.
    pub severity: Severity,
}

/// The peer reported packets marked with CE, and its counts are valid (RFC 9000 §13.4.2).
#[derive(Clone, Copy, Debug)]
pub struct Marked {
    /// When.
    pub now: Instant,
    /// Packets marked.
    pub marks: u64,
    /// When the newest packet acknowledged by that frame was sent.
    pub newest_sent: Instant,
    /// Bytes in flight after what the frame acknowledged.
    pub bytes_in_flight: u64,
}

/// Everything that the last reduction of the window was about turned out to have arrived.
#[derive(Clone, Copy, Debug)]
pub struct Spurious {
    /// When that turned out.
    pub now: Instant,
    /// Bytes in flight.
    pub bytes_in_flight: u64,
}

/// What a path was able to carry when it was used before.
#[derive(Clone, Copy, Debug)]
pub struct Resume {
    /// When it is decided.
    pub now: Instant,
    /// Bytes that may be in flight from now on.
    pub window: u64,
    /// Where slow start ends; `None` leaves it as it is.
    pub slow_start_threshold: Option<u64>,
}

/// What a controller is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It looks for the capacity, fast (RFC 9002 §7.3.1).
    SlowStart,
    /// It answers to congestion (§7.3.2).
    Recovery,
    /// It holds what it found and asks for more slowly (§7.3.3).
    Avoidance,
}

/// Decides how many bytes may be in flight on one path, and how fast they leave.
///
/// Every method has the moment it speaks of in its argument; a controller has no clock. Windows and
/// rates are whole datagrams of whatever it is asked for: a window below two datagrams is taken as
/// two.
pub trait Controller: Send + fmt::Debug {
    /// A packet was sent.
    fn on_sent(&mut self, _: &Sent) {}

    /// Packets were acknowledged.
    fn on_acked(&mut self, acked: &Acked);

    /// Packets were lost.
    fn on_lost(&mut self, lost: &Lost<'_>);

    /// Packets were marked: congestion without a loss.
    fn on_marked(&mut self, marked: &Marked);

    /// What [`Controller::on_lost`] last reduced the window for was no loss.
    fn on_spurious(&mut self, _: &Spurious) {}

    /// What was saved of an earlier connection on this path may be used.
    fn on_resume(&mut self, _: &Resume) {}

    /// The datagram size of the path changed.
    fn on_datagram_size(&mut self, bytes: u16);

    /// Bytes that may be in flight.
    fn window(&self) -> u64;

    /// Bytes per second at which packets should leave. `None`: what the window and the smoothed
    /// round trip give, with some headroom.
    fn pacing_rate(&self) -> Option<u64> {
        None
    }

    /// Datagrams that may leave at once whatever the rate when nothing was under way: at least 2
    /// (RFC 9002 §7.7).
    fn burst(&self) -> u64 {
        10
    }

    /// Returns what it is about.
    fn phase(&self) -> Phase;

    /// Returns where slow start ends, for those that have such a point.
    fn slow_start_threshold(&self) -> Option<u64> {
        None
    }

    /// Returns how ECN-capable packets are marked: [`Ecn::Ect1`] by controllers that answer marks in
    /// proportion (RFC 9331), else [`Ecn::Ect0`].
    fn ecn(&self) -> Ecn {
        Ecn::Ect0
    }

    /// Its name, for statistics and logs.
    fn name(&self) -> &'static str;
}

/// Makes the controller of a new path.
pub type Factory = dyn Fn(&Start) -> Box<dyn Controller> + Send + Sync;

/// Which congestion controller a connection uses.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum Congestion {
    /// As RFC 9002 §7 describes it.
    NewReno,
    /// CUBIC (RFC 9438) with HyStart++ (RFC 9406): the default.
    #[default]
    Cubic,
    /// BBR version 3 (draft-ietf-ccwg-bbr): a model of the path instead of an answer to loss.
    Bbr,
    /// Prague (draft-briscoe-iccrg-prague-congestion-control) for L4S: marks packets ECT(1) and
    /// answers marks in proportion (RFC 9331). Behind a queue that does not mark it is CUBIC.
    Prague,
    /// One of your own.
    Custom(Arc<Factory>),
}

impl Congestion {
    /// Makes the controller of a new path.
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

/// The initial window of RFC 9002 §7.2.
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

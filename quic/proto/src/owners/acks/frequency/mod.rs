//! Acknowledgement frequency, which each end can request from the other
//! (draft-ietf-quic-ack-frequency).

use std::time::Duration;

use crate::wire::{
    error::Violation,
    frame::{self, FrameWriter, Owner, Timing},
    limits,
    packet::Space,
};

#[cfg(test)]
mod tests;

/// The shortest delay that the peer can ask us for: the resolution of timers.
pub const MIN_ACK_DELAY: Duration = Duration::from_millis(1);

/// Number of acknowledgements that a window of packets should produce. Between two requests it may
/// be half or twice as many, which still lets HyStart++ see 8 samples in a round (RFC 9406 §4.3).
const ACKS_PER_WINDOW: u64 = 24;

/// Largest number of packets that one acknowledgement covers.
const PACKETS_PER_ACK: u64 = 64;

/// Acknowledgement frequency that one end requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Request {
    /// Number of ack-eliciting packets that may arrive without an acknowledgement.
    pub threshold: u64,
    /// Longest time that the first of them may wait for its acknowledgement.
    pub max_delay: Duration,
    /// Reordering, in packets, that is acknowledged at once.
    pub reordering: u64,
}

impl Request {
    /// Returns true if the other request differs enough to be worth a frame.
    fn differs(&self, other: &Self) -> bool {
        let far = |a: u64, b: u64| a.max(b) >= a.min(b).saturating_mul(2).max(1);
        far(self.threshold, other.threshold)
            || far(micros(self.max_delay), micros(other.max_delay))
            || far(self.reordering, other.reordering)
    }
}

/// Measurements of the path that determine a good request.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Path {
    /// Number of packets that may be in flight.
    pub window: u64,
    /// The smoothed round trip.
    pub rtt: Duration,
    /// Number of later packets acknowledged after which a packet counts as lost (RFC 9002 §6.1.1).
    pub packet_threshold: u64,
}

/// Sequence number of the `ACK_FREQUENCY` frame in one packet, if it carried one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent(Option<u64>);

impl Sent {
    /// Returns true if the packet carried none.
    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

/// Follows the peer's requests, and sends ours if the peer accepts requests.
///
/// Only one of our requests is in flight at a time; the next waits until its fate is known.
#[derive(Debug)]
pub struct AckFrequency {
    /// The smallest delay the peer may ask for; `None` if it must not ask.
    local_min: Option<Duration>,
    largest_taken: Option<u64>,
    peer: Option<Peer>,
    /// Longest delay that the peer may use, as far as we know.
    peer_max_delay: Duration,
}

/// A peer that accepts requests.
#[derive(Debug)]
struct Peer {
    min_delay: Duration,
    default: Request,
    next_sequence: u64,
    newest: Newest,
    wanted: Option<Request>,
    /// The longest delay requested since the last request that is known to have arrived. It may or
    /// may not be in force.
    unsettled: Duration,
}

/// State of our newest request.
#[derive(Debug)]
enum Newest {
    /// The peer follows this request, or these defaults if none was made.
    InForce(Request),
    /// The request has not been acknowledged yet.
    UnderWay(Request),
    /// The request was lost, and may or may not be in force.
    Lost,
}

impl Owner for AckFrequency {
    type Sent = Sent;

    /// Returns false: a request is never the reason to send a packet, because without packets there
    /// is nothing to acknowledge.
    #[inline]
    fn wants_to_send(&self, _: Space) -> bool {
        false
    }

    #[inline]
    fn has_frames(&self, _: Space) -> bool {
        self.peer.as_ref().is_some_and(|peer| peer.wanted.is_some())
    }

    /// Writes the request that is due.
    fn write_frames(&mut self, _: Timing, out: &mut FrameWriter<'_>, sent: &mut Sent) {
        let Some(peer) = &mut self.peer else { return };
        let Some(request) = peer.wanted else { return };
        let sequence = peer.next_sequence;
        let written = out.write(&frame::AckFrequency {
            sequence,
            threshold: request.threshold,
            max_delay: micros(request.max_delay),
            reordering: request.reordering,
        });
        if !written {
            return;
        }
        peer.next_sequence += 1;
        peer.newest = Newest::UnderWay(request);
        peer.wanted = None;
        peer.unsettled = peer.unsettled.max(request.max_delay);
        *sent = Sent(Some(sequence));
    }

    /// Marks an acknowledged request as in force, if there is no newer one.
    fn on_acked(&mut self, sent: &Sent) {
        if let Some((peer, request)) = self.under_way(*sent) {
            peer.newest = Newest::InForce(request);
            peer.unsettled = Duration::ZERO;
            self.peer_max_delay = request.max_delay;
        }
    }

    /// Schedules a lost request again under a new sequence number, if it was the newest.
    fn on_lost(&mut self, sent: &Sent) {
        if let Some((peer, request)) = self.under_way(*sent) {
            peer.newest = Newest::Lost;
            peer.wanted = Some(request);
        }
    }
}

impl AckFrequency {
    /// Creates the state of an end that delays its acknowledgements by at most `local_max_delay`.
    pub fn new(local_max_delay: Duration) -> Self {
        Self {
            local_min: (local_max_delay >= MIN_ACK_DELAY).then_some(MIN_ACK_DELAY),
            largest_taken: None,
            peer: None,
            // Default until the parameters are known (RFC 9000 §18.2).
            peer_max_delay: Duration::from_millis(25),
        }
    }

    /// Returns the `min_ack_delay` to announce, or `None` for an end that does not delay
    /// acknowledgements: the parameter must not exceed its `max_ack_delay`.
    pub const fn local_min_delay(&self) -> Option<Duration> {
        self.local_min
    }

    /// Takes the peer's `max_ack_delay` and `min_ack_delay` from its transport parameters.
    pub fn set_peer_delays(&mut self, max: Duration, min: Option<Duration>) {
        self.peer_max_delay = max;
        let default = Request {
            threshold: 1,
            max_delay: max,
            reordering: 1,
        };
        self.peer = min.map(|min_delay| Peer {
            min_delay,
            default,
            next_sequence: 0,
            newest: Newest::InForce(default),
            wanted: None,
            unsettled: Duration::ZERO,
        });
    }

    /// Takes a request of the peer. Returns `None` if a newer one was already taken.
    ///
    /// The request is followed as far as [`limits`] allow.
    ///
    /// # Errors
    /// `PROTOCOL_VIOLATION` for a delay below our `min_ack_delay` or beyond the largest
    /// `max_ack_delay`; `FRAME_ENCODING_ERROR`, as for any unknown frame, if we announced no
    /// `min_ack_delay`.
    pub fn on_frame(&mut self, frame: &frame::AckFrequency) -> Result<Option<Request>, Violation> {
        let min = self.announced()?;
        if self
            .largest_taken
            .is_some_and(|taken| frame.sequence <= taken)
        {
            return Ok(None);
        }
        let max_delay = Duration::from_micros(frame.max_delay);
        if max_delay < min {
            return Err(Violation::AckDelayTooShort);
        }
        if max_delay >= Duration::from_millis(1 << 14) {
            return Err(Violation::AckDelayTooLong);
        }
        self.largest_taken = Some(frame.sequence);
        Ok(Some(Request {
            threshold: frame.threshold.min(limits::ACK_THRESHOLD),
            max_delay: max_delay.min(limits::ACK_DELAY),
            reordering: frame.reordering,
        }))
    }

    /// Checks that the peer may send an `IMMEDIATE_ACK`.
    ///
    /// # Errors
    /// `FRAME_ENCODING_ERROR` if we announced no `min_ack_delay`.
    pub fn on_immediate_ack(&self) -> Result<(), Violation> {
        self.announced().map(drop)
    }

    fn announced(&self) -> Result<Duration, Violation> {
        self.local_min.ok_or(Violation::AckFrequencyNotAccepted)
    }

    /// Returns true if the peer accepts requests.
    pub const fn can_ask(&self) -> bool {
        self.peer.is_some()
    }

    /// Considers what to request on a path like this.
    pub fn on_path(&mut self, path: &Path) {
        let Some(peer) = &mut self.peer else { return };
        let best = peer.best(path);
        peer.wanted = match &peer.newest {
            Newest::InForce(request) => best.differs(request).then_some(best),
            Newest::UnderWay(_) => None,
            Newest::Lost => Some(best),
        };
    }

    /// Returns the request in this packet, if it is the newest.
    pub fn made(&self, sent: Sent) -> Option<Request> {
        let peer = self.peer.as_ref()?;
        match peer.newest {
            Newest::UnderWay(request) if sent.0?.checked_add(1) == Some(peer.next_sequence) => {
                Some(request)
            }
            _ => None,
        }
    }

    fn under_way(&mut self, sent: Sent) -> Option<(&mut Peer, Request)> {
        let request = self.made(sent)?;
        Some((self.peer.as_mut()?, request))
    }

    /// Returns the longest time that the peer may delay an acknowledgement, under requests that are
    /// or may be in force (draft-ietf-quic-ack-frequency §7).
    pub fn peer_max_delay(&self) -> Duration {
        let unsettled = self.peer.as_ref().map(|peer| peer.unsettled);
        self.peer_max_delay.max(unsettled.unwrap_or_default())
    }
}

impl Peer {
    /// Returns the best request for a path. Small windows need all acknowledgements of RFC 9000;
    /// larger ones need a few in each round, and none for reordering that is not yet a loss.
    fn best(&self, path: &Path) -> Request {
        let packets = (path.window / ACKS_PER_WINDOW).min(PACKETS_PER_ACK);
        if packets <= 2 {
            return self.default;
        }
        Request {
            threshold: packets - 1,
            max_delay: (path.rtt / 4)
                .min(self.default.max_delay)
                .max(self.min_delay),
            reordering: path.packet_threshold,
        }
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

//! The owner of all paths: what comes from where, and what the connection is told.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use hybriq_tls::Side;

use super::{Address, Event, Path, Patience, State, others::Others};
use crate::{
    frame::{FrameWriter, Owner, Timing},
    limits,
    packet::{Cid, Space},
    prf::Sequence,
    udp::{Arrival, Local, SocketId},
};

/// The peer's connection ids, of which every path uses one (RFC 9000 §9.5).
pub trait PeerCids {
    /// Returns the id in use and its sequence number.
    fn active(&self) -> (u64, Cid);
    /// Returns an id that is in use on some path.
    fn find(&self, sequence: u64) -> Option<Cid>;
    /// Takes a spare id for a path.
    fn take_spare(&mut self) -> Option<(u64, Cid)>;
    /// Makes the id of a path the one in use. Returns false if it was retired.
    fn activate(&mut self, sequence: u64) -> bool;
    /// Retires the id of a path that is forgotten.
    fn retire(&mut self, sequence: u64);
}

/// Facts of the connection that a change of paths depends on.
pub struct Facts<'a> {
    /// Current time.
    pub now: Instant,
    /// How long paths are waited for.
    pub waits: Waits,
    /// The peer's connection ids.
    pub cids: &'a mut dyn PeerCids,
}

/// Times to wait, as the probe timeout of the path in use has it.
#[derive(Clone, Copy, Debug)]
pub struct Waits {
    /// How long a validation takes at most.
    pub patience: Patience,
    /// How long a path is remembered that was left: time for what is under way on it.
    pub keep: Duration,
}

impl Waits {
    /// Computes them from the probe timeout and the round trip assumed of an unknown path.
    #[must_use]
    pub fn new(pto: Duration, initial_rtt: Duration) -> Self {
        Self {
            patience: Patience::new(pto, 3 * initial_rtt),
            keep: 3 * pto,
        }
    }
}

/// Where a peer may move now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moves {
    /// Nowhere: the handshake is not confirmed, or the connection is over.
    Nowhere,
    /// To another port. The peer was asked not to move, but may be behind a NAT that forgot it.
    ToAnotherPort,
    /// Anywhere.
    Anywhere,
}

/// News of a path for the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathEvent {
    /// This path is in use now.
    Changed(Address),
    /// This path was to be used, or was in use, and leads nowhere.
    Failed(Address),
}

/// Another path was taken into use: loss detection and congestion control follow.
#[derive(Debug)]
#[must_use]
pub enum Switch<S> {
    /// It leads the same way as the one before.
    SameWay,
    /// It leads another way.
    OtherWay {
        /// The path that was left: give what is known of it to [`Paths::save_left`].
        left: Address,
        /// What is known of the new path from before.
        saved: Option<Box<S>>,
    },
}

/// What follows from an event on a path.
#[derive(Debug)]
#[must_use]
pub struct Outcome<S> {
    /// Another path is in use.
    pub switch: Option<Switch<S>>,
    /// A first guess at the round trip of the path in use.
    pub round_trip: Option<Duration>,
    /// No path leads to the peer any more.
    pub is_end: bool,
}

impl<S> Default for Outcome<S> {
    fn default() -> Self {
        Self {
            switch: None,
            round_trip: None,
            is_end: false,
        }
    }
}

/// The origin of the datagram in hand, if it did not come on the path in use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Elsewhere {
    pub(super) at: Address,
    /// Bytes of the datagram, while no path was credited with them.
    pub(super) bytes: u64,
}

/// The path that something belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    /// The one in use.
    Active,
    /// The one in this place.
    Other(usize),
}

/// All paths of a connection.
///
/// `S` is what is kept of the round trip and capacity of a path while another is in use.
#[derive(Debug)]
pub struct Paths<S> {
    pub(super) side: Side,
    pub(super) active: Path<S>,
    pub(super) others: Others<S>,
    /// The origin of the datagram in hand.
    pub(super) elsewhere: Option<Elsewhere>,
    /// The ends between which the handshake was made.
    pub(super) first: Address,
    /// A PING must tell the server that we moved.
    pub(super) owes_ping: bool,
    /// Time at which what waits for the pacer may leave.
    pub(super) paced_until: Option<Instant>,
    /// Source of challenges, which nobody can foresee (RFC 9000 §8.2.1).
    challenges: Sequence,
    pub(super) events: VecDeque<PathEvent>,
    /// Bytes of probes that left outside the congestion window since the peer last showed that it
    /// takes what we send.
    pub(super) outside_window: u64,
}

impl<S> Paths<S> {
    /// Starts with one path. The seed is a secret.
    pub fn new(side: Side, mut first: Path<S>, seed: u64) -> Self {
        first.state = State::Active;
        Self {
            side,
            first: first.address(),
            active: first,
            others: Others::default(),
            elsewhere: None,
            owes_ping: false,
            paced_until: None,
            challenges: Sequence::new(seed),
            events: VecDeque::new(),
            outside_window: 0,
        }
    }

    /// Returns the path in use.
    #[inline]
    pub const fn active(&self) -> &Path<S> {
        &self.active
    }

    /// Returns the path in use, to change it.
    #[inline]
    pub const fn active_mut(&mut self) -> &mut Path<S> {
        &mut self.active
    }

    /// Iterates over the paths that are not in use.
    #[cfg(test)]
    pub fn others(&self) -> impl Iterator<Item = &Path<S>> {
        self.others.iter()
    }

    /// Iterates over the paths that are not in use, to change them.
    #[cfg(test)]
    pub fn others_mut(&mut self) -> impl Iterator<Item = &mut Path<S>> {
        self.others.iter_mut()
    }

    /// Forgets the path to fall back to without a trace.
    #[cfg(test)]
    pub fn lose_fallback(&mut self) {
        let place = self.others.position_of(State::Fallback);
        drop(place.and_then(|place| self.others.take(place)));
    }

    /// Returns the next event for the application.
    pub fn poll_event(&mut self) -> Option<PathEvent> {
        self.events.pop_front()
    }

    /// Returns eight bytes that nobody can foresee.
    pub fn draw(&mut self) -> u64 {
        self.challenges.draw()
    }

    /// Sends from that socket from now on. For a client that has sent nothing yet.
    pub const fn start_from(&mut self, socket: SocketId) {
        let mut local = self.active.local();
        local.socket = socket;
        self.active.learn_local(local);
        self.first.local = local;
    }

    /// Returns true if something is or may be sent from that socket.
    pub fn uses(&self, socket: SocketId) -> bool {
        let mut others = self.others.iter();
        self.active.local().socket == socket || others.any(|path| path.local().socket == socket)
    }

    /// Notes which path a datagram came on. Returns false if it must not be taken.
    #[inline]
    pub fn admit(&mut self, arrival: &Arrival, bytes: usize, moves: Moves) -> bool {
        let at = Address {
            peer: arrival.peer,
            local: arrival.local,
        };
        self.elsewhere = None;
        if self.active.is_at(at) {
            self.active.on_received(bytes as u64);
            self.active.learn_local(arrival.local);
            return true;
        }
        self.admit_elsewhere(at, bytes as u64, moves)
    }

    fn admit_elsewhere(&mut self, at: Address, bytes: u64, moves: Moves) -> bool {
        if let Some(path) = self.others.find_mut(at) {
            path.on_received(bytes);
        } else if !self.may_come_from(at, moves) {
            return false;
        } else if self.is_active_socket(at) {
            return true;
        }
        self.elsewhere = Some(Elsewhere { at, bytes });
        true
    }

    /// Returns true if this is a client's path in use although its address changed under it: it
    /// takes what comes, and sends from where it did.
    fn is_active_socket(&self, at: Address) -> bool {
        let same_socket = at.local.socket == self.active.local().socket;
        self.side.is_client() && same_socket && at.peer == self.active.peer()
    }

    /// Returns true if what comes from an unknown address is looked at. A server never moves, but
    /// to its preferred address, which the client knows before (RFC 9000 §9); a client does not
    /// before the handshake is confirmed.
    fn may_come_from(&self, at: Address, moves: Moves) -> bool {
        if self.side.is_client() {
            // It may come late, or from a server that still asks whether we are there.
            return at.peer == self.active.peer() || at.peer == self.first.peer;
        }
        match moves {
            Moves::Nowhere => false,
            Moves::ToAnotherPort => {
                at.peer.ip() == self.active.peer().ip() || self.is_preferred(at.local)
            }
            Moves::Anywhere => true,
        }
    }

    /// Returns true if the datagram in hand came on the path in use.
    #[inline]
    pub const fn came_on_active(&self) -> bool {
        self.elsewhere.is_none()
    }

    /// Notes that an authentic packet came on the path in use, to this id of ours.
    #[inline]
    pub const fn on_packet(&mut self, dcid: Cid) {
        self.active.heard_by = Some(dcid);
    }

    /// Remembers the path of an authentic packet that came elsewhere, before its frames are looked
    /// at. `dcid` is the id of ours that it was sent to.
    pub fn on_packet_elsewhere(&mut self, dcid: &Cid, facts: &mut Facts<'_>) {
        let Some(Elsewhere { at, bytes }) = self.elsewhere else {
            return;
        };
        if self.others.position(at).is_some() || self.side.is_client() {
            return;
        }
        let Some(peer_cid) = self.peer_cid_for(dcid, facts.cids) else {
            return;
        };
        let mut path = Path::new(at, limits::MIN_DATAGRAM as u16);
        path.on_received(bytes);
        path.peer_cid = peer_cid;
        path.validation.start(facts.now, facts.waits.patience);
        self.add(path, facts.cids);
    }

    /// Returns the peer's id for a new path. Where the peer goes on under the same id, so do we: it
    /// may not know that its address changed. Where it uses another, so must we (RFC 9000 §9.5), and
    /// without a spare one the path cannot be used.
    fn peer_cid_for(&mut self, dcid: &Cid, cids: &mut dyn PeerCids) -> Option<u64> {
        if self.active.heard_by.is_none_or(|known| known == *dcid) {
            return Some(cids.active().0);
        }
        let taken = cids.take_spare();
        if taken.is_none() {
            if let Some(left) = self.others.take_left() {
                // The peer replaces its id, and asks again meanwhile.
                self.drop_path(&left, cids);
            }
        }
        taken.map(|(sequence, _)| sequence)
    }

    pub(super) fn add(&mut self, path: Path<S>, cids: &mut dyn PeerCids) {
        if let Some(evicted) = self.others.add(path) {
            self.drop_path(&evicted, cids);
        }
    }

    /// Takes another path through an event, which may be its end.
    pub(super) fn on_event(&mut self, place: usize, event: Event, cids: &mut dyn PeerCids) {
        if let Some(forgotten) = self.others.on_event(place, event) {
            self.drop_path(&forgotten, cids);
        }
    }

    /// Gives back what a forgotten path had, and tells whoever waits to move there.
    pub(super) fn drop_path(&mut self, path: &Path<S>, cids: &mut dyn PeerCids) {
        if path.state == State::Candidate {
            self.events.push_back(PathEvent::Failed(path.address()));
        }
        let shared = |other: &Path<S>| other.peer_cid == path.peer_cid;
        if !self.others.iter().any(shared) {
            cids.retire(path.peer_cid);
        }
    }

    /// Returns true if a server's end is where it would rather be: anywhere but where it was found
    /// first.
    pub(super) fn is_preferred(&self, local: Local) -> bool {
        let first = self.first.local;
        let other_ip = first.ip.zip(local.ip).is_some_and(|(a, b)| a != b);
        self.side.is_server() && (first.socket != local.socket || other_ip)
    }

    /// Returns true if a client went to where the server prefers to be.
    pub fn used_preferred(&self) -> bool {
        self.active.peer() != self.first.peer
    }

    pub(super) fn path_mut(&mut self, which: Which) -> Option<&mut Path<S>> {
        match which {
            Which::Active => Some(&mut self.active),
            Which::Other(place) => self.others.get_mut(place),
        }
    }

    /// Returns the path that the packet in hand came on.
    pub(super) fn came_on(&self) -> Option<Which> {
        match self.elsewhere {
            None => Some(Which::Active),
            Some(_) => self.place_elsewhere().map(Which::Other),
        }
    }

    pub(super) fn place_elsewhere(&self) -> Option<usize> {
        self.others.position(self.elsewhere?.at)
    }

    /// Returns the time until which sending waits for the pacer.
    #[inline]
    pub const fn paced_until(&self) -> Option<Instant> {
        self.paced_until
    }

    /// Sets the time until which sending waits for the pacer.
    #[inline]
    pub const fn pace(&mut self, until: Option<Instant>) {
        self.paced_until = until;
    }
}

/// The PING that tells a server that we moved. It is not repaired: whatever else we send tells as
/// much.
impl<S> Owner for Paths<S> {
    type Sent = ();

    #[inline]
    fn wants_to_send(&self, _: Space) -> bool {
        self.owes_ping
    }

    #[inline]
    fn write_frames(&mut self, _: Timing, out: &mut FrameWriter<'_>, (): &mut ()) {
        if self.owes_ping && out.ping() {
            self.owes_ping = false;
        }
    }

    fn on_acked(&mut self, (): &()) {}

    fn on_lost(&mut self, (): &()) {}
}

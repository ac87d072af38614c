//! The owner of all paths: assigns datagrams to paths, and reports changes to the connection.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use hybriq_tls::Side;

use super::{Address, Event, MtuCounts, MtuRange, Path, Patience, State, others::Others};
use crate::{
    random::prf::Sequence,
    stats::census::Census,
    wire::{
        frame::{FrameWriter, Owner, Timing},
        limits,
        packet::{Cid, NumberedCid, Space},
        udp::{Arrival, Local, SocketId, is_answerable},
    },
};

/// The peer's connection ids; every path uses one of them (RFC 9000 §9.5).
pub trait PeerCids {
    /// Returns the id in use and its sequence number.
    fn active(&self) -> NumberedCid;
    /// Returns an id that is in use on some path.
    fn find(&self, sequence: u64) -> Option<Cid>;
    /// Takes a spare id for a path.
    fn take_spare(&mut self) -> Option<NumberedCid>;
    /// Makes the id of a path the one in use. Returns false if it was retired.
    fn activate(&mut self, sequence: u64) -> bool;
    /// Retires the id of a path that is forgotten.
    fn retire(&mut self, sequence: u64);
}

/// Facts of the connection that a change of paths depends on.
#[non_exhaustive]
pub struct Facts<'a> {
    /// Current time.
    pub now: Instant,
    /// Timeouts of paths.
    pub waits: Waits,
    /// The peer's connection ids.
    pub cids: &'a mut dyn PeerCids,
}

impl std::fmt::Debug for Facts<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Facts")
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}

/// Timeouts of paths, computed from the probe timeout of the path in use.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Waits {
    /// Timeouts of a validation.
    pub patience: Patience,
    /// Time for which a path is kept after it was left, for packets that are still in flight on it.
    pub keep: Duration,
}

impl Waits {
    /// Computes the timeouts from the probe timeout and the round trip that is assumed for an
    /// unknown path.
    #[must_use]
    pub fn new(pto: Duration, initial_rtt: Duration) -> Self {
        Self {
            patience: Patience::new(pto, 3 * initial_rtt),
            keep: 3 * pto,
        }
    }
}

/// Whether the peer may move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Moves {
    /// Not allowed: the handshake is not confirmed, or the connection is over.
    Nowhere,
    /// Allowed to another port only. The peer was asked not to move, but a NAT may have rebound it.
    ToAnotherPort,
    /// Allowed.
    Anywhere,
}

/// Change of a path, for the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PathEvent {
    /// This path is now in use.
    Changed(Address),
    /// This path, wanted or in use, does not reach the peer.
    Failed(Address),
}

/// Change of the path in use, for loss detection and congestion control.
#[derive(Debug)]
#[must_use]
#[non_exhaustive]
pub enum Switch<S> {
    /// The new path leads the same way as the old one.
    SameWay,
    /// The new path leads another way.
    OtherWay {
        /// The path that was left: pass its state to [`Paths::save_left`].
        left: Address,
        /// State of the new path from when it was last used.
        saved: Option<Box<S>>,
    },
}

/// Consequence of an event on a path.
#[derive(Debug)]
#[must_use]
#[non_exhaustive]
pub struct Consequence<S> {
    /// Another path is in use.
    pub switch: Option<Switch<S>>,
    /// First estimate of the round trip of the path in use.
    pub round_trip: Option<Duration>,
    /// True if no path to the peer is left.
    pub is_end: bool,
}

impl<S> Default for Consequence<S> {
    fn default() -> Self {
        Self {
            switch: None,
            round_trip: None,
            is_end: false,
        }
    }
}

/// Where the current datagram came from, if not from the path in use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Elsewhere {
    pub(super) at: Address,
    /// Bytes of the datagram, until they were credited to a path.
    pub(super) bytes: u64,
}

/// Reference to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    /// The path in use.
    Active,
    /// The path at this position among the others.
    Other(usize),
}

/// All paths of a connection.
///
/// `S` is the state of round trip and capacity of a path while another is in use.
#[derive(Debug)]
pub struct Paths<S> {
    pub(super) side: Side,
    pub(super) active: Path<S>,
    pub(super) others: Others<S>,
    /// Where the current datagram came from.
    pub(super) elsewhere: Option<Elsewhere>,
    /// Addresses between which the handshake took place.
    pub(super) first: Address,
    /// True if a PING must tell the server that we moved.
    pub(super) owes_ping: bool,
    /// Time until which sending waits for the pacer.
    pub(super) paced_until: Option<Instant>,
    /// Source of unpredictable challenges (RFC 9000 §8.2.1).
    pub(super) challenges: Sequence,
    pub(super) events: VecDeque<PathEvent>,
    /// Bytes of probes sent outside the congestion window since the peer last showed progress.
    pub(super) outside_window: u64,
    /// Datagram sizes that both ends allow, once the handshake is confirmed.
    pub(super) mtu_range: Option<MtuRange>,
    pub(super) mtu_counts: MtuCounts,
}

impl<S> Paths<S> {
    /// Starts with one path. The seed must be secret.
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
            mtu_range: None,
            mtu_counts: MtuCounts::default(),
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
    pub fn others(&self) -> impl Iterator<Item = &Path<S>> {
        self.others.iter()
    }

    /// Returns the next event for the application.
    pub fn poll_event(&mut self) -> Option<PathEvent> {
        self.events.pop_front()
    }

    /// Returns eight unpredictable bytes.
    pub fn draw(&mut self) -> u64 {
        self.challenges.draw()
    }

    /// Sends from that socket from now on, for a client that has sent nothing yet.
    pub const fn start_from(&mut self, socket: SocketId) {
        let mut local = self.active.local();
        local.socket = socket;
        self.active.learn_local(local);
        self.first.local = local;
    }

    /// Returns true if packets are or may be sent from that socket.
    pub fn uses(&self, socket: SocketId) -> bool {
        let mut others = self.others.iter();
        self.active.local().socket == socket || others.any(|path| path.local().socket == socket)
    }

    /// Notes on which path a datagram arrived. Returns false if it must be dropped.
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

    /// Returns true if this is a client's path in use whose local address changed: packets from
    /// there are accepted, and sending continues as before.
    fn is_active_socket(&self, at: Address) -> bool {
        let same_socket = at.local.socket == self.active.local().socket;
        self.side.is_client() && same_socket && at.peer == self.active.peer()
    }

    /// Returns true if datagrams from an unknown address are accepted. A server moves only to its
    /// preferred address, which the client knows in advance (RFC 9000 §9); a client does not move
    /// before the handshake is confirmed.
    fn may_come_from(&self, at: Address, moves: Moves) -> bool {
        if !is_answerable(at.peer) {
            return false;
        }
        if self.side.is_client() {
            // The packet may be late, or from a server that is still validating our address.
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

    /// Returns true if the current datagram arrived on the path in use.
    #[inline]
    pub const fn came_on_active(&self) -> bool {
        self.elsewhere.is_none()
    }

    /// Notes that an authentic packet arrived on the path in use, sent to this id of ours.
    #[inline]
    pub const fn on_packet(&mut self, dcid: Cid) {
        self.active.reached_by = Some(dcid);
    }

    /// Remembers the path of an authentic packet from elsewhere, before its frames are processed.
    /// `dcid` is the id of ours that it was sent to.
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

    /// Returns the peer's id for a new path. If the peer continues under the same id, so do we: it
    /// may not know that its address changed. If it uses another id, so must we (RFC 9000 §9.5),
    /// and without a spare one the path cannot be used.
    fn peer_cid_for(&mut self, dcid: &Cid, cids: &mut dyn PeerCids) -> Option<u64> {
        if self.active.reached_by.is_none_or(|known| known == *dcid) {
            return Some(cids.active().sequence);
        }
        let taken = cids.take_spare();
        if taken.is_none() {
            if let Some(left) = self.others.take_left() {
                // The peer is replacing its id, and will challenge again.
                self.drop_path(&left, cids);
            }
        }
        taken.map(|spare| spare.sequence)
    }

    pub(super) fn add(&mut self, path: Path<S>, cids: &mut dyn PeerCids) {
        if let Some(evicted) = self.others.add(path) {
            self.drop_path(&evicted, cids);
        }
    }

    /// Applies an event to another path, which may end it.
    pub(super) fn on_event(&mut self, place: usize, event: Event, cids: &mut dyn PeerCids) {
        if let Some(forgotten) = self.others.on_event(place, event) {
            self.drop_path(&forgotten, cids);
        }
    }

    /// Releases the connection id of a forgotten path, and reports the failure if the application
    /// wanted to move there.
    pub(super) fn drop_path(&mut self, path: &Path<S>, cids: &mut dyn PeerCids) {
        if path.state == State::Candidate {
            self.events.push_back(PathEvent::Failed(path.address()));
        }
        let shared = |other: &Path<S>| other.peer_cid == path.peer_cid;
        if !self.others.iter().any(shared) {
            cids.retire(path.peer_cid);
        }
    }

    /// Returns true if a local address is the server's preferred address: any address other than
    /// that of the handshake.
    pub(super) fn is_preferred(&self, local: Local) -> bool {
        let first = self.first.local;
        let other_ip = first.ip.zip(local.ip).is_some_and(|(a, b)| a != b);
        self.side.is_server() && (first.socket != local.socket || other_ip)
    }

    /// Returns true if a client moved to the server's preferred address.
    pub fn used_preferred(&self) -> bool {
        self.active.peer() != self.first.peer
    }

    pub(super) fn path_mut(&mut self, which: Which) -> Option<&mut Path<S>> {
        match which {
            Which::Active => Some(&mut self.active),
            Which::Other(place) => self.others.get_mut(place),
        }
    }

    /// Returns the path on which the current packet arrived.
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

/// Writes the PING that tells a server that we moved. It is not repaired, because any later packet
/// does the same.
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

impl<S> Paths<S> {
    /// Counts every table. A new field does not compile until somebody decides what it holds.
    pub(crate) fn census(&self, census: &mut Census) {
        let Self {
            side: _,
            active,
            others: _,
            elsewhere: _,
            first: _,
            owes_ping,
            paced_until: _,
            challenges: _,
            events,
            outside_window: _,
            mtu_range: _,
            mtu_counts: _,
        } = self;
        for path in std::iter::once(active).chain(self.others()) {
            path.census(census);
        }
        census.add("answers to moves of the peer", usize::from(*owes_ping), 0);
        census.add_of::<PathEvent>("events of paths", events.len());
    }
}

impl<S> Path<S> {
    fn census(&self, census: &mut Census) {
        let Self {
            peer: _,
            local: _,
            credit: _,
            mtu: _,
            responses,
            validation,
            reached_by: _,
            peer_cid: _,
            state: _,
            saved,
        } = self;
        census.add("paths", 1, size_of::<Self>());
        census.add_of::<[u8; 8]>("answers to path challenges", responses.len());
        census.add("path challenges", validation.challenges(), 0);
        census.add_of::<S>("states of paths not in use", usize::from(saved.is_some()));
    }
}

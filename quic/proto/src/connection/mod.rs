//! One connection: composes the owners without knowing their internals.
//!
//! A datagram enters through `receive`, and one `match` in `dispatch` hands its frames to their
//! owners; `transmit` builds datagrams; `owners` is the one list of all owners that send frames,
//! and tells them what was acknowledged and what was lost.

mod close;
mod establish;
mod life;
mod memory;
mod receive;
mod start;
mod transmit;
mod watch;

#[cfg(test)]
mod tests;

use std::{
    collections::VecDeque,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Instant,
};

use hybriq_tls::{CertificateDer, Side};

pub use self::life::paths::{RefusalCause, Refused};
pub(crate) use self::receive::{KeptPacket, Seen};
pub(crate) use self::start::forecast::Situation;
pub use self::start::forecast::{AddressProof, FirstFlight, FlightLimit};
pub use self::start::{Attempt, ClientStart, Exchanged, ServerStart, Setup};
pub(crate) use self::watch::census::most_memory_of_packets;
use self::{
    close::Close,
    establish::opening::Opening,
    life::{state::State, timers::Timers},
    memory::{new_token::NewTokens, resume::PathKeys, server::Remembered},
    transmit::owners::Carried,
    watch::observer::Observer,
};
use crate::{
    config::{ApplicationCodes, TransportConfig},
    events::agreement::Handshake as Agreement,
    owners::{
        acks::{Received, frequency::AckFrequency},
        cids::{self, CidEvent},
        datagrams::{DatagramEvent, Datagrams},
        handshake::{self, Handshake},
        path::{Address, Paths},
        recovery::{Outcome, PathState, Recovery},
        streams::{StreamEvent, Streams},
    },
    stats::{ConnectionStats, PathStats},
    wire::{
        ResetToken,
        error::{ConnectionError, Violation},
        frame::EcnCounts,
        packet::{Cid, PacketNumber, Space, Spaces, Version, header_bits::HeaderBits},
        params::Params,
        udp::{Local, SocketId},
    },
};

/// Event for the application.
#[derive(Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// A client may open streams and send on them in 0-RTT packets, which an attacker can replay.
    EarlyDataReady,
    /// The server refused the 0-RTT data: the streams opened so far are void, and stream ids start
    /// again.
    EarlyDataRejected,
    /// TLS is complete: [`Connection::handshake`] has its outcome, and streams may be used.
    HandshakeComplete,
    /// The handshake is confirmed (RFC 9001 §4.1.2).
    HandshakeConfirmed,
    /// An event of a stream.
    Stream(StreamEvent),
    /// Another path is in use (RFC 9000 §9).
    PathChanged(PathChange),
    /// The path in use, or a new one, failed.
    PathFailed(PathChange),
    /// An event of DATAGRAM frames.
    Datagram(DatagramEvent),
    /// The connection is over for the application. This is the last event.
    Closed(ConnectionError),
}

/// Path of an [`Event`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PathChange {
    /// Address of the peer.
    pub peer: SocketAddr,
    /// Local address and socket.
    pub local: Local,
}

impl PathChange {
    const fn of(at: Address) -> Self {
        Self {
            peer: at.peer,
            local: at.local,
        }
    }
}

/// Request of a connection to its endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// More connection ids for the peer: [`Connection::issue_cids`].
    Cids,
    /// A restart under new ids: [`Connection::restart`].
    Restart,
    /// A route to this connection for packets with this connection id.
    Issued(Cid),
    /// The removal of that route.
    Retired(Cid),
    /// A token that proves this address of the peer: [`Connection::issue_token`].
    Token(IpAddr),
    /// The removal of the connection, which is fully drained.
    Drained,
}

/// Values that both ends negotiated.
struct Agreed {
    /// Version of the client's first flight.
    original_version: Version,
    /// True if the client's 0-RTT data was refused.
    early_data_refused: bool,
    /// Transport parameters of the peer, from the time TLS has them until the handshake is
    /// confirmed.
    params: Option<Box<Params>>,
    /// Exponent of the peer's ACK delays.
    ack_delay_exponent: u8,
    /// True if the peer forbids active migration.
    disable_active_migration: bool,
    /// Outcome of the handshake, once it is complete.
    outcome: Option<Arc<Agreement>>,
}

/// Connection ids of both ends.
pub(crate) struct Cids {
    local: cids::Local,
    peer: cids::Peer,
    /// Destination connection id of a client's Initials until it knows the server's own.
    initial: Cid,
    /// Destination connection id of the client's first Initial.
    original: Cid,
}

impl Cids {
    /// Checks that both ends have seen the same connection ids (RFC 9000 §7.3).
    fn check(&self, side: Side, params: &Params, retry_scid: Option<Cid>) -> Result<(), Violation> {
        if params.initial_scid.as_ref() != Some(self.peer.active()) {
            return Err(Violation::InitialSourceCid);
        }
        if side.is_client() && params.original_dcid != Some(self.original) {
            return Err(Violation::OriginalDestinationCid);
        }
        if side.is_client() && params.retry_scid != retry_scid {
            return Err(Violation::RetrySourceCid);
        }
        Ok(())
    }

    /// Returns our ids in use.
    pub(crate) fn local(&self) -> impl Iterator<Item = Cid> + '_ {
        self.local.active()
    }

    /// Returns the stateless reset tokens for the peer's ids in use; with one of them, a peer that
    /// has lost its state can end the connection (RFC 9000 §10.3).
    pub(crate) fn reset_tokens(&self) -> impl Iterator<Item = &ResetToken> {
        self.peer.reset_tokens()
    }

    /// Returns true if this is the reset token of an id in use. The comparison takes constant time
    /// (RFC 9000 §10.3.1).
    fn is_reset(&self, token: &ResetToken) -> bool {
        let equal = self.reset_tokens().filter(|known| *known == token);
        equal.count() > 0
    }
}

/// Memory that lasts from one connection to the next.
#[derive(Default)]
struct Memory {
    tokens: NewTokens,
    path_keys: PathKeys,
    /// A client's server, if it has a memory of servers.
    server: Option<Remembered>,
}

/// Acknowledgements of both ends.
struct Acks {
    /// Packets that were received.
    received: Spaces<Received>,
    /// Acknowledgement frequency of both ends.
    frequency: AckFrequency,
    /// Packets whose fate the last ACK frame decided; kept empty, to reuse its memory.
    settled: Outcome<Carried>,
}

impl Acks {
    /// Returns the largest packet number that was received in a space, and its time.
    #[inline]
    fn largest(&self, space: Space) -> Option<(PacketNumber, Instant)> {
        self.received.get(space)?.largest()
    }

    /// Returns the marks of the packets that were received.
    fn ecn_counts(&self) -> EcnCounts {
        let counts = self.received.iter().filter_map(Received::ecn_counts);
        counts.fold(EcnCounts::default(), EcnCounts::plus)
    }

    /// Returns true if packets of a space wait for their acknowledgement.
    #[inline]
    fn is_pending(&self, space: Space) -> bool {
        let received = self.received.get(space);
        received.is_some_and(Received::is_ack_pending)
    }
}

/// One connection.
///
/// After every call that may have changed something, call [`super::endpoint::Endpoint::service`],
/// drain [`Connection::poll_event`] and [`Connection::poll_transmit`], and check
/// [`Connection::next_timeout`] again.
pub struct Connection {
    side: Side,
    config: Arc<TransportConfig>,
    state: State,
    paths: Paths<PathState>,
    acks: Acks,
    recovery: Recovery<Carried>,
    handshake: Handshake,
    agreed: Agreed,
    cids: Cids,
    opening: Opening,
    memory: Memory,
    streams: Streams,
    datagrams: Datagrams,
    close: Close,
    timers: Timers,
    header_bits: HeaderBits,
    events: VecDeque<Event>,
    observer: Observer,
}

impl Connection {
    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        if let Some(event) = self.paths.poll_event() {
            return Some(event.into());
        }
        if let Some(event) = self.streams.poll_event() {
            return Some(Event::Stream(event));
        }
        if let Some(event) = self.datagrams.poll_event() {
            return Some(Event::Datagram(event));
        }
        self.close.take_event().map(Event::Closed)
    }

    /// Returns the next request to the endpoint.
    pub(crate) fn poll_need(&mut self) -> Option<Need> {
        if self.opening.wants_restart() {
            return Some(Need::Restart);
        }
        match self.cids.local.poll_event() {
            Some(CidEvent::Issued(cid)) => return Some(Need::Issued(cid)),
            Some(CidEvent::Retired(cid)) => return Some(Need::Retired(cid)),
            None => {}
        }
        if self.state.is_drained() {
            return Some(Need::Drained);
        }
        if let Some(ip) = self.needs_token() {
            return Some(Need::Token(ip));
        }
        (self.state.is_confirmed() && self.cids.local.missing() > 0).then_some(Need::Cids)
    }

    /// Issues connection ids to the peer, as many as the peer allows.
    pub(crate) fn issue_cids(&mut self, issue: impl FnMut() -> cids::Issued) {
        self.cids.local.issue(issue);
    }

    /// Changes the connection ids of both directions, so that an observer cannot link the packets
    /// before and after (RFC 9000 §9.5): packets to the peer carry another of its ids, and the peer
    /// gets new ids from this end and is told to retire the old ones.
    ///
    /// Returns false if the peer has not retired the ids of the last change, has supplied no new
    /// id, or uses none. The ids that can be changed are changed.
    pub fn rotate_cids(&mut self, now: Instant) -> bool {
        if !self.state.is_confirmed() {
            return false;
        }
        let peer = self.cids.peer.advance();
        if peer {
            self.header_bits.on_new_path();
        }
        self.cids.local.rotate(now) && peer
    }

    /// Returns the connection ids of both ends.
    pub(crate) const fn cids(&self) -> &Cids {
        &self.cids
    }

    /// Returns the streams. The caller transmits afterwards.
    pub fn streams(&mut self) -> &mut Streams {
        &mut self.streams
    }

    /// Returns the outcome of the handshake, once it is complete.
    pub fn handshake(&self) -> Option<&Arc<Agreement>> {
        self.agreed.outcome.as_ref()
    }

    /// Returns the exporter of keying material for the application (RFC 8446 §7.5); `None` before
    /// the handshake is complete.
    pub fn exporter(&self) -> Option<&hybriq_tls::Exporter> {
        self.agreed.outcome.as_ref()?;
        self.handshake.exporter()
    }

    /// Returns the peer's certificates, its own first. Empty before the handshake is complete,
    /// after resumption, and if none were requested.
    pub fn peer_certificates(&self) -> &[CertificateDer<'static>] {
        self.handshake.peer_certificates()
    }

    /// Returns the local side.
    pub fn side(&self) -> Side {
        self.side
    }

    /// Returns the codes for handles that the application drops, and for a normal end.
    pub fn application_codes(&self) -> ApplicationCodes {
        self.config.application_codes
    }

    /// Returns the id that names the connection in events: the destination connection id of the
    /// client's first Initial.
    pub const fn id(&self) -> Cid {
        self.cids.original
    }

    /// Selects the socket of a client that has sent nothing yet.
    pub const fn start_from(&mut self, socket: SocketId) {
        self.paths.start_from(socket);
    }

    /// Returns true while something may be sent from that socket.
    pub fn uses(&self, socket: SocketId) -> bool {
        self.paths.uses(socket)
    }

    /// Returns the local address and socket of the path in use.
    pub const fn local(&self) -> Local {
        self.paths.active().local()
    }

    /// Returns the peer's address.
    pub fn peer_address(&self) -> SocketAddr {
        self.paths.active().peer()
    }

    /// Returns the counters.
    pub fn stats(&self) -> ConnectionStats {
        let mtu = self.paths.mtu_counts();
        // Those of the handshake, whose spaces are gone.
        let of_handshake = &self.observer.stats;
        ConnectionStats {
            mtu_probes_sent: mtu.sent,
            mtu_probes_lost: mtu.lost,
            mtu_black_holes: mtu.black_holes,
            packets_lost: self.recovery.packets_lost(),
            spurious_losses: self.recovery.spurious_losses(),
            congestion_events: self.recovery.congestion_events(),
            ptos: self.recovery.ptos(),
            ecn_echoed: of_handshake.ecn_echoed.plus(self.recovery.ecn_echoed()),
            ecn_received: of_handshake.ecn_received.plus(self.acks.ecn_counts()),
            key_updates: self.key_updates(),
            rtt: self.recovery.rtt().smoothed(),
            congestion_window: self.recovery.window(),
            bytes_in_flight: self.recovery.bytes_in_flight(),
            datagram_frames: self.datagrams.stats(),
            ..self.observer.stats
        }
    }

    /// Returns the state of the path in use.
    pub fn path_stats(&self) -> PathStats {
        self.recovery.path_stats()
    }

    /// Returns true if the handshake is not complete.
    pub(crate) fn is_handshaking(&self) -> bool {
        self.state.is_handshaking()
    }

    /// Returns true if either end closed the connection.
    pub fn is_closed(&self) -> bool {
        self.state.is_closed()
    }

    fn fail(&mut self, now: Instant, failure: handshake::Failure) {
        match failure {
            handshake::Failure::Transport(error) => self.close_by_transport(now, error),
            handshake::Failure::KeyExchange(refusal) => self.close_by_policy(now, refusal),
        }
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("side", &self.side)
            .field("peer", &self.paths.active().peer())
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

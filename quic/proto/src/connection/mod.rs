//! One connection: composes the owners and knows none of their secrets.
//!
//! A datagram comes in through `receive`, its frames go to their owners through the one `match`
//! in `dispatch`; `transmit` builds datagrams; `owners` is the one list of those who send frames,
//! and tells them what was acknowledged and what was lost.

mod close;
mod data;
mod dispatch;
mod early;
mod establish;
mod frame_room;
mod key_update;
mod mtu;
mod new_token;
mod observer;
mod opening;
mod owners;
mod paths;
mod probes;
mod receive;
mod reset;
mod resume;
mod retry;
mod schedule;
mod setup;
mod spaces;
mod state;
mod timers;
mod transmit;
mod versions;

#[cfg(test)]
mod tests;

use std::{
    collections::VecDeque,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Instant,
};

use hybriq_tls::{CertificateDer, Side};

use self::{
    close::Close, new_token::NewTokens, observer::Observer, opening::Opening, owners::Carried,
    resume::PathKeys, state::State, timers::Timers,
};
pub(crate) use self::{
    early::KeptPacket,
    receive::{Seen, reserved_bits},
    reset::reset_tail,
};
pub use self::{
    establish::{ClientStart, ServerStart},
    setup::Setup,
    versions::Attempt,
};
use super::{
    ack_frequency::AckFrequency,
    cids::{self, CidEvent},
    datagrams::{DatagramEvent, Datagrams},
    frame::EcnCounts,
    handshake::{self, Handshake},
    header_bits::HeaderBits,
    packet::{Cid, PerSpace, Version},
    params::Params,
    path::{Address, Paths},
    recovery::{Outcome, PathState, Recovery},
    space::Received,
    streams::{StreamEvent, Streams},
    udp::Local,
};
use crate::{
    agreement::Handshake as Agreement,
    config::TransportConfig,
    error::ConnectionError,
    stats::{ConnectionStats, PathStats},
};

/// Something the application may want to know.
#[derive(Debug, PartialEq)]
pub enum Event {
    /// A client may open streams already, and send on them in 0-RTT packets, which whoever
    /// records them can send again.
    EarlyDataReady,
    /// The server did not take what was sent in 0-RTT packets: the streams opened so far never
    /// were, and their ids begin anew.
    EarlyDataRejected,
    /// TLS is complete: [`Connection::handshake`] has its outcome, streams may be used.
    HandshakeComplete,
    /// The handshake is confirmed (RFC 9001 §4.1.2).
    HandshakeConfirmed,
    /// A stream has news.
    Stream(StreamEvent),
    /// Another path is in use (RFC 9000 §9).
    PathChanged(PathChange),
    /// A path was to be used, or was in use, and leads nowhere.
    PathFailed(PathChange),
    /// There is news of DATAGRAM frames.
    Datagram(DatagramEvent),
    /// The connection is over for the application. Comes once, last.
    Closed(ConnectionError),
}

/// The path that an [`Event`] is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathChange {
    /// The peer's address.
    pub peer: SocketAddr,
    /// Our end.
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

/// What a connection wants from its endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// More connection ids to give to the peer: [`Connection::issue_cids`].
    Cids,
    /// To begin again under new ids: [`Connection::restart`].
    Restart,
    /// Packets with this connection id belong here.
    Issued(Cid),
    /// They do no longer.
    Retired(Cid),
    /// A token that proves this address of the peer: [`Connection::issue_token`].
    Token(IpAddr),
    /// Nothing any more: it is drained.
    Drained,
}

/// What both ends told and agreed on.
struct Agreed {
    /// The version of the client's first flight.
    original_version: Version,
    /// True if what a client sent in 0-RTT packets came to nothing.
    early_data_refused: bool,
    /// The peer's transport parameters, once TLS has them.
    params: Option<Params>,
    /// The outcome of the handshake, once it is complete.
    outcome: Option<Agreement>,
}

/// The connection ids of both ends.
struct Cids {
    local: cids::Local,
    peer: cids::Peer,
    /// The id that a client calls a server by until it knows the server's own.
    initial: Cid,
    /// The id that the client's first Initial went to.
    original: Cid,
}

/// What is remembered from one connection to the next.
#[derive(Default)]
struct Memory {
    tokens: NewTokens,
    path_keys: PathKeys,
    /// The server whose version a client remembers.
    server_name: Option<Box<str>>,
}

/// Acknowledgements, of both ends.
struct Acks {
    /// The packets that came in.
    received: PerSpace<Received>,
    /// How often the ends acknowledge.
    frequency: AckFrequency,
    /// The packets whose fate one ACK frame decided; empty but for its room.
    settled: Outcome<Carried>,
}

/// One connection.
///
/// After every call that may have changed something, call [`super::endpoint::Endpoint::service`],
/// drain [`Connection::poll_event`] and [`Connection::poll_transmit`], and look at
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
    opening: Option<Box<Opening>>,
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
    /// The next event.
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

    /// What the endpoint has to do for this connection.
    pub(crate) fn poll_need(&mut self) -> Option<Need> {
        if self.wants_restart() {
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

    /// Gives the peer the connection ids it still may have.
    pub(crate) fn issue_cids(&mut self, issue: impl FnMut() -> cids::Issued) {
        self.cids.local.issue(issue);
    }

    /// Changes the ids of both directions, so that whoever watches cannot tell that what follows is
    /// the same connection as what was before (RFC 9000 §9.5): from now on we send to another id of
    /// the peer's, and the peer is given new ones of ours and told to retire the old.
    ///
    /// `false` if the peer has not retired those from the last time, gave us no id to move to, or
    /// uses none. What could be changed is.
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

    /// The connection ids of ours that are in use.
    pub(crate) fn local_cids(&self) -> impl Iterator<Item = Cid> + '_ {
        self.cids.local.active()
    }

    /// The streams: open, accept, read, write. The caller transmits afterwards.
    pub fn streams(&mut self) -> &mut Streams {
        &mut self.streams
    }

    /// The outcome of the handshake, once it is complete.
    pub fn handshake(&self) -> Option<&Agreement> {
        self.agreed.outcome.as_ref()
    }

    /// Returns what derives keying material for the application (RFC 8446 §7.5); `None` before the
    /// handshake is complete.
    pub fn exporter(&self) -> Option<&hybriq_tls::Exporter> {
        self.agreed.outcome.as_ref()?;
        self.handshake.exporter()
    }

    /// The peer's certificates, its own first; empty before the handshake is complete, on
    /// resumption, and where none was asked for.
    pub fn peer_certificates(&self) -> &[CertificateDer<'static>] {
        self.handshake.peer_certificates()
    }

    /// Which end we are.
    pub fn side(&self) -> Side {
        self.side
    }

    /// Returns the id that events name the connection by: the destination connection id of the
    /// client's first Initial.
    pub const fn id(&self) -> Cid {
        self.cids.original
    }

    /// The peer's address.
    pub fn peer_address(&self) -> SocketAddr {
        self.paths.active().peer()
    }

    /// Counters.
    pub fn stats(&self) -> ConnectionStats {
        ConnectionStats {
            packets_lost: self.recovery.packets_lost(),
            spurious_losses: self.recovery.spurious_losses(),
            congestion_events: self.recovery.congestion_events(),
            ptos: self.recovery.ptos(),
            ecn_echoed: self.recovery.ecn_echoed(),
            ecn_received: self.ecn_received(),
            key_updates: self.key_updates(),
            rtt: self.recovery.rtt().smoothed(),
            congestion_window: self.recovery.window(),
            bytes_in_flight: self.recovery.bytes_in_flight(),
            datagram_frames: self.datagrams.stats(),
            ..self.observer.stats
        }
    }

    fn ecn_received(&self) -> EcnCounts {
        let counts = self.acks.received.iter().filter_map(Received::ecn_counts);
        counts.fold(EcnCounts::default(), EcnCounts::plus)
    }

    /// What is known of the path.
    pub fn path_stats(&self) -> PathStats {
        self.recovery.path_stats()
    }

    /// Whether its handshake is under way.
    pub(crate) fn is_handshaking(&self) -> bool {
        self.state.is_handshaking()
    }

    /// Whether it was closed, by anybody.
    pub fn is_closed(&self) -> bool {
        self.state.is_closed()
    }

    fn fail(&mut self, now: Instant, failure: handshake::Failure) {
        match failure {
            handshake::Failure::Transport(error) => self.close_by_transport(now, error),
            handshake::Failure::KeyExchange(reason) => self.close_by_policy(now, reason),
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

//! The network paths of a connection: the one in use, the others, and migration between them.
//!
//! [`Paths`] owns them all. It takes facts about the rest of the connection as [`Facts`], and
//! returns what the rest must do as values ([`Consequence`], [`Switch`]).
//!
//! A path is in one of these states ([`State`]); it ends as *forgotten*:
//!
//! ```text
//!   a packet from                          we ask for it
//!   an unknown address                     (migration, preferred address)
//!         │                                        │
//!         ▼            answered                    ▼
//!       Heard ───────────────────┐   ┌───────── Candidate ─────▶ forgotten
//!         │ │ the peer moved     │   │ answered     ▲    unanswered, or another is wanted
//!         │ └────────────────────┼──▶│ in full      │ wanted
//!         │ unanswered           │   ▼              │
//!         ▼                      │ Active ◀─────────┼─────────── Fallback
//!     forgotten                  │   │ │   it failed, or the      ▲  │
//!         ▲                      │   │ │   peer moved back        │  │
//!         │                      ▼   ▼ └── to an unvalidated path ┘  │
//!         └─── its time is over ─ Left ◀── the one in use is valid ──┘
//! ```
//!
//! If there are two paths to fall back to, the one left earlier becomes *left*, so that at most one
//! remains. A path that is not validated is forgotten when the connection moves on, because the
//! peer may not be there. If there are too many paths, unvalidated ones are dropped first, and the
//! fallback never (see `Others`).

mod migration;
mod mtu;
mod others;
mod owner;
mod probes;
mod size;
mod state;

use std::net::SocketAddr;

use arrayvec::ArrayVec;

pub use self::{
    migration::{Preferred, Standing},
    mtu::{Learned, Mtu, MtuCounts, MtuRange},
    owner::{Consequence, Facts, Moves, PathEvent, Paths, PeerCids, Switch, Waits},
    probes::{Probe, Window, Wrote},
    state::{
        Event, State,
        validation::{Answered, Expanded, Patience, Validation},
    },
};
use crate::wire::{
    frame::{FrameWriter, PathChallenge, PathResponse},
    limits,
    packet::Cid,
    udp::Local,
};

#[cfg(test)]
mod tests;

/// Addresses of both ends of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Address {
    /// The peer's address.
    pub peer: SocketAddr,
    /// Local address and socket.
    pub local: Local,
}

/// One path (RFC 9000 §8, §9).
///
/// `S` is the state of its round trip and capacity, kept while another path is in use.
#[derive(Debug)]
pub struct Path<S> {
    peer: SocketAddr,
    local: Local,
    credit: Credit,
    mtu: Mtu,
    /// Answers waiting to be sent, oldest first.
    responses: ArrayVec<[u8; 8], { limits::PATH_RESPONSES }>,
    /// Challenges to the peer.
    pub(crate) validation: Validation,
    /// Our connection id that the peer last used on the path.
    reached_by: Option<Cid>,
    /// Sequence number of the peer's id for the path, while the path is not in use.
    pub(crate) peer_cid: u64,
    /// State of the path.
    pub(crate) state: State,
    /// Round trip and capacity from when the path was in use.
    saved: Option<Box<S>>,
}

/// Whether the peer proved its address.
#[derive(Clone, Copy, Debug)]
enum Credit {
    /// The address is not validated: packets might hit a victim.
    Pending { received: u64, sent: u64 },
    /// The address is validated.
    Open,
}

impl<S> Path<S> {
    /// Creates a path to a peer that has not proved its address, as on a server at first.
    pub const fn new(at: Address, datagram_size: u16) -> Self {
        Self {
            peer: at.peer,
            local: at.local,
            credit: Credit::Pending {
                received: 0,
                sent: 0,
            },
            mtu: Mtu::new(datagram_size),
            responses: ArrayVec::new_const(),
            validation: Validation::none(),
            reached_by: None,
            peer_cid: 0,
            state: State::Heard,
            saved: None,
        }
    }

    /// Creates a path that needs no proof: a client's to the address it chose, or a server's after
    /// a valid token.
    pub const fn validated(at: Address, datagram_size: u16) -> Self {
        let mut path = Self::new(at, datagram_size);
        path.credit = Credit::Open;
        path
    }

    /// Returns the peer's address.
    pub const fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Returns our address and socket; the address is known if the socket reports it.
    pub const fn local(&self) -> Local {
        self.local
    }

    /// Takes our address from a received datagram, if it was unknown.
    #[inline]
    pub const fn learn_local(&mut self, local: Local) {
        if self.local.ip.is_none() {
            self.local = local;
        }
    }

    /// Returns true if the path has these ends. An unknown local address matches any.
    #[inline]
    pub fn is_at(&self, at: Address) -> bool {
        self.peer == at.peer && is_same(self.local, at.local)
    }

    /// Returns the addresses of both ends.
    pub const fn address(&self) -> Address {
        Address {
            peer: self.peer,
            local: self.local,
        }
    }

    /// Returns true if the paths differ only in ports, as after a NAT rebinding, and therefore
    /// probably lead the same way (RFC 9000 §9.4).
    pub fn resembles(&self, other: &Self) -> bool {
        self.peer.ip() == other.peer.ip() && is_same(self.local, other.local)
    }

    /// Returns the bytes of a full datagram.
    pub const fn datagram_size(&self) -> u16 {
        self.mtu.size()
    }

    /// Takes over the datagram size of a path that leads the same way and is no longer used.
    pub const fn take_mtu(&mut self, other: &mut Self) {
        std::mem::swap(&mut self.mtu, &mut other.mtu);
    }

    /// Returns the search for the path's datagram size.
    pub const fn mtu(&self) -> &Mtu {
        &self.mtu
    }

    /// Returns the search for the path's datagram size, to report packets to it.
    pub const fn mtu_mut(&mut self) -> &mut Mtu {
        &mut self.mtu
    }

    /// Credits all bytes of a received datagram, even if it could not be processed (RFC 9000 §8.1).
    #[inline]
    pub const fn on_received(&mut self, bytes: u64) {
        if let Credit::Pending { received, .. } = &mut self.credit {
            *received = received.saturating_add(bytes);
        }
    }

    /// Debits a sent datagram, padding included.
    #[inline]
    pub const fn on_sent(&mut self, bytes: u64) {
        if let Credit::Pending { sent, .. } = &mut self.credit {
            *sent = sent.saturating_add(bytes);
        }
    }

    /// Returns the bytes that may be sent before the peer proves its address: three times what was
    /// received (RFC 9000 §8.1), or `u64::MAX` once the address is proven.
    #[inline]
    pub const fn credit(&self) -> u64 {
        match self.credit {
            Credit::Open => u64::MAX,
            Credit::Pending { received, sent } => received
                .saturating_mul(limits::AMPLIFICATION_FACTOR)
                .saturating_sub(sent),
        }
    }

    /// Returns true if a datagram of this many bytes may be sent.
    #[inline]
    pub const fn may_send(&self, bytes: u64) -> bool {
        bytes <= self.credit()
    }

    /// Returns true if the anti-amplification limit leaves no room for a datagram (RFC 9000 §8.1).
    #[inline]
    pub const fn is_blocked(&self) -> bool {
        !self.may_send(limits::MIN_DATAGRAM as u64)
    }

    /// Returns true if the peer proved its address.
    pub const fn is_validated(&self) -> bool {
        matches!(self.credit, Credit::Open)
    }

    /// Notes that the peer proved its address: by a Handshake packet, a token, or a PATH_RESPONSE.
    pub const fn on_validated(&mut self) {
        self.credit = Credit::Open;
    }

    /// Notes that the peer did not answer: it must prove its address again.
    pub const fn on_failed(&mut self) {
        self.credit = Credit::Pending {
            received: 0,
            sent: 0,
        };
    }

    /// Queues the answer to a PATH_CHALLENGE. If there are too many, the oldest is dropped.
    pub fn on_challenge(&mut self, challenge: &PathChallenge) {
        if self.responses.is_full() {
            self.responses.remove(0);
        }
        self.responses.push(challenge.0);
    }

    /// Returns true if a PATH_CHALLENGE or PATH_RESPONSE waits. Its datagram must be padded to 1200
    /// bytes, as far as [`Path::credit`] allows (RFC 9000 §8.2.1, §8.2.2).
    #[inline]
    pub fn wants_probe(&self) -> bool {
        self.has_pending() || self.validation.is_due()
    }

    /// Returns true if a PATH_RESPONSE waits.
    pub const fn has_pending(&self) -> bool {
        !self.responses.is_empty()
    }

    /// Writes the answers. They are sent only once: a peer that misses one challenges again (RFC
    /// 9000 §13.3).
    pub fn write_frames(&mut self, out: &mut FrameWriter<'_>) {
        let written = self
            .responses
            .iter()
            .take_while(|data| out.write(&PathResponse(**data)))
            .count();
        self.responses.drain(..written);
    }
}

fn is_same(ours: Local, other: Local) -> bool {
    let ip = match (ours.ip, other.ip) {
        (Some(ours), Some(other)) => ours == other,
        _ => true,
    };
    ours.socket == other.socket && ip
}

//! The network path of a connection: its addresses, what may be sent on it, its challenges.

use std::net::SocketAddr;

use arrayvec::ArrayVec;

mod mtu;

pub use mtu::Mtu;

use super::{
    datagram::Local,
    frame::{FrameWriter, PathChallenge, PathResponse},
    limits,
};

#[cfg(test)]
mod tests;

/// One path (RFC 9000 §8, §9).
#[derive(Debug)]
pub struct Path {
    peer: SocketAddr,
    local: Local,
    validation: Validation,
    mtu: Mtu,
    /// Answers that wait to be sent, oldest first.
    responses: ArrayVec<[u8; 8], { limits::PATH_RESPONSES }>,
}

/// Whether the peer is known to receive at its address.
#[derive(Clone, Copy, Debug)]
enum Validation {
    /// Not yet: what we send might hit somebody else.
    Pending { received: u64, sent: u64 },
    /// It answered something only it can have read.
    Done,
}

impl Path {
    /// A path to a peer that has not proved its address: a server's at first.
    pub const fn new(peer: SocketAddr, local: Local, datagram_size: u16) -> Self {
        Self {
            peer,
            local,
            validation: Validation::Pending {
                received: 0,
                sent: 0,
            },
            mtu: Mtu::new(datagram_size),
            responses: ArrayVec::new_const(),
        }
    }

    /// A path that needs no proof: a client's to the address it chose, or a server's after a valid
    /// token.
    pub const fn validated(peer: SocketAddr, local: Local, datagram_size: u16) -> Self {
        let mut path = Self::new(peer, local, datagram_size);
        path.validation = Validation::Done;
        path
    }

    /// The peer's address.
    pub const fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Our address, where the socket tells.
    pub const fn local(&self) -> Local {
        self.local
    }

    /// Learns our address from a received datagram.
    pub const fn set_local(&mut self, local: Local) {
        self.local = local;
    }

    /// Bytes of a full datagram.
    pub const fn datagram_size(&self) -> u16 {
        self.mtu.size()
    }

    /// What it carries.
    pub const fn mtu(&self) -> &Mtu {
        &self.mtu
    }

    /// The same, to tell it what arrived.
    pub const fn mtu_mut(&mut self) -> &mut Mtu {
        &mut self.mtu
    }

    /// Credits a received datagram: all its bytes, whatever could be made of them (RFC 9000 §8.1).
    #[inline]
    pub const fn on_received(&mut self, bytes: u64) {
        if let Validation::Pending { received, .. } = &mut self.validation {
            *received = received.saturating_add(bytes);
        }
    }

    /// Debits a sent datagram, padding included.
    #[inline]
    pub const fn on_sent(&mut self, bytes: u64) {
        if let Validation::Pending { sent, .. } = &mut self.validation {
            *sent = sent.saturating_add(bytes);
        }
    }

    /// Bytes that may be sent before the peer proves its address: three times what was received
    /// (RFC 9000 §8.1). `u64::MAX` once it did.
    #[inline]
    pub const fn credit(&self) -> u64 {
        match self.validation {
            Validation::Done => u64::MAX,
            Validation::Pending { received, sent } => received
                .saturating_mul(limits::AMPLIFICATION_FACTOR)
                .saturating_sub(sent),
        }
    }

    /// Whether a datagram of so many bytes may be sent.
    #[inline]
    pub const fn may_send(&self, bytes: u64) -> bool {
        bytes <= self.credit()
    }

    /// Whether the peer proved its address.
    pub const fn is_validated(&self) -> bool {
        matches!(self.validation, Validation::Done)
    }

    /// The peer proved its address: by a Handshake packet, a token, or a PATH_RESPONSE.
    pub const fn on_validated(&mut self) {
        self.validation = Validation::Done;
    }

    /// Queues the answer to a PATH_CHALLENGE. Of too many the oldest gives way.
    pub fn on_challenge(&mut self, challenge: &PathChallenge) {
        if self.responses.is_full() {
            self.responses.remove(0);
        }
        self.responses.push(challenge.0);
    }

    /// Whether a PATH_RESPONSE waits. Its datagram is to be filled up to 1200 bytes, as far as
    /// [`Path::credit`] goes (RFC 9000 §8.2.2).
    pub const fn has_pending(&self) -> bool {
        !self.responses.is_empty()
    }

    /// Writes the answers. They are sent once: a peer that misses one challenges again
    /// (RFC 9000 §13.3), so there is nothing to remember.
    pub fn write_frames(&mut self, out: &mut FrameWriter<'_>) {
        let written = self
            .responses
            .iter()
            .take_while(|data| out.write(&PathResponse(**data)))
            .count();
        self.responses.drain(..written);
    }
}

use std::ops::{Index, IndexMut};

use hybriq_tls::Level;

use crate::proto::{packet::Space, space::Received};

/// What each packet-number space keeps: what came in, the next number out, probes owed.
#[derive(Debug, Default)]
pub(super) struct Spaces {
    initial: PacketSpace,
    handshake: PacketSpace,
    data: PacketSpace,
}

#[derive(Debug, Default)]
pub(super) struct PacketSpace {
    pub(super) received: Received,
    pub(super) next_pn: u64,
    pub(super) largest_acked: Option<u64>,
    /// Datagrams that may be sent whatever the congestion window says (RFC 9002 §6.2.4).
    pub(super) probes: u8,
}

impl Index<Space> for Spaces {
    type Output = PacketSpace;

    fn index(&self, space: Space) -> &PacketSpace {
        match space {
            Space::Initial => &self.initial,
            Space::Handshake => &self.handshake,
            Space::Data => &self.data,
        }
    }
}

impl IndexMut<Space> for Spaces {
    fn index_mut(&mut self, space: Space) -> &mut PacketSpace {
        match space {
            Space::Initial => &mut self.initial,
            Space::Handshake => &mut self.handshake,
            Space::Data => &mut self.data,
        }
    }
}

/// The level whose CRYPTO frames travel in a space.
pub(super) const fn level(space: Space) -> Level {
    match space {
        Space::Initial => Level::Initial,
        Space::Handshake => Level::Handshake,
        Space::Data => Level::OneRtt,
    }
}

//! Packets that may be sent with the available keys.

use crate::{
    owners::handshake::{Handshake, OneRtt},
    wire::packet::{DirectionKeys, Kind, Space},
};

impl Handshake {
    /// Returns true if a client currently sends 0-RTT packets.
    #[inline]
    pub(crate) fn sends_zero_rtt(&self) -> bool {
        self.side.is_client() && !self.complete && self.keys.zero_rtt().is_some()
    }

    /// Returns the kind of packet sent in a space.
    #[inline]
    pub(crate) fn kind_of(&self, space: Space) -> Kind {
        match space {
            Space::Initial => Kind::Initial,
            Space::Handshake => Kind::Handshake,
            Space::Data if self.sends_zero_rtt() => Kind::ZeroRtt,
            Space::Data => Kind::OneRtt,
        }
    }

    /// Returns true if packets of a space may be sent. A server may send 1-RTT packets right after
    /// its Finished, a client once TLS is complete.
    pub(crate) fn may_send(&self, space: Space) -> bool {
        match space {
            Space::Initial => self.keys.initial().is_some(),
            Space::Handshake => self.keys.handshake().is_some(),
            Space::Data => {
                let allowed = self.side.is_server() || self.complete;
                (self.keys.one_rtt().is_some() && allowed) || self.sends_zero_rtt()
            }
        }
    }

    /// Returns the keys that seal packets of a space.
    #[inline]
    pub(crate) fn sealing_keys(&self, space: Space) -> Option<&DirectionKeys> {
        match space {
            Space::Initial => self.keys.initial().map(|keys| &keys.local),
            Space::Handshake => self.keys.handshake().map(|keys| &keys.local),
            Space::Data if self.sends_zero_rtt() => self.keys.zero_rtt(),
            Space::Data => self.keys.one_rtt().map(OneRtt::local),
        }
    }
}

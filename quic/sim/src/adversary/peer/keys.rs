//! The 1-RTT keys of a hostile peer and of its victim, through key updates.

use hybriq_proto::wire::packet::{
    Decoded, DirectionKeys, KeyPhase, Kind, PacketNumber, Packets, Version, next_packet_key,
};
use hybriq_tls::Secret;

/// Length of the connection ids of a hostile peer.
const CID_LEN: usize = 8;

/// Keys of one direction.
struct Direction {
    /// Secret of `keys`, or of the update that follows.
    secret: Secret,
    keys: DirectionKeys,
    phase: KeyPhase,
}

impl Direction {
    fn new(secret: Secret) -> Self {
        Self {
            keys: DirectionKeys::from_secret(Version::V1, &secret),
            secret,
            phase: KeyPhase::Zero,
        }
    }

    fn update(&mut self) {
        self.keys.packet = next_packet_key(Version::V1, &mut self.secret);
        self.phase = self.phase.toggled();
    }
}

/// Keys of both directions.
pub(in crate::adversary) struct Keys {
    own: Direction,
    victim: Direction,
    /// Largest number of a packet of the victim.
    largest: Option<PacketNumber>,
}

impl Keys {
    /// Takes the secrets of the handshake.
    pub(in crate::adversary) fn new(own: Secret, victim: Secret) -> Self {
        Self {
            own: Direction::new(own),
            victim: Direction::new(victim),
            largest: None,
        }
    }

    /// Returns the keys to seal with, and their phase.
    pub(in crate::adversary) const fn own(&self) -> (&DirectionKeys, KeyPhase) {
        (&self.own.keys, self.own.phase)
    }

    /// Updates the keys if the victim has followed the last update: an earlier update would end the
    /// connection (RFC 9001 §6.1).
    pub(in crate::adversary) fn update(&mut self) {
        if self.victim.phase == self.own.phase {
            self.own.update();
        }
    }

    /// Calls `read` with the number and the frames of each 1-RTT packet of a datagram.
    pub(in crate::adversary) fn read(&mut self, datagram: &[u8], mut read: impl FnMut(u64, &[u8])) {
        let mut datagram = datagram.to_vec();
        for packet in Packets::new(&mut datagram, CID_LEN) {
            let Ok(Decoded::Protected(packet)) = packet else {
                return;
            };
            if packet.kind != Kind::OneRtt {
                continue;
            }
            let Ok(packet) = packet.unprotect(&self.victim.keys.header, self.largest) else {
                return;
            };
            // The victim updates its keys too, and follows our updates. Its packets arrive in
            // order.
            if packet.key_phase != self.victim.phase {
                self.victim.update();
                if self.own.phase != self.victim.phase {
                    self.own.update();
                }
            }
            let number = packet.pn;
            let Ok(payload) = packet.open(&self.victim.keys.packet) else {
                return;
            };
            self.largest = self.largest.max(Some(number));
            read(number.get(), payload);
        }
    }
}

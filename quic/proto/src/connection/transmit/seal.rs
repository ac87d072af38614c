//! The last step for every packet: encryption, and reports to everyone who counts or remembers
//! packets.

use std::time::Instant;

use super::owners::Carried;
use crate::{
    connection::Connection,
    owners::recovery::{Held, SentPacket},
    wire::{
        packet::{PacketBuilder, PacketNumber, Space},
        udp::{Ecn, Transmit},
    },
};

/// How a sealed packet is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::connection) enum Tracking {
    /// Loss detection tracks the packet.
    Full,
    /// The packet is on a path that is not in use: it only restarts timers. Loss detection sees
    /// only packets on the path in use; path validation by either end repeats the others.
    OtherPath,
    /// The packet is forgotten, because the connection is closed.
    None,
}

/// Facts about the frames in a packet.
#[derive(Clone, Copy, Debug)]
pub(in crate::connection) struct Payload {
    /// Bytes of the frames.
    pub(in crate::connection) frames: usize,
    /// Size to which the packet is padded, in bytes, if it has room; 0 for no padding.
    pub(in crate::connection) pad_to: usize,
    /// True if the peer must acknowledge the packet.
    pub(in crate::connection) ack_eliciting: bool,
    /// The largest number of the ACK frame, if there is one.
    pub(in crate::connection) acks: Option<PacketNumber>,
    /// ECN mark of the datagram.
    pub(in crate::connection) ecn: Option<Ecn>,
}

impl Connection {
    /// Encrypts a packet, and counts, reports and records it. Returns its size, or 0 if the space
    /// has no keys.
    #[inline]
    pub(in crate::connection) fn seal(
        &mut self,
        now: Instant,
        packet: PacketBuilder<'_>,
        payload: Payload,
        carried: Carried,
        tracking: Tracking,
    ) -> usize {
        let Payload {
            frames,
            pad_to,
            ack_eliciting,
            acks,
            ecn,
        } = payload;
        let (space, pn) = (carried.space, packet.pn());
        let Some(keys) = self.handshake.sealing_keys(space) else {
            return 0;
        };
        self.observer.keep(|| packet.payload(frames));
        let is_padded = pad_to > frames + packet.overhead();
        let size = packet.finish_padded(frames, pad_to, keys);
        let kind = || self.handshake.kind_of(space);
        self.observer.on_sealed(kind, pn, size, ecn);
        if let Some(largest) = acks {
            self.on_ack_sent(space, largest);
        }
        match tracking {
            Tracking::Full => {
                let sent = SentPacket {
                    time_sent: now,
                    size: size as u16,
                    ack_eliciting,
                    in_flight: ack_eliciting || is_padded,
                    largest_acked: acks,
                    ecn,
                    snapshot: None,
                    held: Held::of(carried.held()),
                    record: carried,
                };
                self.track(now, space, pn, sent);
            }
            Tracking::OtherPath => {
                self.recovery.on_number_used(space, pn);
                self.restart_timers(now);
                self.wear_keys(now, space, pn);
            }
            Tracking::None => self.recovery.on_number_used(space, pn),
        }
        size
    }

    /// Hands a packet to loss detection.
    fn track(&mut self, now: Instant, space: Space, pn: PacketNumber, sent: SentPacket<Carried>) {
        let ack_eliciting = sent.ack_eliciting;
        self.recovery.on_packet_sent(space, pn, sent);
        if ack_eliciting {
            self.restart_timers(now);
        }
        self.wear_keys(now, space, pn);
    }

    /// Restarts the timers that count from the last ack-eliciting packet.
    #[inline]
    fn restart_timers(&mut self, now: Instant) {
        let pto = self.pto(Space::Data);
        self.timers.on_sent(now, pto);
    }

    /// Counts an ACK frame, which may permit the next key update (RFC 9001 §6.1).
    #[inline]
    fn on_ack_sent(&mut self, space: Space, largest: PacketNumber) {
        self.observer.stats.acks_sent += 1;
        let keys = self.handshake.keys_mut().one_rtt_mut();
        if let Some(keys) = keys.filter(|_| space == Space::Data) {
            keys.on_acknowledgement_sent(largest);
        }
    }

    /// Counts a use of keys, and discards or replaces those that are no longer needed.
    #[inline]
    fn wear_keys(&mut self, now: Instant, space: Space, pn: PacketNumber) {
        match space {
            Space::Handshake if self.side.is_client() => self.discard(now, Space::Initial),
            Space::Data if self.handshake.sends_zero_rtt() => {
                self.handshake.keys_mut().on_zero_rtt_sealed();
            }
            Space::Data => self.count_sealed(now, pn),
            _ => {}
        }
    }

    /// Returns the datagrams to send on the path in use: `size` bytes in total, with `segment`
    /// bytes in every datagram but the last.
    #[inline]
    pub(in crate::connection) fn transmit_of(&mut self, size: usize, segment: usize) -> Transmit {
        let transmit = Transmit {
            peer: self.paths.active().peer(),
            local: self.paths.active().local(),
            ecn: self.recovery.ecn_mark(),
            size,
            segment_size: (size > segment).then_some(segment),
        };
        self.observer.counted(transmit)
    }
}

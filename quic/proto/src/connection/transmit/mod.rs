//! From frames to datagrams: coalescing, padding, and batches.

pub(super) mod frame_room;
pub(super) mod owners;
pub(super) mod probes;
pub(super) mod schedule;
pub(super) mod seal;

use std::time::Instant;

use hybriq_tls::Side;

use self::{
    schedule::Due,
    seal::{Payload, Tracking},
};
use super::Connection;
use crate::wire::{
    limits,
    packet::{Header, Kind, PacketBuilder, PacketNumber, PerSpace, Space},
    udp::Transmit,
};

/// Remaining bytes of a datagram below which no further packet is started.
const MIN_PACKET: usize = 64;

/// Padding of a packet in its datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Padding {
    /// No padding.
    None,
    /// Padding up to 1200 bytes of datagram (RFC 9000 §14.1).
    Fill,
    /// The same, unless another packet follows in the remaining room.
    FillUnlessMoreFits,
}

/// Room for a packet in a datagram.
pub(super) struct Room<'a> {
    pub(super) buffer: &'a mut [u8],
    pub(super) padding: Padding,
}

impl Connection {
    /// Fills `out` with up to `max_datagrams` datagrams for one destination; all but the last have
    /// the same size. `None` means that there is nothing to send now.
    pub fn poll_transmit(
        &mut self,
        now: Instant,
        out: &mut [u8],
        max_datagrams: usize,
    ) -> Option<Transmit> {
        self.observer.at(now);
        let transmit = if self.state.is_closed() {
            self.transmit_close(now, out)
        } else {
            let probe = self.transmit_probe(now, out);
            probe.or_else(|| self.transmit_train(now, out, max_datagrams))
        };
        self.observe();
        transmit
    }

    fn transmit_train(
        &mut self,
        now: Instant,
        out: &mut [u8],
        max_datagrams: usize,
    ) -> Option<Transmit> {
        self.start_wanted_update(now);
        if let Some(probe) = self.transmit_mtu_probe(now, out) {
            return Some(probe);
        }
        let mut size = 0;
        let mut segment = None;
        for _ in 0..max_datagrams.min(self.recovery.train()) {
            let limit = self.paths.datagram_limit(self.recovery.probes(Space::Data));
            let limit = limit.min(segment.unwrap_or(usize::MAX));
            if size > 0 && size + limit > limits::TRAIN {
                break;
            }
            let Some(buffer) = out.get_mut(size..size + limit) else {
                break;
            };
            let written = self.write_datagram(now, buffer);
            size += written;
            if written > 0 {
                segment = segment.or(Some(written));
            }
            if Some(written) < segment || written < limit {
                break;
            }
        }
        let Some(segment) = segment else {
            self.note_limit(now);
            return None;
        };
        Some(self.transmit_of(size, segment))
    }

    /// Writes one datagram with packets of all spaces that have something to send (RFC 9000 §12.2).
    fn write_datagram(&mut self, now: Instant, buffer: &mut [u8]) -> usize {
        let due = self.due_in_all(now);
        let must_fill = must_fill(self.side, due);
        let room = usize::try_from(self.paths.active().credit())
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        if room < buffer.len() && (must_fill || room < MIN_PACKET) {
            return 0;
        }
        let room = if must_fill {
            room.min(limits::MIN_DATAGRAM)
        } else {
            room
        };
        let mut written = 0;
        for space in Space::ALL {
            let wanted = due[space];
            let Some(rest) = buffer
                .get_mut(written..room)
                .filter(|_| wanted != Due::Nothing)
            else {
                continue;
            };
            let follows = Space::ALL
                .iter()
                .any(|later| *later > space && due[*later] != Due::Nothing);
            let padding = match (must_fill, follows) {
                (false, _) => Padding::None,
                (true, false) => Padding::Fill,
                (true, true) => Padding::FillUnlessMoreFits,
            };
            if !rest.is_empty() {
                written += self.write_packet(
                    now,
                    space,
                    wanted,
                    Room {
                        buffer: rest,
                        padding,
                    },
                );
            }
        }
        self.paths.active_mut().on_sent(written as u64);
        if !must_fill {
            self.paths.active_mut().mtu_mut().on_sent(written);
        }
        written
    }

    fn due_in_all(&mut self, now: Instant) -> PerSpace<Due> {
        let mut due = PerSpace {
            initial: Due::Nothing,
            handshake: Due::Nothing,
            data: self.due(Space::Data, now),
        };
        if !self.handshake.keys().has_early_spaces() {
            return due;
        }
        due.initial = self.due(Space::Initial, now);
        due.handshake = self.due(Space::Handshake, now);
        // 0-RTT data follows a complete ClientHello: many servers would drop it earlier.
        if self.handshake.sends_zero_rtt()
            && due.initial == Due::Frames
            && self.handshake.fills_datagrams()
        {
            due.data = Due::Nothing;
        }
        due
    }

    pub(super) fn write_packet(
        &mut self,
        now: Instant,
        space: Space,
        due: Due,
        Room { buffer, padding }: Room<'_>,
    ) -> usize {
        let room = buffer.len();
        let pn = self.recovery.next_number(space);
        let largest_acked = self.recovery.largest_acked(space);
        let header = self.header(space);
        let Some(mut packet) = PacketBuilder::begin(buffer, &header, pn, largest_acked) else {
            return 0;
        };
        let acked_up_to = self.acks.largest(space).map(|(pn, _)| pn);
        let acks = self.acks.is_pending(space);
        let mut frames = packet.frames();
        let carried = self.write_frames(space, due, now, &mut frames);
        // Acknowledgements that did not fit were not sent.
        let acks = acks && !self.acks.is_pending(space);
        let (len, ack_eliciting) = (frames.len(), frames.is_ack_eliciting());
        let size_now = len + packet.overhead();
        let pad_to = match padding {
            Padding::Fill => room,
            Padding::FillUnlessMoreFits if room - size_now.min(room) < MIN_PACKET => room,
            _ if ack_eliciting && space == Space::Data => {
                limits::BEYOND_SHORTEST_CID + self.cids.local.cid_len()
            }
            _ => 0,
        };
        if len == 0 && pad_to == 0 {
            return 0;
        }
        if self.header_bits.clears_quic_bit() {
            packet.clear_quic_bit();
        }
        let payload = Payload {
            frames: len,
            pad_to,
            ack_eliciting,
            acks: acked_up_to.filter(|_| acks),
            ecn: self.recovery.ecn_mark(),
        };
        self.seal(now, packet, payload, carried, Tracking::Full)
    }

    pub(super) fn header(&self, space: Space) -> Header<'_> {
        let dcid = *self.cids.peer.active();
        let kind = self.handshake.kind_of(space);
        if kind == Kind::OneRtt {
            let phase = self
                .handshake
                .keys()
                .one_rtt()
                .map(crate::owners::handshake::OneRtt::phase);
            return Header::Short {
                dcid,
                spin: self.header_bits.spin(),
                key_phase: phase.unwrap_or_default(),
            };
        }
        let scid = self
            .cids
            .local
            .active()
            .next()
            .unwrap_or(crate::wire::packet::Cid::EMPTY);
        let version = match kind {
            Kind::ZeroRtt => self.original_version(),
            _ => self.version(),
        };
        Header::Long {
            kind,
            version,
            dcid,
            scid,
            // Every Initial carries it, so that each proves the address.
            token: match self.opening.retried() {
                Some(retried) => &retried.token,
                None => self.memory.tokens.spent(),
            },
        }
    }

    /// Consumes the next packet number of a space. Returns it with the header and the keys of a
    /// real packet; `None` if the space has no keys.
    ///
    /// A hook for `Forge` of hybriq-sim, which builds packets that a connection never sends.
    #[doc(hidden)]
    pub fn forge_parts(
        &mut self,
        space: Space,
    ) -> Option<(
        PacketNumber,
        Header<'_>,
        &crate::wire::packet::DirectionKeys,
    )> {
        let pn = self.recovery.next_number(space);
        self.recovery.on_number_used(space, pn);
        Some((pn, self.header(space), self.handshake.sealing_keys(space)?))
    }
}

/// Returns true if a datagram must have 1200 bytes: any datagram with an ack-eliciting Initial, and
/// any of a client's with an Initial (RFC 9000 §14.1).
fn must_fill(side: Side, due: PerSpace<Due>) -> bool {
    due.initial == Due::Frames || (due.initial == Due::Ack && side.is_client())
}

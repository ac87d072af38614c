//! From a datagram to frames: packet order, keys, duplicates.

pub(super) mod dispatch;
pub(super) mod retry;
pub(super) mod zero_rtt;

use std::time::Instant;

use hybriq_tls::Side;

use super::Connection;
use crate::{
    events::{self, DropTrigger},
    owners::{
        acks::{AckEliciting, Ecn},
        handshake::{self, Opened},
        recovery,
    },
    wire::{
        Reader,
        error::{ConnectionError, TransportError, Violation},
        frame::{EcnCounts, Frame},
        limits,
        packet::{
            self, Decoded, Kept, Kind, PacketNumber, Packets, Protected, Space, header_bits::Grease,
        },
        udp::Arrival,
    },
};

/// Arrival time of a packet, which its acknowledgement reports even if the packet had to wait for
/// keys (RFC 9000 §13.2.5), and its ECN mark.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) at: Instant,
    pub(crate) ecn: Option<Ecn>,
}

/// Packet that was kept until its keys or its connection existed.
#[derive(Debug)]
pub(crate) struct KeptPacket {
    pub(crate) packet: Kept,
    pub(crate) seen: Seen,
}

/// Whether a packet has only probing frames (RFC 9000 §9.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Probing {
    Only,
    No,
}

/// Fate of a packet.
enum Fate {
    Accepted,
    Dropped(DropTrigger),
    Kept,
}

impl Connection {
    /// Handles a datagram for this connection in a program that has no endpoint to route it.
    pub fn on_datagram(&mut self, now: Instant, arrival: &Arrival, datagram: &mut [u8]) {
        let packets = Packets::new(datagram, self.cids.local.cid_len());
        self.on_packets(now, arrival, packets);
    }

    /// Handles the packets of a datagram that an endpoint routed to this connection.
    pub fn on_packets(&mut self, now: Instant, arrival: &Arrival, mut packets: Packets<'_>) {
        self.observer.at(now);
        self.take_datagram(now, arrival, &mut packets);
        self.observe();
    }

    fn take_datagram(&mut self, now: Instant, arrival: &Arrival, packets: &mut Packets<'_>) {
        let len = packets.bytes().len();
        let was_blocked = self.paths.active().is_blocked();
        if !self.paths.admit(arrival, len, self.moves()) {
            self.observer
                .on_dropped(len, DropTrigger::ConnectionUnknown);
            return;
        }
        if was_blocked {
            self.recovery.rearm(now);
        }
        self.observer.stats.datagrams_received += 1;
        self.observer.stats.bytes_received += len as u64;
        if self.state.is_closing() {
            self.take_while_closing(now, packets);
            return;
        }
        let token = packets.reset_token();
        let before = self.observer.stats.packets_received;
        let seen = Seen {
            at: now,
            ecn: arrival.ecn,
        };
        self.take_packets(now, seen, packets);
        self.replay_early(now);
        // Nothing is sent: the peer no longer knows the connection.
        let is_useless = self.observer.stats.packets_received == before && !self.state.is_drained();
        if is_useless && token.is_some_and(|token| self.cids.is_reset(&token)) {
            self.end_by_peer(now, ConnectionError::Reset);
        }
    }

    pub(super) fn take_packets(&mut self, now: Instant, seen: Seen, packets: &mut Packets<'_>) {
        let datagram_len = packets.bytes().len();
        let mut shared_dcid = None;
        while self.state.is_open() && !self.opening.wants_restart() {
            let left = packets.bytes().len();
            let fate = match packets.next() {
                None => return,
                Some(Err(_)) => {
                    self.observer.on_dropped(datagram_len, DropTrigger::Invalid);
                    return;
                }
                Some(Ok(Decoded::Protected(packet)))
                    if self.is_forbidden(&packet, datagram_len) =>
                {
                    Fate::Dropped(DropTrigger::Invalid)
                }
                // All packets of a datagram are for the same connection (RFC 9000 §12.2).
                Some(Ok(Decoded::Protected(packet)))
                    if shared_dcid.is_some_and(|dcid| dcid != packet.dcid) =>
                {
                    Fate::Dropped(DropTrigger::ConnectionUnknown)
                }
                Some(Ok(Decoded::Protected(packet))) => {
                    if !packets.bytes().is_empty() {
                        shared_dcid = Some(packet.dcid);
                    }
                    self.take_packet(now, seen, packet)
                }
                Some(Ok(Decoded::VersionNegotiation(packet))) => {
                    self.on_version_negotiation(now, &packet);
                    Fate::Dropped(DropTrigger::Unsupported)
                }
                Some(Ok(Decoded::Retry(retry))) if self.on_retry(now, &retry) => Fate::Accepted,
                Some(Ok(Decoded::Retry(_) | Decoded::UnknownVersion { .. })) => {
                    Fate::Dropped(DropTrigger::Unsupported)
                }
            };
            let size = left.saturating_sub(packets.bytes().len());
            match fate {
                Fate::Accepted => self.observer.stats.packets_received += 1,
                Fate::Dropped(trigger) => self.observer.on_dropped(size, trigger),
                Fate::Kept => {}
            }
        }
    }

    /// Handles kept packets whose keys are now available. One of them may bring the keys of
    /// another. Drops the state of the opening when that phase is over.
    fn replay_early(&mut self, now: Instant) {
        while let Some(mut kept) = self.opening.next_kept(&self.handshake) {
            self.take_packets(now, kept.seen, &mut kept.packet.packets());
        }
        if self.state.is_confirmed() {
            self.opening.end();
        }
    }

    fn take_packet(&mut self, now: Instant, seen: Seen, packet: Protected<'_>) -> Fate {
        if !self.is_addressed_to_us(&packet) {
            return Fate::Dropped(DropTrigger::ConnectionUnknown);
        }
        let kind = packet.kind;
        if packet
            .version
            .is_some_and(|version| !self.may_be_of(kind, version))
        {
            return Fate::Dropped(DropTrigger::Unsupported);
        }
        if self.handshake.waits_for_keys(kind) {
            let size = packet.bytes.len();
            return if self.opening.keep(packet, seen) {
                self.observer.on_buffered(kind, size);
                Fate::Kept
            } else {
                Fate::Dropped(DropTrigger::KeyUnavailable)
            };
        }
        if kind == Kind::ZeroRtt
            && (self.side.is_client() || self.handshake.keys().zero_rtt().is_none())
        {
            return Fate::Dropped(DropTrigger::KeyUnavailable);
        }
        let (dcid, scid, size) = (packet.dcid, packet.scid, packet.bytes.len());
        let spin = packet.spin();
        let largest = self.acks.largest(kind.space()).map(|(pn, _)| pn);
        let Opened { pn, payload } = match self.open(now, packet, largest) {
            Some(Ok(opened)) => opened,
            Some(Err(error)) => {
                self.close_by_transport(now, error.into());
                return Fate::Dropped(DropTrigger::Invalid);
            }
            None => return Fate::Dropped(DropTrigger::DecryptionFailure),
        };
        let received = self.acks.received.get(kind.space());
        if received.is_none_or(|received| received.is_duplicate(pn)) {
            return Fate::Dropped(DropTrigger::Duplicate);
        }
        self.observer.tell(|| {
            let packet = events::Packet::new(kind, pn, size, payload).marked(seen.ecn);
            events::Event::PacketReceived(packet)
        });
        self.on_authentic(now, kind, &scid);
        if kind == Kind::OneRtt {
            self.header_bits.on_packet(pn, spin);
        }
        if !self.paths.came_on_active() && kind == Kind::OneRtt {
            let (paths, mut facts) = self.paths_with_facts(now);
            paths.on_packet_elsewhere(&dcid, &mut facts);
        }
        match self.take_frames(now, kind, &dcid, payload) {
            Ok((eliciting, probing)) => {
                let received = self.acks.received.at(kind.space());
                received.on_packet(seen.at, pn, eliciting, seen.ecn);
                received.on_bytes(size);
                self.timers
                    .on_received(now, self.pto(Space::Data), eliciting);
                if self.paths.came_on_active() {
                    self.paths.on_packet(dcid);
                } else if probing == Probing::No && largest.is_none_or(|largest| pn > largest) {
                    self.on_peer_moved(now, &dcid);
                }
                if self.handshake.has_input() {
                    self.advance_handshake(now);
                }
                if self.handshake.repetitions().take()
                    && self.recovery.probe_early(now, Space::Initial)
                {
                    self.handshake.repetitions().on_answered();
                    self.probe_handshake();
                }
            }
            Err(error) => self.close_by_transport(now, error),
        }
        Fate::Accepted
    }

    /// Opens a packet; `None` drops it.
    fn open<'p>(
        &mut self,
        now: Instant,
        packet: Protected<'p>,
        largest: Option<PacketNumber>,
    ) -> Option<Result<Opened<'p>, Violation>> {
        match packet.kind {
            Kind::OneRtt => {
                let (recovery, peer_delay) = (&self.recovery, self.acks.frequency.peer_max_delay());
                let keep_until = || now + 3 * recovery.pto(Space::Data, peer_delay);
                self.handshake
                    .open_one_rtt(now, keep_until, packet, largest)
            }
            _ if self.tells_version(&packet) => {
                handshake::opened_long(self.open_in_new_version(packet, largest))
            }
            _ => self.handshake.open_long(packet, largest),
        }
    }

    /// Returns true if the packet must be dropped: the QUIC bit is cleared although we did not
    /// announce that we accept this (RFC 9287), a server got an Initial in a small datagram (RFC
    /// 9000 §14.1), or a client got an Initial with a token (§17.2.2).
    fn is_forbidden(&self, packet: &Protected<'_>, datagram_len: usize) -> bool {
        if !packet.has_quic_bit() && self.config.free_bits.grease == Grease::Off {
            return true;
        }
        packet.kind == Kind::Initial
            && match self.side {
                Side::Server => datagram_len < limits::MIN_DATAGRAM,
                Side::Client => !packet.token().is_empty(),
            }
    }

    fn is_addressed_to_us(&self, packet: &Protected<'_>) -> bool {
        let ours = self.cids.local.active().any(|cid| cid == packet.dcid);
        let first = self.side.is_server()
            && matches!(packet.kind, Kind::Initial | Kind::ZeroRtt)
            && packet.dcid == self.cids.initial;
        let same_peer = packet.kind == Kind::OneRtt
            || packet.scid == *self.cids.peer.active()
            || (self.side.is_client() && self.awaits_first_packet());
        (ours || first) && same_peer
    }

    /// Returns true if a client has received no packet from the server yet; the first one supplies
    /// the server's id.
    fn awaits_first_packet(&self) -> bool {
        self.acks.largest(Space::Initial).is_none() && self.handshake.keys().initial().is_some()
    }

    /// Applies what an authenticated packet proves.
    fn on_authentic(&mut self, now: Instant, kind: Kind, scid: &packet::Cid) {
        match kind {
            Kind::Initial if self.side.is_client() && self.awaits_first_packet() => {
                self.cids.peer.set_first(*scid);
            }
            Kind::Handshake if self.side.is_server() => {
                self.paths.active_mut().on_validated();
                self.discard(now, Space::Initial);
            }
            Kind::OneRtt => self.on_one_rtt_opened(now),
            _ => {}
        }
    }

    pub(super) fn take_frames(
        &mut self,
        now: Instant,
        kind: Kind,
        dcid: &packet::Cid,
        payload: &[u8],
    ) -> Result<(AckEliciting, Probing), TransportError> {
        let mut reader = Reader::new(payload);
        if reader.is_empty() {
            return Err(Violation::PacketWithoutFrames.into());
        }
        let mut eliciting = AckEliciting::No;
        let mut probing = Probing::Only;
        while !reader.is_empty() && self.state.is_open() {
            let frame = Frame::decode(&mut reader)?;
            if !frame.allowed_in(kind) {
                return Err(Violation::FrameInWrongPacket.in_frame(frame.frame_type()));
            }
            if frame.is_ack_eliciting() {
                eliciting = AckEliciting::Yes;
            }
            if !frame.is_probing() {
                probing = Probing::No;
            }
            let frame_type = frame.frame_type();
            let early = match &frame {
                Frame::Stream(stream) if kind == Kind::ZeroRtt => Some(stream.id),
                _ => None,
            };
            self.dispatch(now, kind.space(), dcid, frame)
                .map_err(|error| match error.frame {
                    None => error.in_frame(frame_type),
                    Some(_) => error,
                })?;
            if let Some(id) = early {
                self.streams.on_early_data(id);
            }
        }
        Ok((eliciting, probing))
    }

    /// Drops the keys and state of a packet number space.
    pub(super) fn discard(&mut self, now: Instant, space: Space) {
        let keys = self.handshake.keys();
        let gone = match space {
            Space::Initial => keys.initial().is_none(),
            Space::Handshake => keys.handshake_discarded(),
            Space::Data => true,
        };
        if !gone {
            self.handshake.discard(handshake::level(space));
            self.recovery.discard_space(space);
            self.recovery.rearm(now);
            if space == Space::Handshake {
                self.end_handshake();
            }
        }
    }

    /// Drops the state of the handshake's spaces, whose keys are gone. Their counts stay in the
    /// statistics.
    fn end_handshake(&mut self) {
        let received = self.acks.received.end_handshake();
        let received = received.filter_map(|space| space.ecn_counts());
        let stats = &mut self.observer.stats;
        stats.ecn_received = received.fold(stats.ecn_received, EcnCounts::plus);
        stats.ecn_echoed = stats.ecn_echoed.plus(self.recovery.end_handshake());
    }

    /// Returns the facts that loss detection needs.
    pub(super) fn recovery_context(&self) -> recovery::Context {
        let handshake = if self.state.is_confirmed() {
            recovery::Progress::Confirmed
        } else if self.handshake.keys().handshake().is_some() {
            recovery::Progress::Keys
        } else {
            recovery::Progress::InitialOnly
        };
        recovery::Context {
            handshake,
            peer_max_ack_delay: self.acks.frequency.peer_max_delay(),
            amplification: if self.paths.active().is_blocked() {
                recovery::Amplification::Blocked
            } else {
                recovery::Amplification::Open
            },
        }
    }

    pub(super) fn pto(&self, space: Space) -> std::time::Duration {
        self.recovery
            .pto(space, self.acks.frequency.peer_max_delay())
    }
}

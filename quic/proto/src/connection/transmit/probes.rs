//! Datagrams that test a path.
//!
//! Those with PATH_CHALLENGE or PATH_RESPONSE frames (RFC 9000 §8.2) are sent on the path that they
//! test. Answers on the path in use are subject to its congestion window; the others are limited in
//! number. MTU probes (RFC 9000 §14.4) are sent on the path in use.

use std::time::Instant;

use super::{
    Padding, Room,
    owners::Carried,
    schedule::Due,
    seal::{Payload, Tracking},
};
use crate::{
    connection::Connection,
    owners::path::{Expanded, Probe, Window, Wrote},
    wire::{
        frame::{FrameWriter, Owner as _},
        limits,
        packet::{Header, PacketBuilder, PacketNumber, Space},
        udp::Transmit,
    },
};

impl Connection {
    /// Writes the next probe that is due and that its path allows.
    #[inline]
    pub(in crate::connection) fn transmit_probe(
        &mut self,
        now: Instant,
        out: &mut [u8],
    ) -> Option<Transmit> {
        if !self.paths.may_want_probe() {
            return None;
        }
        self.handshake.keys().one_rtt()?;
        let window = if self.recovery.can_send(limits::MIN_DATAGRAM as u64) {
            Window::Open
        } else {
            Window::Full
        };
        let mut failed = None;
        loop {
            let cids = &mut self.cids.peer;
            let probe = self.paths.next_probe(failed.as_ref(), window, cids)?;
            let transmit = self.write_probe(now, &probe, window, out);
            if transmit.is_some() {
                return transmit;
            }
            failed = Some(probe);
        }
    }

    fn write_probe(
        &mut self,
        now: Instant,
        probe: &Probe,
        window: Window,
        out: &mut [u8],
    ) -> Option<Transmit> {
        let out = out.get_mut(..probe.room)?;
        let pn = self.recovery.next_number(Space::Data);
        let largest_acked = self.recovery.largest_acked(Space::Data);
        let mut header = self.header(Space::Data);
        if let Header::Short { dcid: to, .. } = &mut header {
            *to = probe.dcid;
        }
        let mut packet = PacketBuilder::begin(out, &header, pn, largest_acked)?;
        let mut frames = packet.frames();
        let acks = self.write_probe_frames(now, probe, &mut frames);
        let len = frames.len();
        if len == 0 {
            return None;
        }
        let pad_to = match probe.expanded() {
            Expanded::Full => probe.room,
            Expanded::Short => 0,
        };
        let mark = self.recovery.ecn_mark();
        let ecn = mark.filter(|_| probe.is_on_active());
        let payload = Payload {
            frames: len,
            pad_to,
            ack_eliciting: true,
            acks,
            ecn,
        };
        let carried = Carried::new(Space::Data);
        let tracking = if probe.is_on_active() {
            Tracking::Full
        } else {
            Tracking::OtherPath
        };
        let size = self.seal(now, packet, payload, carried, tracking);
        if size == 0 {
            return None;
        }
        self.paths.on_probe_sent(probe, size, window);
        Some(self.observer.counted(Transmit {
            peer: probe.at.peer,
            local: probe.at.local,
            ecn,
            size,
            segment_size: None,
        }))
    }

    /// Writes answers first, then challenges. Returns the largest packet number acknowledged.
    ///
    /// On the path in use they are accompanied by an ACK or a PING. These are not probing frames,
    /// so they move the peer back here if an attacker made it believe that we left (RFC 9000
    /// §9.3.3).
    fn write_probe_frames(
        &mut self,
        now: Instant,
        probe: &Probe,
        frames: &mut FrameWriter<'_>,
    ) -> Option<PacketNumber> {
        if !probe.is_on_active() && probe.expanded() == Expanded::Full {
            self.cids.local.repeat_frames(frames);
        }
        let wrote = self.paths.write_probe(now, probe, frames);
        if !probe.is_on_active() || wrote == Wrote::NoAnswer {
            return None;
        }
        let received = self.acks.received.data();
        let largest = received.largest().map(|(pn, _)| pn);
        let was_pending = received.is_ack_pending();
        self.acks
            .received
            .at(Space::Data)
            .write_ack(Space::Data, now, frames);
        let acks = was_pending && !self.acks.is_pending(Space::Data);
        if !acks {
            frames.ping();
        }
        largest.filter(|_| acks)
    }

    /// Returns the size of an MTU probe that is due. The rest of the handshake and answers to
    /// challenges go first.
    fn mtu_probe(&self, now: Instant) -> Option<u16> {
        let size = self.paths.mtu_probe(now)?;
        let is_free =
            self.recovery.probes(Space::Data) == 0 && !self.handshake.wants_to_send(Space::Data);
        is_free.then_some(size)
    }

    /// Returns true if data must wait until the window has room for an MTU probe; otherwise data
    /// would always take that room.
    pub(in crate::connection) fn saves_room(&self, now: Instant) -> bool {
        let size = self.mtu_probe(now);
        size.is_some_and(|size| self.recovery.saves_room_for(size.into()))
    }

    /// Sends an MTU probe that is due, in a separate datagram (RFC 9000 §14.4).
    pub(in crate::connection) fn transmit_mtu_probe(
        &mut self,
        now: Instant,
        out: &mut [u8],
    ) -> Option<Transmit> {
        let size = self.mtu_probe(now)?;
        if !self.recovery.can_send(size.into())
            || !self.recovery.may_send_now(now)
            || !self.paths.active().may_send(size.into())
        {
            return None;
        }
        let room = out.len();
        let Some(buffer) = out.get_mut(..size.into()) else {
            let most = u16::try_from(room).unwrap_or(u16::MAX);
            self.paths.active_mut().mtu_mut().set_most(most);
            return None;
        };
        let pn = self.recovery.next_number(Space::Data);
        let written = self.write_packet(
            now,
            Space::Data,
            Due::MtuProbe,
            Room {
                buffer,
                padding: Padding::Fill,
            },
        );
        if written == 0 {
            return None;
        }
        self.paths.on_mtu_probe_sent(pn, written);
        Some(self.transmit_of(written, written))
    }
}

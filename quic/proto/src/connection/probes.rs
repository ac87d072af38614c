//! Datagrams with PATH_CHALLENGE or PATH_RESPONSE frames (RFC 9000 §8.2). They are sent on the path
//! that they are about. Answers on the path in use are subject to its congestion window; the others
//! are limited in number.

use std::time::Instant;

use super::{Connection, owners::Carried};
use crate::{
    ecn::Ecn,
    frame::FrameWriter,
    limits,
    packet::{Header, Kind, PacketBuilder, PacketNumber, Space},
    path::{Expanded, Probe, Window, Wrote},
    recovery::SentPacket,
    udp::Transmit,
};

impl Connection {
    /// Writes the next probe that is due and that its path allows.
    #[inline]
    pub(super) fn transmit_probe(&mut self, now: Instant, out: &mut [u8]) -> Option<Transmit> {
        if !self.paths.may_want_probe() {
            return None;
        }
        self.handshake.keys().one_rtt()?;
        let mut failed = None;
        loop {
            let probe = self
                .paths
                .next_probe(failed.as_ref(), &mut self.cids.peer)?;
            let window = if self.recovery.can_send(limits::MIN_DATAGRAM as u64) {
                Window::Open
            } else {
                Window::Full
            };
            if self.paths.may_probe(&probe, window) {
                let transmit = self.write_probe(now, &probe, window, out);
                if transmit.is_some() {
                    return transmit;
                }
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
        self.observer.keep(frames.written());
        let len = frames.len();
        if len == 0 {
            return None;
        }
        let pad_to = match probe.expanded() {
            Expanded::Full => probe.room,
            Expanded::Short => 0,
        };
        let keys = self.handshake.sealing_keys(Space::Data)?;
        let size = packet.finish_padded(len, pad_to, keys);
        self.paths.on_probe_sent(probe, size, window);
        let mark = self.recovery.ecn_mark();
        let ecn = mark.filter(|_| probe.is_on_active());
        self.on_probe_sent(now, probe, (pn, size, ecn), acks);
        Some(Transmit {
            peer: probe.at.peer,
            local: probe.at.local,
            ecn,
            size,
            segment_size: None,
        })
    }

    /// Writes answers first, then challenges. Returns the largest packet number acknowledged.
    ///
    /// On the path in use they come with an ACK or a PING. These are not probing frames, so they
    /// move the peer back here if an attacker made it believe that we left (RFC 9000 §9.3.3).
    fn write_probe_frames(
        &mut self,
        now: Instant,
        probe: &Probe,
        frames: &mut FrameWriter<'_>,
    ) -> Option<PacketNumber> {
        let data = self.paths.draw();
        if !probe.is_on_active() && probe.expanded() == Expanded::Full {
            self.cids.local.repeat_frames(frames);
        }
        let wrote = self.paths.write_probe(now, probe, data, frames);
        if !probe.is_on_active() || wrote == Wrote::NoAnswer {
            return None;
        }
        let received = &self.acks.received[Space::Data];
        let largest = received.largest().map(|(pn, _)| pn);
        let was_pending = received.is_ack_pending();
        self.acks.received[Space::Data].write_ack(Space::Data, now, frames);
        let acks = was_pending && !self.acks.received[Space::Data].is_ack_pending();
        if !acks {
            frames.ping();
        }
        largest.filter(|_| acks)
    }

    /// Tracks a probe. Loss detection sees only packets on the path in use; on another path,
    /// validation by either end repeats them.
    fn on_probe_sent(
        &mut self,
        now: Instant,
        probe: &Probe,
        (pn, size, ecn): (PacketNumber, usize, Option<Ecn>),
        acks: Option<PacketNumber>,
    ) {
        self.observer.stats.datagrams_sent += 1;
        self.observer.stats.bytes_sent += size as u64;
        self.observer.on_sealed(Kind::OneRtt, pn, size, ecn);
        if probe.is_on_active() {
            let packet = SentPacket {
                time_sent: now,
                size: size as u16,
                ack_eliciting: true,
                in_flight: true,
                largest_acked: acks,
                ecn,
                snapshot: None,
                record: Carried::new(Space::Data),
            };
            self.track(now, Space::Data, pn, packet);
        } else {
            self.recovery.on_number_used(Space::Data, pn);
            self.on_ack_eliciting_sent(now);
            self.on_packet_sent(now, Space::Data, pn);
        }
    }
}

//! Datagrams that ask for a path, or answer who asks (RFC 9000 §8.2). They leave on the path they
//! are about, and wait for no congestion window.

use std::time::Instant;

use super::{Connection, delivery::Carried, paths::Which};
use crate::{
    frame::{FrameWriter, PathChallenge},
    limits,
    packet::{Cid, Header, Kind, PacketBuilder, Space},
    path::Expanded,
    space::SentPacket,
    udp::Transmit,
};

impl Connection {
    /// The next of them, if one is due and its path allows it.
    #[inline]
    pub(super) fn transmit_probe(&mut self, now: Instant, out: &mut [u8]) -> Option<Transmit> {
        if self.paths.is_empty() && !self.path.wants_probe() {
            return None;
        }
        self.handshake.keys().one_rtt()?;
        // Those that are not in use first. One that lacks credit or an id holds up no other.
        let mut place = 0;
        while let Some(path) = self.paths.get_mut(place) {
            if path.wants_probe() && path.credit() > 0 {
                let probe = self.write_probe(now, Which::Other(place), out);
                if probe.is_some() {
                    return probe;
                }
            }
            place += 1;
        }
        if self.path.wants_probe() {
            self.write_probe(now, Which::Active, out)
        } else {
            None
        }
    }

    fn write_probe(&mut self, now: Instant, which: Which, out: &mut [u8]) -> Option<Transmit> {
        let dcid = self.peer_cid_of(which)?;
        let path = self.path_mut(which)?;
        let (peer, local) = (path.peer(), path.local());
        let room = usize::try_from(path.credit()).unwrap_or(usize::MAX);
        let out = out.get_mut(..limits::MIN_DATAGRAM.min(room))?;
        let room = out.len();
        let expanded = if room == limits::MIN_DATAGRAM {
            Expanded::Full
        } else {
            Expanded::Short
        };
        let pn = self.recovery.next_number(Space::Data);
        let largest_acked = self.recovery.largest_acked(Space::Data);
        let mut header = self.header(Space::Data);
        if let Header::Short { dcid: to, .. } = &mut header {
            *to = dcid;
        }
        let mut packet = PacketBuilder::begin(out, &header, pn, largest_acked)?;
        let mut frames = packet.frames();
        let acks = self.write_probe_frames(now, (which, expanded), &mut frames);
        self.observer.keep(frames.written());
        let len = frames.len();
        if len == 0 {
            return None;
        }
        let pad_to = if expanded == Expanded::Full { room } else { 0 };
        let keys = self.sealing_keys(Space::Data)?;
        let size = packet.finish_padded(len, pad_to, keys);
        self.on_probe_sent(now, which, (pn, size), acks);
        let ecn = match which {
            Which::Active => self.recovery.ecn_mark(),
            Which::Other(_) => None,
        };
        Some(Transmit {
            peer,
            local,
            ecn,
            size,
            segment_size: None,
        })
    }

    /// The peer's id to use on a path. Where the peer had it retired, there may be another.
    fn peer_cid_of(&mut self, which: Which) -> Option<Cid> {
        let Which::Other(place) = which else {
            return Some(*self.peer_cids.active());
        };
        let path = self.paths.get_mut(place)?;
        if let Some(cid) = self.peer_cids.find(path.peer_cid) {
            return Some(*cid);
        }
        let (sequence, cid) = self.peer_cids.take_for_path()?;
        path.peer_cid = sequence;
        Some(cid)
    }

    /// Answers first, and challenges. Says up to where packets were acknowledged.
    ///
    /// On the path in use they come with an ACK or a PING: not being probing frames these move the
    /// peer back here, should somebody have made it believe that we left (RFC 9000 §9.3.3).
    fn write_probe_frames(
        &mut self,
        now: Instant,
        (which, expanded): (Which, Expanded),
        frames: &mut FrameWriter<'_>,
    ) -> Option<u64> {
        let data = self.paths.draw().to_be_bytes();
        if which != Which::Active && expanded == Expanded::Full {
            self.local_cids.repeat_frames(frames);
        }
        let before = frames.len();
        let path = self.path_mut(which)?;
        path.write_frames(frames);
        let answers = frames.len() > before;
        if path.validation.is_due() && frames.write(&PathChallenge(data)) {
            path.validation.on_sent(now, data, expanded);
        }
        if which != Which::Active || !answers {
            return None;
        }
        let received = &self.spaces[Space::Data];
        let largest = received.largest().map(|(pn, _)| pn);
        let was_pending = received.is_ack_pending();
        self.write_ack(Space::Data, now, frames);
        let acks = was_pending && !self.spaces[Space::Data].is_ack_pending();
        self.stats.acks_sent += u64::from(acks);
        if !acks {
            frames.ping();
        }
        largest.filter(|_| acks)
    }

    /// Only what travels the path in use is looked after by loss detection. What travels another is
    /// repeated by its validation, or by the peer's.
    fn on_probe_sent(
        &mut self,
        now: Instant,
        which: Which,
        (pn, size): (u64, usize),
        acks: Option<u64>,
    ) {
        if let Some(path) = self.path_mut(which) {
            path.on_sent(size as u64);
        }
        self.stats.datagrams_sent += 1;
        self.stats.packets_sent += 1;
        self.stats.bytes_sent += size as u64;
        let ecn = match which {
            Which::Active => self.recovery.ecn_mark(),
            Which::Other(_) => None,
        };
        self.stats.ecn_sent.add(ecn);
        self.observer.on_sealed(Kind::OneRtt, pn, size, ecn);
        match which {
            Which::Active => self.recovery.on_packet_sent(
                Space::Data,
                pn,
                SentPacket {
                    time_sent: now,
                    size: size as u16,
                    ack_eliciting: true,
                    in_flight: true,
                    largest_acked: acks,
                    ecn,
                    snapshot: None,
                    record: Carried::new(Space::Data),
                },
            ),
            Which::Other(_) => self.recovery.on_number_used(Space::Data, pn),
        }
        if let Some(largest) = acks {
            self.on_acknowledgement_sent(largest);
        }
        self.on_packet_sent(now, Space::Data, pn, true);
    }
}

//! The hostile peer: holds the keys, reads everything, and forges every datagram.

mod disguise;
mod frames;
pub(super) mod handshake;
mod keys;

use std::{
    collections::{BTreeSet, VecDeque},
    net::SocketAddr,
    ops::RangeInclusive,
};

use hybriq_proto::wire::{
    Reader,
    frame::{Frame, FrameWriter, PathResponse},
    limits::MIN_DATAGRAM,
    packet::{Cid, Header, PacketNumber, SpinValue},
};

use self::{frames::Frames, keys::Keys};
use super::{Addresses, Character, Move};
use crate::{Raw, Rng, one_in, seal_packet};

/// First packet number that it uses: larger than any that the honest handshake used.
const FIRST_NUMBER: u64 = 1000;
/// Number of the victim's packet numbers that it remembers.
const REMEMBERED: usize = 4096;
/// Largest number of bytes of a packet in addition to its frames.
const OVERHEAD: usize = 40;
/// A datagram of a hostile peer.
pub(in crate::adversary) struct Forged {
    pub(in crate::adversary) from: SocketAddr,
    pub(in crate::adversary) payload: Vec<u8>,
    /// True if it acknowledges anything that was not acknowledged before.
    pub(in crate::adversary) acknowledges: bool,
    /// True if it answers a challenge to its source address.
    pub(in crate::adversary) answers: bool,
    /// Moves that it consists of; none for an answer.
    pub(in crate::adversary) moves: Vec<Move>,
}

/// An authenticated peer that ignores all rules.
pub(in crate::adversary) struct HostilePeer {
    character: Character,
    rng: Rng,
    own: SocketAddr,
    keys: Keys,
    frames: Frames,
    next_number: u64,
    /// Numbers of the victim's packets that it read.
    numbers: BTreeSet<u64>,
    /// Those packets that it acknowledged.
    acknowledged: BTreeSet<u64>,
    /// Challenges that it will answer.
    challenges: VecDeque<(SocketAddr, [u8; 8])>,
    /// Number of datagrams sent.
    sent: u64,
}

impl HostilePeer {
    /// Takes over after the handshake.
    pub(in crate::adversary) fn new(
        character: Character,
        rng: Rng,
        own: SocketAddr,
        keys: Keys,
        frames: Frames,
    ) -> Self {
        Self {
            character,
            rng,
            own,
            keys,
            frames,
            next_number: FIRST_NUMBER,
            numbers: BTreeSet::new(),
            acknowledged: BTreeSet::new(),
            challenges: VecDeque::new(),
            sent: 0,
        }
    }

    /// Reads a datagram that the victim sent to one of its addresses.
    pub(in crate::adversary) fn read(&mut self, to: SocketAddr, datagram: &[u8]) {
        let is_answered = !self.character.answers_short_ones || datagram.len() < MIN_DATAGRAM;
        let Self {
            keys,
            numbers,
            acknowledged,
            frames,
            challenges,
            rng,
            character,
            ..
        } = self;
        keys.read(datagram, |number, payload| {
            numbers.insert(number);
            if numbers.len() > REMEMBERED {
                if let Some(oldest) = numbers.pop_first() {
                    acknowledged.remove(&oldest);
                }
            }
            let mut reader = Reader::new(payload);
            while let Some(Ok(frame)) = (!reader.is_empty()).then(|| Frame::decode(&mut reader)) {
                frames.learn(&frame);
                if let Frame::PathChallenge(challenge) = frame {
                    if is_answered && rng.happens(character.answers) {
                        challenges.push_back((to, challenge.0));
                    }
                }
            }
        });
    }

    /// Draws the source address of the next datagram.
    fn place(&mut self) -> SocketAddr {
        let own = self.own;
        let (ip, port) = (own.ip(), own.port());
        let machine = |[a, b]: [u8; 2]| SocketAddr::from(([203, 0, a, b], 443));
        match self.character.addresses {
            Addresses::Own => own,
            Addresses::Other => machine([113, 1]),
            Addresses::TwoPorts => SocketAddr::new(ip, port + (self.sent / 2 % 2) as u16),
            Addresses::Ports => SocketAddr::new(ip, 1024 + (self.sent / 2 % 60_000) as u16),
            Addresses::Any => match self.rng.below(4) {
                0 => own,
                1 => SocketAddr::new(ip, 1024 + self.rng.below(4) as u16),
                2 => machine([113, self.rng.below(3) as u8]),
                _ => machine([self.rng.below(200) as u8, 9]),
            },
        }
    }

    /// Forges the next datagram.
    pub(in crate::adversary) fn next(&mut self) -> Forged {
        self.sent += 1;
        if let Some((to, data)) = self.challenges.pop_front() {
            let payload = self.packet(0, |_, _, out| {
                out.write(&PathResponse(data));
            });
            return Forged {
                from: to,
                payload,
                acknowledges: false,
                answers: true,
                moves: Vec::new(),
            };
        }
        let moves = &self.character.moves;
        let drawn = self.rng.below(moves.len() as u64) as usize;
        let first = moves.get(drawn).copied().unwrap_or(Move::Ping);
        if matches!(first, Move::EarlyPacket | Move::Noise) {
            return self.spoof(first);
        }
        let acknowledges = self.rng.happens(self.character.acknowledges);
        let pad_to = if self.rng.happens(self.character.pads) {
            MIN_DATAGRAM
        } else {
            0
        };
        let from = self.place();
        if first == Move::UpdateKeys {
            self.keys.update();
        }
        let (mut told, mut made) = (false, vec![first]);
        let payload = self.packet(pad_to, |peer, rng, out| {
            if acknowledges {
                told = peer.acknowledge(rng, out);
            }
            peer.frames.write(first, rng, out);
            for _ in 0..rng.below(peer.character.moves_at_once) {
                let moves = &peer.character.moves;
                let drawn = rng.below(moves.len() as u64) as usize;
                if let Some(&it) = moves.get(drawn) {
                    made.push(it);
                    peer.frames.write(it, rng, out);
                }
            }
            if out.is_empty() {
                out.ping();
            }
        });
        Forged {
            from,
            payload,
            acknowledges: told,
            answers: false,
            moves: made,
        }
    }

    /// Acknowledges all or some of what arrived. Returns true if any of it is new: repeating an
    /// acknowledgement opens no window.
    fn acknowledge(&mut self, rng: &mut Rng, out: &mut FrameWriter<'_>) -> bool {
        let keeps = [one_in(1), one_in(2)][rng.below(2) as usize];
        let mut ranges: Vec<RangeInclusive<u64>> = Vec::new();
        for &number in self.numbers.iter().rev() {
            if !rng.happens(keeps) {
                continue;
            }
            match ranges.last_mut() {
                Some(last) if number + 1 == *last.start() => *last = number..=*last.end(),
                _ => ranges.push(number..=number),
            }
        }
        let delay = [0, 100, u64::from(u32::MAX)][rng.below(3) as usize];
        let number = PacketNumber::saturating;
        let listed = ranges.iter().take(32);
        let listed = listed.map(|it| number(*it.start())..=number(*it.end()));
        let told = out.ack_within(MIN_DATAGRAM / 2, delay, listed, None);
        let before = self.acknowledged.len();
        for range in ranges.into_iter().take(told.unwrap_or(0)) {
            self.acknowledged.extend(range);
        }
        self.acknowledged.len() > before
    }

    /// Seals one packet with its next number.
    fn packet(
        &mut self,
        pad_to: usize,
        fill: impl FnOnce(&mut Self, &mut Rng, &mut FrameWriter<'_>),
    ) -> Vec<u8> {
        if self.rng.happens(self.character.gaps) {
            self.next_number += 1 + self.rng.below(20_000);
        }
        let number = PacketNumber::saturating(self.next_number);
        self.next_number += 1;
        // The newest id, because earlier ones may be retired.
        let newest = self.frames.ids.last();
        let dcid = newest.map_or(Cid::EMPTY, |(_, cid)| *cid);
        let mut rng = self.rng.clone();
        let mut buffer = [0; MIN_DATAGRAM - OVERHEAD];
        let mut out = FrameWriter::new(&mut buffer);
        fill(self, &mut rng, &mut out);
        self.rng = rng;
        let frames = Raw(out.written());
        let (keys, key_phase) = self.keys.own();
        let header = Header::Short {
            dcid,
            spin: SpinValue::Zero,
            key_phase,
        };
        seal_packet(&header, number, keys, |packet| {
            packet.write(&frames);
            pad_to
        })
    }

    /// Forges a datagram from a spoofed address, which belongs to no connection.
    fn spoof(&mut self, it: Move) -> Forged {
        let rng = &mut self.rng;
        let number = rng.draw().to_be_bytes();
        let from = SocketAddr::from(([198, 18, number[0], number[1]], 443));
        let len = [60, 1200, 16_000, 16_300][rng.below(4) as usize];
        let mut payload = vec![0; len];
        rng.fill(&mut payload);
        if it == Move::EarlyPacket {
            payload = early(&number.into(), &payload);
        }
        Forged {
            from,
            payload,
            acknowledges: false,
            answers: false,
            moves: vec![it],
        }
    }
}

/// Returns a 0-RTT packet that consists of a header and noise, with the noise's length.
fn early(dcid: &Cid, noise: &[u8]) -> Vec<u8> {
    // Type 0-RTT, version 1, both ids, and a length of four bytes.
    let mut packet = vec![0xd3, 0, 0, 0, 1, dcid.len() as u8];
    packet.extend_from_slice(dcid.as_bytes());
    packet.push(0);
    let rest = noise.len().saturating_sub(packet.len() + 4);
    packet.extend_from_slice(&(0x8000_0000 | rest as u32).to_be_bytes());
    packet.extend(noise.iter().take(rest));
    packet
}

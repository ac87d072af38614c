//! Frames that a hostile peer draws. They obey the rules that would otherwise end the connection at
//! once.

use std::{collections::BTreeMap, time::Duration};

use hybriq_proto::{
    owners::streams::Direction,
    wire::{
        ResetToken,
        frame::{
            AckFrequency, DataBlocked, Frame, FrameWriter, MaxData, MaxStreamData, MaxStreams,
            NewConnectionId, NewToken, PathChallenge, PathResponse, ResetStream, ResetStreamAt,
            RetireConnectionId, StopSending, Stream, StreamDataBlocked, StreamHeader, StreamId,
            StreamsBlocked,
        },
        packet::Cid,
        params::Params,
    },
};
use hybriq_tls::Side;

use crate::adversary::Move;
use crate::{Raw, Rng};

/// Largest index of a stream that is used.
const STREAMS: u64 = 200;
/// Connection ids that the honest handshake has issued to the victim.
const ISSUED: u64 = 4;
/// Room in a packet for one more frame of fixed size.
const ROOM: usize = 64;
/// Largest value of a variable-length integer, which any field may claim, except ports and
/// challenges.
const LARGEST: u64 = (1 << 62) - 1;

/// Largest token of a NEW_TOKEN frame.
const TOKEN: u64 = 600;
/// Largest part of a session ticket in one packet.
const TICKET: usize = 200;

/// What a hostile peer knows about the limits of its victim, and about what it sent itself.
pub(in crate::adversary) struct Frames {
    /// Its own role.
    side: Side,
    victim: Params,
    /// End of the data sent on each stream, and true if it is final.
    ends: BTreeMap<StreamId, (u64, bool)>,
    /// Streams that the victim opened.
    opened: Vec<StreamId>,
    /// Ids of the victim, with their sequence numbers.
    pub(in crate::adversary) ids: Vec<(u64, Cid)>,
    next_id: u64,
    next_frequency: u64,
    /// End of the CRYPTO data of a server in 1-RTT packets.
    crypto_end: u64,
}

impl Frames {
    /// Starts with the victim's parameters and its first id, and with the end of the CRYPTO data
    /// that honest code sent in 1-RTT packets.
    pub(in crate::adversary) fn new(
        side: Side,
        victim: Params,
        first: Cid,
        crypto_end: u64,
    ) -> Self {
        Self {
            side,
            victim,
            ends: BTreeMap::new(),
            opened: Vec::new(),
            ids: vec![(0, first)],
            next_id: ISSUED,
            next_frequency: 0,
            crypto_end,
        }
    }

    /// Learns from a frame of the victim.
    pub(in crate::adversary) fn learn(&mut self, frame: &Frame<'_>) {
        match frame {
            Frame::MaxData(MaxData { max }) => {
                self.victim.initial_max_data = self.victim.initial_max_data.max(*max);
            }
            Frame::MaxStreams(MaxStreams { direction, max }) => {
                let known = match direction {
                    Direction::Bidi => &mut self.victim.initial_max_streams_bidi,
                    Direction::Uni => &mut self.victim.initial_max_streams_uni,
                };
                *known = (*known).max(*max);
            }
            Frame::NewConnectionId(frame) => {
                self.ids.retain(|(seq, _)| *seq >= frame.retire_prior_to);
                self.ids.push((frame.sequence, frame.cid));
            }
            Frame::Stream(frame)
                if frame.id.initiator() == self.side.peer() && !self.opened.contains(&frame.id) =>
            {
                self.opened.push(frame.id);
            }
            _ => {}
        }
    }

    /// Draws one of its own streams that is not at its end.
    fn stream(&self, rng: &mut Rng) -> Option<StreamId> {
        let direction = if rng.below(2) == 0 {
            Direction::Bidi
        } else {
            Direction::Uni
        };
        let id = StreamId::new(self.side, direction, rng.below(self.streams(direction)));
        let is_open = self.ends.get(&id).is_none_or(|(_, done)| !done);
        (self.streams(direction) > 0 && is_open).then_some(id)
    }

    fn streams(&self, direction: Direction) -> u64 {
        let most = match direction {
            Direction::Bidi => self.victim.initial_max_streams_bidi,
            Direction::Uni => self.victim.initial_max_streams_uni,
        };
        most.min(STREAMS)
    }

    /// Takes credit for bytes of a stream, if there is enough.
    fn take(&mut self, id: StreamId, end: u64) -> bool {
        let of_stream = match id.direction() {
            Direction::Bidi => self.victim.initial_max_stream_data_bidi_remote,
            Direction::Uni => self.victim.initial_max_stream_data_uni,
        };
        let used: u64 = self.ends.values().map(|(end, _)| end).sum();
        let entry = self.ends.entry(id).or_default();
        let more = end.saturating_sub(entry.0);
        if end > of_stream || used + more > self.victim.initial_max_data {
            return false;
        }
        entry.0 = entry.0.max(end);
        true
    }

    /// Notes that a stream has reached its end.
    fn finish(&mut self, id: StreamId) {
        self.ends.entry(id).or_default().1 = true;
    }

    /// Writes the frames of a move; nothing if it is not allowed now.
    pub(in crate::adversary) fn write(
        &mut self,
        it: Move,
        rng: &mut Rng,
        out: &mut FrameWriter<'_>,
    ) {
        if out.remaining() < ROOM {
            return;
        }
        let eight = rng.draw().to_be_bytes();
        match it {
            Move::Ping | Move::EarlyPacket | Move::Noise | Move::UpdateKeys => drop(out.ping()),
            Move::Challenge => drop(out.write(&PathChallenge(eight))),
            Move::Challenges => (0..3).for_each(|_| {
                out.write(&PathChallenge(rng.draw().to_be_bytes()));
            }),
            Move::Response => drop(out.write(&PathResponse(eight))),
            Move::Pieces
            | Move::Data
            | Move::Drip
            | Move::Fin
            | Move::FarStream
            | Move::Reset
            | Move::ResetAt => self.write_stream(it, rng, out),
            Move::Tell => self.write_of_server(rng, out),
            Move::Stop => {
                let ours = self
                    .ends
                    .keys()
                    .filter(|id| id.direction() == Direction::Bidi);
                let ids: Vec<_> = ours.chain(&self.opened).copied().collect();
                if let Some(&id) = ids.get(rng.below(ids.len() as u64) as usize) {
                    out.write(&StopSending { id, code: 7 });
                }
            }
            Move::Credit => self.write_credit(rng, out),
            Move::Blocked => {
                let limit = rng.below(1 << 20);
                out.write(&DataBlocked { limit });
                let direction = Direction::Uni;
                out.write(&StreamsBlocked { direction, limit });
                if let Some(id) = self.stream(rng) {
                    out.write(&StreamDataBlocked { id, limit });
                }
            }
            Move::NewId | Move::RetireId => self.write_id(it, rng, out),
            Move::Crypto => {
                out.crypto(1 + rng.below(60_000), 1 + rng.below(20) as usize, |data| {
                    data.fill(4);
                });
            }
            Move::AckFrequency => self.write_frequency(rng, out),
            Move::ImmediateAck if self.victim.min_ack_delay.is_some() => {
                out.immediate_ack();
            }
            Move::Datagrams if self.victim.max_datagram_frame_size > 0 => {
                for _ in 0..rng.below(30) {
                    let len = [0, 0, 1, 100][rng.below(4) as usize];
                    if out.remaining() > len + ROOM {
                        out.datagram(&vec![9; len]);
                    }
                }
            }
            // The victim does not accept them.
            Move::ImmediateAck | Move::Datagrams => {}
            Move::Rude => match rng.below(3) {
                0 => drop(out.handshake_done()),
                1 => drop(out.write(&NewToken { token: &eight })),
                _ => drop(out.write(&Raw(&eight))),
            },
        }
    }

    fn write_stream(&mut self, it: Move, rng: &mut Rng, out: &mut FrameWriter<'_>) {
        if it == Move::Pieces {
            while out.remaining() > ROOM {
                let id = self.stream(rng);
                let offset = 1 + 2 * rng.below(2000);
                let Some(id) = id.filter(|&id| self.take(id, offset + 1)) else {
                    break;
                };
                out.write(&Stream {
                    id,
                    offset,
                    fin: false,
                    data: &[7],
                });
            }
            return;
        }
        let far = StreamId::new(
            self.side,
            Direction::Bidi,
            self.streams(Direction::Bidi).saturating_sub(1),
        );
        let drawn = if it == Move::FarStream {
            Some(far)
        } else {
            self.stream(rng)
        };
        let Some(id) = drawn else { return };
        let (known, done) = self.ends.get(&id).copied().unwrap_or_default();
        let (offset, len) = match it {
            Move::Data => (rng.below(4000), out.remaining() as u64 - 20),
            Move::ResetAt => (known, rng.below(2000)),
            _ => (known, 1),
        };
        let ends = matches!(it, Move::Fin | Move::Reset | Move::ResetAt);
        if done || !self.take(id, offset + len) {
            return;
        }
        if ends {
            self.finish(id);
        }
        let final_size = offset + len;
        if it == Move::Reset {
            out.write(&ResetStream {
                id,
                code: 1,
                final_size,
            });
        } else if it == Move::ResetAt {
            out.write(&ResetStreamAt {
                id,
                code: 1,
                final_size,
                reliable_size: rng.below(final_size + 1),
            });
        } else {
            let header = StreamHeader {
                id,
                offset,
                fin: ends,
            };
            out.stream(header, len as usize, |data| data.fill(7));
        }
    }

    /// Writes frames that only servers send: repeated `HANDSHAKE_DONE`, tokens, and the next part
    /// of an endless session ticket.
    fn write_of_server(&mut self, rng: &mut Rng, out: &mut FrameWriter<'_>) {
        if self.side.is_client() {
            return;
        }
        match rng.below(3) {
            0 => drop(out.handshake_done()),
            1 => {
                let len = out.remaining().saturating_sub(ROOM) as u64;
                let token = vec![7; 1 + rng.below(len.min(TOKEN)) as usize];
                out.write(&NewToken { token: &token });
            }
            _ => {
                // NewSessionTicket of 2^8 bytes, or as long as a handshake message may be.
                let len = [0x100_u32, 0xff_ffff][rng.below(2) as usize].to_be_bytes();
                let mut ticket = vec![1; 1 + rng.below(TICKET as u64) as usize];
                let head = [4, len[1], len[2], len[3]];
                ticket
                    .iter_mut()
                    .zip(head)
                    .for_each(|(it, head)| *it = head);
                let room = out.remaining().saturating_sub(ROOM).min(ticket.len());
                let fill = |data: &mut [u8]| data.copy_from_slice(ticket.split_at(data.len()).0);
                let written = out.crypto(self.crypto_end, room, fill);
                self.crypto_end += written.unwrap_or(0) as u64;
            }
        }
    }

    fn write_credit(&self, rng: &mut Rng, out: &mut FrameWriter<'_>) {
        let max = [1, 1 << 20, LARGEST][rng.below(3) as usize];
        out.write(&MaxData { max });
        out.write(&MaxStreams {
            direction: Direction::Uni,
            max: max.min(1 << 60),
        });
        if let Some(&id) = self.opened.first() {
            out.write(&MaxStreamData { id, max });
        }
    }

    fn write_id(&mut self, it: Move, rng: &mut Rng, out: &mut FrameWriter<'_>) {
        if it == Move::RetireId {
            if self.ids.len() > 1 {
                let place = rng.below(self.ids.len() as u64 - 1) as usize;
                let (sequence, _) = self.ids.remove(place);
                out.write(&RetireConnectionId { sequence });
            }
            return;
        }
        let sequence = self.next_id;
        self.next_id += 1;
        out.write(&NewConnectionId {
            sequence,
            retire_prior_to: sequence - rng.below(ISSUED),
            cid: Cid::from(rng.draw().to_be_bytes()),
            reset_token: ResetToken::new([sequence as u8; 16]),
        });
    }

    fn write_frequency(&mut self, rng: &mut Rng, out: &mut FrameWriter<'_>) {
        let Some(least) = self.victim.min_ack_delay else {
            return;
        };
        let longest = Duration::from_secs(16).as_micros() as u64;
        out.write(&AckFrequency {
            sequence: self.next_frequency,
            threshold: [0, 1, 2000, LARGEST][rng.below(4) as usize],
            max_delay: (least.as_micros() as u64).max(rng.below(longest)),
            reordering: rng.below(5),
        });
        self.next_frequency += 1;
    }
}

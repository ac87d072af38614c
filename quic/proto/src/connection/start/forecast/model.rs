//! Arithmetic of the packets of a server's first flight, as `transmit` fills them.

use std::ops::Range;

use super::FlightLimit;
use crate::wire::{VarInt, limits, packet::TAG_LEN};

/// Data of the handshake at each level, by its offsets in the CRYPTO streams.
pub(super) struct Crypto {
    pub(super) initial: Range<usize>,
    pub(super) handshake: Range<usize>,
}

/// Limits on what may be sent.
#[derive(Clone, Copy)]
pub(super) struct Bounds {
    /// Bytes that may be sent before the client's address is validated; `None` once it is.
    pub(super) credit: Option<u64>,
    /// Congestion window.
    pub(super) window: u64,
}

/// A server's first flight.
pub(super) struct Model {
    /// Length of the client's connection id.
    pub(super) peer_cid: usize,
    /// Length of the server's connection id.
    pub(super) local_cid: usize,
    /// Bytes of the ACK frame in the first packet.
    pub(super) ack: usize,
    pub(super) bounds: Bounds,
}

/// Cost of the flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) datagrams: usize,
    pub(super) bytes: usize,
    pub(super) at_once: usize,
    pub(super) limit: Option<FlightLimit>,
    pub(super) rounds: u32,
}

/// Remaining bytes of a datagram below which no further packet is started.
const MIN_PACKET: usize = 64;

/// Maximum number of round trips that are counted: no chain comes close.
const MAX_ROUNDS: u32 = 16;

/// What is left to send.
struct Left {
    initial: Range<usize>,
    handshake: Range<usize>,
    ack: usize,
    /// True until a packet with each kind of CRYPTO data is in flight, which needs no window.
    first: [bool; 2],
}

impl Left {
    fn is_empty(&self) -> bool {
        self.initial.is_empty() && self.handshake.is_empty()
    }
}

impl Model {
    pub(super) fn run(mut self, crypto: &Crypto) -> Outcome {
        let mut outcome = Outcome::default();
        let mut left = Left {
            initial: crypto.initial.clone(),
            handshake: crypto.handshake.clone(),
            ack: self.ack,
            first: [true; 2],
        };
        while !left.is_empty() && outcome.rounds < MAX_ROUNDS {
            let (datagrams, bytes, limit) = self.burst(&mut left);
            outcome.rounds += 1;
            outcome.datagrams += datagrams;
            outcome.bytes += bytes;
            if outcome.rounds == 1 {
                outcome.at_once = datagrams;
                outcome.limit = limit;
            }
            // The client's first Handshake packet validates its address, and everything is
            // acknowledged.
            self.bounds.credit = None;
            if limit == Some(FlightLimit::Window) {
                self.bounds.window += bytes as u64;
            }
            left.first = [true; 2];
        }
        outcome
    }

    /// Sends what the limits allow. Returns the number of datagrams and bytes, and what stops the
    /// rest.
    fn burst(&self, left: &mut Left) -> (usize, usize, Option<FlightLimit>) {
        let (mut datagrams, mut bytes) = (0, 0_usize);
        while !left.is_empty() {
            let in_flight = bytes as u64;
            let fits = in_flight + limits::MIN_DATAGRAM as u64 <= self.bounds.window;
            let [initial, handshake] = left.first;
            let initial = !left.initial.is_empty() && (fits || initial);
            let handshake = !left.handshake.is_empty() && (fits || handshake);
            if !initial && !handshake {
                return (datagrams, bytes, Some(FlightLimit::Window));
            }
            let credit = self
                .bounds
                .credit
                .map(|credit| credit.saturating_sub(in_flight));
            let room = credit.map_or(limits::MIN_DATAGRAM, |credit| {
                usize::try_from(credit)
                    .unwrap_or(usize::MAX)
                    .min(limits::MIN_DATAGRAM)
            });
            if room < limits::MIN_DATAGRAM && (initial || room < MIN_PACKET) {
                return (datagrams, bytes, Some(FlightLimit::Amplification));
            }
            let written = self.datagram(left, room, [initial, handshake]);
            if written == 0 {
                return (datagrams, bytes, Some(FlightLimit::Amplification));
            }
            datagrams += 1;
            bytes += written;
        }
        (datagrams, bytes, None)
    }

    /// Fills one datagram with what is due, and returns its size.
    fn datagram(&self, left: &mut Left, room: usize, [initial, handshake]: [bool; 2]) -> usize {
        let mut written = 0;
        if initial {
            written += self.initial(left, room);
            left.first[0] = false;
            if !handshake || room - written.min(room) < MIN_PACKET {
                written = room;
            }
        }
        if handshake && written < room {
            let size = self.handshake(left, room - written);
            written += size;
            left.first[1] &= size == 0;
        }
        if initial { room } else { written }
    }

    fn initial(&self, left: &mut Left, room: usize) -> usize {
        // The length of the token, which is empty.
        let overhead = self.long_header() + 1 + TAG_LEN;
        let mut size = overhead + std::mem::take(&mut left.ack);
        size += crypto(&mut left.initial, room.saturating_sub(size));
        size
    }

    fn handshake(&self, left: &mut Left, room: usize) -> usize {
        let overhead = self.long_header() + TAG_LEN;
        match crypto(&mut left.handshake, room.saturating_sub(overhead)) {
            0 => 0,
            frame => overhead + frame,
        }
    }

    /// Returns the bytes of a long header with a packet number of one byte.
    fn long_header(&self) -> usize {
        let (peer, local) = (self.peer_cid, self.local_cid);
        1 + 4 + 1 + peer + 1 + local + 2 + 1
    }
}

/// Takes as much data as fits into a CRYPTO frame in this room, and returns the bytes of the frame.
fn crypto(data: &mut Range<usize>, room: usize) -> usize {
    let size = |number: usize| VarInt::saturating(number as u64).size();
    let fixed = 1 + size(data.start);
    let Some(room) = room.checked_sub(fixed) else {
        return 0;
    };
    let length = size(data.len().min(room));
    let fit = data.len().min(room.saturating_sub(length));
    if fit == 0 {
        return 0;
    }
    data.start += fit;
    fixed + size(fit) + fit
}

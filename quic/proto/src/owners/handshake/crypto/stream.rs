//! CRYPTO frames of one encryption level.

use arrayvec::ArrayVec;
use bytes::{Buf as _, Bytes, BytesMut};

use crate::{
    buffer::{Exceeded, Reassembler, SendBuffer},
    stats::census::Census,
    wire::{
        error::Violation,
        frame::{Crypto, FrameWriter},
        limits,
    },
};

/// The CRYPTO frames of one packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sent {
    frames: ArrayVec<(u32, u16), 4>,
}

impl Sent {
    /// Returns true if the packet carried none.
    pub(crate) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    fn ranges(&self) -> impl Iterator<Item = std::ops::Range<u64>> + '_ {
        self.frames.iter().map(|&(offset, len)| {
            let offset = u64::from(offset);
            offset..offset + u64::from(len)
        })
    }
}

/// How CRYPTO data is distributed among packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::owners::handshake) enum Spread {
    /// Fills each packet.
    FillFirst,
    /// Divides the data evenly among the datagrams needed: a ClientHello in two datagrams leaves
    /// room for frames in both.
    Evenly,
}

/// CRYPTO data of one level, in both directions (RFC 9000 §19.6).
pub(in crate::owners::handshake) struct CryptoStream {
    received: Reassembler,
    input: BytesMut,
    sending: SendBuffer,
}

impl Default for CryptoStream {
    fn default() -> Self {
        Self {
            received: Reassembler::new(limits::CRYPTO_BUFFER as u64, limits::CRYPTO_PIECES),
            input: BytesMut::new(),
            sending: SendBuffer::new(),
        }
    }
}

/// Bytes of a first-flight packet in addition to its CRYPTO data: the long header with both
/// connection ids, the frame header and the tag.
const FIRST_FLIGHT_OVERHEAD: usize = 64;

/// Bytes of CRYPTO data in a datagram of the first flight.
const FIRST_FLIGHT_ROOM: usize = limits::MIN_DATAGRAM - FIRST_FLIGHT_OVERHEAD;

impl CryptoStream {
    /// Handles a received frame. Data that TLS has not consumed counts against the limit as well.
    pub(in crate::owners::handshake) fn receive(
        &mut self,
        frame: &Crypto<'_>,
    ) -> Result<(), Violation> {
        let end = frame.offset.saturating_add(frame.data.len() as u64);
        let held_from = self
            .received
            .consumed()
            .saturating_sub(self.input.len() as u64);
        let taken = if end.saturating_sub(held_from) > limits::CRYPTO_BUFFER as u64 {
            Err(Exceeded::Bytes)
        } else {
            self.received.insert(frame.offset, frame.data)
        };
        taken.map_err(|exceeded| match exceeded {
            Exceeded::Bytes => Violation::CryptoBufferFull,
            Exceeded::Pieces => Violation::CryptoPieces,
        })
    }

    /// Returns true if all data of a frame was already read.
    pub(in crate::owners::handshake) fn has_read(&self, frame: &Crypto<'_>) -> bool {
        let end = frame.offset.saturating_add(frame.data.len() as u64);
        !frame.data.is_empty() && end <= self.received.consumed()
    }

    pub(in crate::owners::handshake) fn has_input(&self) -> bool {
        self.received.readable() > 0
    }

    /// Takes the contiguous data that TLS has not consumed.
    pub(in crate::owners::handshake) fn take_input(&mut self) -> BytesMut {
        let mut input = std::mem::take(&mut self.input);
        while let Some(chunk) = self.received.read_chunk(usize::MAX) {
            input.extend_from_slice(&chunk);
        }
        input
    }

    /// Puts the bytes that TLS did not consume back to the front.
    pub(in crate::owners::handshake) fn put_back(&mut self, input: BytesMut) {
        self.input = if input.has_remaining() {
            input
        } else {
            BytesMut::new()
        };
    }

    pub(in crate::owners::handshake) fn send(&mut self, bytes: Bytes) {
        self.sending.push(bytes);
    }

    pub(in crate::owners::handshake) fn has_pending(&self) -> bool {
        self.sending.pending().is_some()
    }

    /// Queues all unacknowledged bytes again: a probe with half a ClientHello would be useless.
    pub(in crate::owners::handshake) fn send_again(&mut self) {
        self.sending.retransmit_all();
    }

    /// Writes pending data, distributed among packets as configured.
    pub(in crate::owners::handshake) fn write_frames(
        &mut self,
        out: &mut FrameWriter<'_>,
        sent: &mut Sent,
        spread: Spread,
    ) {
        let mut budget = match spread {
            Spread::Evenly => self.even_share(),
            Spread::FillFirst => usize::MAX,
        };
        while budget > 0 && !sent.frames.is_full() {
            let Some(range) = self.sending.pending() else {
                return;
            };
            let wanted = ((range.end - range.start) as usize)
                .min(budget)
                .min(u16::MAX.into());
            let sending = &mut self.sending;
            let fill = |target: &mut [u8]| sending.fill(range.start, target);
            let Some(written) = out.crypto(range.start, wanted, fill) else {
                return;
            };
            self.sending
                .on_sent(range.start..range.start + written as u64);
            sent.frames.push((range.start as u32, written as u16));
            budget -= written;
        }
    }

    fn even_share(&self) -> usize {
        let pending = self.first_flight();
        pending.div_ceil(pending.div_ceil(FIRST_FLIGHT_ROOM).max(1))
    }

    /// Returns true if the pending data needs more than one datagram of the first flight.
    pub(in crate::owners::handshake) fn fills_datagrams(&self) -> bool {
        self.first_flight() > FIRST_FLIGHT_ROOM
    }

    fn first_flight(&self) -> usize {
        self.sending.pending().map_or(0, |range| {
            (range.end - range.start).max(self.sending.unsent()) as usize
        })
    }

    /// Counts the handshake messages that are held.
    pub(in crate::owners::handshake) fn census(&self, census: &mut Census) {
        let Self {
            received,
            input,
            sending,
        } = self;
        census.add("streams of handshake messages", 1, 0);
        census.add("pieces of handshake messages", received.pieces(), 0);
        let unread = received.readable() + received.bytes_behind_gaps() + input.len();
        census.add("handshake messages to read", 0, unread);
        census.add("handshake messages to send", 0, sending.held() as usize);
    }

    /// Releases memory that is not used now.
    pub(in crate::owners::handshake) fn release_memory(&mut self) {
        self.sending.release_memory();
    }

    pub(in crate::owners::handshake) fn on_acked(&mut self, sent: &Sent) {
        for range in sent.ranges() {
            self.sending.on_acked(range);
        }
    }

    pub(in crate::owners::handshake) fn on_lost(&mut self, sent: &Sent) {
        for range in sent.ranges() {
            self.sending.on_lost(range);
        }
    }
}

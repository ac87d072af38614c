use arrayvec::ArrayVec;
use bytes::{Bytes, BytesMut};

use crate::proto::{
    error::{Code, TransportError},
    frame::{Crypto, FrameWriter},
    limits,
    streams::{Reassembler, SendBuffer},
};

/// The CRYPTO frames of one packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    frames: ArrayVec<(u32, u16), 4>,
}

impl Sent {
    /// Whether the packet carried none.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }
}

/// CRYPTO data of one level, both ways (RFC 9000 §19.6).
#[derive(Default)]
pub(super) struct CryptoStream {
    received: Reassembler,
    input: BytesMut,
    sending: SendBuffer,
}

/// Bytes a packet of the first flight needs beside its CRYPTO data: the long header with both
/// connection ids and a short token, the frame header and the tag.
const FIRST_FLIGHT_OVERHEAD: usize = 80;

impl CryptoStream {
    pub(super) fn receive(&mut self, frame: &Crypto<'_>) -> Result<(), TransportError> {
        let end = frame.offset.saturating_add(frame.data.len() as u64);
        let held_from = self.received.offset().saturating_sub(self.input.len() as u64);
        let exceeded = |why: &'static str| {
            TransportError::new(Code::CRYPTO_BUFFER_EXCEEDED, why).in_frame(0x06)
        };
        if end > held_from.saturating_add(limits::CRYPTO_BUFFER as u64) {
            return Err(exceeded("CRYPTO data beyond the buffer"));
        }
        self.received
            .insert(frame.offset, frame.data)
            .map_err(|_| exceeded("CRYPTO data in too many pieces"))?;
        if self.received.pieces() > limits::CRYPTO_PIECES {
            return Err(exceeded("CRYPTO data in too many pieces"));
        }
        Ok(())
    }

    pub(super) fn has_input(&self) -> bool {
        self.received.readable() > 0
    }

    /// Everything contiguous that TLS has not consumed.
    pub(super) fn take_input(&mut self) -> BytesMut {
        let mut input = std::mem::take(&mut self.input);
        while let Some(chunk) = self.received.read_chunk(usize::MAX) {
            input.extend_from_slice(&chunk);
        }
        input
    }

    /// What TLS left for later.
    pub(super) fn put_back(&mut self, input: BytesMut) {
        self.input = input;
    }

    pub(super) fn send(&mut self, bytes: Bytes) {
        self.sending.push(bytes);
    }

    pub(super) fn has_pending(&self) -> bool {
        self.sending.has_pending()
    }

    /// `even` spreads what is pending evenly over the datagrams it needs, so that a ClientHello in
    /// two datagrams looks the same whichever one comes first.
    pub(super) fn write_frames(&mut self, out: &mut FrameWriter<'_>, sent: &mut Sent, even: bool) {
        let mut budget = usize::MAX;
        if even {
            let pending = self.sending.pending_len();
            let capacity = limits::MIN_DATAGRAM - FIRST_FLIGHT_OVERHEAD;
            budget = pending.div_ceil(pending.div_ceil(capacity).max(1));
        }
        while budget > 0 && !sent.frames.is_full() {
            let Some((offset, len)) = self.sending.next_pending() else {
                return;
            };
            let wanted = len.min(budget);
            let sending = &self.sending;
            let Some(written) = out.crypto(offset, wanted, |target| sending.fill(offset, target))
            else {
                return;
            };
            self.sending.on_sent(offset, written);
            sent.frames.push((offset as u32, written as u16));
            budget -= written;
        }
    }

    pub(super) fn on_acked(&mut self, sent: &Sent) {
        for &(offset, len) in &sent.frames {
            self.sending.on_acked(offset.into(), len.into());
        }
    }

    pub(super) fn on_lost(&mut self, sent: &Sent) {
        for &(offset, len) in &sent.frames {
            self.sending.on_lost(offset.into(), len.into());
        }
    }
}

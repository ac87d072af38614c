//! A writer of the frames of one packet.

use std::ops::RangeInclusive;

use super::{
    AckEncoder, ConnectionClose, Datagram, EcnCounts, Encode, StreamHeader, connection::data,
};
use crate::wire::{FrameType, PacketNumber, VarInt, Writer};

/// Fills the payload of one packet. It refuses frames that no longer fit, so that callers can offer
/// their frames in order of priority.
#[derive(Debug)]
pub struct FrameWriter<'a> {
    writer: Writer<'a>,
    ack_eliciting: bool,
}

impl<'a> FrameWriter<'a> {
    /// Starts an empty payload that may fill `buffer`.
    pub const fn new(buffer: &'a mut [u8]) -> Self {
        Self {
            writer: Writer::new(buffer),
            ack_eliciting: false,
        }
    }

    /// Writes the frame, or refuses it and writes nothing.
    #[inline]
    pub fn write<F: Encode>(&mut self, frame: &F) -> bool {
        if frame.size() > self.writer.remaining() {
            return false;
        }
        frame.encode(&mut self.writer);
        self.ack_eliciting |= F::ACK_ELICITING;
        true
    }

    /// Writes an ACK frame (RFC 9000 §19.3) with as many of the `ranges` as fit, and returns their
    /// number. The ranges must come largest first, with gaps between them. `delay` is already
    /// scaled by our exponent.
    ///
    /// Returns `None` without writing if there are no ranges or not even the first fits.
    pub fn ack<R>(&mut self, delay: u64, ranges: R, ecn: Option<EcnCounts>) -> Option<usize>
    where
        R: Iterator<Item = RangeInclusive<PacketNumber>> + Clone,
    {
        self.ack_within(usize::MAX, delay, ranges, ecn)
    }

    /// Writes an ACK frame like [`FrameWriter::ack`], of at most `room` bytes.
    pub fn ack_within<R>(
        &mut self,
        room: usize,
        delay: u64,
        ranges: R,
        ecn: Option<EcnCounts>,
    ) -> Option<usize>
    where
        R: Iterator<Item = RangeInclusive<PacketNumber>> + Clone,
    {
        let ack = AckEncoder { delay, ranges, ecn };
        let count = ack.fitting(self.remaining().min(room));
        let ack = AckEncoder {
            delay,
            ranges: ack.ranges.take(count),
            ecn,
        };
        (count > 0 && self.write(&ack)).then_some(count)
    }

    /// Writes a STREAM frame (RFC 9000 §19.8) with as many of the `wanted` bytes as fit, and
    /// returns their number. `fill` copies exactly these bytes into the packet.
    ///
    /// FIN follows the wanted bytes, so the frame carries it only if all of them fit. Returns
    /// `None` without writing if not a single byte fits, or if none are wanted and an empty frame
    /// does not fit.
    pub fn stream(
        &mut self,
        header: StreamHeader,
        wanted: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Option<usize> {
        let (fit, padding, with_length) = self.plan_stream(header.size(), wanted)?;
        self.pad(padding);
        let header = StreamHeader {
            fin: header.fin && fit == wanted,
            ..header
        };
        header.encode(with_length.then_some(fit), &mut self.writer);
        self.fill(fit, fill);
        Some(fit)
    }

    /// Writes a CRYPTO frame (RFC 9000 §19.6) with as many of the `wanted` bytes as fit, and
    /// returns their number. `fill` copies these bytes into the packet.
    ///
    /// Returns `None` without writing if not a single byte fits or none are wanted.
    pub fn crypto(
        &mut self,
        offset: u64,
        wanted: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Option<usize> {
        let fit = fit_with_length(self.remaining(), data::crypto_header_size(offset), wanted)?;
        if fit == 0 {
            return None;
        }
        data::write_crypto_header(&mut self.writer, offset, fit);
        self.fill(fit, fill);
        Some(fit)
    }

    /// Writes a DATAGRAM frame (RFC 9221 §4) with all of the data, or refuses it and writes nothing.
    pub fn datagram(&mut self, data: &[u8]) -> bool {
        let Some((padding, with_length)) = data::plan_datagram(self.remaining(), data.len()) else {
            return false;
        };
        if with_length {
            return self.write(&Datagram { data });
        }
        self.pad(padding);
        data::write_last_datagram(&mut self.writer, data);
        self.ack_eliciting = true;
        true
    }

    /// Returns the data bytes of a STREAM frame, the bytes of PADDING before it, and whether it
    /// carries a length.
    ///
    /// The last frame of a packet may omit its length. If the wanted bytes fit only without it and
    /// would leave a byte or two after them, PADDING precedes the frame.
    fn plan_stream(&self, fixed: usize, wanted: usize) -> Option<(usize, usize, bool)> {
        let room = self.remaining().checked_sub(fixed)?;
        if wanted >= room {
            return (room > 0 || wanted == 0).then_some((room, 0, false));
        }
        let length_size = VarInt::saturating(wanted as u64).size();
        if wanted + length_size <= room {
            Some((wanted, 0, true))
        } else {
            Some((wanted, room - wanted, false))
        }
    }

    fn fill(&mut self, len: usize, fill: impl FnOnce(&mut [u8])) {
        if let Some(target) = self.writer.free().get_mut(..len) {
            fill(target);
            self.writer.advance(len);
        }
        self.ack_eliciting = true;
    }

    /// Writes one PING.
    pub fn ping(&mut self) -> bool {
        self.bare(FrameType::PING)
    }

    /// Writes an ack-eliciting frame that has no fields.
    fn bare(&mut self, ty: FrameType) -> bool {
        if self.writer.remaining() == 0 {
            return false;
        }
        self.writer.varint(ty.0);
        self.ack_eliciting = true;
        true
    }

    /// Writes one `HANDSHAKE_DONE` (RFC 9000 §19.20).
    pub fn handshake_done(&mut self) -> bool {
        self.bare(FrameType::HANDSHAKE_DONE)
    }

    /// Writes one `IMMEDIATE_ACK` (draft-ietf-quic-ack-frequency §5).
    pub fn immediate_ack(&mut self) -> bool {
        self.bare(FrameType::IMMEDIATE_ACK)
    }

    /// Writes a `CONNECTION_CLOSE`, with its reason cut to [`CLOSE_REASON`](crate::wire::limits)
    /// and to the room left.
    pub fn close(&mut self, frame: &ConnectionClose<'_>) -> bool {
        frame
            .shrunk_to(self.remaining())
            .is_some_and(|frame| self.write(&frame))
    }

    /// Appends up to `count` bytes of PADDING.
    pub fn pad(&mut self, count: usize) {
        self.writer.put_zeros(count);
    }

    /// Returns the frames written so far.
    pub fn written(&mut self) -> &[u8] {
        self.writer.written()
    }

    /// Returns the bytes that still fit.
    pub const fn remaining(&self) -> usize {
        self.writer.remaining()
    }

    /// Returns the bytes written.
    pub const fn len(&self) -> usize {
        self.writer.len()
    }

    /// Returns true if nothing was written.
    pub const fn is_empty(&self) -> bool {
        self.writer.is_empty()
    }

    /// Returns true if a frame was written that the peer must acknowledge.
    pub const fn is_ack_eliciting(&self) -> bool {
        self.ack_eliciting
    }
}

/// Returns how many of the `wanted` bytes fit into `space` after `fixed` header bytes and their own
/// length.
fn fit_with_length(space: usize, fixed: usize, wanted: usize) -> Option<usize> {
    let room = space.checked_sub(fixed)?;
    let length_size = VarInt::saturating(wanted.min(room) as u64).size();
    Some(wanted.min(room.checked_sub(length_size)?))
}

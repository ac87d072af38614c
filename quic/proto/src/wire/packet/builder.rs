//! A builder of packets.

use super::{
    Cid, DirectionKeys, KeyPhase, Kind, PacketNumber, SAMPLE_LEN, SpinValue, TAG_LEN,
    header_bits::{FIXED, LONG},
    protection::protected::{KEY_PHASE, SPIN},
    version::{LongType, Version},
};
use crate::wire::{VarInt, Writer, frame::FrameWriter};

/// Largest value of the two-byte field in which we write the length of a long packet.
const MAX_LENGTH: usize = (1 << 14) - 1;

/// Bytes of packet number and payload that header protection skips before its sample.
const BEFORE_SAMPLE: usize = 4;

/// The header of a packet to be built, without its number.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Header<'a> {
    /// Initial, 0-RTT or Handshake (RFC 9000 §17.2).
    Long {
        /// Type of the packet.
        kind: Kind,
        /// The version.
        version: Version,
        /// Destination connection id.
        dcid: Cid,
        /// Source connection id.
        scid: Cid,
        /// The token of an Initial; ignored for others.
        token: &'a [u8],
    },
    /// 1-RTT (RFC 9000 §17.3.1).
    Short {
        /// Destination connection id.
        dcid: Cid,
        /// The spin bit.
        spin: SpinValue,
        /// The phase of the keys that will seal it.
        key_phase: KeyPhase,
    },
}

impl Header<'_> {
    /// Returns the bytes of the header with a packet number of `pn_len` bytes.
    pub fn size(&self, pn_len: usize) -> usize {
        pn_len
            + match self {
                Self::Long {
                    kind,
                    dcid,
                    scid,
                    token,
                    ..
                } => {
                    // First byte, version, both lengths of connection ids, length.
                    let fixed = 1 + 4 + 1 + 1 + 2 + dcid.len() + scid.len();
                    let token_len = VarInt::saturating(token.len() as u64);
                    match kind {
                        Kind::Initial => fixed + token_len.size() + token.len(),
                        _ => fixed,
                    }
                }
                Self::Short { dcid, .. } => 1 + dcid.len(),
            }
    }

    /// Writes the header up to the packet number; the length stays zero.
    fn encode(&self, pn_len: usize, writer: &mut Writer<'_>) {
        let pn_bits = pn_len as u8 - 1;
        match self {
            Self::Long {
                kind,
                version,
                dcid,
                scid,
                token,
            } => {
                let ty = match kind {
                    Kind::Initial => LongType::Initial,
                    Kind::ZeroRtt => LongType::ZeroRtt,
                    Kind::Handshake | Kind::OneRtt => LongType::Handshake,
                };
                debug_assert_ne!(*kind, Kind::OneRtt, "1-RTT packets have short headers");
                writer.put(&[LONG | FIXED | version.type_bits(ty) | pn_bits]);
                writer.put(&version.number().to_be_bytes());
                for cid in [dcid, scid] {
                    writer.put(&[cid.len() as u8]);
                    writer.put(cid.as_bytes());
                }
                if *kind == Kind::Initial {
                    writer.prefixed(token);
                }
                writer.put(&[0; 2]);
            }
            Self::Short {
                dcid,
                spin,
                key_phase,
            } => {
                let spin = if *spin == SpinValue::One { SPIN } else { 0 };
                let key_phase = if *key_phase == KeyPhase::One {
                    KEY_PHASE
                } else {
                    0
                };
                writer.put(&[FIXED | spin | key_phase | pn_bits]);
                writer.put(dcid.as_bytes());
            }
        }
    }
}

/// A packet being built at the front of a buffer.
///
/// ```text
/// let mut packet = PacketBuilder::begin(buffer, &header, pn, largest_acked)?;
/// let mut frames = packet.frames();
/// frames.write(…);
/// let frames_len = frames.len();
/// let packet_len = packet.finish(frames_len, &keys);
/// ```
/// If it is dropped before [`PacketBuilder::finish`], its number was not used.
#[derive(Debug)]
pub struct PacketBuilder<'a> {
    buffer: &'a mut [u8],
    pn: PacketNumber,
    pn_len: usize,
    header_len: usize,
    /// Payload bytes that fit, without the tag.
    capacity: usize,
}

impl<'a> PacketBuilder<'a> {
    /// Writes the header of packet number `pn`. The packet may fill `buffer`, the rest of the
    /// datagram. Returns `None` if there is no room for a packet.
    pub fn begin(
        buffer: &'a mut [u8],
        header: &Header<'_>,
        pn: PacketNumber,
        largest_acked: Option<PacketNumber>,
    ) -> Option<Self> {
        let pn_len = pn.encoded_len(largest_acked);
        let header_len = header.size(pn_len);
        let mut capacity = buffer.len().checked_sub(header_len)?.checked_sub(TAG_LEN)?;
        if let Header::Long { .. } = header {
            capacity = capacity.min(MAX_LENGTH - TAG_LEN - BEFORE_SAMPLE);
        }
        if capacity < BEFORE_SAMPLE {
            return None;
        }
        let mut writer = Writer::new(buffer);
        header.encode(pn_len, &mut writer);
        writer.put(pn.get().to_be_bytes().get(8 - pn_len..)?);
        debug_assert_eq!(
            writer.len(),
            header_len,
            "header of another size than announced"
        );
        Some(Self {
            buffer,
            pn,
            pn_len,
            header_len,
            capacity,
        })
    }

    /// Returns a writer for the payload. [`PacketBuilder::finish`] needs its [`FrameWriter::len`].
    pub fn frames(&mut self) -> FrameWriter<'_> {
        let space = self.buffer.get_mut(self.header_len..).unwrap_or_default();
        FrameWriter::new(space.get_mut(..self.capacity).unwrap_or_default())
    }

    /// Returns the frames, of which `frames_len` bytes were written.
    pub fn payload(&self, frames_len: usize) -> &[u8] {
        let payload = self.buffer.get(self.header_len..).unwrap_or_default();
        payload.get(..frames_len).unwrap_or_default()
    }

    /// Returns the packet number.
    pub const fn pn(&self) -> PacketNumber {
        self.pn
    }

    /// Returns the bytes of the packet in addition to its frames: the header and the tag.
    pub const fn overhead(&self) -> usize {
        self.header_len + TAG_LEN
    }

    /// Clears the QUIC bit, for a peer that accepts such packets (RFC 9287).
    pub fn clear_quic_bit(&mut self) {
        if let Some(first) = self.first_byte_mut() {
            *first &= !FIXED;
        }
    }

    /// Returns the first byte of the header, before header protection.
    pub fn first_byte_mut(&mut self) -> Option<&mut u8> {
        self.buffer.first_mut()
    }

    /// Encrypts the packet and protects its header. Returns the bytes it takes in the buffer.
    pub fn finish(self, frames_len: usize, keys: &DirectionKeys) -> usize {
        self.finish_padded(frames_len, 0, keys)
    }

    /// Encrypts the packet like [`PacketBuilder::finish`], with PADDING after the frames until it
    /// has `pad_to` bytes or fills its buffer.
    ///
    /// If the AEAD refuses, the buffer is cleared and the result is 0.
    pub fn finish_padded(
        mut self,
        frames_len: usize,
        pad_to: usize,
        keys: &DirectionKeys,
    ) -> usize {
        let payload_len = self.pad(frames_len, pad_to);
        let packet_len = self.overhead() + payload_len;
        self.write_length(payload_len);
        if self.protect(payload_len, keys).is_some() {
            packet_len
        } else {
            debug_assert!(false, "packet of {packet_len} bytes could not be sealed");
            self.buffer.fill(0);
            0
        }
    }

    /// Pads the payload and returns its length. Header protection needs a sample even from the
    /// shortest packet (RFC 9001 §5.4.2).
    fn pad(&mut self, frames_len: usize, pad_to: usize) -> usize {
        let shortest = BEFORE_SAMPLE.saturating_sub(self.pn_len);
        let payload_len = pad_to
            .saturating_sub(self.overhead())
            .max(shortest)
            .max(frames_len)
            .min(self.capacity);
        let payload = self.buffer.get_mut(self.header_len..).unwrap_or_default();
        payload
            .get_mut(frames_len..payload_len)
            .unwrap_or_default()
            .fill(0);
        payload_len
    }

    /// Writes the length of a long header into the two bytes before the packet number.
    fn write_length(&mut self, payload_len: usize) {
        let length = self
            .pn_len
            .saturating_add(payload_len)
            .saturating_add(TAG_LEN);
        let pn_offset = self.header_len - self.pn_len;
        let before_pn = self.buffer.get_mut(..pn_offset).unwrap_or_default();
        if before_pn.first().is_some_and(|first| first & LONG != 0) {
            if let Some(field) = before_pn.last_chunk_mut::<2>() {
                *field = VarInt::encode_two_bytes(length as u16);
            }
        }
    }

    fn protect(&mut self, payload_len: usize, keys: &DirectionKeys) -> Option<()> {
        let (header, behind) = self.buffer.split_at_mut_checked(self.header_len)?;
        let (payload, behind) = behind.split_at_mut_checked(payload_len)?;
        let tag = behind.first_chunk_mut::<TAG_LEN>()?;
        keys.packet.seal(self.pn, header, payload, tag).ok()?;

        let pn_offset = self.header_len - self.pn_len;
        let sample_at = pn_offset + BEFORE_SAMPLE;
        let sample: [u8; SAMPLE_LEN] = *self.buffer.get(sample_at..)?.first_chunk()?;
        let (first, behind) = self.buffer.split_first_mut()?;
        let pn = behind
            .get_mut(pn_offset.checked_sub(1)?..)?
            .get_mut(..self.pn_len)?;
        keys.header.protect(first, pn, &sample);
        Some(())
    }
}

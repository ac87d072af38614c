//! Protected packets.

use std::ops::Range;

use crate::wire::packet::{
    Cid, DropReason, HeaderKey, KeyPhase, Kind, PacketKey, PacketNumber, SAMPLE_LEN, SpinValue,
    Undecryptable, Version,
    header_bits::{FIXED, LONG},
};

/// Bits that must be 0 in a long header after header protection is removed (RFC 9000 §17.2).
const RESERVED_LONG: u8 = 0x0c;
/// Bits that must be 0 in a short header (RFC 9000 §17.3.1).
const RESERVED_SHORT: u8 = 0x18;
/// Spin bit of a short header (RFC 9000 §17.4).
pub(in crate::wire::packet) const SPIN: u8 = 0x20;
/// Key phase bit of a short header.
pub(in crate::wire::packet) const KEY_PHASE: u8 = 0x04;

/// A packet whose header is still protected and whose payload is still encrypted.
#[derive(Debug)]
#[non_exhaustive]
pub struct Protected<'a> {
    /// Type of the packet, which selects its keys.
    pub kind: Kind,
    /// The version of a long header; a short header has none.
    pub version: Option<Version>,
    /// Destination connection id.
    pub dcid: Cid,
    /// Source connection id; none in a short header.
    pub scid: Cid,
    /// Position of the token of an Initial; see [`Protected::token`].
    pub token: Range<usize>,
    /// Offset of the packet number.
    pub pn_offset: usize,
    /// The whole packet.
    pub bytes: &'a mut [u8],
}

impl<'a> Protected<'a> {
    /// Returns the token of an Initial; empty if it has none.
    pub fn token(&self) -> &[u8] {
        self.bytes.get(self.token.clone()).unwrap_or_default()
    }

    /// Returns true if the QUIC bit is set. Packets without it are dropped, unless we announced
    /// that we accept them (RFC 9287).
    #[inline]
    pub fn has_quic_bit(&self) -> bool {
        self.bytes.first().is_some_and(|first| first & FIXED != 0)
    }

    /// Returns the spin bit of a short header, which is not protected.
    #[inline]
    pub fn spin(&self) -> SpinValue {
        match self.bytes.first() {
            Some(first) if first & SPIN != 0 => SpinValue::One,
            _ => SpinValue::Zero,
        }
    }

    /// Removes header protection (RFC 9001 §5.4). `largest_received` is the largest packet number
    /// that decrypted in this space.
    ///
    /// The result must not be trusted before [`Unprotected::open`] succeeds.
    ///
    /// # Errors
    /// [`DropReason::NoSample`] if the packet is too short.
    #[inline]
    pub fn unprotect(
        self,
        key: &HeaderKey,
        largest_received: Option<PacketNumber>,
    ) -> Result<Unprotected<'a>, DropReason> {
        let Self {
            kind,
            bytes,
            pn_offset,
            ..
        } = self;
        let (first, behind_first) = bytes.split_first_mut().ok_or(DropReason::NoSample)?;
        let (pn, sample) = pn_offset
            .checked_sub(1)
            .and_then(|skip| behind_first.get_mut(skip..))
            .and_then(|bytes| bytes.split_first_chunk_mut::<4>())
            .ok_or(DropReason::NoSample)?;
        let sample: &[u8; SAMPLE_LEN] = sample.first_chunk().ok_or(DropReason::NoSample)?;
        let (truncated, pn_len) = key.unprotect(first, pn, sample);
        let reserved = if *first & LONG == 0 {
            RESERVED_SHORT
        } else {
            RESERVED_LONG
        };
        Ok(Unprotected {
            kind,
            pn: PacketNumber::expand(truncated, pn_len, largest_received),
            key_phase: if *first & KEY_PHASE == 0 {
                KeyPhase::Zero
            } else {
                KeyPhase::One
            },
            header_len: pn_offset + pn_len,
            reserved_bits_ok: *first & reserved == 0,
            bytes,
        })
    }
}

/// A packet whose header can be read, but whose payload is still encrypted.
#[derive(Debug)]
pub struct Unprotected<'a> {
    /// Type of the packet.
    pub kind: Kind,
    /// Full packet number.
    pub pn: PacketNumber,
    /// The key phase, meaningless in a long header.
    pub key_phase: KeyPhase,
    /// Bytes of the header, packet number included.
    pub header_len: usize,
    reserved_bits_ok: bool,
    /// The whole packet.
    pub bytes: &'a mut [u8],
}

/// Reason why a payload cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The packet was not sealed with this key: drop it, and count it (RFC 9001 §6.6).
    #[error("packet failed to decrypt")]
    Undecryptable,
    /// The peer set reserved bits: `PROTOCOL_VIOLATION` (RFC 9000 §17.2, §17.3.1). Reported only
    /// once the header has proved to be authentic.
    #[error("reserved bits of the header are set")]
    ReservedBits,
}

impl From<Undecryptable> for OpenError {
    fn from(Undecryptable: Undecryptable) -> Self {
        Self::Undecryptable
    }
}

impl<'a> Unprotected<'a> {
    /// Decrypts the frames in place.
    ///
    /// # Errors
    /// [`OpenError`].
    #[inline]
    pub fn open(self, key: &PacketKey) -> Result<&'a mut [u8], OpenError> {
        let (header, payload) = self
            .bytes
            .split_at_mut_checked(self.header_len)
            .ok_or(OpenError::Undecryptable)?;
        let len = key.open(self.pn, header, payload)?;
        if self.reserved_bits_ok {
            Ok(payload.split_at_mut(len).0)
        } else {
            Err(OpenError::ReservedBits)
        }
    }
}

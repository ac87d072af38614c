//! Packet headers.

use std::ops::Range;

use super::{
    Cid, Kind, Protected, Retry, TAG_LEN, VersionNegotiation,
    version::{LongType, Version},
};
use super::{
    DropReason,
    first_byte::{FIXED, LONG},
};
use crate::wire::{Eof, Reader};

/// Part of a packet that is the same in every version (RFC 8999 §5), enough to route it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peek<'a> {
    /// A long header.
    Long {
        /// The version; 0 is Version Negotiation.
        version: u32,
        /// Destination connection id, 0 to 255 bytes.
        dcid: &'a [u8],
        /// Source connection id, 0 to 255 bytes.
        scid: &'a [u8],
    },
    /// A short header.
    Short {
        /// Destination connection id, of the length that we issue.
        dcid: &'a [u8],
    },
}

impl<'a> Peek<'a> {
    /// Returns the version of a long header (0 for Version Negotiation), or `None` for a short
    /// header.
    pub const fn version(&self) -> Option<u32> {
        match *self {
            Self::Long { version, .. } => Some(version),
            Self::Short { .. } => None,
        }
    }

    /// Returns the destination connection id.
    pub const fn dcid(&self) -> &'a [u8] {
        match *self {
            Self::Long { dcid, .. } | Self::Short { dcid } => dcid,
        }
    }
}

/// Reads the invariant header of a datagram's first packet, of any version, without further checks.
/// Returns `None` if it is cut short.
#[inline]
pub fn peek(datagram: &[u8], local_cid_len: usize) -> Option<Peek<'_>> {
    let mut reader = Reader::new(datagram);
    let first = reader.u8().ok()?;
    peek_behind(first, &mut reader, local_cid_len).ok()
}

/// Returns true if a datagram starts with an Initial packet of a supported version, whatever the
/// QUIC bit.
pub fn is_initial(datagram: &[u8]) -> bool {
    starts_with(datagram, LongType::Initial)
}

/// Returns true if a datagram starts with a 0-RTT packet of a supported version.
pub fn is_zero_rtt(datagram: &[u8]) -> bool {
    starts_with(datagram, LongType::ZeroRtt)
}

fn starts_with(datagram: &[u8], ty: LongType) -> bool {
    let Some(&[first, number @ ..]) = datagram.first_chunk::<5>() else {
        return false;
    };
    first & LONG != 0
        && Version::from_number(u32::from_be_bytes(number))
            .is_some_and(|version| version.long_type(first) == ty)
}

#[inline]
fn peek_behind<'a>(
    first: u8,
    reader: &mut Reader<'a>,
    local_cid_len: usize,
) -> Result<Peek<'a>, Eof> {
    if first & LONG == 0 {
        return Ok(Peek::Short {
            dcid: reader.bytes(local_cid_len)?,
        });
    }
    let version = reader.u32()?;
    let mut cid = || {
        let len = usize::from(reader.u8()?);
        reader.bytes(len)
    };
    Ok(Peek::Long {
        version,
        dcid: cid()?,
        scid: cid()?,
    })
}

/// A packet, as far as it can be read without keys.
#[derive(Debug)]
pub enum Decoded<'a> {
    /// A packet with frames, still encrypted.
    Protected(Protected<'a>),
    /// Version Negotiation.
    VersionNegotiation(VersionNegotiation<'a>),
    /// Retry whose integrity tag is not verified yet.
    Retry(Retry<'a>),
    /// Long header of an unsupported version. It fills the datagram.
    UnknownVersion {
        /// The version.
        version: u32,
        /// Destination connection id, 0 to 255 bytes.
        dcid: &'a [u8],
        /// Source connection id, 0 to 255 bytes.
        scid: &'a [u8],
    },
}

/// Splits the first packet off a datagram, and returns it with the bytes behind it, since packets
/// may be coalesced (RFC 9000 §12.2).
///
/// A packet whose QUIC bit is 0 is read like any other. The caller decides whether to accept it
/// ([`Protected::has_quic_bit`]), by what was negotiated (RFC 9287).
///
/// Packets of one datagram must share their destination connection id; the caller compares it.
///
/// # Errors
/// [`DropReason`]: drop the datagram, or what is left of it.
pub fn decode(
    datagram: &mut [u8],
    local_cid_len: usize,
) -> Result<(Decoded<'_>, &mut [u8]), DropReason> {
    let mut reader = Reader::new(datagram);
    let first = reader.u8()?;
    let fields = match peek_behind(first, &mut reader, local_cid_len)? {
        Peek::Long {
            version,
            dcid,
            scid,
        } => {
            let Some((version, kind)) = kind_of(first, version) else {
                return Ok((decode_whole(datagram)?, &mut []));
            };
            let ends = [Cid::new(dcid), Cid::new(scid)];
            let [Some(dcid), Some(scid)] = ends else {
                return Err(DropReason::CidTooLong);
            };
            Fields::long(kind, version, [dcid, scid], datagram.len(), reader)?
        }
        Peek::Short { dcid } => Fields {
            kind: Kind::OneRtt,
            version: None,
            dcid: Cid::new(dcid).ok_or(DropReason::CidTooLong)?,
            scid: Cid::EMPTY,
            token: 0..0,
            pn_offset: 1 + dcid.len(),
            len: datagram.len(),
        },
    };
    let Fields {
        kind,
        version,
        dcid,
        scid,
        token,
        pn_offset,
        len,
    } = fields;
    let (bytes, rest) = datagram
        .split_at_mut_checked(len)
        .ok_or(DropReason::Truncated)?;
    let packet = Protected {
        kind,
        version,
        dcid,
        scid,
        token,
        pn_offset,
        bytes,
    };
    Ok((Decoded::Protected(packet), rest))
}

/// Returns version and type of a long header of a supported version; `None` for a Retry.
fn kind_of(first: u8, version: u32) -> Option<(Version, Kind)> {
    let version = Version::from_number(version)?;
    let kind = match version.long_type(first) {
        LongType::Initial => Kind::Initial,
        LongType::ZeroRtt => Kind::ZeroRtt,
        LongType::Handshake => Kind::Handshake,
        LongType::Retry => return None,
    };
    Some((version, kind))
}

/// Positions of the fields of a protected packet.
struct Fields {
    kind: Kind,
    version: Option<Version>,
    dcid: Cid,
    scid: Cid,
    token: Range<usize>,
    pn_offset: usize,
    len: usize,
}

impl Fields {
    /// Reads the rest of a long header behind the connection ids (RFC 9000 §17.2.2 to §17.2.4).
    fn long(
        kind: Kind,
        version: Version,
        [dcid, scid]: [Cid; 2],
        datagram_len: usize,
        mut reader: Reader<'_>,
    ) -> Result<Self, DropReason> {
        let position = |reader: &Reader<'_>| datagram_len - reader.remaining();
        let token_len = if kind == Kind::Initial {
            reader.prefixed()?.len()
        } else {
            0
        };
        let token_end = position(&reader);
        let payload_len = usize::try_from(reader.varint()?).map_err(|_| DropReason::Truncated)?;
        let pn_offset = position(&reader);
        Ok(Self {
            kind,
            version: Some(version),
            dcid,
            scid,
            token: token_end - token_len..token_end,
            pn_offset,
            len: pn_offset
                .checked_add(payload_len)
                .ok_or(DropReason::Truncated)?,
        })
    }
}

/// Reads a packet without length and protection, which fills the datagram.
fn decode_whole(datagram: &[u8]) -> Result<Decoded<'_>, DropReason> {
    let mut reader = Reader::new(datagram);
    let first = reader.u8()?;
    let Peek::Long {
        version,
        dcid,
        scid,
    } = peek_behind(first, &mut reader, 0)?
    else {
        return Err(DropReason::Truncated);
    };
    if version == 0 {
        let versions = reader.take_rest();
        // Without a version, or with a part of one, it is none (RFC 8999 §6).
        if versions.is_empty() || versions.len() % 4 != 0 {
            return Err(DropReason::Truncated);
        }
        return Ok(Decoded::VersionNegotiation(VersionNegotiation {
            dcid,
            scid,
            versions,
        }));
    }
    let Some(version) = Version::from_number(version) else {
        return Ok(Decoded::UnknownVersion {
            version,
            dcid,
            scid,
        });
    };
    if first & FIXED == 0 {
        return Err(DropReason::FixedBit);
    }
    let ends = [Cid::new(dcid), Cid::new(scid)];
    let [Some(dcid), Some(scid)] = ends else {
        return Err(DropReason::CidTooLong);
    };
    let (token, _) = reader
        .rest()
        .split_last_chunk::<TAG_LEN>()
        .ok_or(DropReason::Truncated)?;
    if token.is_empty() {
        return Err(DropReason::EmptyRetryToken);
    }
    Ok(Decoded::Retry(Retry {
        version,
        dcid,
        scid,
        token,
        bytes: datagram,
    }))
}

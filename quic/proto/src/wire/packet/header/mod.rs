//! Packet headers.

pub(super) mod packets;

use std::ops::Range;

use super::{
    Cid, DropReason, Kind, Protected, Retry, TAG_LEN, VersionNegotiation,
    header_bits::{FIXED, LONG},
    version::{LongType, Version},
};
use crate::wire::{Eof, Reader};

#[cfg(test)]
thread_local! {
    /// Number of headers that this thread has read.
    pub(crate) static READS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Offset of the destination connection id in a long header (RFC 8999 §5.1).
const DCID: usize = 6;

/// A packet, as far as it can be read without keys.
#[derive(Debug)]
#[non_exhaustive]
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

/// Splits the first packet off a datagram, and returns it with the bytes after it, since packets
/// may be coalesced (RFC 9000 §12.2).
///
/// A packet whose QUIC bit is 0 is read like any other. The caller decides whether to accept it
/// ([`Protected::has_quic_bit`]), according to what was negotiated (RFC 9287).
///
/// Packets of one datagram must share their destination connection id; the caller compares it.
///
/// # Errors
/// [`DropReason`]: drop the datagram, or what is left of it.
pub fn decode(
    datagram: &mut [u8],
    local_cid_len: usize,
) -> Result<(Decoded<'_>, &mut [u8]), DropReason> {
    Outline::read(datagram, local_cid_len)?.split(datagram)
}

/// Header of a packet, as far as it can be read without keys. Does not borrow the packet.
#[derive(Clone, Debug)]
pub(super) enum Outline {
    /// A packet with frames.
    Protected(Fields),
    /// A packet that fills the datagram: Version Negotiation, Retry, or one of an unknown version.
    Whole {
        version: u32,
        dcid_len: usize,
        scid_len: usize,
    },
    /// A packet of a supported version that must be dropped.
    Unreadable { dcid_len: usize, reason: DropReason },
}

impl Outline {
    /// Reads the header of the first packet of a datagram, of any version.
    ///
    /// # Errors
    /// The datagram ends before the connection ids do, so that it cannot be routed.
    #[inline]
    pub(super) fn read(datagram: &[u8], local_cid_len: usize) -> Result<Self, DropReason> {
        #[cfg(test)]
        READS.with(|reads| reads.set(reads.get() + 1));
        let mut reader = Reader::new(datagram);
        let first = reader.u8()?;
        if first & LONG == 0 {
            let dcid = reader.bytes(local_cid_len)?;
            return Ok(Self::Protected(Fields {
                kind: Kind::OneRtt,
                version: None,
                dcid: Cid::new(dcid).ok_or(DropReason::CidTooLong)?,
                scid: Cid::EMPTY,
                token: 0..0,
                pn_offset: 1 + local_cid_len,
                len: datagram.len(),
            }));
        }
        let version = reader.u32()?;
        let mut cid = || {
            let len = usize::from(reader.u8()?);
            reader.bytes(len)
        };
        let (dcid, scid) = (cid()?, cid()?);
        let (dcid_len, scid_len) = (dcid.len(), scid.len());
        let Some((known, kind)) = kind_of(first, version) else {
            return Ok(Self::Whole {
                version,
                dcid_len,
                scid_len,
            });
        };
        let fields = match [Cid::new(dcid), Cid::new(scid)] {
            [Some(dcid), Some(scid)] => {
                Fields::long(kind, known, [dcid, scid], datagram.len(), reader)
            }
            _ => Err(DropReason::CidTooLong),
        };
        Ok(match fields {
            Ok(fields) => Self::Protected(fields),
            Err(reason) => Self::Unreadable { dcid_len, reason },
        })
    }

    /// Takes the packet off the datagram that the header was read from.
    #[inline]
    pub(super) fn split(self, datagram: &mut [u8]) -> Result<(Decoded<'_>, &mut [u8]), DropReason> {
        match self {
            Self::Protected(fields) => {
                let (bytes, rest) = datagram
                    .split_at_mut_checked(fields.len)
                    .ok_or(DropReason::Truncated)?;
                Ok((Decoded::Protected(fields.with(bytes)), rest))
            }
            Self::Whole {
                version,
                dcid_len,
                scid_len,
            } => Ok((whole(datagram, version, [dcid_len, scid_len])?, &mut [])),
            Self::Unreadable { reason, .. } => Err(reason),
        }
    }

    /// Returns the destination connection id; `None` if it is longer than 20 bytes.
    #[inline]
    pub(super) fn dcid(&self, datagram: &[u8]) -> Option<Cid> {
        match *self {
            Self::Protected(ref fields) => Some(fields.dcid),
            Self::Whole { dcid_len, .. } | Self::Unreadable { dcid_len, .. } => {
                Cid::new(datagram.get(DCID..DCID + dcid_len)?)
            }
        }
    }

    /// Returns the connection ids of a packet whose version we do not support.
    #[inline]
    pub(super) fn ids_of_unknown_version<'a>(&self, datagram: &'a [u8]) -> Option<[&'a [u8]; 2]> {
        match *self {
            Self::Whole {
                version,
                dcid_len,
                scid_len,
            } if version != 0 && Version::from_number(version).is_none() => {
                ids(&mut Reader::new(datagram), [dcid_len, scid_len]).ok()
            }
            _ => None,
        }
    }
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

/// Values and positions of the fields of a protected packet.
#[derive(Clone, Debug)]
pub(crate) struct Fields {
    pub(crate) kind: Kind,
    pub(crate) version: Option<Version>,
    pub(crate) dcid: Cid,
    pub(crate) scid: Cid,
    pub(super) token: Range<usize>,
    pub(super) pn_offset: usize,
    pub(super) len: usize,
}

impl Fields {
    /// Reads the rest of a long header, after the connection ids (RFC 9000 §17.2.2 to §17.2.4).
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
        let len = pn_offset.checked_add(payload_len);
        Ok(Self {
            kind,
            version: Some(version),
            dcid,
            scid,
            token: token_end - token_len..token_end,
            pn_offset,
            len: len
                .filter(|&len| len <= datagram_len)
                .ok_or(DropReason::Truncated)?,
        })
    }

    /// Joins the fields with the bytes they were read from.
    #[inline]
    fn with(self, bytes: &mut [u8]) -> Protected<'_> {
        let Self {
            kind,
            version,
            dcid,
            scid,
            token,
            pn_offset,
            len: _,
        } = self;
        Protected {
            kind,
            version,
            dcid,
            scid,
            token,
            pn_offset,
            bytes,
        }
    }
}

/// Takes the connection ids of these lengths out of a long header.
fn ids<'a>(reader: &mut Reader<'a>, lens: [usize; 2]) -> Result<[&'a [u8]; 2], Eof> {
    let [dcid_len, scid_len] = lens;
    reader.bytes(DCID)?;
    let dcid = reader.bytes(dcid_len)?;
    reader.u8()?;
    Ok([dcid, reader.bytes(scid_len)?])
}

/// Takes a packet that has neither a length nor protection, and fills the datagram.
fn whole(datagram: &[u8], version: u32, lens: [usize; 2]) -> Result<Decoded<'_>, DropReason> {
    let mut reader = Reader::new(datagram);
    let [dcid, scid] = ids(&mut reader, lens)?;
    if version == 0 {
        let versions = reader.take_rest();
        // Without a version, or with only part of one, it is not a Version Negotiation packet (RFC
        // 8999 §6).
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
    if datagram.first().is_none_or(|first| first & FIXED == 0) {
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

/// Returns the destination and source connection ids at the beginning of a packet with a long
/// header, which may be cut off after them (RFC 8999 §5.1).
pub(crate) fn quoted_ids(beginning: &[u8]) -> Option<[&[u8]; 2]> {
    let (&first, rest) = beginning.split_first()?;
    let (&len, rest) = rest.get(4..)?.split_first()?;
    let (dcid, rest) = rest.split_at_checked(len.into())?;
    let (&len, rest) = rest.split_first()?;
    let (scid, _) = rest.split_at_checked(len.into())?;
    (first & 0x80 != 0).then_some([dcid, scid])
}

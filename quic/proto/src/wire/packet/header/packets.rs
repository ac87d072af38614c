//! Packets of one datagram, each with its header read once.

use super::{Fields, Outline};
use crate::wire::{
    ResetToken, limits,
    packet::{
        Cid, Decoded, DropReason, Kind, Protected,
        header_bits::{FIXED, LONG},
    },
};

/// Packets of one datagram, in order (RFC 9000 §12.2).
///
/// An endpoint reads the header of the first packet to find the connection, and hands over the
/// packets along with what it read. The header of each later packet is read when its turn comes.
///
/// Iteration yields each packet, or the reason to drop the rest of the datagram. A packet whose
/// QUIC bit is 0 is read like any other ([`Protected::has_quic_bit`]), and the caller compares the
/// destination connection ids, which packets of one datagram must share.
#[derive(Debug)]
pub struct Packets<'d> {
    /// Header of the next packet, if it was read.
    outline: Option<Outline>,
    /// Bytes of the packets that have not been taken.
    bytes: &'d mut [u8],
    local_cid_len: usize,
}

impl<'d> Packets<'d> {
    /// Takes a datagram without looking at it. Short headers have connection ids of this length.
    pub const fn new(datagram: &'d mut [u8], local_cid_len: usize) -> Self {
        Self {
            outline: None,
            bytes: datagram,
            local_cid_len,
        }
    }

    /// Takes a datagram and reads the header of its first packet.
    ///
    /// # Errors
    /// The datagram is too short to have connection ids.
    #[inline]
    pub fn read(datagram: &'d mut [u8], local_cid_len: usize) -> Result<Self, DropReason> {
        let outline = Outline::read(datagram, local_cid_len)?;
        Ok(Self {
            outline: Some(outline),
            bytes: datagram,
            local_cid_len,
        })
    }

    /// Returns the bytes of the packets that have not been taken.
    #[inline]
    pub const fn bytes(&self) -> &[u8] {
        self.bytes
    }

    /// Returns the bytes.
    pub fn into_bytes(self) -> &'d mut [u8] {
        self.bytes
    }

    /// Returns the token of the stateless reset that the datagram may be (RFC 9000 §10.3). A reset
    /// looks like a 1-RTT packet.
    #[inline]
    pub(crate) fn reset_token(&self) -> Option<ResetToken> {
        let is_short = self.bytes.first().is_some_and(|first| first & LONG == 0);
        let token = self.bytes.last_chunk().copied().map(ResetToken::new);
        token.filter(|_| is_short && self.bytes.len() >= limits::MIN_STATELESS_RESET)
    }

    /// Returns the destination connection id of a header that was read; `None` if it is longer than
    /// 20 bytes.
    #[inline]
    pub fn dcid(&self) -> Option<Cid> {
        self.outline.as_ref()?.dcid(self.bytes)
    }

    /// Returns the kind of the next packet if its header was read and it has frames.
    #[inline]
    pub fn kind(&self) -> Option<Kind> {
        self.fields().map(|fields| fields.kind)
    }

    /// Returns the header of the next packet if it was read and the packet has frames.
    #[inline]
    pub(crate) fn fields(&self) -> Option<&Fields> {
        match &self.outline {
            Some(Outline::Protected(fields)) => Some(fields),
            _ => None,
        }
    }

    /// Returns the token of an Initial whose header was read; empty if it has none.
    pub(crate) fn token(&self) -> &[u8] {
        let token = self.fields().map(|fields| fields.token.clone());
        token
            .and_then(|token| self.bytes.get(token))
            .unwrap_or_default()
    }

    /// Returns true if the QUIC bit of the next packet is set (RFC 9000 §17.2, §17.3).
    pub(crate) fn has_quic_bit(&self) -> bool {
        self.bytes.first().is_some_and(|first| first & FIXED != 0)
    }

    /// Returns both connection ids, 0 to 255 bytes each, of a packet whose header was read and
    /// whose version we do not support.
    #[inline]
    pub fn ids_of_unknown_version(&self) -> Option<[&[u8]; 2]> {
        self.outline.as_ref()?.ids_of_unknown_version(self.bytes)
    }
}

impl<'d> Iterator for Packets<'d> {
    type Item = Result<Decoded<'d>, DropReason>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.bytes.is_empty() {
            return None;
        }
        let bytes = std::mem::take(&mut self.bytes);
        if self.outline.is_none() {
            match Outline::read(bytes, self.local_cid_len) {
                Ok(outline) => self.outline = Some(outline),
                Err(reason) => return Some(Err(reason)),
            }
        }
        let split = self.outline.take()?.split(bytes);
        Some(split.map(|(packet, rest)| {
            self.bytes = rest;
            packet
        }))
    }
}

/// Copy of a packet that waits for its keys or its connection, with the header that was read.
#[derive(Debug)]
pub(crate) struct Kept {
    fields: Fields,
    bytes: Box<[u8]>,
}

impl Kept {
    /// Returns the kind of the packet.
    pub(crate) const fn kind(&self) -> Kind {
        self.fields.kind
    }

    /// Returns the number of bytes.
    pub(crate) const fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the packet as the only one of its datagram.
    pub(crate) fn packets(&mut self) -> Packets<'_> {
        Packets {
            outline: Some(Outline::Protected(self.fields.clone())),
            bytes: &mut self.bytes,
            local_cid_len: 0,
        }
    }
}

impl From<Protected<'_>> for Kept {
    fn from(packet: Protected<'_>) -> Self {
        let Protected {
            kind,
            version,
            dcid,
            scid,
            token,
            pn_offset,
            bytes,
        } = packet;
        let len = bytes.len();
        let fields = Fields {
            kind,
            version,
            dcid,
            scid,
            token,
            pn_offset,
            len,
        };
        Self {
            fields,
            bytes: (&*bytes).into(),
        }
    }
}

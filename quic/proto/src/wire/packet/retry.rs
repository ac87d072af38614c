//! Retry packets.

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use smallvec::SmallVec;

use super::{
    Cid, TAG_LEN,
    header_bits::{FIXED, LONG},
    version::{LongType, Version},
};
use crate::wire::Writer;

/// A Retry packet (RFC 9000 §17.2.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry<'a> {
    /// The version.
    pub version: Version,
    /// Destination connection id: the client's.
    pub dcid: Cid,
    /// Source connection id: the destination of the client's next Initial.
    pub scid: Cid,
    /// The token to repeat, never empty.
    pub token: &'a [u8],
    /// The whole packet as received.
    pub(super) bytes: &'a [u8],
}

impl<'a> Retry<'a> {
    /// Creates a Retry to be written.
    pub const fn new(version: Version, dcid: Cid, scid: Cid, token: &'a [u8]) -> Self {
        Self {
            version,
            dcid,
            scid,
            token,
            bytes: &[],
        }
    }

    /// Returns true if a received Retry answers the client's first Initial, which went to
    /// `original_dcid` (RFC 9001 §5.8).
    pub fn verify(&self, original_dcid: &Cid) -> bool {
        let Some((packet, tag)) = self.bytes.split_last_chunk::<TAG_LEN>() else {
            return false;
        };
        // The key is public, so a constant-time comparison would hide nothing.
        integrity_tag(self.version, original_dcid, packet) == Some(*tag)
    }

    /// Writes the packet with its tag, and returns its length. `None` if it does not fit.
    ///
    /// `unused` supplies four random bits for the bits that a Retry does not use.
    pub fn encode(&self, original_dcid: &Cid, unused: u8, buffer: &mut [u8]) -> Option<usize> {
        let len = 1 + 4 + 1 + self.dcid.len() + 1 + self.scid.len() + self.token.len();
        let (packet, behind) = buffer.split_at_mut_checked(len)?;
        let mut writer = Writer::new(packet);
        let ty = self.version.type_bits(LongType::Retry);
        writer.put(&[LONG | FIXED | ty | unused & 0x0f]);
        writer.put(&self.version.number().to_be_bytes());
        for cid in [self.dcid, self.scid] {
            writer.put(&[cid.len() as u8]);
            writer.put(cid.as_bytes());
        }
        writer.put(self.token);
        let tag = integrity_tag(self.version, original_dcid, packet)?;
        *behind.first_chunk_mut()? = tag;
        Some(len + TAG_LEN)
    }
}

/// Returns the tag over the packet and the connection id it answers, which the packet does not
/// contain (RFC 9001 §5.8).
fn integrity_tag(version: Version, original_dcid: &Cid, packet: &[u8]) -> Option<[u8; TAG_LEN]> {
    let constants = version.constants();
    let mut pseudo_packet = SmallVec::<[u8; 256]>::new();
    pseudo_packet.push(original_dcid.len() as u8);
    pseudo_packet.extend_from_slice(original_dcid.as_bytes());
    pseudo_packet.extend_from_slice(packet);
    let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &constants.retry_key).ok()?);
    let nonce = Nonce::assume_unique_for_key(constants.retry_nonce);
    let mut tag = [0; TAG_LEN];
    key.seal_in_place_scatter(nonce, Aad::from(&pseudo_packet), &mut [], &[], &mut tag)
        .ok()?;
    Some(tag)
}

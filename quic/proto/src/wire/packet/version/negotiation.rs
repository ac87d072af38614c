//! Version Negotiation packets.

use super::{Version, Versions, reserved_version};
use crate::wire::{
    Writer,
    packet::first_byte::{FIXED, LONG},
};

/// A Version Negotiation packet (RFC 9000 §17.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VersionNegotiation<'a> {
    /// Destination connection id, 0 to 255 bytes.
    pub dcid: &'a [u8],
    /// Source connection id, 0 to 255 bytes.
    pub scid: &'a [u8],
    /// The listed versions, four bytes each.
    pub(in crate::wire::packet) versions: &'a [u8],
}

impl<'a> VersionNegotiation<'a> {
    /// Creates the answer to a packet of an unsupported version, with that packet's connection ids.
    pub const fn answer(dcid: &'a [u8], scid: &'a [u8]) -> Self {
        Self {
            dcid: scid,
            scid: dcid,
            versions: &[],
        }
    }

    /// Returns the versions that the server listed.
    pub fn versions(&self) -> impl Iterator<Item = u32> + Clone + 'a {
        let versions = self.versions.chunks_exact(4);
        versions.filter_map(|version| Some(u32::from_be_bytes(*version.first_chunk()?)))
    }

    /// Writes a packet that lists these versions, and returns its length. `None` if it does not
    /// fit, or if a connection id is longer than 255 bytes.
    ///
    /// The random bits fill unused bits and make a version that nobody supports, so that clients
    /// keep ignoring unknown versions (RFC 9000 §6.3).
    pub fn encode(&self, versions: Versions, random: u32, buffer: &mut [u8]) -> Option<usize> {
        let header_len = 1 + 4 + 1 + self.dcid.len() + 1 + self.scid.len();
        let versions_len = 4 * (1 + versions.iter().count());
        let packet = buffer.get_mut(..header_len + versions_len)?;
        let mut writer = Writer::new(packet);
        writer.put(&[LONG | FIXED | random as u8 & 0x3f]);
        writer.put(&[0; 4]);
        for cid in [self.dcid, self.scid] {
            writer.put(&[u8::try_from(cid.len()).ok()?]);
            writer.put(cid);
        }
        let spoken = versions.iter().map(Version::number);
        for version in [reserved_version(random)].into_iter().chain(spoken) {
            writer.put(&version.to_be_bytes());
        }
        Some(packet.len())
    }
}

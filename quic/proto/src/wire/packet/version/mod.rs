//! Versions of QUIC, and the Version Negotiation packet.

use std::fmt;

use super::header_bits::{FIXED, LONG, TYPE_MASK, TYPE_STEP};
use crate::wire::Writer;

/// A version of QUIC.
///
/// The versions do not differ for applications: version 2 exists to keep middleboxes from relying
/// on the appearance of version 1 (RFC 9369 §1). They are compatible, so that a server can answer a
/// first flight in one version with the other (RFC 9369 §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Version {
    /// Version 1 (RFC 9000), which every peer supports.
    V1,
    /// Version 2 (RFC 9369).
    V2,
}

impl Version {
    /// All implemented versions.
    pub const ALL: [Self; 2] = [Self::V1, Self::V2];

    /// Returns the context of session tickets: the negotiated version, not the original one (RFC
    /// 9369 §5).
    #[must_use]
    pub const fn resumption_context(self) -> [u8; 4] {
        self.number().to_be_bytes()
    }

    /// Returns the version with which a resumption context begins; `None` if it is not one of ours.
    #[must_use]
    pub fn of_resumption_context(context: &[u8]) -> Option<Self> {
        Self::from_number(u32::from_be_bytes(*context.first_chunk()?))
    }

    /// Returns the number in long headers.
    pub const fn number(self) -> u32 {
        match self {
            Self::V1 => 0x0000_0001,
            Self::V2 => 0x6b33_43cf,
        }
    }

    /// Returns the version with this number, if it is implemented.
    pub const fn from_number(number: u32) -> Option<Self> {
        match number {
            0x0000_0001 => Some(Self::V1),
            0x6b33_43cf => Some(Self::V2),
            _ => None,
        }
    }

    pub(super) const fn constants(self) -> &'static Constants {
        match self {
            Self::V1 => &CONSTANTS_1,
            Self::V2 => &CONSTANTS_2,
        }
    }

    /// Returns the type in the first byte of a long header (RFC 9000 §17.2).
    pub(super) const fn long_type(self, first: u8) -> LongType {
        let bits = (first & TYPE_MASK).wrapping_sub(self.first_type()) & TYPE_MASK;
        match bits / TYPE_STEP {
            0 => LongType::Initial,
            1 => LongType::ZeroRtt,
            2 => LongType::Handshake,
            _ => LongType::Retry,
        }
    }

    /// Returns the bits of a type at their position in the first byte.
    pub(super) const fn type_bits(self, ty: LongType) -> u8 {
        (ty as u8 * TYPE_STEP + self.first_type()) & TYPE_MASK
    }

    /// Returns the bits of Initial packets; the other types follow, and wrap around to 0 (RFC 9369
    /// §3.2).
    const fn first_type(self) -> u8 {
        match self {
            Self::V1 => 0,
            Self::V2 => TYPE_STEP,
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V1 => "QUIC v1",
            Self::V2 => "QUIC v2",
        })
    }
}

/// Types of long headers in the order of version 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LongType {
    Initial,
    ZeroRtt,
    Handshake,
    Retry,
}

/// Non-empty list of distinct versions, the preferred one first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    first: Version,
    second: Option<Version>,
}

impl Versions {
    /// Version 2 with peers that support it, version 1 with all others.
    pub const DEFAULT: Self = Self {
        first: Version::V2,
        second: Some(Version::V1),
    };

    /// Creates a list without repetitions, or returns `None` if it would be empty.
    pub fn new(versions: impl IntoIterator<Item = Version>) -> Option<Self> {
        let mut versions = versions.into_iter();
        let first = versions.next()?;
        let second = versions.find(|version| *version != first);
        Some(Self { first, second })
    }

    /// Returns the preferred version.
    pub const fn preferred(self) -> Version {
        self.first
    }

    /// Returns all versions, the preferred one first.
    pub fn iter(self) -> impl Iterator<Item = Version> {
        [Some(self.first), self.second].into_iter().flatten()
    }

    /// Returns true if the list contains the version.
    pub fn contains(self, version: Version) -> bool {
        self.iter().any(|own| own == version)
    }

    /// Returns the first version whose number is also among `others`.
    pub fn first_of(self, others: &(impl Iterator<Item = u32> + Clone)) -> Option<Version> {
        self.iter()
            .find(|own| others.clone().any(|other| other == own.number()))
    }
}

/// Returns a version that nobody supports, made from random bits, so that peers keep ignoring
/// unknown versions (RFC 9000 §6.3, §15).
pub const fn reserved_version(random: u32) -> u32 {
    random & 0xf0f0_f0f0 | 0x0a0a_0a0a
}

/// Constants of packet protection that depend on the version.
pub(super) struct Constants {
    /// Salt of the Initial secrets (RFC 9001 §5.2).
    pub(super) initial_salt: [u8; 20],
    /// Labels of the keys (RFC 9001 §5.1, §6.1).
    pub(super) labels: Labels,
    /// Key of the Retry integrity tag (RFC 9001 §5.8).
    pub(super) retry_key: [u8; 16],
    /// Nonce of the Retry integrity tag.
    pub(super) retry_nonce: [u8; 12],
}

/// HKDF labels without the prefix `tls13 `.
pub(super) struct Labels {
    pub(super) key: &'static [u8],
    pub(super) iv: &'static [u8],
    pub(super) header: &'static [u8],
    pub(super) update: &'static [u8],
}

static CONSTANTS_1: Constants = Constants {
    initial_salt: [
        0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17, 0x9a, 0xe6, 0xa4, 0xc8, 0x0c,
        0xad, 0xcc, 0xbb, 0x7f, 0x0a,
    ],
    labels: Labels {
        key: b"quic key",
        iv: b"quic iv",
        header: b"quic hp",
        update: b"quic ku",
    },
    retry_key: [
        0xbe, 0x0c, 0x69, 0x0b, 0x9f, 0x66, 0x57, 0x5a, 0x1d, 0x76, 0x6b, 0x54, 0xe3, 0x68, 0xc8,
        0x4e,
    ],
    retry_nonce: [
        0x46, 0x15, 0x99, 0xd3, 0x5d, 0x63, 0x2b, 0xf2, 0x23, 0x98, 0x25, 0xbb,
    ],
};

/// Constants of version 2 (RFC 9369 §3.3).
static CONSTANTS_2: Constants = Constants {
    initial_salt: [
        0x0d, 0xed, 0xe3, 0xde, 0xf7, 0x00, 0xa6, 0xdb, 0x81, 0x93, 0x81, 0xbe, 0x6e, 0x26, 0x9d,
        0xcb, 0xf9, 0xbd, 0x2e, 0xd9,
    ],
    labels: Labels {
        key: b"quicv2 key",
        iv: b"quicv2 iv",
        header: b"quicv2 hp",
        update: b"quicv2 ku",
    },
    retry_key: [
        0x8f, 0xb4, 0xb0, 0x1b, 0x56, 0xac, 0x48, 0xe2, 0x60, 0xfb, 0xcb, 0xce, 0xad, 0x7c, 0xcc,
        0x92,
    ],
    retry_nonce: [
        0xd8, 0x69, 0x69, 0xbc, 0x2d, 0x7c, 0x6d, 0x99, 0x90, 0xef, 0xb0, 0x4a,
    ],
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

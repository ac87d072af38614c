//! Initial packets, opened with code that shares nothing with hybriq.

use std::collections::BTreeMap;

use aws_lc_rs::{
    aead::{
        AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey,
        quic::{AES_128, HeaderProtectionKey},
    },
    hkdf::{HKDF_SHA256, KeyType, Prk, Salt},
};

use super::{
    Sighting,
    hello::{self, Cursor},
};

/// Constants that differ between the versions of QUIC (RFC 9001 §5.2, RFC 9369 §3).
struct Version {
    number: [u8; 4],
    salt: [u8; 20],
    label: &'static str,
    /// Number that is added to the packet types of version 1, modulo 4.
    shift: u8,
}

const VERSIONS: [Version; 2] = [
    Version {
        number: [0, 0, 0, 1],
        salt: [
            0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17, 0x9a, 0xe6, 0xa4, 0xc8,
            0x0c, 0xad, 0xcc, 0xbb, 0x7f, 0x0a,
        ],
        label: "quic",
        shift: 0,
    },
    Version {
        number: [0x6b, 0x33, 0x43, 0xcf],
        salt: [
            0x0d, 0xed, 0xe3, 0xde, 0xf7, 0x00, 0xa6, 0xdb, 0x81, 0x93, 0x81, 0xbe, 0x6e, 0x26,
            0x9d, 0xcb, 0xf9, 0xbd, 0x2e, 0xd9,
        ],
        label: "quicv2",
        shift: 1,
    },
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    ToServer,
    ToClient,
}

/// The Initial packets of one connection in both directions.
#[derive(Default)]
pub(super) struct Reading {
    /// Keys of each version, the client's and the server's.
    keys: Option<[(Keys, Keys); 2]>,
    from_client: Stream,
    from_server: Stream,
    closes: Vec<u64>,
    datagrams: (usize, usize),
    retries: usize,
    early_packets: usize,
}

impl Reading {
    pub(super) fn on_datagram(&mut self, direction: Direction, datagram: &[u8]) {
        match direction {
            Direction::ToServer => self.datagrams.0 += 1,
            Direction::ToClient => self.datagrams.1 += 1,
        }
        let mut rest = datagram;
        while let Some((packet, next)) = Packet::split(rest) {
            rest = next;
            match packet.kind {
                Kind::Initial => {
                    if self.read_initial(direction, &packet).is_none() {
                        return;
                    }
                }
                Kind::ZeroRtt => self.early_packets += 1,
                Kind::Handshake => {}
                Kind::Retry => self.on_retry(direction, &packet),
            }
        }
    }

    /// Restarts with keys from the id that the server gave the client (RFC 9001 §5.2).
    fn on_retry(&mut self, direction: Direction, packet: &Packet<'_>) {
        // A client follows only one Retry, and none after the server's first Initial packet.
        if direction == Direction::ToClient && self.from_server.is_empty() {
            if self.retries == 0 {
                self.keys = derive(packet.source);
            }
            self.retries += 1;
        }
    }

    /// Reads an Initial packet. `None` ends the datagram: the packet is not of this connection.
    fn read_initial(&mut self, direction: Direction, packet: &Packet<'_>) -> Option<()> {
        if self.keys.is_none() && direction == Direction::ToServer {
            self.keys = derive(packet.destination);
        }
        let (client, server) = self.keys.as_ref()?.get(packet.version)?;
        let (keys, stream) = match direction {
            Direction::ToServer => (client, &mut self.from_client),
            Direction::ToClient => (server, &mut self.from_server),
        };
        let payload = keys.open(packet)?;
        let mut frames = Cursor::new(&payload);
        while let Some(frame) = frames.varint() {
            match frame {
                0x00 | 0x01 => {}
                0x02 | 0x03 => skip_ack(&mut frames, frame)?,
                0x06 => {
                    let offset = frames.varint()?;
                    let len = frames.varint()?;
                    stream.insert(offset, frames.take(usize::try_from(len).ok()?)?);
                }
                0x1c => self.closes.push(frames.varint()?),
                // No other frame is allowed in an Initial packet (RFC 9000 §12.4).
                _ => return None,
            }
            if frame == 0x1c {
                break;
            }
        }
        Some(())
    }

    pub(super) fn has_early_data(&self) -> bool {
        self.early_packets > 0
    }

    pub(super) fn sighting(&self) -> Sighting {
        Sighting {
            client_hellos: hello::client_hellos(&self.from_client.prefix()),
            server_hellos: hello::server_hellos(&self.from_server.prefix()),
            closes: self.closes.clone(),
            client_datagrams: self.datagrams.0,
            server_datagrams: self.datagrams.1,
            retries: self.retries,
            early_packets: self.early_packets,
        }
    }
}

fn skip_ack(frames: &mut Cursor<'_>, frame: u64) -> Option<()> {
    frames.varint()?;
    frames.varint()?;
    let ranges = frames.varint()?;
    let counts = if frame == 0x03 { 3 } else { 0 };
    for _ in 0..=ranges.checked_mul(2)?.checked_add(counts)? {
        frames.varint()?;
    }
    Some(())
}

/// CRYPTO stream of one direction.
#[derive(Debug, Default)]
pub(super) struct Stream(BTreeMap<u64, Vec<u8>>);

impl Stream {
    pub(super) fn insert(&mut self, offset: u64, bytes: &[u8]) {
        let longest = self.0.entry(offset).or_default();
        if longest.len() < bytes.len() {
            *longest = bytes.to_vec();
        }
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the bytes before the first gap.
    pub(super) fn prefix(&self) -> Vec<u8> {
        let mut prefix = Vec::new();
        for (offset, bytes) in &self.0 {
            let Some(known) = (prefix.len() as u64).checked_sub(*offset) else {
                break;
            };
            prefix.extend(bytes.iter().skip(known as usize));
        }
        prefix
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Initial,
    ZeroRtt,
    Handshake,
    Retry,
}

impl Kind {
    fn of(first: u8, version: &Version) -> Self {
        match ((first >> 4) + 4 - version.shift) & 3 {
            0 => Self::Initial,
            1 => Self::ZeroRtt,
            2 => Self::Handshake,
            _ => Self::Retry,
        }
    }
}

/// A packet with a long header (RFC 9000 §17.2), and its datagram.
struct Packet<'a> {
    kind: Kind,
    /// Index of its version in [`VERSIONS`].
    version: usize,
    destination: &'a [u8],
    source: &'a [u8],
    bytes: &'a [u8],
    number_at: usize,
}

impl<'a> Packet<'a> {
    /// Splits the first packet off a datagram; `None` for packets without a length, which end the
    /// datagram.
    fn split(datagram: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let mut cursor = Cursor::new(datagram);
        let first = cursor.byte()?;
        if first & 0x80 == 0 {
            return None;
        }
        let number = cursor.take(4)?;
        let version = VERSIONS.iter().position(|it| it.number == number)?;
        let kind = Kind::of(first, &VERSIONS[version]);
        let destination = cursor.prefixed8()?;
        let source = cursor.prefixed8()?;
        if kind == Kind::Initial {
            let token = cursor.varint()?;
            cursor.take(usize::try_from(token).ok()?)?;
        }
        let len = match kind {
            // A Retry has neither length nor number, and ends the datagram.
            Kind::Retry => cursor.rest().len(),
            _ => usize::try_from(cursor.varint()?).ok()?,
        };
        let number_at = datagram.len() - cursor.rest().len();
        let end = number_at.checked_add(len)?;
        let (bytes, rest) = datagram.split_at_checked(end)?;
        Some((
            Self {
                kind,
                version,
                destination,
                source,
                bytes,
                number_at,
            },
            rest,
        ))
    }
}

struct Keys {
    packet: LessSafeKey,
    header: HeaderProtectionKey,
    iv: [u8; 12],
}

/// Derives the keys of every version from the id to which the client's first Initial packet was
/// sent.
fn derive(destination: &[u8]) -> Option<[(Keys, Keys); 2]> {
    let [one, two] = &VERSIONS;
    Some([
        Keys::derive(one, destination)?,
        Keys::derive(two, destination)?,
    ])
}

impl Keys {
    /// Derives the client's and the server's keys.
    fn derive(version: &Version, destination: &[u8]) -> Option<(Self, Self)> {
        let initial = Salt::new(HKDF_SHA256, &version.salt).extract(destination);
        let side = |label: &str| {
            let mut secret = [0; 32];
            expand(&initial, label, &mut secret)?;
            Self::new(version, &Prk::new_less_safe(HKDF_SHA256, &secret))
        };
        Some((side("client in")?, side("server in")?))
    }

    fn new(version: &Version, secret: &Prk) -> Option<Self> {
        let (mut key, mut iv, mut header) = ([0; 16], [0; 12], [0; 16]);
        let label = version.label;
        expand(secret, &format!("{label} key"), &mut key)?;
        expand(secret, &format!("{label} iv"), &mut iv)?;
        expand(secret, &format!("{label} hp"), &mut header)?;
        Some(Self {
            packet: LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &key).ok()?),
            header: HeaderProtectionKey::new(&AES_128, &header).ok()?,
            iv,
        })
    }

    /// Returns the decrypted payload (RFC 9001 §5.3, §5.4).
    fn open(&self, packet: &Packet<'_>) -> Option<Vec<u8>> {
        let at = packet.number_at;
        let mask = self
            .header
            .new_mask(packet.bytes.get(at + 4..at + 20)?)
            .ok()?;
        let mut header = packet.bytes.get(..at + 4)?.to_vec();
        header[0] ^= mask[0] & 0x0f;
        let number_len = usize::from(header[0] & 0x03) + 1;
        header.truncate(at + number_len);
        let mut nonce = self.iv;
        for index in 0..number_len {
            header[at + index] ^= mask[index + 1];
            // A handshake ends long before a packet number needs more bits than were sent.
            nonce[12 - number_len + index] ^= header[at + index];
        }
        let mut payload = packet.bytes.get(at + number_len..)?.to_vec();
        let len = self
            .packet
            .open_in_place(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(header),
                &mut payload,
            )
            .ok()?
            .len();
        payload.truncate(len);
        Some(payload)
    }
}

struct Len(usize);

impl KeyType for Len {
    fn len(&self) -> usize {
        self.0
    }
}

/// Expands a secret with HKDF-Expand-Label (RFC 8446 §7.1).
fn expand(secret: &Prk, label: &str, out: &mut [u8]) -> Option<()> {
    let label = format!("tls13 {label}");
    let len = (out.len() as u16).to_be_bytes();
    let info = [&len[..], &[label.len() as u8], label.as_bytes(), &[0]];
    secret.expand(&info, Len(out.len())).ok()?.fill(out).ok()
}

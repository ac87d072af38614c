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

/// RFC 9001 §5.2.
const INITIAL_SALT: [u8; 20] = [
    0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17, 0x9a, 0xe6, 0xa4, 0xc8, 0x0c, 0xad,
    0xcc, 0xbb, 0x7f, 0x0a,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    ToServer,
    ToClient,
}

/// The Initial packets of one connection, both directions.
#[derive(Default)]
pub(super) struct Reading {
    keys: Option<(Keys, Keys)>,
    from_client: Stream,
    from_server: Stream,
    closes: Vec<u64>,
    datagrams: (usize, usize),
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
            if packet.is_initial && self.read_initial(direction, &packet).is_none() {
                return;
            }
        }
    }

    /// `None` ends the datagram: the packet is not of this connection.
    fn read_initial(&mut self, direction: Direction, packet: &Packet<'_>) -> Option<()> {
        if self.keys.is_none() && direction == Direction::ToServer {
            self.keys = Keys::derive(packet.destination);
        }
        let (client, server) = self.keys.as_ref()?;
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

    pub(super) fn sighting(&self) -> Sighting {
        Sighting {
            client_hellos: hello::client_hellos(&self.from_client.prefix()),
            server_hellos: hello::server_hellos(&self.from_server.prefix()),
            closes: self.closes.clone(),
            client_datagrams: self.datagrams.0,
            server_datagrams: self.datagrams.1,
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

/// The CRYPTO stream of one direction.
#[derive(Debug, Default)]
pub(super) struct Stream(BTreeMap<u64, Vec<u8>>);

impl Stream {
    pub(super) fn insert(&mut self, offset: u64, bytes: &[u8]) {
        let longest = self.0.entry(offset).or_default();
        if longest.len() < bytes.len() {
            *longest = bytes.to_vec();
        }
    }

    /// What has come without a gap.
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

/// One packet with a long header (RFC 9000 §17.2), and its datagram.
struct Packet<'a> {
    is_initial: bool,
    destination: &'a [u8],
    bytes: &'a [u8],
    number_at: usize,
}

impl<'a> Packet<'a> {
    /// The first packet of a datagram and what follows it; `None` for anything that carries no
    /// length: the rest of the datagram is one packet.
    fn split(datagram: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let mut cursor = Cursor::new(datagram);
        let first = cursor.byte()?;
        let kind = first & 0x30;
        if first & 0x80 == 0 || cursor.take(4)? != [0, 0, 0, 1] || kind == 0x30 {
            return None;
        }
        let destination = cursor.prefixed8()?;
        cursor.prefixed8()?;
        if kind == 0 {
            let token = cursor.varint()?;
            cursor.take(usize::try_from(token).ok()?)?;
        }
        let len = usize::try_from(cursor.varint()?).ok()?;
        let number_at = datagram.len() - cursor.rest().len();
        let end = number_at.checked_add(len)?;
        let (bytes, rest) = datagram.split_at_checked(end)?;
        Some((
            Self {
                is_initial: kind == 0,
                destination,
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

impl Keys {
    /// The client's and the server's.
    fn derive(destination: &[u8]) -> Option<(Self, Self)> {
        let initial = Salt::new(HKDF_SHA256, &INITIAL_SALT).extract(destination);
        let side = |label: &str| {
            let mut secret = [0; 32];
            expand(&initial, label, &mut secret)?;
            Self::new(&Prk::new_less_safe(HKDF_SHA256, &secret))
        };
        Some((side("client in")?, side("server in")?))
    }

    fn new(secret: &Prk) -> Option<Self> {
        let (mut key, mut iv, mut header) = ([0; 16], [0; 12], [0; 16]);
        expand(secret, "quic key", &mut key)?;
        expand(secret, "quic iv", &mut iv)?;
        expand(secret, "quic hp", &mut header)?;
        Some(Self {
            packet: LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &key).ok()?),
            header: HeaderProtectionKey::new(&AES_128, &header).ok()?,
            iv,
        })
    }

    /// The payload in the clear (RFC 9001 §5.3, §5.4).
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

/// HKDF-Expand-Label (RFC 8446 §7.1).
fn expand(secret: &Prk, label: &str, out: &mut [u8]) -> Option<()> {
    let label = format!("tls13 {label}");
    let len = (out.len() as u16).to_be_bytes();
    let info = [&len[..], &[label.len() as u8], label.as_bytes(), &[0]];
    secret.expand(&info, Len(out.len())).ok()?.fill(out).ok()
}

//! Keys of packets, from a key log (RFC 9850) and from connection ids.

use std::collections::HashMap;

use aws_lc_rs::{
    aead::{
        self, AES_128_GCM, AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey,
        quic::{self, HeaderProtectionKey},
    },
    hkdf::{self, HKDF_SHA256, HKDF_SHA384, KeyType, Prk, Salt},
};

/// Version of QUIC, as far as keys depend on it (RFC 9001 §5, RFC 9369 §3).
#[derive(Debug)]
pub(super) struct Version {
    pub(super) number: u32,
    salt: [u8; 20],
    label: &'static str,
    /// Number that is added to the packet types of version 1, modulo 4.
    pub(super) shift: u8,
}

const VERSIONS: [Version; 2] = [
    Version {
        number: 1,
        salt: [
            0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17, 0x9a, 0xe6, 0xa4, 0xc8,
            0x0c, 0xad, 0xcc, 0xbb, 0x7f, 0x0a,
        ],
        label: "quic",
        shift: 0,
    },
    Version {
        number: 0x6b33_43cf,
        salt: [
            0x0d, 0xed, 0xe3, 0xde, 0xf7, 0x00, 0xa6, 0xdb, 0x81, 0x93, 0x81, 0xbe, 0x6e, 0x26,
            0x9d, 0xcb, 0xf9, 0xbd, 0x2e, 0xd9,
        ],
        label: "quicv2",
        shift: 1,
    },
];

impl Version {
    pub(super) fn of(number: u32) -> Option<&'static Self> {
        VERSIONS.iter().find(|version| version.number == number)
    }
}

/// Secrets by label and the random of the ClientHello.
#[derive(Debug, Default)]
pub(super) struct KeyLog(HashMap<(String, [u8; 32]), Vec<u8>>);

impl KeyLog {
    pub(super) fn read(text: &str) -> Self {
        let line = |line: &str| {
            let mut words = line.split_whitespace();
            let label = words.next()?.to_owned();
            let random = hex(words.next()?)?.try_into().ok()?;
            Some(((label, random), hex(words.next()?)?))
        };
        Self(text.lines().filter_map(line).collect())
    }

    pub(super) fn secret(&self, label: &str, random: &[u8; 32]) -> Option<&[u8]> {
        self.0.get(&(label.to_owned(), *random)).map(Vec::as_slice)
    }
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks(2);
    digits
        .map(|two| u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok())
        .collect()
}

/// Cipher suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Suite {
    Aes128,
    Aes256,
    ChaCha20,
}

impl Suite {
    pub(super) const fn of(number: u16) -> Option<Self> {
        match number {
            0x1301 => Some(Self::Aes128),
            0x1302 => Some(Self::Aes256),
            0x1303 => Some(Self::ChaCha20),
            _ => None,
        }
    }

    const fn parts(
        self,
    ) -> (
        &'static aead::Algorithm,
        &'static quic::Algorithm,
        hkdf::Algorithm,
    ) {
        match self {
            Self::Aes128 => (&AES_128_GCM, &quic::AES_128, HKDF_SHA256),
            Self::Aes256 => (&AES_256_GCM, &quic::AES_256, HKDF_SHA384),
            Self::ChaCha20 => (&CHACHA20_POLY1305, &quic::CHACHA20, HKDF_SHA256),
        }
    }
}

/// Keys of one direction.
pub(super) struct Keys {
    suite: Suite,
    label: &'static str,
    secret: Vec<u8>,
    packet: LessSafeKey,
    header: HeaderProtectionKey,
    iv: [u8; 12],
}

impl Keys {
    /// Derives the keys of Initial packets, of the client and of the server.
    pub(super) fn initial(version: &Version, destination: &[u8]) -> Option<[Self; 2]> {
        let initial = Salt::new(HKDF_SHA256, &version.salt).extract(destination);
        let side = |label: &str| {
            let secret = expand(&initial, label, 32)?;
            Self::new(version, Suite::Aes128, secret)
        };
        Some([side("client in")?, side("server in")?])
    }

    pub(super) fn new(version: &Version, suite: Suite, secret: Vec<u8>) -> Option<Self> {
        let (cipher, mask, hash) = suite.parts();
        let prk = Prk::new_less_safe(hash, &secret);
        let label = version.label;
        let key = expand(&prk, &format!("{label} key"), cipher.key_len())?;
        let iv = expand(&prk, &format!("{label} iv"), 12)?;
        let header = expand(&prk, &format!("{label} hp"), cipher.key_len())?;
        Some(Self {
            suite,
            label,
            packet: LessSafeKey::new(UnboundKey::new(cipher, &key).ok()?),
            header: HeaderProtectionKey::new(mask, &header).ok()?,
            iv: iv.try_into().ok()?,
            secret,
        })
    }

    /// Returns the keys after an update (RFC 9001 §6.1). Those of headers stay.
    pub(super) fn updated(&self) -> Option<Self> {
        let (cipher, mask, hash) = self.suite.parts();
        let prk = Prk::new_less_safe(hash, &self.secret);
        let secret = expand(&prk, &format!("{} ku", self.label), self.secret.len())?;
        let next = Prk::new_less_safe(hash, &secret);
        let key = expand(&next, &format!("{} key", self.label), cipher.key_len())?;
        let iv = expand(&next, &format!("{} iv", self.label), 12)?;
        let old = Prk::new_less_safe(hash, &self.secret);
        // Never used: `open` takes those of the first phase.
        let header = expand(&old, "unused", cipher.key_len())?;
        Some(Self {
            suite: self.suite,
            label: self.label,
            packet: LessSafeKey::new(UnboundKey::new(cipher, &key).ok()?),
            header: HeaderProtectionKey::new(mask, &header).ok()?,
            iv: iv.try_into().ok()?,
            secret,
        })
    }

    /// Returns the first byte and the packet number without header protection, and the number's length
    /// (RFC 9001 §5.4).
    pub(super) fn unmask(&self, bytes: &[u8], number_at: usize) -> Option<(u8, u64, usize)> {
        let sample = bytes.get(number_at + 4..number_at + 20)?;
        let mask = self.header.new_mask(sample).ok()?;
        let first = *bytes.first()?;
        let bits = if first & 0x80 == 0 { 0x1f } else { 0x0f };
        let first = first ^ (mask[0] & bits);
        let len = usize::from(first & 3) + 1;
        let number = bytes.get(number_at..number_at + len)?;
        let number = number.iter().zip(&mask[1..]);
        let number = number.fold(0, |value, (byte, mask)| value << 8 | u64::from(byte ^ mask));
        Some((first, number, len))
    }

    /// Returns the payload of a packet whose first byte and number are known (RFC 9001 §5.3).
    pub(super) fn open(
        &self,
        bytes: &[u8],
        number_at: usize,
        (first, truncated, len): (u8, u64, usize),
        number: u64,
    ) -> Option<Vec<u8>> {
        let mut header = bytes.get(..number_at)?.to_vec();
        *header.first_mut()? = first;
        header.extend_from_slice(truncated.to_be_bytes().get(8 - len..)?);
        let mut nonce = self.iv;
        for (place, byte) in nonce.iter_mut().skip(4).zip(number.to_be_bytes()) {
            *place ^= byte;
        }
        let nonce = Nonce::assume_unique_for_key(nonce);
        let mut payload = bytes.get(number_at + len..)?.to_vec();
        let opened = self
            .packet
            .open_in_place(nonce, Aad::from(header), &mut payload);
        let len = opened.ok()?.len();
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
fn expand(secret: &Prk, label: &str, len: usize) -> Option<Vec<u8>> {
    let label = format!("tls13 {label}");
    let wanted = (len as u16).to_be_bytes();
    let info = [&wanted[..], &[label.len() as u8], label.as_bytes(), &[0]];
    let mut out = vec![0; len];
    secret.expand(&info, Len(len)).ok()?.fill(&mut out).ok()?;
    Some(out)
}

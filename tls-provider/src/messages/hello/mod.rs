//! The ClientHello, which a transport can read before TLS does.

use std::{fmt, ops::Range};

use bytes::Bytes;

use crate::{Alert, CertificateCompression, Error, Group};

use self::cursor::Cursor;

mod cursor;
#[cfg(test)]
mod tests;

/// Type of a ClientHello message (RFC 8446 §4).
const CLIENT_HELLO: u8 = 1;
const HEADER_LEN: usize = 4;
/// Maximum length of a message body. Post-quantum hellos are under 4 KiB.
const MAX_BODY_LEN: usize = 64 * 1024;

const SERVER_NAME: u16 = 0;
pub(crate) const STATUS_REQUEST: u16 = 5;
const SUPPORTED_GROUPS: u16 = 10;
const SIGNATURE_ALGORITHMS: u16 = 13;
const ALPN: u16 = 16;
const COMPRESS_CERTIFICATE: u16 = 27;
const PRE_SHARED_KEY: u16 = 41;
const EARLY_DATA: u16 = 42;
const SUPPORTED_VERSIONS: u16 = 43;
const KEY_SHARE: u16 = 51;
const QUIC_TRANSPORT_PARAMETERS: u16 = 57;

const TLS13: u16 = 0x0304;

/// A ClientHello, read from the raw handshake bytes before any TLS object exists (RFC 8446 §4.1.2).
///
/// Nothing here is authenticated, and the rest of the message may still be refused by the TLS
/// library. It holds one copy of the message and bounded lists.
#[derive(Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each says whether an extension is there"
)]
pub struct ClientHello {
    message: Bytes,
    /// Cipher suites first, then signature schemes.
    numbers: Vec<u16>,
    cipher_suites: usize,
    groups: Vec<Group>,
    /// Groups with a key share. `None` means no extension, which is not the same as an empty one.
    key_shares: Option<Vec<KeyShare>>,
    server_name: Option<Range<usize>>,
    alpn: Range<usize>,
    transport_params: Option<Range<usize>>,
    compression: Range<usize>,
    tls13: bool,
    has_ticket: bool,
    ticket: Option<Range<usize>>,
    early_data: bool,
    status: bool,
}

/// Bytes that are not a ClientHello.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HelloError {
    /// The first handshake message has another type.
    #[error("the first handshake message is no ClientHello")]
    NotClientHello,
    /// The message claims to be longer than 64 KiB.
    #[error("the ClientHello is longer than 64 KiB")]
    TooLong,
    /// A length or a list does not fit into its place.
    #[error("the ClientHello is malformed: {0}")]
    Malformed(&'static str),
}

impl HelloError {
    /// Returns the alert for the peer.
    pub const fn alert(self) -> Alert {
        match self {
            Self::NotClientHello => Alert::UNEXPECTED_MESSAGE,
            Self::TooLong | Self::Malformed(_) => Alert::DECODE_ERROR,
        }
    }
}

impl From<HelloError> for Error {
    fn from(error: HelloError) -> Self {
        Self::new(error.alert(), error.to_string())
    }
}

impl ClientHello {
    /// Returns the length of the whole message, its 4-byte header included, or `None` while the
    /// header is incomplete. Reads only the header.
    pub fn message_len(bytes: &[u8]) -> Result<Option<usize>, HelloError> {
        let Some((&kind, length)) = bytes.split_first() else {
            return Ok(None);
        };
        if kind != CLIENT_HELLO {
            return Err(HelloError::NotClientHello);
        }
        let Some(&[high, middle, low]) = length.first_chunk() else {
            return Ok(None);
        };
        let body = u32::from_be_bytes([0, high, middle, low]) as usize;
        if body > MAX_BODY_LEN {
            return Err(HelloError::TooLong);
        }
        Ok(Some(HEADER_LEN + body))
    }

    /// Reads the ClientHello at the front of `bytes`; returns it and its length.
    ///
    /// Returns `None` until the message is complete; finding out costs a look at its header.
    pub fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, HelloError> {
        let Some(len) = Self::message_len(bytes)? else {
            return Ok(None);
        };
        let Some(message) = bytes.get(..len) else {
            return Ok(None);
        };
        let mut hello = Self {
            message: Bytes::copy_from_slice(message),
            numbers: Vec::new(),
            cipher_suites: 0,
            groups: Vec::new(),
            key_shares: None,
            server_name: None,
            alpn: 0..0,
            transport_params: None,
            compression: 0..0,
            tls13: false,
            has_ticket: false,
            ticket: None,
            early_data: false,
            status: false,
        };
        hello.read(&mut Cursor::new(message, HEADER_LEN..len))?;
        Ok(Some((hello, len)))
    }

    fn read(&mut self, body: &mut Cursor<'_>) -> Result<(), HelloError> {
        body.take(2, "legacy_version")?;
        body.take(32, "random")?;
        body.vector8("legacy_session_id")?;
        let mut suites = body.vector16("cipher_suites")?;
        self.numbers = suites.numbers("cipher_suites")?;
        self.cipher_suites = self.numbers.len();
        body.vector8("legacy_compression_methods")?;
        if body.is_empty() {
            return Ok(());
        }
        let mut extensions = body.vector16("extensions")?;
        body.finish("bytes after the extensions")?;

        let mut seen: u64 = 0;
        while !extensions.is_empty() {
            let kind = extensions.u16("extension type")?;
            let content = extensions.vector16("extension")?;
            // Every extension read below has a code point under 64.
            if let Some(bit) = 1u64.checked_shl(kind.into()) {
                if seen & bit != 0 {
                    return Err(HelloError::Malformed("an extension comes twice"));
                }
                seen |= bit;
            }
            self.read_extension(kind, content)?;
        }
        Ok(())
    }

    fn read_extension(&mut self, kind: u16, mut content: Cursor<'_>) -> Result<(), HelloError> {
        match kind {
            SERVER_NAME => self.server_name = content.server_name()?,
            SUPPORTED_GROUPS => {
                let numbers = content
                    .list("supported_groups")?
                    .numbers("supported_groups")?;
                self.groups = numbers.into_iter().map(Group).collect();
            }
            SIGNATURE_ALGORITHMS => {
                let mut schemes = content.list("signature_algorithms")?;
                self.numbers
                    .extend(schemes.numbers("signature_algorithms")?);
            }
            ALPN => self.alpn = content.protocol_names()?,
            COMPRESS_CERTIFICATE => {
                self.compression = content.vector8("compress_certificate")?.range();
                content.finish("compress_certificate")?;
            }
            PRE_SHARED_KEY => {
                self.has_ticket = true;
                self.ticket = content.first_identity().ok();
            }
            EARLY_DATA => self.early_data = true,
            STATUS_REQUEST => self.status = true,
            SUPPORTED_VERSIONS => {
                let mut versions = content.vector8("supported_versions")?;
                content.finish("supported_versions")?;
                self.tls13 = versions.numbers("supported_versions")?.contains(&TLS13);
            }
            KEY_SHARE => self.key_shares = Some(content.key_shares()?),
            QUIC_TRANSPORT_PARAMETERS => self.transport_params = Some(content.range()),
            _ => {}
        }
        Ok(())
    }

    fn slice(&self, range: &Range<usize>) -> &[u8] {
        self.message.get(range.clone()).unwrap_or_default()
    }

    /// Returns the whole message as received, header included.
    pub fn message(&self) -> &Bytes {
        &self.message
    }

    /// Returns the client's random, which names the session in a key log.
    pub fn random(&self) -> &[u8] {
        self.slice(&(HEADER_LEN + 2..HEADER_LEN + 34))
    }

    /// Returns the server name that the client asks for (SNI, RFC 6066 §3). An address literal,
    /// which some clients send, does not count as a host name.
    pub fn server_name(&self) -> Option<&str> {
        let range = self.server_name.as_ref()?;
        let name = std::str::from_utf8(self.slice(range)).ok()?;
        let is_literal = name.parse::<std::net::IpAddr>().is_ok();
        (!is_literal).then_some(name)
    }

    /// Returns the application protocols, the client's first choice first (RFC 7301).
    pub fn alpn(&self) -> impl Iterator<Item = &[u8]> + Clone {
        let mut rest = self.slice(&self.alpn);
        std::iter::from_fn(move || {
            let (&len, tail) = rest.split_first()?;
            let (name, tail) = tail.split_at_checked(len.into())?;
            rest = tail;
            Some(name)
        })
    }

    /// Returns the groups that the client supports, its first choice first.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// Returns the key shares, the client's first choice first.
    pub fn key_shares(&self) -> &[KeyShare] {
        self.key_shares.as_deref().unwrap_or_default()
    }

    /// Returns true if there is a `key_share` extension, even an empty one.
    pub(crate) fn has_key_share_extension(&self) -> bool {
        self.key_shares.is_some()
    }

    /// Returns the cipher suites by IANA value, the client's first choice first.
    pub fn cipher_suites(&self) -> &[u16] {
        self.numbers.get(..self.cipher_suites).unwrap_or_default()
    }

    /// Returns the signature schemes that the client verifies, by IANA value.
    pub fn signature_schemes(&self) -> &[u16] {
        self.numbers.get(self.cipher_suites..).unwrap_or_default()
    }

    /// Returns the algorithms with which the server may compress its certificates (RFC 8879), as
    /// far as they are known here, the client's first choice first.
    pub fn certificate_compression(&self) -> impl Iterator<Item = CertificateCompression> + '_ {
        let values = self.slice(&self.compression).chunks_exact(2);
        values.filter_map(|value| match value {
            &[high, low] => CertificateCompression::from_iana(u16::from_be_bytes([high, low])),
            _ => None,
        })
    }

    /// Returns the length of the `legacy_session_id` in bytes, which the server echoes.
    #[cfg(any(feature = "rustls", all(unix, feature = "s2n-tls")))]
    pub(crate) fn session_id_len(&self) -> usize {
        const BEFORE: usize = HEADER_LEN + 2 + 32;
        self.message.get(BEFORE).map_or(0, |len| usize::from(*len))
    }

    /// Returns true if the client speaks TLS 1.3, which QUIC requires.
    pub fn supports_tls13(&self) -> bool {
        self.tls13
    }

    /// Returns true if the client brings a session ticket (`pre_shared_key`).
    pub fn has_ticket(&self) -> bool {
        self.has_ticket
    }

    /// Returns the client's first session ticket, as the server wrote it: see [`issued_ticket`].
    /// [`Negotiated::resumed`] is true once it is accepted.
    ///
    /// [`issued_ticket`]: crate::issued_ticket
    /// [`Negotiated::resumed`]: crate::Negotiated::resumed
    pub fn ticket(&self) -> Option<&[u8]> {
        self.ticket.as_ref().map(|range| self.slice(range))
    }

    /// Returns true if the client asks for a stapled OCSP response (RFC 8446 §4.4.2.1).
    #[cfg(any(feature = "rustls", all(unix, feature = "s2n-tls")))]
    pub(crate) fn wants_status(&self) -> bool {
        self.status
    }

    /// Returns true if the client wants to send 0-RTT data.
    pub fn wants_early_data(&self) -> bool {
        self.early_data
    }

    /// Returns the client's QUIC transport parameters, still encoded (RFC 9001 §8.2).
    pub fn transport_params(&self) -> Option<&[u8]> {
        self.transport_params
            .as_ref()
            .map(|range| self.slice(range))
    }

    /// Returns true if the client supports a post-quantum group known here.
    pub fn offers_post_quantum(&self) -> bool {
        self.groups.iter().any(|group| group.is_post_quantum())
    }
}

impl fmt::Debug for ClientHello {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientHello")
            .field("len", &self.message.len())
            .field("server_name", &self.server_name())
            .field("groups", &self.groups)
            .field("key_shares", &self.key_shares())
            .field("ticket", &self.has_ticket)
            .finish_non_exhaustive()
    }
}

/// A key share of a ClientHello, without its bytes (RFC 8446 §4.2.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct KeyShare {
    /// Its group.
    pub group: Group,
    /// Bytes of the share.
    pub len: usize,
}

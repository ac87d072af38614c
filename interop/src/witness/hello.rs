//! Key-exchange fields of ClientHello and ServerHello.

use hybriq::Group;

/// Random of a ServerHello that is a HelloRetryRequest (RFC 8446 §4.1.3).
const HELLO_RETRY: [u8; 32] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
    0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];
const SUPPORTED_GROUPS: u16 = 10;
const PRE_SHARED_KEY: u16 = 41;
const KEY_SHARE: u16 = 51;

/// Key exchange of a ClientHello.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientHello {
    /// Groups of `supported_groups`, in order.
    pub groups: Vec<Group>,
    /// Groups of `key_share`, in order.
    pub shares: Vec<Group>,
}

/// Key exchange of a ServerHello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerHello {
    /// Group that the server chose.
    pub group: Group,
    /// True if it is a HelloRetryRequest.
    pub retry: bool,
    /// True if it accepts a session ticket instead of a certificate.
    pub resumed: bool,
}

pub(crate) fn client_hellos(stream: &[u8]) -> Vec<ClientHello> {
    messages(stream, 1, client_hello)
}

pub(crate) fn server_hellos(stream: &[u8]) -> Vec<ServerHello> {
    messages(stream, 2, server_hello)
}

fn messages<T>(stream: &[u8], kind: u8, parse: fn(Cursor<'_>) -> Option<T>) -> Vec<T> {
    let mut found = Vec::new();
    let mut cursor = Cursor::new(stream);
    while let (Some(of), Some(len)) = (cursor.byte(), cursor.uint24()) {
        let Some(body) = cursor.take(len) else { break };
        if of == kind {
            found.extend(parse(Cursor::new(body)));
        }
    }
    found
}

fn client_hello(mut cursor: Cursor<'_>) -> Option<ClientHello> {
    cursor.take(2 + 32)?;
    cursor.prefixed8()?;
    cursor.prefixed16()?;
    cursor.prefixed8()?;
    let extensions = cursor.prefixed16()?;
    let mut groups = Vec::new();
    let mut list = Cursor::new(Cursor::new(extension(extensions, SUPPORTED_GROUPS)?).prefixed16()?);
    while let Some(group) = list.uint16() {
        groups.push(Group(group));
    }
    let mut shares = Vec::new();
    let mut list = Cursor::new(Cursor::new(extension(extensions, KEY_SHARE)?).prefixed16()?);
    while let Some(group) = list.uint16() {
        list.prefixed16()?;
        shares.push(Group(group));
    }
    Some(ClientHello { groups, shares })
}

fn server_hello(mut cursor: Cursor<'_>) -> Option<ServerHello> {
    cursor.take(2)?;
    let retry = cursor.take(32)? == HELLO_RETRY;
    cursor.prefixed8()?;
    cursor.take(2 + 1)?;
    let extensions = cursor.prefixed16()?;
    let share = extension(extensions, KEY_SHARE)?;
    Some(ServerHello {
        group: Group(Cursor::new(share).uint16()?),
        retry,
        resumed: extension(extensions, PRE_SHARED_KEY).is_some(),
    })
}

fn extension(extensions: &[u8], wanted: u16) -> Option<&[u8]> {
    let mut cursor = Cursor::new(extensions);
    loop {
        let kind = cursor.uint16()?;
        let body = cursor.prefixed16()?;
        if kind == wanted {
            return Some(body);
        }
    }
}

/// A reader of bytes; every read past their end is `None`.
pub(crate) struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.0
    }

    pub(crate) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn uint16(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }

    fn uint24(&mut self) -> Option<usize> {
        Some(
            self.take(3)?
                .iter()
                .fold(0, |value, byte| value << 8 | usize::from(*byte)),
        )
    }

    pub(crate) fn prefixed8(&mut self) -> Option<&'a [u8]> {
        let len = self.byte()?;
        self.take(len.into())
    }

    fn prefixed16(&mut self) -> Option<&'a [u8]> {
        let len = self.uint16()?;
        self.take(len.into())
    }

    /// Reads a variable-length integer (RFC 9000 §16).
    pub(crate) fn varint(&mut self) -> Option<u64> {
        let first = self.byte()?;
        let more = (1 << (first >> 6)) - 1;
        let value = u64::from(first & 0x3f);
        Some(
            self.take(more)?
                .iter()
                .fold(value, |value, byte| value << 8 | u64::from(*byte)),
        )
    }
}

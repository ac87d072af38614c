//! Field lines: how they are sent, and the memory for those that arrive.

use bytes::{Bytes, BytesMut};

use super::{
    Error, fixed,
    primitives::{Coded, put_integer, put_string},
};

/// Strings of a section that get memory of their own.
const FEW: usize = 2;

/// Bytes of the longest authority that is kept for the next request: those of a DNS name and a port.
pub(crate) const LONG_AUTHORITY: usize = 261;

/// Bytes of a date (RFC 9110 §5.6.7).
const LONG_DATE: usize = 29;

pub(super) const NOT_HUFFMAN: &str = "a string is not in Huffman code";

/// A field to encode.
///
/// Exhaustive: RFC 9204 §4.5 fixes what a field line has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldRef<'f> {
    /// Name, in lower case.
    pub name: &'f [u8],
    /// Value.
    pub value: &'f [u8],
    /// True if no table may have the value, at either end or between (RFC 9204 §7.1.3).
    pub sensitive: bool,
}

impl<'f> FieldRef<'f> {
    /// Makes a field that tables may have, with a name in lower case.
    pub const fn new(name: &'f [u8], value: &'f [u8]) -> Self {
        Self {
            name,
            value,
            sensitive: false,
        }
    }
}

/// How a field is written.
#[derive(Clone, Copy, Debug)]
pub(super) enum Line {
    Static(u8),
    Dynamic(u64),
    StaticName(u8),
    DynamicName(u64),
    Literal,
}

/// The last date in its code: a server sends the same one for a second.
#[derive(Debug, Default)]
pub(super) struct LastDate {
    value: Vec<u8>,
    coded: Vec<u8>,
}

impl LastDate {
    /// Returns the bytes of memory that it holds.
    pub(super) fn memory(&self) -> usize {
        self.value.capacity() + self.coded.capacity()
    }

    /// Writes a date behind its name.
    pub(super) fn put(&mut self, section: &mut Vec<u8>, value: &[u8]) {
        if value.len() > LONG_DATE {
            return put_string(section, 0, 7, value);
        }
        if self.value != value || self.coded.is_empty() {
            self.value.clear();
            self.value.extend_from_slice(value);
            self.coded.clear();
            put_string(&mut self.coded, 0, 7, value);
        }
        section.extend_from_slice(&self.coded);
    }
}

/// Writes a field (RFC 9204 §4.5.2 to §4.5.6).
pub(super) fn put_line(
    section: &mut Vec<u8>,
    base: u64,
    field: FieldRef<'_>,
    line: Line,
    date: &mut LastDate,
) {
    let never = u8::from(field.sensitive);
    match line {
        Line::Static(index) => put_integer(section, 0xc0, 6, index.into()),
        Line::Dynamic(index) => put_integer(section, 0x80, 6, base - 1 - index),
        Line::StaticName(index) => {
            put_integer(section, 0x50 | never << 5, 4, index.into());
            if index == fixed::DATE {
                date.put(section, field.value);
            } else {
                put_string(section, 0, 7, field.value);
            }
        }
        Line::DynamicName(index) => {
            put_integer(section, 0x40 | never << 5, 4, base - 1 - index);
            put_string(section, 0, 7, field.value);
        }
        Line::Literal => {
            put_string(section, 0x20 | never << 4, 3, field.name);
            put_string(section, 0, 7, field.value);
        }
    }
}

/// A name or a value where it stands.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part<'p> {
    /// In the static table.
    Fixed(&'static str),
    /// In the dynamic table.
    Entry(&'p Bytes),
    /// In the section.
    Coded(Coded<'p>),
}

/// Memory for the strings of a section.
pub(super) struct Arena<'d> {
    all: BytesMut,
    kept: usize,
    scratch: &'d mut Vec<u8>,
    authority: &'d mut LastAuthority,
}

impl<'d> Arena<'d> {
    pub(super) fn new(scratch: &'d mut Vec<u8>, authority: &'d mut LastAuthority) -> Self {
        Self {
            all: BytesMut::new(),
            kept: 0,
            scratch,
            authority,
        }
    }

    fn decode(&mut self, string: Coded<'_>) -> Result<(), Error> {
        self.scratch.clear();
        let decoded = string.decode(self.scratch);
        decoded.map_err(|_| Error::Section(NOT_HUFFMAN))
    }

    /// Returns a string; `left` bytes of the section are behind it.
    pub(super) fn keep(&mut self, part: Part<'_>, left: usize) -> Result<Bytes, Error> {
        let string = match part {
            Part::Fixed(text) => return Ok(Bytes::from_static(text.as_bytes())),
            Part::Entry(bytes) => return Ok(bytes.clone()),
            Part::Coded(string) => string,
        };
        self.decode(string)?;
        self.kept += 1;
        if self.kept <= FEW {
            // Sharing memory takes memory for the count, so that it is no gain for so few.
            return Ok(Bytes::copy_from_slice(self.scratch));
        }
        if self.all.capacity() < self.scratch.len() {
            self.all.reserve(self.scratch.len().max(left));
        }
        self.all.extend_from_slice(self.scratch);
        Ok(self.all.split().freeze())
    }

    /// Returns an authority, which shares the memory of the last one if it is the same.
    pub(super) fn authority(&mut self, value: Part<'_>, left: usize) -> Result<Bytes, Error> {
        let Part::Coded(string) = value else {
            return self.keep(value, left);
        };
        if self.authority.is(string) {
            return Ok(self.authority.text.clone());
        }
        self.decode(string)?;
        let text = Bytes::copy_from_slice(self.scratch);
        if text.len() <= LONG_AUTHORITY {
            self.authority.set(string, text.clone());
        }
        Ok(text)
    }
}

/// The authority of the last request, and how it came: most requests of a connection have the same.
#[derive(Debug, Default)]
pub(super) struct LastAuthority {
    text: Bytes,
    coded: Vec<u8>,
    is_huffman: bool,
}

impl LastAuthority {
    pub(super) const fn new() -> Self {
        Self {
            text: Bytes::new(),
            coded: Vec::new(),
            is_huffman: false,
        }
    }

    /// Returns the bytes of memory that it holds.
    pub(super) fn memory(&self) -> usize {
        self.text.len() + self.coded.capacity()
    }

    fn is(&self, string: Coded<'_>) -> bool {
        match string {
            Coded::Plain(coded) => !self.is_huffman && self.coded == coded,
            Coded::Huffman(coded) => self.is_huffman && self.coded == coded,
        }
    }

    fn set(&mut self, string: Coded<'_>, text: Bytes) {
        let (Coded::Plain(coded) | Coded::Huffman(coded)) = string;
        self.text = text;
        self.coded = coded.to_vec();
        self.is_huffman = matches!(string, Coded::Huffman(_));
    }
}

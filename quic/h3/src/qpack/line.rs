//! Field lines that are sent.

use super::primitives::{put_integer, put_string};

/// A field to encode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldRef<'f> {
    /// Name, in lower case.
    pub name: &'f [u8],
    /// Value.
    pub value: &'f [u8],
    /// True if no table may have the value, at either end or between (RFC 9204 §7.1.3).
    pub sensitive: bool,
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

/// Writes a field (RFC 9204 §4.5.2 to §4.5.6).
pub(super) fn put_line(section: &mut Vec<u8>, base: u64, field: FieldRef<'_>, line: Line) {
    let never = u8::from(field.sensitive);
    match line {
        Line::Static(index) => put_integer(section, 0xc0, 6, index.into()),
        Line::Dynamic(index) => put_integer(section, 0x80, 6, base - 1 - index),
        Line::StaticName(index) => {
            put_integer(section, 0x50 | never << 5, 4, index.into());
            put_string(section, 0, 7, field.value);
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

//! A writer of JSON objects into a buffer.

use std::io::Write as _;

/// An object being written.
pub(super) struct Object<'a> {
    out: &'a mut Vec<u8>,
    is_empty: bool,
}

/// A list being written.
pub(super) struct List<'a> {
    out: &'a mut Vec<u8>,
    is_empty: bool,
}

/// Largest integer that all JSON readers read as the same number (RFC 7493 §2.2).
const EXACT: u64 = (1 << 53) - 1;

impl<'a> Object<'a> {
    /// Writes an object.
    pub(super) fn write(out: &'a mut Vec<u8>, fill: impl FnOnce(&mut Object<'_>)) {
        out.push(b'{');
        let mut object = Object {
            out,
            is_empty: true,
        };
        fill(&mut object);
        object.out.push(b'}');
    }

    fn key(&mut self, key: &str) {
        if !self.is_empty {
            self.out.push(b',');
        }
        self.is_empty = false;
        self.out.push(b'"');
        self.out.extend_from_slice(key.as_bytes());
        self.out.extend_from_slice(b"\":");
    }

    /// Writes a text.
    pub(super) fn text(&mut self, key: &str, value: &str) {
        self.key(key);
        put_text(self.out, value);
    }

    /// Writes the display text of a value, which must need no escapes.
    pub(super) fn shown(&mut self, key: &str, value: impl std::fmt::Display) {
        self.key(key);
        put_shown(self.out, value);
    }

    /// Writes an integer; as a text if JavaScript would round it.
    pub(super) fn uint(&mut self, key: &str, value: u64) {
        self.key(key);
        put_uint(self.out, value);
    }

    /// Writes milliseconds, with a fraction in microseconds.
    pub(super) fn ms(&mut self, key: &str, value: std::time::Duration) {
        self.key(key);
        let micros = value.as_micros() as u64;
        let (whole, rest) = (micros / 1000, micros % 1000);
        put_digits(self.out, whole, 1);
        if rest != 0 {
            self.out.push(b'.');
            put_digits(self.out, rest, 3);
        }
    }

    /// Writes a number with a fraction.
    pub(super) fn float(&mut self, key: &str, value: f64) {
        self.key(key);
        put(self.out, format_args!("{value}"));
    }

    pub(super) fn flag(&mut self, key: &str, value: bool) {
        self.key(key);
        let value: &[u8] = if value { b"true" } else { b"false" };
        self.out.extend_from_slice(value);
    }

    /// Writes bytes in hexadecimal digits.
    pub(super) fn hex(&mut self, key: &str, value: &[u8]) {
        self.key(key);
        put_hex(self.out, value);
    }

    pub(super) fn object(&mut self, key: &str, fill: impl FnOnce(&mut Object<'_>)) {
        self.key(key);
        Object::write(self.out, fill);
    }

    pub(super) fn list(&mut self, key: &str, fill: impl FnOnce(&mut List<'_>)) {
        self.key(key);
        List::write(self.out, fill);
    }
}

impl List<'_> {
    fn write(out: &mut Vec<u8>, fill: impl FnOnce(&mut List<'_>)) {
        out.push(b'[');
        let mut list = List {
            out,
            is_empty: true,
        };
        fill(&mut list);
        list.out.push(b']');
    }

    fn next(&mut self) {
        if !self.is_empty {
            self.out.push(b',');
        }
        self.is_empty = false;
    }

    pub(super) fn text(&mut self, value: &str) {
        self.next();
        put_text(self.out, value);
    }

    pub(super) fn hex(&mut self, value: &[u8]) {
        self.next();
        put_hex(self.out, value);
    }

    pub(super) fn uint(&mut self, value: u64) {
        self.next();
        put_uint(self.out, value);
    }

    pub(super) fn object(&mut self, fill: impl FnOnce(&mut Object<'_>)) {
        self.next();
        Object::write(self.out, fill);
    }

    pub(super) fn list(&mut self, fill: impl FnOnce(&mut List<'_>)) {
        self.next();
        List::write(self.out, fill);
    }
}

fn put(out: &mut Vec<u8>, value: std::fmt::Arguments<'_>) {
    // Writing to a vector never fails.
    let _ = out.write_fmt(value);
}

fn put_shown(out: &mut Vec<u8>, value: impl std::fmt::Display) {
    put(out, format_args!("\"{value}\""));
}

fn put_uint(out: &mut Vec<u8>, value: u64) {
    if value > EXACT {
        put_shown(out, value);
    } else {
        put_digits(out, value, 1);
    }
}

/// Writes a number with at least this many digits. A log has dozens of numbers for each packet.
fn put_digits(out: &mut Vec<u8>, mut value: u64, least: usize) {
    let mut digits = [b'0'; 20];
    let mut at = digits.len();
    while value > 0 || digits.len() - at < least {
        at -= 1;
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
    }
    out.extend_from_slice(&digits[at..]);
}

fn put_hex(out: &mut Vec<u8>, value: &[u8]) {
    const DIGITS: [u8; 16] = *b"0123456789abcdef";
    out.push(b'"');
    for byte in value {
        out.push(DIGITS[usize::from(byte >> 4)]);
        out.push(DIGITS[usize::from(byte & 15)]);
    }
    out.push(b'"');
}

/// Writes a text with the escapes of RFC 8259 §7.
fn put_text(out: &mut Vec<u8>, value: &str) {
    out.push(b'"');
    let is_plain = |byte: u8| !matches!(byte, b'"' | b'\\' | 0x7f | 0..0x20);
    if value.bytes().all(is_plain) {
        out.extend_from_slice(value.as_bytes());
        out.push(b'"');
        return;
    }
    for letter in value.chars() {
        match letter {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\u{0}'..='\u{1f}' | '\u{7f}' => {
                put(out, format_args!("\\u{:04x}", u32::from(letter)));
            }
            _ => {
                let mut bytes = [0; 4];
                out.extend_from_slice(letter.encode_utf8(&mut bytes).as_bytes());
            }
        }
    }
    out.push(b'"');
}

//! Integers and strings with a prefix (RFC 9204 §4.1).

pub(in crate::qpack) mod huffman;

/// Largest integer: 62 bits (RFC 9204 §4.1.1).
const MOST: u64 = (1 << 62) - 1;

/// Reason why nothing can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The rest has not come yet.
    Incomplete,
    /// No more bytes would make it readable.
    Malformed,
}

/// Reads what may not be whole yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'b> {
    rest: &'b [u8],
}

/// A string as it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coded<'b> {
    Plain(&'b [u8]),
    Huffman(&'b [u8]),
}

impl<'b> Reader<'b> {
    pub(super) const fn new(bytes: &'b [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(super) const fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// Returns the next byte, and leaves it.
    pub(super) fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    /// Takes an integer with a prefix of `prefix` bits.
    pub(super) fn integer(&mut self, prefix: u32) -> Result<u64, Stop> {
        let (&first, mut rest) = self.rest.split_first().ok_or(Stop::Incomplete)?;
        let most = u64::from(u8::MAX >> (8 - prefix));
        let mut value = u64::from(first) & most;
        if value == most {
            let mut shift = 0;
            loop {
                let (&byte, after) = rest.split_first().ok_or(Stop::Incomplete)?;
                rest = after;
                // Zeros that follow count as too many, or their number would have no bound.
                if shift > 56 {
                    return Err(Stop::Malformed);
                }
                value += u64::from(byte & 0x7f) << shift;
                shift += 7;
                if byte & 0x80 == 0 {
                    break;
                }
            }
            if value > MOST {
                return Err(Stop::Malformed);
            }
        }
        self.rest = rest;
        Ok(value)
    }

    /// Takes a string whose length has a prefix of `prefix` bits, after the bit that tells if it is in Huffman
    /// code. A string that came is at most `most` bytes long.
    pub(super) fn string(&mut self, prefix: u32, most: usize) -> Result<Coded<'b>, Stop> {
        let first = self.peek().ok_or(Stop::Incomplete)?;
        let mut reader = *self;
        let len = usize::try_from(reader.integer(prefix)?).unwrap_or(usize::MAX);
        if len > most {
            return Err(Stop::Malformed);
        }
        let (string, rest) = reader.rest.split_at_checked(len).ok_or(Stop::Incomplete)?;
        self.rest = rest;
        Ok(if first >> prefix & 1 == 1 {
            Coded::Huffman(string)
        } else {
            Coded::Plain(string)
        })
    }
}

impl Coded<'_> {
    /// Returns the bytes of the string as it came.
    pub(super) const fn len(self) -> usize {
        match self {
            Coded::Plain(string) | Coded::Huffman(string) => string.len(),
        }
    }

    /// Decodes the string behind what is there.
    pub(super) fn decode(self, out: &mut Vec<u8>) -> Result<(), huffman::Malformed> {
        match self {
            Coded::Plain(string) => {
                out.extend_from_slice(string);
                Ok(())
            }
            Coded::Huffman(string) => huffman::decode(string, out),
        }
    }
}

/// Writes an integer with a prefix of `prefix` bits, after the bits of `before`.
pub(super) fn put_integer(out: &mut Vec<u8>, before: u8, prefix: u32, value: u64) {
    let most = u8::MAX >> (8 - prefix);
    if value < u64::from(most) {
        out.push(before | value as u8);
        return;
    }
    out.push(before | most);
    let mut rest = value - u64::from(most);
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Writes a string behind these bits, in the shorter code. The bit behind them says which.
pub(crate) fn put_string(out: &mut Vec<u8>, before: u8, prefix: u32, string: &[u8]) {
    let len = huffman::encoded_len(string);
    if len < string.len() {
        put_integer(out, before | 1 << prefix, prefix, len as u64);
        huffman::encode(string, out);
    } else {
        put_integer(out, before, prefix, string.len() as u64);
        out.extend_from_slice(string);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(prefix: u32, bytes: &[u8]) -> Result<u64, Stop> {
        Reader::new(bytes).integer(prefix)
    }

    /// RFC 7541 §C.1.
    #[test]
    fn examples_of_the_rfc() {
        for (prefix, value, coded) in [
            (5, 10, &[10][..]),
            (5, 1337, &[31, 154, 10]),
            (8, 42, &[42]),
        ] {
            let mut out = Vec::new();
            put_integer(&mut out, 0, prefix, value);
            assert_eq!(out, coded);
            assert_eq!(read(prefix, coded), Ok(value));
        }
    }

    #[test]
    fn integers_come_back_at_every_boundary() {
        for prefix in 3..=8 {
            for bits in 0..=62 {
                for value in [(1_u64 << bits) - 1, 1 << bits].map(|it| it.min(MOST)) {
                    let mut out = Vec::new();
                    put_integer(&mut out, 0, prefix, value);
                    assert_eq!(read(prefix, &out), Ok(value));
                    assert_eq!(read(prefix, &out[..out.len() - 1]), Err(Stop::Incomplete));
                }
            }
        }
    }

    #[test]
    fn larger_and_endless_integers_are_errors() {
        let mut out = Vec::new();
        put_integer(&mut out, 0, 5, MOST + 1);
        assert_eq!(read(5, &out), Err(Stop::Malformed));
        assert_eq!(
            read(5, &[[31].as_slice(), &[0x80; 20]].concat()),
            Err(Stop::Malformed)
        );
        assert_eq!(read(5, &[0xff; 20]), Err(Stop::Malformed));
    }

    #[test]
    fn a_string_longer_than_allowed_is_an_error_before_it_came() {
        let mut out = Vec::new();
        put_string(&mut out, 0, 7, &[0xff; 100]);
        assert_eq!(
            Reader::new(&out).string(7, 100),
            Ok(Coded::Plain(&[0xff; 100]))
        );
        assert_eq!(Reader::new(&out[..2]).string(7, 99), Err(Stop::Malformed));
        assert_eq!(
            Reader::new(&out[..50]).string(7, 100),
            Err(Stop::Incomplete)
        );
    }
}

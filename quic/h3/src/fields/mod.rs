//! A look at the field section of a request, before `h3` decodes it.
//!
//! `h3` keeps the last of several equal pseudo-header fields, and forgets where they stood. So the names
//! of pseudo-header fields are followed here; values are not decoded.

use bytes::Buf;

/// Pseudo-header fields of requests (RFC 9114 §4.3.1, RFC 9220 §3).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pseudo {
    Authority,
    Method,
    Path,
    Scheme,
    Protocol,
}

/// Coding of a string (RFC 9204 §4.1.2).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Coding {
    Plain,
    Huffman,
}

/// Name of a field, as far as it matters.
enum Name {
    Pseudo(Pseudo),
    /// A pseudo-header field that requests do not have.
    Prohibited,
    Ordinary,
}

/// First bytes of the name `:protocol`, plain and in Huffman code, and those of `xprotocol`, which is as
/// long in both.
const RENAMED: [(u8, u8); 2] = [(b':', b'x'), (0xb9, 0xf3)];

/// Name of the ordinary field that [`rename`] makes of `:protocol`.
pub(crate) const PROTOCOL: &str = "xprotocol";

/// Makes an ordinary field of `:protocol`, the first byte of whose name this is.
pub(crate) fn rename(first: &mut u8) {
    for (colon, letter) in RENAMED {
        if *first == colon {
            *first = letter;
            return;
        }
    }
}

/// The five names, and their only Huffman codes (RFC 7541 Appendix B).
const LITERALS: [(Pseudo, &[u8], &[u8]); 5] = [
    (
        Pseudo::Authority,
        b":authority",
        &[0xb8, 0x3b, 0x53, 0x39, 0xec, 0x32, 0x7d, 0x7f],
    ),
    (Pseudo::Method, b":method", &[0xb9, 0x49, 0x53, 0x39, 0xe4]),
    (Pseudo::Path, b":path", &[0xb9, 0x58, 0xd3, 0x3f]),
    (Pseudo::Scheme, b":scheme", &[0xb8, 0x82, 0x4e, 0x5a, 0x4b]),
    (
        Pseudo::Protocol,
        b":protocol",
        &[0xb9, 0x5d, 0x87, 0x49, 0xc8, 0x7a, 0x3f],
    ),
];

/// Findings of a look at a field section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Findings {
    /// True if the pseudo-header fields are those of a request: each at most once, before all other
    /// fields, and none of responses (RFC 9114 §4.3).
    pub(crate) well_formed: bool,
    /// Position of the name `:protocol` in the section.
    pub(crate) protocol: Option<usize>,
}

/// Looks at an encoded section (RFC 9204 §4.5) of a request.
///
/// A section that cannot be read is called well-formed: `h3` finds its fault.
pub(crate) fn inspect(whole: &[u8]) -> Findings {
    let mut protocol = None;
    let well_formed = is_well_formed(whole, &mut protocol);
    Findings {
        well_formed,
        protocol,
    }
}

fn is_well_formed(whole: &[u8], protocol: &mut Option<usize>) -> bool {
    let mut section = whole;
    // The prefix: Required Insert Count, and Base.
    if integer(&mut section, 8).is_none() || integer(&mut section, 7).is_none() {
        return true;
    }
    let mut seen = [false; LITERALS.len()];
    let mut ordinary = false;
    while !section.is_empty() {
        let mut start = section;
        match line(&mut section) {
            None => return true,
            Some(Name::Ordinary) => ordinary = true,
            Some(Name::Prohibited) => return false,
            Some(Name::Pseudo(pseudo)) => {
                let Some(seen) = seen.get_mut(pseudo as usize) else {
                    return true;
                };
                if *seen || ordinary {
                    return false;
                }
                *seen = true;
                if pseudo == Pseudo::Protocol {
                    let name = string(&mut start, 3).map_or(0, <[u8]>::len);
                    *protocol = Some(whole.len() - start.len() - name);
                }
            }
        }
    }
    true
}

/// Reads a field line, and returns its name.
fn line(section: &mut &[u8]) -> Option<Name> {
    let first = *section.first()?;
    if first & 0x80 != 0 {
        // Indexed (RFC 9204 §4.5.2); bit 6 says that the index is that of the static table.
        let index = integer(section, 6)?;
        return (first & 0x40 != 0).then(|| named(index));
    }
    let name = if first & 0x40 != 0 {
        // Literal with the name of an entry (§4.5.4).
        let index = integer(section, 4)?;
        (first & 0x10 != 0).then(|| named(index))?
    } else if first & 0x20 != 0 {
        // Literal with a literal name (§4.5.6).
        let coding = if first & 0x08 == 0 {
            Coding::Plain
        } else {
            Coding::Huffman
        };
        literal(string(section, 3)?, coding)
    } else {
        // The dynamic table, which has no capacity.
        return None;
    };
    string(section, 7)?;
    Some(name)
}

/// Returns the name of an entry of the static table (RFC 9204 Appendix A).
fn named(index: u64) -> Name {
    match index {
        0 => Name::Pseudo(Pseudo::Authority),
        1 => Name::Pseudo(Pseudo::Path),
        15..=21 => Name::Pseudo(Pseudo::Method),
        22 | 23 => Name::Pseudo(Pseudo::Scheme),
        // `:status`.
        24..=28 | 63..=71 => Name::Prohibited,
        _ => Name::Ordinary,
    }
}

fn literal(name: &[u8], coding: Coding) -> Name {
    let encoded = |(_, plain, huffman): &&(Pseudo, &[u8], &[u8])| {
        name == match coding {
            Coding::Plain => *plain,
            Coding::Huffman => *huffman,
        }
    };
    if let Some((pseudo, ..)) = LITERALS.iter().find(encoded) {
        return Name::Pseudo(*pseudo);
    }
    // The Huffman code of a colon has seven bits: 1011100.
    let colon = match name.first() {
        Some(first) if coding == Coding::Huffman => first >> 1 == 0b101_1100,
        first => first == Some(&b':'),
    };
    if colon {
        Name::Prohibited
    } else {
        Name::Ordinary
    }
}

/// Reads a string whose length has a prefix of so many bits.
fn string<'a>(section: &mut &'a [u8], bits: u32) -> Option<&'a [u8]> {
    let len = usize::try_from(integer(section, bits)?).ok()?;
    let (string, rest) = section.split_at_checked(len)?;
    *section = rest;
    Some(string)
}

/// Reads an integer with a prefix of so many bits (RFC 7541 §5.1).
fn integer(section: &mut &[u8], bits: u32) -> Option<u64> {
    let most = (1_u64 << bits) - 1;
    let mut value = u64::from(section.try_get_u8().ok()?) & most;
    if value < most {
        return Some(value);
    }
    for shift in (0..56).step_by(7) {
        let byte = section.try_get_u8().ok()?;
        value += u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn well_formed(section: &[u8]) -> bool {
        inspect(section).well_formed
    }

    /// `:method`, `:scheme`, `:path` from the static table, `:authority` with a value.
    const GET: [u8; 8] = [0, 0, 0xd1, 0xd7, 0xc1, 0x50, 1, b'a'];

    fn with(lines: &[u8]) -> Vec<u8> {
        [&GET, lines].concat()
    }

    #[test]
    fn requests_are_well_formed() {
        assert!(well_formed(&GET));
        // `accept: */*`, a literal name, a name with Huffman code.
        assert!(well_formed(&with(&[
            0xdd, 0x21, b'x', 1, b'y', 0x2a, 0x9d, 0x7f, 0
        ])));
        // `:protocol` as it is, and in Huffman code.
        let plain = [&[0x27, 2][..], b":protocol", &[0]].concat();
        assert!(well_formed(&with(&plain)));
        let huffman = [&[0x2f, 0][..], LITERALS[4].2, &[0]].concat();
        assert!(well_formed(&with(&huffman)));
        assert!(!well_formed(&with(&[&plain[..], &huffman].concat())));
    }

    #[test]
    fn faults_are_found() {
        for (name, _, huffman) in LITERALS {
            if name != Pseudo::Protocol {
                let len = huffman.len() as u8;
                let line = if len < 7 {
                    [&[0x28 | len][..], huffman, &[0]].concat()
                } else {
                    [&[0x2f, len - 7][..], huffman, &[0]].concat()
                };
                assert!(!well_formed(&with(&line)), "twice");
            }
        }
        assert!(!well_formed(&with(&[0xd1])), "`:method` twice");
        assert!(!well_formed(&with(&[0xd9])), "`:status`");
        assert!(!well_formed(&with(&[0x22, b':', b'x', 0])), "unknown");
        assert!(!well_formed(&[0, 0, 0xdd, 0xd1]), "after a field");
    }

    /// Whatever comes, there is an answer.
    #[test]
    fn any_bytes_are_read() {
        for first in 0..=255 {
            for second in 0..=255 {
                let _ = well_formed(&[0, 0, first, second, 0xff, 0xff, 0xff]);
                let _ = well_formed(&[first, second]);
            }
        }
    }
}

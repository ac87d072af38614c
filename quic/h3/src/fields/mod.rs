//! A look at the field section of a request, before `h3` decodes it.
//!
//! `h3` keeps the last of several equal pseudo-header fields, and forgets where they stood. So the names
//! of pseudo-header fields are followed here; values are not decoded. Both read integers, indices and
//! lengths alike, and what cannot be read here does not get to `h3`. Faults in Huffman codes are left to it.
//!
//! `h3` also panics when there are more fields than a map of the crate `http` can have.

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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Findings {
    /// Number of fields.
    pub(crate) count: usize,
    /// Position of the name `:protocol` in the section.
    pub(crate) protocol: Option<usize>,
}

/// Fault of a field section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The section cannot be read (RFC 9204 §2.2).
    Unreadable,
    /// The pseudo-header fields are not those of a request: each at most once, before all other fields, and
    /// none of responses (RFC 9114 §4.3).
    Malformed,
}

/// Looks at an encoded section (RFC 9204 §4.5) of a request.
///
/// # Errors
/// The section cannot be read, or is not that of a request.
pub(crate) fn inspect(whole: &[u8]) -> Result<Findings, Fault> {
    let mut section = whole;
    read_prefix(&mut section)?;
    let mut findings = Findings::default();
    let mut seen = [false; LITERALS.len()];
    let (mut ordinary, mut malformed) = (false, false);
    while !section.is_empty() {
        let mut start = section;
        let name = line(&mut section).ok_or(Fault::Unreadable)?;
        findings.count += 1;
        match name {
            Name::Ordinary => ordinary = true,
            Name::Prohibited => malformed = true,
            Name::Pseudo(pseudo) => {
                let seen = seen.get_mut(pseudo as usize);
                malformed |= ordinary || seen.is_none_or(|seen| std::mem::replace(seen, true));
                if pseudo == Pseudo::Protocol {
                    let name = string(&mut start, 3).map_or(0, <[u8]>::len);
                    findings.protocol = Some(whole.len() - start.len() - name);
                }
            }
        }
    }
    if malformed {
        return Err(Fault::Malformed);
    }
    Ok(findings)
}

/// Returns the number of fields of any encoded section.
///
/// # Errors
/// The section cannot be read.
pub(crate) fn count(mut section: &[u8]) -> Result<usize, Fault> {
    read_prefix(&mut section)?;
    let mut count = 0;
    while !section.is_empty() {
        line(&mut section).ok_or(Fault::Unreadable)?;
        count += 1;
    }
    Ok(count)
}

/// Reads the prefix: Required Insert Count, and Base.
fn read_prefix(section: &mut &[u8]) -> Result<(), Fault> {
    let prefix = (integer(section, 8), integer(section, 7));
    match prefix {
        (Some(_), Some(_)) => Ok(()),
        _ => Err(Fault::Unreadable),
    }
}

/// Reads a field line, and returns its name.
fn line(section: &mut &[u8]) -> Option<Name> {
    let first = *section.first()?;
    if first & 0x80 != 0 {
        // Indexed (RFC 9204 §4.5.2); bit 6 says that the index is that of the static table.
        let index = integer(section, 6)?;
        return (first & 0x40 != 0).then(|| named(index))?;
    }
    let name = if first & 0x40 != 0 {
        // Literal with the name of an entry (§4.5.4).
        let index = integer(section, 4)?;
        (first & 0x10 != 0).then(|| named(index))??
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

/// Returns the name of an entry of the static table (RFC 9204 Appendix A), which has 99.
fn named(index: u64) -> Option<Name> {
    let name = match index {
        0 => Name::Pseudo(Pseudo::Authority),
        1 => Name::Pseudo(Pseudo::Path),
        15..=21 => Name::Pseudo(Pseudo::Method),
        22 | 23 => Name::Pseudo(Pseudo::Scheme),
        // `:status`.
        24..=28 | 63..=71 => Name::Prohibited,
        _ if index < 99 => Name::Ordinary,
        _ => return None,
    };
    Some(name)
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

/// Reads a string whose length has a prefix of `bits` bits.
fn string<'a>(section: &mut &'a [u8], bits: u32) -> Option<&'a [u8]> {
    let len = usize::try_from(integer(section, bits)?).ok()?;
    let (string, rest) = section.split_at_checked(len)?;
    *section = rest;
    Some(string)
}

/// Reads an integer with a prefix of `bits` bits (RFC 7541 §5.1), continued in up to nine bytes: 63 bits, as
/// `h3` does.
fn integer(section: &mut &[u8], bits: u32) -> Option<u64> {
    let most = (1_u64 << bits) - 1;
    let mut value = u64::from(section.try_get_u8().ok()?) & most;
    if value < most {
        return Some(value);
    }
    for shift in (0..63).step_by(7) {
        let byte = section.try_get_u8().ok()?;
        value += u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests;

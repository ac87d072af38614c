//! The rules for the fields of messages (RFC 9114 §4.2 and §4.3), before `h3` decodes them.
//!
//! `h3` keeps the last of several equal pseudo-header fields, forgets where they stood, and drops them from
//! trailers. It keeps fields of connections, and takes strings in Huffman code that are malformed. So each section is
//! read here first, and what breaks a rule does not get to `h3`. Rules that `h3` checks are left to it: which
//! pseudo-header fields a message needs, and which characters a head may have.
//!
//! `h3` also panics when there are more fields than a map of the crate `http` can have.

use crate::adapter::qpack::{self, Seen};

/// Names of the pseudo-header fields of requests (RFC 9114 §4.3.1, RFC 9220 §3).
const OF_REQUESTS: [&[u8]; 5] = [
    b":method",
    b":scheme",
    b":authority",
    b":path",
    PSEUDO_PROTOCOL,
];

/// Names of the pseudo-header fields of responses (RFC 9114 §4.3.2).
const OF_RESPONSES: [&[u8]; 1] = [b":status"];

const PSEUDO_PROTOCOL: &[u8] = b":protocol";

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

/// Part of a message that a section is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The head of a request.
    Request,
    /// The head of a response, which may be an interim one.
    Response,
    Trailers,
}

/// Findings in a section that keeps the rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Findings {
    /// Number of fields.
    pub(crate) count: usize,
    /// Size of the section, as RFC 9114 §4.2.2 counts it.
    pub(crate) size: u64,
    /// Position of the name `:protocol` in the section.
    pub(crate) protocol: Option<usize>,
    /// True for an interim response, after which another head follows.
    pub(crate) interim: bool,
}

/// Fault of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The section cannot be decoded (RFC 9204 §2.2).
    Unreadable(qpack::Error),
    /// The message is malformed (RFC 9114 §4.1.2).
    Malformed(&'static str),
}

/// A section, as far as it was read.
struct Reading {
    part: Part,
    findings: Findings,
    /// True for each pseudo-header field that was there.
    seen: [bool; OF_REQUESTS.len()],
    /// True once there was another field.
    ordinary: bool,
    has_host: bool,
    /// The first rule that is broken.
    broken: Option<&'static str>,
}

/// Reads an encoded section (RFC 9204 §4.5).
///
/// # Errors
/// The section cannot be decoded, or breaks a rule.
pub(crate) fn inspect(section: &[u8], part: Part) -> Result<Findings, Fault> {
    let mut reading = Reading {
        part,
        findings: Findings::default(),
        seen: [false; OF_REQUESTS.len()],
        ordinary: false,
        has_host: false,
        broken: None,
    };
    let read = qpack::each(section, |field| reading.take(section, field));
    read.map_err(Fault::Unreadable)?;
    match reading.broken {
        Some(reason) => Err(Fault::Malformed(reason)),
        None => Ok(reading.findings),
    }
}

impl Reading {
    fn take(&mut self, section: &[u8], field: Seen<'_>) {
        self.findings.count += 1;
        self.findings.size += (field.name.len() + field.value.len() + 32) as u64;
        let checked = if field.name.first() == Some(&b':') {
            self.take_pseudo(section, field)
        } else {
            self.ordinary = true;
            self.take_ordinary(field)
                .and_then(|()| self.check_characters(field))
        };
        if let Err(reason) = checked {
            self.broken.get_or_insert(reason);
        }
    }

    fn take_pseudo(&mut self, section: &[u8], field: Seen<'_>) -> Result<(), &'static str> {
        let known: &[&[u8]] = match self.part {
            Part::Request => &OF_REQUESTS,
            Part::Response => &OF_RESPONSES,
            Part::Trailers => return Err("a pseudo-header field in trailers"),
        };
        let index = known.iter().position(|name| *name == field.name);
        let seen = index.and_then(|index| self.seen.get_mut(index));
        let seen = seen.ok_or("a pseudo-header field that the message must not have")?;
        if std::mem::replace(seen, true) {
            return Err("a pseudo-header field that comes twice");
        }
        if self.ordinary {
            return Err("a pseudo-header field behind another field");
        }
        match field.name {
            b":authority" => without_userinfo(field.value)?,
            b":status" => self.findings.interim = matches!(field.value, [b'1', _, _]),
            PSEUDO_PROTOCOL => {
                let behind = field.behind_name();
                self.findings.protocol = behind.map(|behind| section.len() - behind);
            }
            _ => {}
        }
        Ok(())
    }

    /// Checks the characters of trailers. `h3` checks those of a head, and resets its stream.
    fn check_characters(&self, field: Seen<'_>) -> Result<(), &'static str> {
        if self.part == Part::Trailers && !(is_name(field.name) && is_value(field.value)) {
            return Err("a character that is not allowed in trailers");
        }
        Ok(())
    }

    fn take_ordinary(&mut self, field: Seen<'_>) -> Result<(), &'static str> {
        match field.name {
            b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding"
            | b"upgrade" => Err("a field of a connection, which HTTP/3 does not have"),
            b"te" if !field.value.eq_ignore_ascii_case(b"trailers") => {
                Err("a field te with another value than trailers")
            }
            b"host" if self.part == Part::Request => {
                if std::mem::replace(&mut self.has_host, true) {
                    // RFC 9110 §7.2.
                    return Err("two fields host");
                }
                without_userinfo(field.value)
            }
            _ => Ok(()),
        }
    }
}

/// Returns true for a field name of HTTP/3: a token without capitals (RFC 9114 §4.2).
fn is_name(name: &[u8]) -> bool {
    let is_allowed = |byte: &u8| match byte {
        b'a'..=b'z' | b'0'..=b'9' => true,
        _ => b"!#$%&'*+-.^_`|~".contains(byte),
    };
    !name.is_empty() && name.iter().all(is_allowed)
}

/// Returns true for a value without control characters (RFC 9114 §10.3).
fn is_value(value: &[u8]) -> bool {
    value
        .iter()
        .all(|&byte| byte == b'\t' || !byte.is_ascii_control())
}

/// Checks that an authority names nobody (RFC 9114 §4.3.1).
fn without_userinfo(authority: &[u8]) -> Result<(), &'static str> {
    if authority.contains(&b'@') {
        return Err("an authority with userinfo");
    }
    Ok(())
}

#[cfg(test)]
mod tests;

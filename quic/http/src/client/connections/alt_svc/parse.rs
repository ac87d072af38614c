//! The `alt-svc` field (RFC 7838 §3).

use std::time::Duration;

/// Time for which an alternative is valid if it does not say (RFC 7838 §3.1).
const DEFAULT_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// Largest number of alternatives that are kept for a server.
pub(super) const MOST: usize = 4;

/// The value of a field.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Advice {
    /// All earlier alternatives are invalid.
    Clear,
    /// The alternatives for HTTP/3, in order of preference.
    Alternatives(Vec<Alternative>),
}

/// A place where a server speaks HTTP/3.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Alternative {
    /// Host, if it differs from the server's.
    pub(super) host: Option<String>,
    pub(super) port: u16,
    pub(super) max_age: Duration,
    /// True if it survives a change of the network.
    pub(super) persist: bool,
}

/// Reads the values of the fields of a response. Returns `None` if they are malformed.
pub(super) fn parse<'a>(values: impl Iterator<Item = &'a [u8]>) -> Option<Advice> {
    let mut alternatives = Vec::new();
    for value in values {
        let mut text = Text(std::str::from_utf8(value).ok()?);
        if text.0.trim() == "clear" {
            return Some(Advice::Clear);
        }
        loop {
            // Elements of a list may be empty (RFC 9110 §5.6.1).
            text.space();
            if text.take(',') {
                continue;
            }
            if text.0.is_empty() {
                break;
            }
            let element = text.element()?;
            if element.protocol == "h3" && alternatives.len() < MOST {
                alternatives.push(element.alternative()?);
            }
            text.space();
            if !text.0.is_empty() && !text.take(',') {
                return None;
            }
        }
    }
    Some(Advice::Alternatives(alternatives))
}

/// An element of the list, of any protocol.
struct Element<'a> {
    protocol: &'a str,
    authority: String,
    max_age: Duration,
    persist: bool,
}

impl Element<'_> {
    fn alternative(self) -> Option<Alternative> {
        let (host, port) = self.authority.rsplit_once(':')?;
        Some(Alternative {
            host: (!host.is_empty()).then(|| host.to_owned()),
            port: port.parse().ok().filter(|port| *port != 0)?,
            max_age: self.max_age,
            persist: self.persist,
        })
    }
}

/// Text that is left to read.
struct Text<'a>(&'a str);

impl<'a> Text<'a> {
    /// Reads an element of the list.
    fn element(&mut self) -> Option<Element<'a>> {
        let protocol = self.token()?;
        if !self.take('=') {
            return None;
        }
        let authority = self.quoted()?;
        let (mut max_age, mut persist) = (DEFAULT_AGE, false);
        loop {
            self.space();
            if !self.take(';') {
                break;
            }
            self.space();
            let name = self.token()?;
            if !self.take('=') {
                return None;
            }
            let value = if self.0.starts_with('"') {
                self.quoted()?
            } else {
                self.token()?.to_owned()
            };
            match name {
                "ma" => max_age = Duration::from_secs(value.parse().ok()?),
                "persist" => persist = value == "1",
                // Unknown parameters are ignored (RFC 7838 §3.1).
                _ => {}
            }
        }
        Some(Element {
            protocol,
            authority,
            max_age,
            persist,
        })
    }

    fn space(&mut self) {
        self.0 = self.0.trim_start_matches([' ', '\t']);
    }

    fn take(&mut self, wanted: char) -> bool {
        let rest = self.0.strip_prefix(wanted);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    /// Reads a token (RFC 9110 §5.6.2).
    fn token(&mut self) -> Option<&'a str> {
        let is_token =
            |char: char| char.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(char);
        let end = self.0.find(|char| !is_token(char)).unwrap_or(self.0.len());
        let (token, rest) = self.0.split_at_checked(end)?;
        self.0 = rest;
        (!token.is_empty()).then_some(token)
    }

    /// Reads a quoted string (RFC 9110 §5.6.4).
    fn quoted(&mut self) -> Option<String> {
        if !self.take('"') {
            return None;
        }
        let mut text = String::new();
        let mut chars = self.0.char_indices();
        while let Some((at, char)) = chars.next() {
            match char {
                '"' => {
                    self.0 = self.0.get(at + 1..)?;
                    return Some(text);
                }
                '\\' => text.push(chars.next()?.1),
                _ => text.push(char),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: &str) -> Option<Advice> {
        parse(std::iter::once(value.as_bytes()))
    }

    fn alternative(host: &str, port: u16, seconds: u64) -> Alternative {
        Alternative {
            host: (!host.is_empty()).then(|| host.to_owned()),
            port,
            max_age: Duration::from_secs(seconds),
            persist: false,
        }
    }

    #[test]
    fn fields_are_read_as_rfc_7838_says() {
        let day = 86_400;
        let persistent = Alternative {
            persist: true,
            ..alternative("", 443, 60)
        };
        let of = |list: &[Alternative]| Some(Advice::Alternatives(list.to_vec()));
        for (value, expected) in [
            ("clear", Some(Advice::Clear)),
            (" clear ", Some(Advice::Clear)),
            ("h3=\":443\"", of(&[alternative("", 443, day)])),
            ("h3=\":443\"; ma=60", of(&[alternative("", 443, 60)])),
            ("h3=\":443\";ma=60;persist=1", of(&[persistent])),
            ("h3=\":443\";persist=2", of(&[alternative("", 443, day)])),
            (
                "h3=\"alt.example:8443\"; ma=\"5\"; x=y",
                of(&[alternative("alt.example", 8443, 5)]),
            ),
            ("h3=\"[::1]:5\"", of(&[alternative("[::1]", 5, day)])),
            (
                "h2=\":1\", h3-29=\":2\"; ma=1, ,h3=\":3\"\t, h3=\"a:4\"",
                of(&[alternative("", 3, day), alternative("a", 4, day)]),
            ),
            ("h3=\"a\\b:4\"", of(&[alternative("ab", 4, day)])),
            ("h2=\":443\"", of(&[])),
            ("", of(&[])),
            // Malformed.
            ("Clear", None),
            ("h3", None),
            ("h3=:443", None),
            ("h3=\":443", None),
            ("h3=\":443\\", None),
            ("h3=\"443\"", None),
            ("h3=\":0\"", None),
            ("h3=\":65536\"", None),
            ("h3=\":443\" h3=\":444\"", None),
            ("h3=\":443\"; ma=x", None),
            ("h3=\":443\"; ma=-1", None),
            ("h3=\":443\"; ma", None),
            ("h3=\":443\"; =5", None),
        ] {
            assert_eq!(read(value), expected, "{value}");
        }
        assert_eq!(parse(std::iter::once(&b"h3=\"\xff:1\""[..])), None);
    }

    #[test]
    fn many_alternatives_are_bounded() {
        let many = "h3=\":443\",".repeat(1000);
        let Some(Advice::Alternatives(kept)) = read(&many) else {
            panic!("they are well formed");
        };
        assert_eq!(kept.len(), MOST);
    }
}

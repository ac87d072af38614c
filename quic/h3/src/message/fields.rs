//! Field sections that arrive (RFC 9114 §4.2 and §4.3).

use bytes::{Bytes, BytesMut};
use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{CONNECTION, COOKIE, HOST, TE, TRANSFER_ENCODING, UPGRADE},
};

use super::MOST_FIELDS;
use crate::{error::Violation, qpack::Field};

/// Pseudo-header fields, in the order of their values in a [`Section`].
pub(super) type Pseudo = &'static [&'static [u8]];

/// Pseudo-header fields of the message that has most: those of requests.
const MOST_PSEUDO: usize = 5;

/// A section while its fields arrive.
#[derive(Debug)]
pub struct Section {
    /// The pseudo-header fields that it may have.
    allowed: Pseudo,
    pub(super) pseudo: [Option<Bytes>; MOST_PSEUDO],
    pub(super) fields: HeaderMap,
    /// The values of several cookie fields, which are one for others than HTTP (RFC 9114 §4.2.1).
    cookies: Option<BytesMut>,
    /// True if one of them must not be indexed, which holds for the whole then.
    has_secret_cookie: bool,
    count: usize,
    /// The first rule that is broken. The rest is decoded even so, for the sake of later sections.
    broken: Option<Violation>,
}

impl Section {
    /// Makes a section that may have these pseudo-header fields.
    pub(crate) fn new(allowed: Pseudo) -> Self {
        Self {
            allowed,
            pseudo: Default::default(),
            fields: HeaderMap::new(),
            cookies: None,
            has_secret_cookie: false,
            count: 0,
            broken: None,
        }
    }

    /// Takes the next field.
    pub(crate) fn take(&mut self, field: Field) {
        self.count += 1;
        if self.broken.is_some() {
            return;
        }
        let taken = if self.count > MOST_FIELDS {
            Err(Violation::SectionTooLarge)
        } else if field.name.first() == Some(&b':') {
            self.take_pseudo(field)
        } else {
            self.take_ordinary(field)
        };
        self.broken = taken.err();
    }

    fn take_pseudo(&mut self, field: Field) -> Result<(), Violation> {
        if self.allowed.is_empty() {
            return Err(Violation::PseudoFieldInTrailers);
        }
        let index = self.allowed.iter().position(|name| *name == field.name);
        let place = index.and_then(|index| self.pseudo.get_mut(index));
        let place = place.ok_or(Violation::PseudoFieldUnknown)?;
        if place.is_some() {
            return Err(Violation::PseudoFieldTwice);
        }
        if !self.fields.is_empty() || self.cookies.is_some() {
            return Err(Violation::PseudoFieldLate);
        }
        *place = Some(field.value);
        Ok(())
    }

    fn take_ordinary(&mut self, field: Field) -> Result<(), Violation> {
        let name = name(&field.name)?;
        let mut value =
            HeaderValue::from_maybe_shared(field.value).map_err(|_| Violation::FieldValue)?;
        value.set_sensitive(field.never_indexed);
        match name {
            TE if !is_trailers(&value) => return Err(Violation::Te),
            HOST if self.fields.contains_key(HOST) && self.is_request() => {
                return Err(Violation::HostTwice);
            }
            COOKIE => {
                self.take_cookie(value);
                return Ok(());
            }
            ref name if is_of_connection(name) => return Err(Violation::FieldOfConnection),
            _ => {}
        }
        self.fields.append(name, value);
        Ok(())
    }

    fn is_request(&self) -> bool {
        self.allowed.len() > 1
    }

    /// Joins cookies with "; " (RFC 9114 §4.2.1).
    fn take_cookie(&mut self, value: HeaderValue) {
        self.has_secret_cookie |= value.is_sensitive();
        if let Some(cookies) = &mut self.cookies {
            cookies.extend_from_slice(b"; ");
            cookies.extend_from_slice(value.as_bytes());
        } else if let Some(first) = self.fields.remove(COOKIE) {
            let mut cookies = BytesMut::with_capacity(first.len() + 2 + value.len());
            for part in [first.as_bytes(), b"; ", value.as_bytes()] {
                cookies.extend_from_slice(part);
            }
            self.cookies = Some(cookies);
        } else {
            self.fields.insert(COOKIE, value);
        }
    }

    /// Ends the section, with the cookies in one field.
    ///
    /// # Errors
    /// The section breaks a rule.
    pub(crate) fn end(&mut self) -> Result<(), Violation> {
        if let Some(broken) = self.broken {
            return Err(broken);
        }
        if let Some(cookies) = self.cookies.take() {
            let cookies = HeaderValue::from_maybe_shared(cookies.freeze());
            let mut cookies = cookies.map_err(|_| Violation::FieldValue)?;
            cookies.set_sensitive(self.has_secret_cookie);
            self.fields.insert(COOKIE, cookies);
        }
        Ok(())
    }

    /// Returns the fields of trailers.
    pub(crate) fn into_trailers(self) -> HeaderMap {
        self.fields
    }

    /// Takes a pseudo-header field.
    pub(super) fn pseudo(&mut self, index: usize) -> Option<Bytes> {
        self.pseudo.get_mut(index).and_then(Option::take)
    }
}

/// Returns a name, which has no capitals (RFC 9114 §4.2).
fn name(name: &Bytes) -> Result<HeaderName, Violation> {
    HeaderName::from_lowercase(name).map_err(|_| Violation::FieldName)
}

/// Returns true for the fields of connections, which HTTP/3 does not have (RFC 9114 §4.2).
pub(super) fn is_of_connection(name: &HeaderName) -> bool {
    let is_standard = matches!(*name, CONNECTION | TRANSFER_ENCODING | UPGRADE);
    is_standard || matches!(name.as_str(), "keep-alive" | "proxy-connection")
}

/// Returns true for the only value that a field `te` may have.
pub(super) fn is_trailers(value: &HeaderValue) -> bool {
    value.as_bytes().eq_ignore_ascii_case(b"trailers")
}

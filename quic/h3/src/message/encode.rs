//! Field sections that are sent.

use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode,
    header::{AUTHORIZATION, CONNECTION, COOKIE, HOST, TE},
    uri::{PathAndQuery, Scheme},
};

use smallvec::SmallVec;

use super::{
    fields::{is_of_connection, is_trailers},
    head::Protocol,
};
use crate::qpack::FieldRef;

/// Cookies of fewer bytes can be guessed by somebody who sees what compression makes of them (RFC 7541 §7.1.3).
const SHORT_COOKIE: usize = 20;

/// Overhead of a field in the size of a section (RFC 9114 §4.2.2).
const OVERHEAD: u64 = 32;

/// Fields that need no memory of their own, at most.
const FEW: usize = 24;

/// The fields of a section to encode, in their order.
#[derive(Clone, Debug)]
pub(crate) struct Fields<'a>(SmallVec<[FieldRef<'a>; FEW]>);

impl<'a> Fields<'a> {
    /// Makes an empty list, to be filled once. It is large: filled where it is, it need not be moved.
    pub(crate) fn new() -> Self {
        Self(SmallVec::new())
    }

    /// Adds the fields of a request.
    pub(crate) fn request<T>(&mut self, request: &'a Request<T>) {
        let uri = request.uri();
        let method = request.method();
        let protocol = request.extensions().get::<Protocol>();
        let is_plain_connect = method == Method::CONNECT && protocol.is_none();
        let scheme = uri.scheme().map_or("https", Scheme::as_str);
        let path = uri.path_and_query().map_or("/", PathAndQuery::as_str);
        let path = match path {
            "" | "/" if method == Method::OPTIONS && uri.path() == "*" => "*",
            "" => "/",
            path => path,
        };
        let authority = uri.authority().map(|authority| {
            // RFC 9114 §4.3.1: no userinfo.
            let text = authority.as_str();
            text.rsplit_once('@').map_or(text, |(_, rest)| rest)
        });
        let target = |name, value: &'a str| {
            (!is_plain_connect).then(|| FieldRef::new(name, value.as_bytes()))
        };
        let pseudo = [
            Some(FieldRef::new(b":method", method.as_str().as_bytes())),
            target(b":scheme", scheme),
            authority.map(|authority| FieldRef::new(b":authority", authority.as_bytes())),
            target(b":path", path),
            protocol.map(|protocol| FieldRef::new(b":protocol", protocol.as_str().as_bytes())),
        ];
        self.0.extend(pseudo.into_iter().flatten());
        // The target says the host.
        self.extend(
            request
                .headers()
                .iter()
                .filter(|(name, value)| match **name {
                    HOST => authority.is_none(),
                    TE => is_trailers(value),
                    _ => true,
                }),
        );
    }

    /// Adds the fields of a response, with some that are not in its map.
    pub(crate) fn response<'f: 'a>(
        &mut self,
        status: &'a StatusCode,
        fields: &'a HeaderMap,
        extra: impl IntoIterator<Item = FieldRef<'f>>,
    ) {
        self.0
            .push(FieldRef::new(b":status", status.as_str().as_bytes()));
        for field in extra {
            self.0.push(field);
        }
        self.extend(without_te(fields));
    }

    /// Adds the fields of trailers.
    pub(crate) fn trailers(&mut self, fields: &'a HeaderMap) {
        self.extend(without_te(fields));
    }

    /// Adds ordinary fields, but for those of connections (RFC 9114 §4.2) and those that `connection` names as such
    /// (RFC 9110 §7.6.1).
    fn extend(&mut self, fields: impl Iterator<Item = (&'a HeaderName, &'a HeaderValue)>) {
        let mut named = Vec::new();
        let is_allowed = |(name, value): &(&HeaderName, &'a HeaderValue)| {
            if **name == CONNECTION {
                named.push(value.as_bytes());
            }
            !is_of_connection(name)
        };
        let allowed = fields.filter(is_allowed);
        self.0.extend(allowed.map(|(name, value)| FieldRef {
            name: name.as_str().as_bytes(),
            value: value.as_bytes(),
            sensitive: is_sensitive(name, value),
        }));
        if !named.is_empty() {
            let named: Vec<_> = named
                .iter()
                .flat_map(|names| names.split(|byte| *byte == b','))
                .map(<[u8]>::trim_ascii)
                .collect();
            let is_named = |field: &FieldRef<'_>| {
                let mut named = named.iter();
                named.any(|name| name.eq_ignore_ascii_case(field.name))
            };
            self.0
                .retain(|field| field.name.starts_with(b":") || !is_named(field));
        }
    }

    /// Returns the fields in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = FieldRef<'a>> + Clone {
        self.0.iter().copied()
    }

    /// Returns the size of the section, in bytes (RFC 9114 §4.2.2).
    pub(crate) fn size(&self) -> u64 {
        let sizes = self.0.iter();
        let sizes = sizes.map(|field| (field.name.len() + field.value.len()) as u64 + OVERHEAD);
        sizes.sum()
    }
}

/// Returns the fields other than `te`, which requests alone may have (RFC 9114 §4.2).
fn without_te(fields: &HeaderMap) -> impl Iterator<Item = (&HeaderName, &HeaderValue)> {
    fields.iter().filter(|(name, _)| **name != TE)
}

/// Returns true for what no table may have (RFC 9204 §7.1.3).
fn is_sensitive(name: &HeaderName, value: &HeaderValue) -> bool {
    value.is_sensitive()
        || *name == AUTHORIZATION
        || (*name == COOKIE && value.len() < SHORT_COOKIE)
}

//! Heads of requests (RFC 9114 §4.3.1 and §4.4, RFC 9220) and of responses (RFC 9114 §4.3.2).

use std::fmt;

use bytes::Bytes;
use http::{
    Method, Request, Response, StatusCode, Uri, Version,
    header::HOST,
    uri::{Authority, PathAndQuery, Scheme},
};

use super::{
    Content, Section,
    fields::Pseudo,
    length::content_length,
    sealed::{self},
};
use crate::{error::Violation, qpack::LONG_AUTHORITY};

/// Places in [`Request::PSEUDO`](sealed::Sealed::PSEUDO).
const METHOD: usize = 0;
const SCHEME: usize = 1;
const AUTHORITY: usize = 2;
const PATH: usize = 3;
const PROTOCOL: usize = 4;

/// The protocol of a request of extended CONNECT (RFC 9220 §3), among the request's extensions.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Protocol(Bytes);

impl Protocol {
    /// Creates a protocol from its token, such as `websocket`.
    pub const fn from_static(token: &'static str) -> Self {
        Self(Bytes::from_static(token.as_bytes()))
    }

    /// Returns the token.
    pub fn as_str(&self) -> &str {
        // The constructors take nothing else.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Debug for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl sealed::Sealed for Request<()> {
    const PSEUDO: Pseudo = &[
        b":method",
        b":scheme",
        b":authority",
        b":path",
        b":protocol",
    ];
    const INCOMPLETE: Violation = Violation::RequestIncomplete;

    fn of(mut section: Section, last: &mut Option<Authority>) -> Result<Self, Violation> {
        let method = section
            .pseudo(METHOD)
            .ok_or(Violation::PseudoFieldMissing)?;
        let method = Method::from_bytes(&method).map_err(|_| Violation::MethodInvalid)?;
        let protocol = section.pseudo(PROTOCOL);
        if protocol.is_some() && method != Method::CONNECT {
            return Err(Violation::PseudoFieldOfConnect);
        }
        let uri = if method == Method::CONNECT && protocol.is_none() {
            of_connect(&mut section, last)?
        } else {
            target(&mut section, &method, last)?
        };
        let mut request = Request::new(());
        if let Some(protocol) = protocol {
            let is_text = !protocol.is_empty() && protocol.iter().all(u8::is_ascii_graphic);
            let protocol = is_text.then_some(Protocol(protocol));
            let protocol = protocol.ok_or(Violation::FieldValue)?;
            request.extensions_mut().insert(protocol);
        }
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        *request.version_mut() = Version::HTTP_3;
        *request.headers_mut() = section.fields;
        Ok(request)
    }

    fn opens_tunnel(&self, _: bool) -> bool {
        self.method() == Method::CONNECT
    }

    fn is_interim(&self) -> bool {
        false
    }

    fn content(&self) -> Result<Content, Violation> {
        let length = content_length(self.headers())?;
        Ok(length.map_or(Content::Any, Content::Exactly))
    }
}

impl sealed::Sealed for Response<()> {
    const PSEUDO: Pseudo = &[b":status"];
    const INCOMPLETE: Violation = Violation::ResponseIncomplete;

    fn of(mut section: Section, _: &mut Option<Authority>) -> Result<Self, Violation> {
        let status = section.pseudo(0).ok_or(Violation::PseudoFieldMissing)?;
        let status = StatusCode::from_bytes(&status).map_err(|_| Violation::StatusInvalid)?;
        if status == StatusCode::SWITCHING_PROTOCOLS {
            return Err(Violation::SwitchingProtocols);
        }
        let mut response = Response::new(());
        *response.status_mut() = status;
        *response.version_mut() = Version::HTTP_3;
        *response.headers_mut() = section.fields;
        Ok(response)
    }

    fn opens_tunnel(&self, asked_connect: bool) -> bool {
        asked_connect && self.status().is_success()
    }

    fn is_interim(&self) -> bool {
        self.status().is_informational()
    }

    fn content(&self) -> Result<Content, Violation> {
        let length = content_length(self.headers())?;
        Ok(match self.status() {
            StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED => Content::Nothing,
            _ => length.map_or(Content::Any, Content::Exactly),
        })
    }
}

/// Returns the target of an ordinary CONNECT, which has no scheme and no path.
fn of_connect(section: &mut Section, last: &mut Option<Authority>) -> Result<Uri, Violation> {
    if section.pseudo(SCHEME).is_some() || section.pseudo(PATH).is_some() {
        return Err(Violation::PseudoFieldOfConnect);
    }
    let authority = section.pseudo(AUTHORITY);
    let authority = authority.ok_or(Violation::PseudoFieldMissing)?;
    let authority = check_authority(section, authority, last)?;
    if authority.port().is_none() {
        return Err(Violation::AuthorityInvalid);
    }
    let mut parts = http::uri::Parts::default();
    parts.authority = Some(authority);
    Uri::from_parts(parts).map_err(|_| Violation::AuthorityInvalid)
}

/// Returns the target of any other request.
fn target(
    section: &mut Section,
    method: &Method,
    last: &mut Option<Authority>,
) -> Result<Uri, Violation> {
    let scheme = section
        .pseudo(SCHEME)
        .ok_or(Violation::PseudoFieldMissing)?;
    let scheme = match &scheme[..] {
        // Schemes have no case (RFC 3986 §3.1).
        scheme if scheme.eq_ignore_ascii_case(b"https") => Scheme::HTTPS,
        scheme if scheme.eq_ignore_ascii_case(b"http") => Scheme::HTTP,
        // The crate `http` takes none, and any first character.
        [b'a'..=b'z' | b'A'..=b'Z', ..] => {
            Scheme::try_from(&scheme[..]).map_err(|_| Violation::SchemeInvalid)?
        }
        _ => return Err(Violation::SchemeInvalid),
    };
    let path = section.pseudo(PATH).ok_or(Violation::PseudoFieldMissing)?;
    let is_path = path.starts_with(b"/") || (&path[..] == b"*" && method == Method::OPTIONS);
    let is_of_http = scheme == Scheme::HTTPS || scheme == Scheme::HTTP;
    // The crate `http` takes a fragment, and leaves it out.
    if (is_of_http && !is_path) || path.contains(&b'#') {
        return Err(Violation::PathInvalid);
    }
    let path = if path.is_empty() {
        // Other schemes may have none; an URI with an authority needs one.
        PathAndQuery::from_static("/")
    } else {
        PathAndQuery::from_maybe_shared(path).map_err(|_| Violation::PathInvalid)?
    };
    let authority = match (section.pseudo(AUTHORITY), section.fields.get(HOST)) {
        (Some(authority), _) => Some(authority),
        (None, Some(host)) => Some(Bytes::copy_from_slice(host.as_bytes())),
        (None, None) if is_of_http => return Err(Violation::AuthorityMissing),
        (None, None) => None,
    };
    let mut parts = http::uri::Parts::default();
    parts.authority = authority
        .map(|authority| check_authority(section, authority, last))
        .transpose()?;
    // An URI of the crate `http` has both or neither.
    parts.scheme = parts.authority.is_some().then_some(scheme);
    parts.path_and_query = Some(path);
    Uri::from_parts(parts).map_err(|_| Violation::PathInvalid)
}

/// Returns an authority that names nobody, and that is the same as the field `host` (RFC 9114 §4.3.1).
fn check_authority(
    section: &Section,
    authority: Bytes,
    last: &mut Option<Authority>,
) -> Result<Authority, Violation> {
    let is_known = |last: &&Authority| last.as_str().as_bytes() == authority;
    let known = last.as_ref().filter(is_known);
    if known.is_none() && authority.contains(&b'@') {
        return Err(Violation::Userinfo);
    }
    let host = section.fields.get(HOST);
    if host.is_some_and(|host| !host.as_bytes().eq_ignore_ascii_case(&authority)) {
        return Err(Violation::HostDiffers);
    }
    if let Some(known) = known {
        return Ok(known.clone());
    }
    let checked = Authority::from_maybe_shared(authority);
    let checked = checked.map_err(|_| Violation::AuthorityInvalid)?;
    if checked.as_str().len() <= LONG_AUTHORITY {
        *last = Some(checked.clone());
    }
    Ok(checked)
}

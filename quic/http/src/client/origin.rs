//! The servers that requests go to.

use std::{fmt, sync::Arc};

use http::{
    Uri,
    header::HOST,
    request::Parts,
    uri::{Authority, Scheme},
};

use super::error::ClientError;

/// The port of https (RFC 9110 §4.2.2).
const PORT: u16 = 443;

/// Host and port of a server. The scheme is always https.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Origin {
    /// DNS name in lower case, or IP address without brackets.
    host: Arc<str>,
    port: u16,
}

impl Origin {
    pub(super) fn new(host: &str, port: u16) -> Self {
        let host = host.strip_prefix('[').unwrap_or(host);
        let host = host.strip_suffix(']').unwrap_or(host);
        Self {
            host: host.to_ascii_lowercase().into(),
            port,
        }
    }

    /// Returns the server of a URI.
    ///
    /// # Errors
    /// The scheme is not https, there is no host, or there is user information (RFC 9110 §4.2.4).
    pub(super) fn of(uri: &Uri) -> Result<Self, ClientError> {
        let authority = uri.authority().filter(|authority| {
            uri.scheme() == Some(&Scheme::HTTPS) && !authority.as_str().contains('@')
        });
        let origin = authority.and_then(|authority| Self::at(authority, PORT));
        origin.ok_or_else(|| ClientError::Uri(without_user(uri)))
    }

    /// Returns the place that an authority without user information names, whose port may be left out, or empty
    /// (RFC 3986 §3.2.3).
    pub(super) fn at(authority: &Authority, port: u16) -> Option<Self> {
        let host = authority.host();
        let port = match authority.as_str().strip_prefix(host)? {
            "" | ":" => port,
            _ => authority.port_u16()?,
        };
        (!host.is_empty()).then(|| Self::new(host, port))
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }
}

/// Returns a URI without its user information, which may be a password.
fn without_user(uri: &Uri) -> Uri {
    let mut parts = uri.clone().into_parts();
    let host = parts.authority.as_ref().map(Authority::as_str);
    let host = host.and_then(|host| Some(host.rsplit_once('@')?.1.to_owned()));
    if let Some(host) = host {
        parts.authority = host.parse().ok();
        // A URI has all of scheme, authority and path, or only the path.
        parts.scheme = parts.scheme.filter(|_| parts.authority.is_some());
    }
    Uri::from_parts(parts).unwrap_or_default()
}

/// Names the host of the caller's `host` field in the URI of a request, whose server has been chosen, and removes the
/// field (RFC 9110 §7.2): `:authority` over HTTP/2 and HTTP/3 and `host` over HTTP/1.1 come from the URI.
///
/// # Errors
/// The field does not name one host.
pub(super) fn name_host(request: &mut Parts) -> Result<(), ClientError> {
    let mut hosts = request.headers.get_all(HOST).iter();
    let Some(host) = hosts.next() else {
        return Ok(());
    };
    let host = Authority::try_from(host.as_bytes());
    let host = host.ok().filter(|host| {
        let is_alone = hosts.next().is_none();
        is_alone && !host.host().is_empty() && !host.as_str().contains('@')
    });
    let mut uri = request.uri.clone().into_parts();
    uri.authority = Some(host.ok_or(ClientError::Host)?);
    request.uri = Uri::from_parts(uri).map_err(|_| ClientError::Host)?;
    request.headers.remove(HOST);
    Ok(())
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_host_and_port() {
        for (uri, expected) in [
            ("https://Example.com/x", Some("example.com:443")),
            ("https://example.com:8443", Some("example.com:8443")),
            ("https://[::1]:4433/", Some("[::1]:4433")),
            ("https://192.0.2.1", Some("192.0.2.1:443")),
            ("http://example.com/", None),
            ("https://user@example.com/", None),
            ("https://example.com:/", Some("example.com:443")),
            ("https://1:1/", Some("1:1")),
            ("https://example.com:99999/", None),
            ("https://[::1]:99999/", None),
            ("/path", None),
        ] {
            let origin = Origin::of(&uri.parse().expect("a URI"));
            let shown = origin.ok().map(|origin| origin.to_string());
            assert_eq!(shown.as_deref(), expected, "{uri}");
        }
    }

    #[test]
    fn a_password_is_in_no_error() {
        let uri = "https://user:secret@example.com/path"
            .parse()
            .expect("a URI");
        let error = Origin::of(&uri).expect_err("user information");
        for shown in [error.to_string(), format!("{error:?}")] {
            assert!(shown.contains("https://example.com/path"), "{shown}");
            assert!(
                !shown.contains("secret") && !shown.contains("user:"),
                "{shown}"
            );
        }
    }
}

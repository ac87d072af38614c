//! What a server tells clients about HTTP/3.

use std::time::Duration;

use http::{HeaderValue, uri::Authority};

use super::sockets::BindError;

/// Default of [`ServerBuilder::alt_svc_age`](super::ServerBuilder::alt_svc_age).
const AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// Where clients are told to find HTTP/3, by the field `Alt-Svc` of responses over TCP (RFC 7838).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AltSvc {
    /// On the same host, and the port that the server is bound to for UDP.
    #[default]
    Local,
    /// On the same host, and this port: the outer one, if packets are redirected, such as from 443 to 8443.
    Port(u16),
    /// On another host. It must have a certificate for the name that the client asked for (RFC 7838 §2.1).
    Host {
        /// Its name, or its address; that of IPv6 in brackets.
        host: String,
        /// Its port for UDP.
        port: u16,
    },
    /// Nowhere: the field is not sent.
    Off,
}

impl AltSvc {
    /// Checks that the field can be written.
    pub(super) fn check(&self) -> Result<(), BindError> {
        match self {
            Self::Port(0) | Self::Host { port: 0, .. } => Err(BindError::AltSvcPort),
            Self::Host { host, port } => {
                let authority = format!("{host}:{port}").parse::<Authority>().ok();
                let is_host = authority.is_some_and(|it| it.host() == host);
                let is_plain = !host.is_empty() && !host.contains(['"', '\\', '@']);
                if is_host && is_plain {
                    Ok(())
                } else {
                    Err(BindError::AltSvcHost(host.clone()))
                }
            }
            Self::Local | Self::Port(_) | Self::Off => Ok(()),
        }
    }

    /// Returns the field for a server on this port.
    pub(super) fn field(&self, local: u16, age: Option<Duration>) -> Option<HeaderValue> {
        let age = age.unwrap_or(AGE).as_secs();
        let (host, port) = match self {
            Self::Off => return None,
            Self::Local => ("", local),
            Self::Port(port) => ("", *port),
            Self::Host { host, port } => (host.as_str(), *port),
        };
        let value = format!("h3=\"{host}:{port}\"; ma={age}");
        HeaderValue::try_from(value).ok().filter(|_| age > 0)
    }
}

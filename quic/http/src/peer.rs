//! Facts about the connection of a request.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use http::Version;
use hybriq::{
    Group,
    tls::{CertificateDer, Lineage, Side, Suite},
};
use tokio_rustls::rustls;

/// The connection that carried a message: an extension of every request that a [`Server`](crate::Server) passes to
/// its service, and of every response of a [`Client`](crate::Client).
///
/// # Examples
/// ```
/// use hybriq_http::{Body, Peer};
///
/// fn log(request: &http::Request<Body>) {
///     if let Some(peer) = request.extensions().get::<Peer>() {
///         println!("{} {} {}", peer.address, request.uri(), peer.tls);
///     }
/// }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Peer {
    /// Address of the peer at the time of the request: a QUIC client may have moved since it connected.
    pub address: SocketAddr,
    /// Local address.
    pub local_address: SocketAddr,
    /// Version of HTTP.
    pub version: Version,
    /// Outcome of the TLS handshake.
    pub tls: Arc<Tls>,
    /// True if the request came in 0-RTT packets, so that it may be a replay (RFC 8470). At a client, true if the
    /// request was sent in 0-RTT packets.
    pub early: bool,
}

/// Outcome of a connection's TLS handshake. Displays as the key exchange group, followed by `resumed` and `retried`
/// where they apply.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tls {
    /// Key exchange group, if it is known.
    pub group: Option<Group>,
    /// True if the server had to ask for another key share first (HelloRetryRequest).
    pub hello_retry: bool,
    /// Key exchange of the full handshake that the session derives from. Over TCP, it is known for full handshakes
    /// only.
    pub lineage: Option<Lineage>,
    /// True if a session ticket replaced the certificate.
    pub resumed: bool,
    /// Cipher suite.
    pub suite: Option<Suite>,
    /// Server name that the client asked for.
    pub server_name: Option<String>,
    /// Application protocol.
    pub alpn: Option<Vec<u8>>,
    /// At a server, the client's certificates, its own first. Empty if the client was not asked for any, or sent
    /// none.
    pub client_certificates: Vec<CertificateDer<'static>>,
    /// At a client, the server's certificates, its own first. Empty if the session was resumed.
    pub server_certificates: Vec<CertificateDer<'static>>,
}

impl Tls {
    /// Returns true if the connection is post-quantum, as [`hybriq::Handshake::is_post_quantum`] defines it: the group of
    /// its own handshake, and that of the handshake in which a resumed session began.
    ///
    /// Over TCP the beginning of a resumed session is unknown, and only the group of this handshake counts. Every
    /// resumption has its own key exchange (RFC 8446 §4.2.9), so its traffic is as secret as that group.
    pub fn is_post_quantum(&self) -> bool {
        let is_classical = self.lineage == Some(Lineage::Classical);
        !is_classical && self.group.is_some_and(Group::is_post_quantum)
    }

    /// Returns the outcome of a QUIC handshake.
    pub(crate) fn of_quic(connection: &hybriq::Connection) -> Self {
        let handshake = connection.handshake();
        let certificates = connection.peer_certificates();
        let (client_certificates, server_certificates) = match connection.side() {
            Side::Server => (certificates, Vec::new()),
            Side::Client => (Vec::new(), certificates),
        };
        Self {
            group: Some(handshake.key_exchange.group),
            hello_retry: handshake.key_exchange.hello_retry,
            lineage: Some(handshake.lineage),
            resumed: handshake.resumed,
            suite: Some(handshake.suite),
            server_name: handshake.server_name.clone(),
            alpn: handshake.alpn.clone(),
            client_certificates,
            server_certificates,
        }
    }

    /// Returns what is known while a QUIC handshake is not complete, for requests in 0-RTT packets.
    pub(crate) fn of_early(
        connection: &hybriq::EarlyConnection,
        server_name: Option<String>,
    ) -> Self {
        Self {
            group: None,
            hello_retry: false,
            lineage: None,
            resumed: true,
            suite: None,
            server_name,
            alpn: connection.alpn(),
            client_certificates: Vec::new(),
            server_certificates: Vec::new(),
        }
    }

    /// Returns the outcome of a client's handshake over TCP, at its server.
    pub(crate) fn of_tcp(tls: &rustls::ServerConnection) -> Self {
        Self {
            server_name: tls.server_name().map(str::to_owned),
            client_certificates: certificates(tls),
            ..Self::over_tcp(tls)
        }
    }

    /// Returns the outcome of the handshake with a server over TCP.
    pub(crate) fn of_server(tls: &rustls::ClientConnection, name: &str) -> Self {
        Self {
            server_name: name.parse::<IpAddr>().is_err().then(|| name.to_owned()),
            server_certificates: certificates(tls),
            ..Self::over_tcp(tls)
        }
    }

    fn over_tcp(tls: &rustls::CommonState) -> Self {
        use rustls::HandshakeKind;

        let group = tls.negotiated_key_exchange_group();
        let group = group.map(|group| Group(group.name().into()));
        let kind = tls.handshake_kind();
        let resumed = kind == Some(HandshakeKind::Resumed);
        let hello_retry = kind == Some(HandshakeKind::FullWithHelloRetryRequest);
        let suite = tls.negotiated_cipher_suite();
        Self {
            group,
            hello_retry,
            lineage: group.filter(|_| !resumed).map(Lineage::of),
            resumed,
            suite: suite.and_then(|suite| Suite::from_iana(suite.suite().into())),
            server_name: None,
            alpn: tls.alpn_protocol().map(<[u8]>::to_vec),
            client_certificates: Vec::new(),
            server_certificates: Vec::new(),
        }
    }
}

fn certificates(tls: &rustls::CommonState) -> Vec<CertificateDer<'static>> {
    let certificates = tls.peer_certificates().unwrap_or_default().iter();
    certificates
        .map(|certificate| certificate.clone().into_owned())
        .collect()
}

/// A record for audits with the names of [`hybriq::Handshake`]'s: those of the IANA registries. Certificates are left
/// out.
#[cfg(feature = "serde")]
impl serde::Serialize for Tls {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct as _;

        let text = |value: &Group| value.to_string();
        let lineage = self.lineage.map(|lineage| match lineage {
            Lineage::Classical => "classical",
            Lineage::PostQuantum => "post_quantum",
        });
        let alpn = self.alpn.as_ref();
        let alpn = alpn.map(|name| name.escape_ascii().to_string());
        let mut record = serializer.serialize_struct("Tls", 8)?;
        record.serialize_field("post_quantum", &self.is_post_quantum())?;
        record.serialize_field("group", &self.group.as_ref().map(text))?;
        record.serialize_field("hello_retry", &self.hello_retry)?;
        record.serialize_field("suite", &self.suite.map(|suite| suite.to_string()))?;
        record.serialize_field("alpn", &alpn)?;
        record.serialize_field("server_name", &self.server_name)?;
        record.serialize_field("resumed", &self.resumed)?;
        record.serialize_field("lineage", &lineage)?;
        record.end()
    }
}

/// Extracts the connection of a request in handlers of axum. Fails with status 500 if the server is not a
/// [`Server`](crate::Server) of this crate.
#[cfg(feature = "axum")]
impl<S: Sync> axum_core::extract::FromRequestParts<S> for Peer {
    type Rejection = (http::StatusCode, &'static str);

    async fn from_request_parts(
        parts: &mut http::request::Parts,
        _: &S,
    ) -> Result<Self, Self::Rejection> {
        let peer = parts.extensions.get::<Self>().cloned();
        let missing = "the request has no Peer: serve it with hybriq_http::Server";
        peer.ok_or((http::StatusCode::INTERNAL_SERVER_ERROR, missing))
    }
}

impl fmt::Display for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.group {
            Some(group) => group.fmt(f)?,
            None => f.write_str("an unfinished handshake")?,
        }
        if self.resumed {
            f.write_str(", resumed")?;
        }
        if self.hello_retry {
            f.write_str(", retried")?;
        }
        Ok(())
    }
}

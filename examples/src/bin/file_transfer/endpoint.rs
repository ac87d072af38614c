//! Endpoints whose ends know each other by their ML-DSA keys.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use hybriq::{
    ClientConfig, Connection, Endpoint, KeyExchange, PostQuantum, ServerConfig, TransportConfig,
    Trust,
    error::{Alert, TlsError},
    tls::{ClientAuth, PeerChain, Verifier},
    transport::Congestion,
};

use crate::{
    error::Error,
    fingerprint::{Fingerprint, NotMlDsa65},
    folder::Own,
    keys::{Keys, KeysError},
};

/// Application protocol, whose number is that of the version.
const ALPN: &str = "hybriq-file-transfer/1";
/// Largest number of streams for pieces at a time.
pub(crate) const MAX_STREAMS: u8 = 32;
/// Code of a connection that is closed because the peer broke the protocol.
pub(crate) const PROTOCOL: u64 = 1;
/// Code of a connection that is closed because the client is not authorized.
pub(crate) const NOT_AUTHORIZED: u64 = 2;
/// Code of a connection that is closed because the server stops.
pub(crate) const STOPPED: u64 = 3;
/// Connections of a server at a time.
const MAX_CONNECTIONS: usize = 64;
/// Time between signs of life, while an end reads files or asks its user.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

fn transport(congestion: Congestion) -> TransportConfig {
    TransportConfig::new()
        .congestion(congestion)
        .keep_alive(KEEP_ALIVE)
        .max_uni_streams(0)
        // And the one for the messages.
        .max_bidi_streams(u64::from(MAX_STREAMS) + 1)
}

/// Makes the endpoint of a server. `gate` decides about clients.
pub(crate) fn server(
    listen: SocketAddr,
    own: &Own,
    gate: &Arc<Gate>,
    congestion: Congestion,
) -> Result<Endpoint, Error> {
    let gate = Arc::clone(gate);
    let trust = Trust::verifier(move |peer: &PeerChain<'_>| gate.verify(peer));
    let config = ServerConfig::new(own.identity.clone())
        .alpn([ALPN])
        .key_exchange(KeyExchange::RequirePostQuantum)
        .client_auth(ClientAuth::Required(trust))
        // Every connection shows its certificate, so that a key that was removed is refused.
        .without_tickets()
        .transport(transport(congestion));
    config.check()?;
    let endpoint = Endpoint::builder()
        .server(config)
        .max_connections(MAX_CONNECTIONS);
    Ok(endpoint.bind(listen)?)
}

/// Makes the endpoint of a client that is to meet a server with a certain key, or with any.
pub(crate) fn client(own: &Own, pin: &Arc<Pin>, congestion: Congestion) -> Result<Endpoint, Error> {
    let pin = Arc::clone(pin);
    let trust = Trust::verifier(move |peer: &PeerChain<'_>| pin.verify(peer));
    let config = ClientConfig::new()
        .alpn([ALPN])
        .key_exchange(KeyExchange::RequirePostQuantum)
        .trust(trust)
        .identity(own.identity.clone())
        .without_resumption()
        .transport(transport(congestion));
    config.check()?;
    Ok(Endpoint::client(config)?)
}

/// Returns the key of the peer, who has proven in the handshake that it is its own.
pub(crate) fn peer_key(connection: &PostQuantum<Connection>) -> Result<Fingerprint, NotMlDsa65> {
    let certificates = connection.peer_certificates();
    certificates
        .first()
        .map_or(Err(NotMlDsa65), Fingerprint::of)
}

fn key_of(peer: &PeerChain<'_>) -> Result<Fingerprint, TlsError> {
    let key = peer
        .certificates
        .first()
        .map_or(Err(NotMlDsa65), Fingerprint::of);
    key.map_err(|error| TlsError::told(Alert::UNSUPPORTED_CERTIFICATE, error.to_string()))
}

/// The key that a client expects of its server.
///
/// The TLS library checks the signature of the handshake after this: whoever copies a certificate does not get
/// past it.
#[derive(Debug)]
pub(crate) struct Pin {
    expected: Option<Fingerprint>,
    other: OnceLock<Fingerprint>,
}

impl Pin {
    pub(crate) fn new(expected: Option<Fingerprint>) -> Arc<Self> {
        Arc::new(Self {
            expected,
            other: OnceLock::new(),
        })
    }

    /// Returns the key that was shown in place of the expected one.
    pub(crate) fn other(&self) -> Option<Fingerprint> {
        self.other.get().copied()
    }
}

impl Verifier for Pin {
    fn verify(&self, peer: &PeerChain<'_>) -> Result<(), TlsError> {
        let shown = key_of(peer)?;
        match self.expected {
            Some(expected) if expected != shown => {
                self.other.get_or_init(|| shown);
                let why = "the server has another key than before; see known_hosts";
                Err(TlsError::new(Alert::BAD_CERTIFICATE, why))
            }
            _ => Ok(()),
        }
    }
}

/// Decision about which clients may use a server.
#[derive(Debug)]
pub(crate) struct Gate {
    authorized: Keys,
    first: First,
    /// Held while the list is read and extended.
    entering: Mutex<()>,
}

/// What becomes of the first client, while the list is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum First {
    Accept,
    Refuse,
}

impl Gate {
    pub(crate) fn new(authorized: Keys, first: First) -> Arc<Self> {
        Arc::new(Self {
            authorized,
            first,
            entering: Mutex::new(()),
        })
    }

    fn lets_in(&self, key: Fingerprint) -> Result<bool, KeysError> {
        let known = self.authorized.all()?;
        let is_first = self.first == First::Accept && known.is_empty();
        Ok(is_first || known.iter().any(|known| known.key == key))
    }

    /// Lets a client in that has proven its key, or does not. Only here the first client is added to the
    /// list: before the signature of the handshake is checked, anybody could show its certificate.
    pub(crate) fn enter(&self, key: Fingerprint) -> Result<Option<String>, KeysError> {
        let _entering = self.entering.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = self.authorized.with_key(key)? {
            return Ok(Some(known.name));
        }
        if !self.lets_in(key)? {
            return Ok(None);
        }
        self.authorized.add("first", key)?;
        Ok(Some("first".to_owned()))
    }
}

impl Verifier for Gate {
    fn verify(&self, peer: &PeerChain<'_>) -> Result<(), TlsError> {
        let key = key_of(peer)?;
        match self.lets_in(key) {
            Ok(true) => Ok(()),
            Ok(false) => {
                let why =
                    format!("unknown client {key}; to let it in: file_transfer authorize {key}");
                Err(TlsError::told(Alert::ACCESS_DENIED, why))
            }
            Err(error) => Err(TlsError::new(Alert::INTERNAL_ERROR, error.to_string())),
        }
    }
}

//! Certificates and connected pairs over loopback.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "every test file uses a part of it; a failure here is a failed test"
)]

use std::{sync::OnceLock, time::Duration};

use hybriq::tls::{CertificateDer, PrivateKeyDer};
use hybriq::{ClientConfig, Connection, Endpoint, Identity, ServerConfig, Trust};

/// A self-signed certificate for `localhost` and its key, made once per process.
pub fn certificate() -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
    static CERTIFICATE: OnceLock<(Vec<u8>, Vec<u8>)> = OnceLock::new();
    let (chain, key) = CERTIFICATE.get_or_init(|| {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        (made.cert.der().to_vec(), made.signing_key.serialize_der())
    });
    let key = PrivateKeyDer::try_from(key.clone()).unwrap();
    (chain.clone().into(), key)
}

pub fn server() -> Endpoint {
    server_with(|config| config)
}

pub fn server_with(change: impl FnOnce(ServerConfig) -> ServerConfig) -> Endpoint {
    let (chain, key) = certificate();
    let identity = Identity::from_der(vec![chain], key);
    let config = ServerConfig::new(identity).alpn([hybriq_h3::ALPN]);
    Endpoint::server("127.0.0.1:0", change(config)).unwrap()
}

pub fn client() -> Endpoint {
    client_with(|config| config)
}

pub fn client_with(change: impl FnOnce(ClientConfig) -> ClientConfig) -> Endpoint {
    let trust = Trust::roots_der([certificate().0]);
    let config = ClientConfig::new().alpn([hybriq_h3::ALPN]).trust(trust);
    Endpoint::client(change(config)).unwrap()
}

/// Both ends of a connection, and their endpoints.
pub struct Pair {
    pub server: Connection,
    pub client: Connection,
    pub endpoints: (Endpoint, Endpoint),
}

impl Pair {
    pub async fn new() -> Self {
        let (server, client) = (server(), client());
        let accept = async { server.accept().await.unwrap().accept().await };
        let connect = client.connect(server.local_address(), "localhost");
        let (accepted, connected) = soon(async { tokio::join!(accept, connect) }).await;
        Self {
            server: accepted.unwrap(),
            client: connected.unwrap(),
            endpoints: (server, client),
        }
    }
}

/// Waits for a future that is ready within seconds unless something is broken.
pub async fn soon<F: Future>(future: F) -> F::Output {
    let limit = Duration::from_secs(30);
    tokio::time::timeout(limit, future).await.expect("hangs")
}

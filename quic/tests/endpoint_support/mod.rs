//! Certificates, endpoints and connected pairs for tests over loopback.
#![allow(dead_code, reason = "every test file uses a part of it")]

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};

use hybriq::{
    Backend, ClientConfig, Connection, Endpoint, Identity, Incoming, ServerConfig, Trust,
    tls::{CertificateDer, PrivateKeyDer},
};

/// A self-signed certificate for `localhost`, made once per process.
fn certificate() -> &'static (Vec<u8>, Vec<u8>) {
    static CERTIFICATE: OnceLock<(Vec<u8>, Vec<u8>)> = OnceLock::new();
    CERTIFICATE.get_or_init(|| {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        (made.cert.der().to_vec(), made.signing_key.serialize_der())
    })
}

pub fn server_config() -> ServerConfig {
    let (chain, key) = certificate();
    let chain = vec![CertificateDer::from(chain.clone())];
    let key = PrivateKeyDer::try_from(key.clone()).unwrap();
    ServerConfig::new(Identity::from_der(chain, key)).alpn(["test"])
}

pub fn client_config() -> ClientConfig {
    let root = CertificateDer::from(certificate().0.clone());
    ClientConfig::new().alpn(["test"]).trust(Trust::roots_der([root]))
}

pub fn server(address: &str) -> Endpoint {
    Endpoint::server(address, server_config()).unwrap()
}

pub fn client() -> Endpoint {
    Endpoint::client(client_config()).unwrap()
}

/// Both ends of a connection and their endpoints.
pub struct Pair {
    pub server: Connection,
    pub client: Connection,
    pub server_endpoint: Endpoint,
    pub client_endpoint: Endpoint,
}

impl Pair {
    pub async fn new(address: &str) -> Self {
        Self::of(server(address), client()).await
    }

    pub async fn of(server_endpoint: Endpoint, client_endpoint: Endpoint) -> Self {
        let connecting = client_endpoint.connect(server_endpoint.local_address(), "localhost");
        let incoming = server_endpoint.accept().await.unwrap();
        let (server, client) = tokio::join!(incoming.accept(), connecting);
        Self { server: server.unwrap(), client: client.unwrap(), server_endpoint, client_endpoint }
    }
}

/// Fails a test that hangs. Nothing is measured with it.
pub async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), future).await.expect("it takes too long")
}

//! Certificates, endpoints and connected pairs for tests over loopback.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "every test file uses a part of it; a failure here is a failed test"
)]

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use hybriq::{
    ClientConfig, Connection, Endpoint, Identity, ServerConfig, Trust,
    stats::Census,
    tls::{CertificateDer, PrivateKeyDer},
};
use tokio::net::UdpSocket;

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
    ClientConfig::new()
        .alpn(["test"])
        .trust(Trust::roots_der([root]))
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
        let address = reachable(&server_endpoint);
        let connecting = client_endpoint.connect(address, "localhost");
        let (server, client) = soon(async {
            let accept = async { server_endpoint.accept().await.unwrap().accept().await };
            tokio::join!(accept, connecting)
        })
        .await;
        Self {
            server: server.unwrap(),
            client: client.unwrap(),
            server_endpoint,
            client_endpoint,
        }
    }

    /// Sends a message over a new stream and reads it back, echoed by the server. Both ends come to rest
    /// afterwards, unless the test has other streams: then it calls [`echo_beside`](Self::echo_beside).
    pub async fn echo(&self, message: &[u8]) -> Vec<u8> {
        let echoed = self.echo_beside(message).await;
        soon(at_rest(&self.client)).await;
        soon(at_rest(&self.server)).await;
        echoed
    }

    /// Sends a message over a new stream and reads it back, while others do the same.
    pub async fn echo_beside(&self, message: &[u8]) -> Vec<u8> {
        let serve = async {
            let (mut send, mut recv) = self.server.accept_bidi().await.unwrap().unwrap();
            tokio::io::copy(&mut recv, &mut send).await.unwrap();
            send.finish();
        };
        let ask = async {
            let (mut send, mut recv) = self.client.open_bidi().await.unwrap();
            let write = async {
                send.write_all(message).await.unwrap();
                send.finish();
            };
            tokio::join!(write, recv.read_to_end(1 << 28)).1.unwrap()
        };
        soon(async { tokio::join!(serve, ask).1 }).await
    }
}

/// Returns an address at which the endpoint can be reached: that of the loopback if it is bound to
/// all.
pub fn reachable(endpoint: &Endpoint) -> SocketAddr {
    let mut address = endpoint.local_address();
    if address.ip().is_unspecified() {
        address.set_ip(Ipv4Addr::LOCALHOST.into());
    }
    address
}

/// Passes datagrams on between one client and a server until it is silent.
pub async fn relay(server: SocketAddr) -> (SocketAddr, Arc<AtomicBool>) {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    let silent = Arc::new(AtomicBool::new(false));
    let silenced = Arc::clone(&silent);
    tokio::spawn(async move {
        let mut buffer = vec![0; 65536];
        let mut client = None;
        loop {
            let Ok((len, from)) = socket.recv_from(&mut buffer).await else {
                continue;
            };
            if from != server {
                client = Some(from);
            }
            let to = if from == server { client } else { Some(server) };
            if let (Some(to), false) = (to, silenced.load(Ordering::Relaxed)) {
                let _ = socket.send_to(&buffer[..len], to).await;
            }
        }
    });
    (address, silent)
}

/// Keeps a connection of a server that dies with its runtime. The runtime drops the tasks in any
/// order, some while the worker still runs: the drop of the last handle would close the connection,
/// and the client would learn of it.
pub fn keep(connection: &Connection) {
    std::mem::forget(connection.clone());
}

/// Waits until a connection holds nothing that a fresh one does not hold. What it holds to the end is
/// printed.
pub async fn at_rest(connection: &Connection) {
    /// Prints what is left if the test gives up.
    struct Left(Census);

    impl Drop for Left {
        fn drop(&mut self) {
            if !self.0.is_empty() {
                eprintln!("the connection does not come to rest: {}", self.0);
            }
        }
    }

    let mut left = Left(connection.census().leftovers());
    while !left.0.is_empty() && connection.close_reason().is_none() {
        tokio::time::sleep(Duration::from_millis(2)).await;
        left.0 = connection.census().leftovers();
    }
    left.0 = Census::default();
}

/// Fails a test that hangs. Nothing is measured with it.
pub async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(120), future)
        .await
        .expect("it takes too long")
}

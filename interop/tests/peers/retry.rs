//! Tests of Retry and NEW_TOKEN between hybriq and the others, in both roles.

use std::{
    collections::HashSet,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use hybriq::{Backend, ClientConfig, Identity, ServerConfig, Trust, fleet::AddressValidation};
use hybriq_interop::{
    ALPN, Certificate, Groups, Peer, SERVER_NAME, Setup,
    peers::{Quinn, S2nQuic},
};
use quinn::{TokenLog, TokenReuseError, ValidationTokenConfig};

fn setup() -> Setup {
    Setup::new(
        Certificate::generate().expect("a certificate"),
        Groups::PreferPostQuantum,
    )
}

fn server(certificate: &Certificate) -> hybriq::Endpoint {
    let (chain, key) = (certificate.pem(), certificate.key_pem());
    let identity = Identity::from_pem(chain.as_bytes(), key.as_bytes()).expect("an identity");
    hybriq::Endpoint::builder()
        .server(ServerConfig::new(identity).alpn([ALPN]))
        .address_validation(AddressValidation::Always)
        .bind("127.0.0.1:0")
        .expect("a socket")
}

/// Checks that clients return with the token of the Retry and are served.
async fn they_follow_our_retry(peer: &dyn Peer) {
    let setup = setup();
    let server = server(&setup.certificate);
    let address = server.local_address();
    let accept = async {
        let incoming = server.accept().await.expect("a client");
        assert!(incoming.is_validated());
        incoming.accept().await.expect("a connection")
    };
    let (_accepted, connected) = tokio::join!(accept, peer.connect(&setup, address));
    connected.expect("a connection");
    let stats = server.stats();
    assert!(stats.retries_sent > 0);
    assert_eq!((stats.addresses_validated, stats.tokens_rejected), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn quinn_follows_our_retry() {
    they_follow_our_retry(&Quinn).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s2n_quic_follows_our_retry() {
    they_follow_our_retry(&S2nQuic).await;
}

/// Nonces of the tokens that were used.
#[derive(Default)]
struct Spent(Mutex<HashSet<u128>>);

impl TokenLog for Spent {
    fn check_and_insert(
        &self,
        nonce: u128,
        _: SystemTime,
        _: Duration,
    ) -> Result<(), TokenReuseError> {
        let new = self.0.lock().expect("no panic").insert(nonce);
        new.then_some(()).ok_or(TokenReuseError)
    }
}

fn quinn_server(certificate: &Certificate) -> quinn::Endpoint {
    let setup = Setup::new(certificate.clone(), Groups::PreferPostQuantum);
    let mut config = Quinn::server_config(&setup).expect("a configuration");
    let mut tokens = ValidationTokenConfig::default();
    tokens.sent(1).log(Arc::new(Spent::default()));
    config.validation_token_config(tokens);
    quinn::Endpoint::server(config, ([127, 0, 0, 1], 0).into()).expect("a socket")
}

/// Accepts one connection from a validated address; returns the number of Retries.
async fn accept_validated(endpoint: &quinn::Endpoint) -> usize {
    for retries in 0.. {
        let incoming = endpoint.accept().await.expect("a client");
        if incoming.remote_address_validated() {
            let connection = incoming.await.expect("a connection");
            let mut stream = connection.open_uni().await.expect("a stream");
            stream.write_all(b"hello").await.expect("a peer");
            stream.finish().expect("a stream");
            connection.closed().await;
            return retries;
        }
        incoming.retry().expect("it follows");
    }
    usize::MAX
}

async fn visit(client: &hybriq::Endpoint, server: SocketAddr) {
    let connection = client
        .connect(server, SERVER_NAME)
        .await
        .expect("a connection");
    let stream = connection.accept_uni().await.expect("a connection");
    let mut stream = stream.expect("a stream");
    assert_eq!(stream.read_to_end(10).await.expect("a peer"), b"hello");
    connection.close(0, b"");
}

#[tokio::test(flavor = "multi_thread")]
async fn we_follow_quinns_retry_and_come_back_with_its_token() {
    for backend in Backend::ALL {
        let certificate = Certificate::generate().expect("a certificate");
        let server = quinn_server(&certificate);
        let address = server.local_addr().expect("an address");
        let config = ClientConfig::new()
            .alpn([ALPN])
            .trust(Trust::roots_der([certificate.der()]))
            .tls(backend);
        let client = hybriq::Endpoint::client(config).expect("a socket");
        let (retries, ()) = tokio::join!(accept_validated(&server), visit(&client, address));
        assert!(retries > 0);
        let (retries, ()) = tokio::join!(accept_validated(&server), visit(&client, address));
        assert_eq!(retries, 0, "a token of the first connection");
    }
}

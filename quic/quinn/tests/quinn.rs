//! The names of quinn over hybriq: what its users rely on, and settings that cannot be used.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use hybriq_quinn::{
    ClientConfig, ConnectError, Connection, ConnectionError, Endpoint, EndpointConfig,
    RandomConnectionIdGenerator, ReadError, ReadExactError, SendStream, ServerConfig, TokioRuntime,
    TransportErrorCode, VarInt, WriteError,
    crypto::rustls::{HandshakeData, QuicClientConfig, QuicServerConfig},
    rustls::{
        self, KeyLog, NamedGroup, RootCertStore,
        crypto::{CryptoProvider, SupportedKxGroup, aws_lc_rs},
        pki_types::{CertificateDer, PrivateKeyDer},
    },
};

const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A certificate for `localhost`.
struct Identity {
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

impl Identity {
    fn new() -> Self {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        Self {
            certificate: made.cert.into(),
            key: PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into()),
        }
    }

    fn roots(&self) -> Arc<RootCertStore> {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).unwrap();
        Arc::new(roots)
    }

    fn server_config(&self) -> ServerConfig {
        ServerConfig::with_single_cert(vec![self.certificate.clone()], self.key.clone_key())
            .unwrap()
    }

    fn server(&self) -> Endpoint {
        Endpoint::server(self.server_config(), ANY).unwrap()
    }

    fn client(&self) -> Endpoint {
        let mut client = Endpoint::client(ANY).unwrap();
        let config = ClientConfig::with_root_certificates(self.roots()).unwrap();
        client.set_default_client_config(config);
        client
    }

    fn rustls_client(&self, crypto: CryptoProvider) -> rustls::ClientConfig {
        rustls::ClientConfig::builder_with_provider(Arc::new(crypto))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_root_certificates(self.roots())
            .with_no_client_auth()
    }
}

async fn connect(client: &Endpoint, server: &Endpoint) -> (Connection, Connection) {
    let address = server.local_addr().unwrap();
    let (ours, theirs) = tokio::join!(client.connect(address, "localhost").unwrap(), async {
        server.accept().await.unwrap().await
    });
    (ours.unwrap(), theirs.unwrap())
}

fn handshake(connection: &Connection) -> HandshakeData {
    *connection.handshake_data().unwrap().downcast().unwrap()
}

#[tokio::test]
async fn an_echo_is_post_quantum_and_a_dropped_stream_is_finished() {
    let identity = Identity::new();
    let (client, server) = (identity.client(), identity.server());
    let (ours, theirs) = connect(&client, &server).await;
    for connection in [&ours, &theirs] {
        let group = handshake(connection).negotiated_key_exchange_group;
        assert_eq!(group, NamedGroup::X25519MLKEM768);
    }
    assert_eq!(handshake(&theirs).server_name.as_deref(), Some("localhost"));
    assert!(ours.side().is_client() && theirs.side().is_server());

    let (mut send, mut recv) = ours.open_bi().await.unwrap();
    send.write_all(b"hello").await.unwrap();
    drop(send);
    let (mut back, mut got) = theirs.accept_bi().await.unwrap();
    assert_eq!(got.read_to_end(100).await.unwrap(), b"hello");
    back.write_all_chunks(&mut ["hello ".into(), "back".into()])
        .await
        .unwrap();
    back.finish().unwrap();
    assert!(back.finish().is_err() && back.write(b"more").await == Err(WriteError::ClosedStream));
    let mut first = [0; 6];
    recv.read_exact(&mut first).await.unwrap();
    let chunk = recv.read_chunk(100, true).await.unwrap().unwrap();
    assert_eq!((chunk.offset, &*chunk.bytes), (6, &b"back"[..]));
    assert_eq!(recv.read(&mut first).await, Ok(None));
    let early = recv.read_exact(&mut first).await;
    assert_eq!(early, Err(ReadExactError::FinishedEarly(0)));

    ours.close(7u32.into(), b"done");
    assert_eq!(ours.closed().await, ConnectionError::LocallyClosed);
    for over in [theirs.accept_bi().await.err(), theirs.close_reason()] {
        let Some(ConnectionError::ApplicationClosed(close)) = over else {
            panic!("{over:?}");
        };
        assert_eq!(
            (close.error_code, &*close.reason),
            (7u32.into(), &b"done"[..])
        );
    }
    client.wait_idle().await;
    let stats = client.stats();
    assert_eq!(
        (stats.outgoing_handshakes, stats.accepted_handshakes),
        (1, 0)
    );
    assert_eq!(server.stats().accepted_handshakes, 1);
}

#[tokio::test]
async fn a_connection_that_was_closed_cleanly_accepts_with_an_error() {
    let identity = Identity::new();
    let (client, server) = (identity.client(), identity.server());
    let (ours, theirs) = connect(&client, &server).await;
    drop(ours);
    for over in [
        theirs.accept_uni().await.err(),
        theirs.read_datagram().await.err(),
    ] {
        assert!(matches!(over, Some(ConnectionError::ApplicationClosed(_))));
    }
}

async fn stop_the_first_stream(theirs: &Connection, code: u32) {
    let mut recv = theirs.accept_uni().await.unwrap();
    recv.stop(code.into()).unwrap();
    assert!(recv.stop(code.into()).is_err());
    let mut byte = [0];
    assert_eq!(recv.read(&mut byte).await, Err(ReadError::ClosedStream));
}

#[tokio::test]
async fn a_stream_may_have_many_waits_for_its_stop_and_they_outlive_it() {
    let identity = Identity::new();
    let (client, server) = (identity.client(), identity.server());
    let (ours, theirs) = connect(&client, &server).await;
    let mut send: SendStream = ours.open_uni().await.unwrap();
    send.write_all(b"hi").await.unwrap();
    let waits = [send.stopped(), send.stopped()].map(tokio::spawn);
    let later = send.stopped();
    stop_the_first_stream(&theirs, 42).await;
    for wait in waits {
        assert_eq!(wait.await.unwrap(), Ok(Some(42u32.into())));
    }
    drop(send);
    assert_eq!(later.await, Ok(Some(42u32.into())));

    let mut send = ours.open_uni().await.unwrap();
    send.write_all(b"hi").await.unwrap();
    send.finish().unwrap();
    send.reset(9u32.into()).unwrap();
    assert!(send.reset(9u32.into()).is_err());
    let mut recv = theirs.accept_uni().await.unwrap();
    assert_eq!(recv.received_reset().await, Ok(Some(9u32.into())));
}

#[tokio::test]
async fn early_data_needs_a_ticket_and_no_wait() {
    let identity = Identity::new();
    let (client, server) = (identity.client(), identity.server());
    let address = server.local_addr().unwrap();
    let serving = server.clone();
    let served = tokio::spawn(async move {
        let mut early = Vec::new();
        for _ in 0..2 {
            let connecting = serving.accept().await.unwrap().accept().unwrap();
            let (connection, established) = connecting.into_0rtt().unwrap();
            let (mut send, mut recv) = connection.accept_bi().await.unwrap();
            let request = recv.read_to_end(100).await.unwrap();
            early.push(recv.is_0rtt());
            send.write_all(&request).await.unwrap();
            send.finish().unwrap();
            established.await;
            let _ = send.stopped().await;
            connection.closed().await;
        }
        early
    });
    let connecting = client.connect(address, "localhost").unwrap();
    let first = connecting.into_0rtt().unwrap_err().await.unwrap();
    ask(&first).await;
    // The tickets have come before the answer.
    drop(first);
    let connecting = client.connect(address, "localhost").unwrap();
    let (second, accepted) = connecting.into_0rtt().unwrap();
    assert_eq!(second.remote_address(), address);
    ask(&second).await;
    assert!(accepted.await);
    assert!(handshake(&second).protocol.is_none());
    drop(second);
    assert_eq!(served.await.unwrap(), [false, true]);
}

async fn ask(connection: &Connection) {
    let (mut send, mut recv) = connection.open_bi().await.unwrap();
    send.write_all(b"question").await.unwrap();
    send.finish().unwrap();
    assert_eq!(recv.read_to_end(100).await.unwrap(), b"question");
}

#[tokio::test]
async fn refused_early_data_fails_and_the_connection_continues() {
    let identity = Identity::new();
    let (client, server, other) = (identity.client(), identity.server(), identity.server());
    let (ours, theirs) = connect(&client, &server).await;
    let mut last = theirs.open_uni().await.unwrap();
    last.write_all(b"after the tickets").await.unwrap();
    drop(last);
    ours.accept_uni()
        .await
        .unwrap()
        .read_to_end(100)
        .await
        .unwrap();

    // Another server with the same certificate, and other tickets.
    let connecting = client
        .connect(other.local_addr().unwrap(), "localhost")
        .unwrap();
    let (ours, accepted) = connecting.into_0rtt().unwrap();
    let mut early = ours.open_uni().await.unwrap();
    early.write_all(b"early").await.unwrap();
    let accepting = tokio::spawn({
        let ours = ours.clone();
        async move { ours.accept_uni().await }
    });
    let theirs = other.accept().await.unwrap().await.unwrap();
    assert!(!accepted.await);
    assert_eq!(early.write(b"more").await, Err(WriteError::ZeroRttRejected));
    let mut later = ours.open_uni().await.unwrap();
    later.write_all(b"later").await.unwrap();
    drop(later);
    let got = theirs.accept_uni().await.unwrap().read_to_end(100).await;
    assert_eq!(got.unwrap(), b"later");
    drop(theirs.open_uni().await.unwrap());
    accepting.await.unwrap().unwrap();
}

#[tokio::test]
async fn an_early_connection_can_be_closed_before_it_exists() {
    let identity = Identity::new();
    let (client, server) = (identity.client(), identity.server());
    let (ours, theirs) = connect(&client, &server).await;
    let mut last = theirs.open_uni().await.unwrap();
    last.write_all(b"after the tickets").await.unwrap();
    drop(last);
    ours.accept_uni()
        .await
        .unwrap()
        .read_to_end(100)
        .await
        .unwrap();
    ours.close(0u32.into(), b"");

    let address = server.local_addr().unwrap();
    let (ours, accepted) = client
        .connect(address, "localhost")
        .unwrap()
        .into_0rtt()
        .unwrap();
    ours.close(3u32.into(), b"");
    assert_eq!(ours.close_reason(), Some(ConnectionError::LocallyClosed));
    assert_eq!(ours.closed().await, ConnectionError::LocallyClosed);
    assert_eq!(
        ours.open_uni().await.err(),
        Some(ConnectionError::LocallyClosed)
    );
    assert!(!accepted.await);
    client.wait_idle().await;
}

#[derive(Debug, Default)]
struct Logged(AtomicUsize);

impl KeyLog for Logged {
    fn log(&self, _: &str, _: &[u8], _: &[u8]) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn any_configuration_of_rustls_serves_with_certificates_alpn_and_key_log() {
    let (identity, person) = (Identity::new(), Identity::new());
    let logged = Arc::new(Logged::default());
    let crypto = Arc::new(CryptoProvider {
        kx_groups: vec![aws_lc_rs::kx_group::SECP256R1],
        ..aws_lc_rs::default_provider()
    });
    let verifier =
        rustls::server::WebPkiClientVerifier::builder_with_provider(person.roots(), crypto.clone());
    let mut tls = rustls::ServerConfig::builder_with_provider(crypto.clone())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_client_cert_verifier(verifier.build().unwrap())
        .with_single_cert(vec![identity.certificate.clone()], identity.key.clone_key())
        .unwrap();
    tls.alpn_protocols = vec![b"chat".to_vec()];
    tls.key_log = logged.clone();
    let tls = QuicServerConfig::try_from(tls).unwrap();
    let server = Endpoint::server(ServerConfig::with_crypto(Arc::new(tls)), ANY).unwrap();

    let mut tls = rustls::ClientConfig::builder_with_provider(crypto.clone())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(identity.roots())
        .with_client_auth_cert(vec![person.certificate.clone()], person.key.clone_key())
        .unwrap();
    tls.alpn_protocols = vec![b"mail".to_vec(), b"chat".to_vec()];
    let mut client = Endpoint::client(ANY).unwrap();
    let tls = Arc::new(QuicClientConfig::try_from(tls).unwrap());
    client.set_default_client_config(ClientConfig::new(tls));

    let (ours, theirs) = connect(&client, &server).await;
    assert_eq!(
        handshake(&ours).negotiated_key_exchange_group,
        NamedGroup::secp256r1
    );
    assert_eq!(handshake(&theirs).protocol.as_deref(), Some(&b"chat"[..]));
    for (connection, shown) in [(&theirs, &person), (&ours, &identity)] {
        let shown_now = connection.peer_identity().unwrap();
        let shown_now = shown_now
            .downcast::<Vec<CertificateDer<'static>>>()
            .unwrap();
        assert_eq!(*shown_now, std::slice::from_ref(&shown.certificate));
    }
    assert!(logged.0.load(Ordering::Relaxed) >= 4);
    let mut keys = [[0; 32]; 2];
    let [of_client, of_server] = &mut keys;
    ours.export_keying_material(of_client, b"label", b"")
        .unwrap();
    theirs
        .export_keying_material(of_server, b"label", b"")
        .unwrap();
    assert_eq!(keys[0], keys[1]);

    // Without a certificate, the server refuses.
    let mut tls = identity.rustls_client(CryptoProvider::clone(&crypto));
    tls.alpn_protocols = vec![b"chat".to_vec()];
    let mut anonymous = Endpoint::client(ANY).unwrap();
    let tls = Arc::new(QuicClientConfig::try_from(tls).unwrap());
    anonymous.set_default_client_config(ClientConfig::new(tls));
    let address = server.local_addr().unwrap();
    let (refused, _) = tokio::join!(
        async {
            match anonymous.connect(address, "localhost").unwrap().await {
                Ok(connection) => connection.closed().await,
                Err(error) => error,
            }
        },
        async { server.accept().await.unwrap().await },
    );
    let ConnectionError::ConnectionClosed(close) = refused else {
        panic!("{refused:?}");
    };
    // certificate_required
    assert_eq!(close.error_code, TransportErrorCode::crypto(116));
}

#[tokio::test]
async fn datagrams_streams_and_limits_follow_the_configuration() {
    let identity = Identity::new();
    let mut config = identity.server_config();
    let mut transport = hybriq_quinn::TransportConfig::default();
    transport
        .max_concurrent_uni_streams(1u32.into())
        .max_concurrent_bidi_streams(0u32.into())
        .datagram_receive_buffer_size(None)
        .keep_alive_interval(Some(std::time::Duration::from_secs(5)))
        .congestion_controller_factory(Arc::new(hybriq_quinn::congestion::BbrConfig::default()));
    config
        .transport_config(Arc::new(transport))
        .migration(false);
    let server = Endpoint::server(config, ANY).unwrap();
    let client = identity.client();
    let (ours, theirs) = connect(&client, &server).await;
    assert_eq!(ours.max_datagram_size(), None);
    assert_eq!(
        ours.send_datagram("one".into()),
        Err(hybriq_quinn::SendDatagramError::UnsupportedByPeer)
    );
    theirs.send_datagram_wait("two".into()).await.unwrap();
    assert_eq!(&*ours.read_datagram().await.unwrap(), b"two");
    let controller = theirs.hybriq().unwrap().path_stats().controller;
    assert!(controller.to_lowercase().contains("bbr"), "{controller}");

    let held = ours.open_uni().await.unwrap();
    let mut next = std::pin::pin!(ours.open_uni());
    let waker = std::task::Waker::noop();
    let mut cx = std::task::Context::from_waker(waker);
    assert!(next.as_mut().poll(&mut cx).is_pending());
    theirs.set_max_concurrent_uni_streams(2u32.into());
    next.await.unwrap();
    drop(held);
}

#[tokio::test]
async fn an_endpoint_moves_to_another_socket_and_uses_empty_ids_only_as_a_client() {
    let identity = Identity::new();
    let mut empty = EndpointConfig::default();
    empty.cid_generator(|| Box::new(RandomConnectionIdGenerator::new(0)));
    let open = |server| {
        let socket = UdpSocket::bind(ANY).unwrap();
        Endpoint::new(empty.clone(), server, socket, Arc::new(TokioRuntime)).unwrap()
    };
    let server = open(Some(identity.server_config()));
    let mut client = open(None);
    let config = ClientConfig::with_root_certificates(identity.roots()).unwrap();
    client.set_default_client_config(config);
    let (first, _one) = connect(&client, &server).await;
    let again = client.connect(server.local_addr().unwrap(), "localhost");
    assert_eq!(
        again.unwrap().await.err(),
        Some(ConnectionError::CidsExhausted)
    );
    first.close(VarInt::default(), b"");
    drop(first);

    let client = identity.client();
    let (ours, theirs) = connect(&client, &server).await;
    let socket = UdpSocket::bind(ANY).unwrap();
    let address = socket.local_addr().unwrap();
    client.rebind(socket).unwrap();
    assert_eq!(client.local_addr().unwrap(), address);
    let mut send = theirs.open_uni().await.unwrap();
    send.write_all(b"follows").await.unwrap();
    drop(send);
    let got = ours.accept_uni().await.unwrap().read_to_end(100).await;
    assert_eq!(got.unwrap(), b"follows");

    let connected = UdpSocket::bind(ANY).unwrap();
    connected.connect(address).unwrap();
    let refused = client.rebind(connected).unwrap_err().to_string();
    assert!(refused.contains("is connected"), "{refused}");
}

#[derive(Debug)]
struct Unheard;

impl SupportedKxGroup for Unheard {
    fn start(&self) -> Result<Box<dyn rustls::crypto::ActiveKeyExchange>, rustls::Error> {
        Err(rustls::Error::General("nobody uses this".into()))
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::Unknown(0xfe01)
    }
}

#[tokio::test]
async fn what_cannot_be_used_is_refused_with_one_line() {
    let identity = Identity::new();
    let with = |kx_groups| CryptoProvider {
        kx_groups,
        ..aws_lc_rs::default_provider()
    };
    let classical = || with(vec![aws_lc_rs::kx_group::X25519]);
    let unheard = QuicClientConfig::try_from(identity.rustls_client(with(vec![&Unheard])));
    // As without TLS 1.3: rustls has no suite for QUIC.
    let known = aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256
        .tls13()
        .unwrap();
    let no_quic = Box::leak(Box::new(rustls::Tls13CipherSuite {
        common: rustls::crypto::CipherSuiteCommon {
            suite: known.common.suite,
            hash_provider: known.common.hash_provider,
            confidentiality_limit: known.common.confidentiality_limit,
        },
        hkdf_provider: known.hkdf_provider,
        aead_alg: known.aead_alg,
        quic: None,
    }));
    let no_quic = QuicServerConfig::try_from(
        rustls::ServerConfig::builder_with_provider(Arc::new(CryptoProvider {
            cipher_suites: vec![rustls::SupportedCipherSuite::Tls13(no_quic)],
            ..classical()
        }))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![identity.certificate.clone()], identity.key.clone_key())
        .unwrap(),
    );
    let classical = QuicClientConfig::with_key_exchange(
        identity.rustls_client(classical()),
        hybriq_tls::KeyExchange::RequirePostQuantum,
    );
    let both = QuicServerConfig::with_key_exchange(
        rustls::ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![identity.certificate.clone()], identity.key.clone_key())
            .unwrap(),
        hybriq_tls::KeyExchange::RequirePostQuantum,
    );
    for (error, part) in [
        (unheard.err(), "which is not known here"),
        (no_quic.err(), "TLS13_AES_128_GCM_SHA256"),
        (classical.err(), "change the policy"),
        (both.err(), "leave it out of kx_groups"),
    ] {
        let line = error.unwrap().to_string();
        assert!(line.contains(part) && !line.contains('\n'), "{line}");
    }

    let client = Endpoint::client(ANY).unwrap();
    let connect = |address: &str, name| {
        let config = ClientConfig::with_root_certificates(identity.roots()).unwrap();
        client
            .connect_with(config, address.parse().unwrap(), name)
            .err()
    };
    let port_zero: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let other_family: SocketAddr = "[::1]:4433".parse().unwrap();
    let unknown = client
        .connect("127.0.0.1:1".parse().unwrap(), "localhost")
        .err();
    assert_eq!(unknown, Some(ConnectError::NoDefaultClientConfig));
    for (address, name, error) in [
        (
            "127.0.0.1:0",
            "localhost",
            ConnectError::InvalidRemoteAddress(port_zero),
        ),
        (
            "[::1]:4433",
            "localhost",
            ConnectError::InvalidRemoteAddress(other_family),
        ),
        (
            "127.0.0.1:1",
            "a b",
            ConnectError::InvalidServerName("a b".to_owned()),
        ),
    ] {
        assert_eq!(connect(address, name), Some(error));
    }
    client.close(0u32.into(), b"");
    assert_eq!(
        connect("127.0.0.1:1", "localhost"),
        Some(ConnectError::EndpointStopping)
    );
}

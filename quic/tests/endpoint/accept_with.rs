//! Connections that a server accepts with a configuration of their own, chosen by the ClientHello.
#![cfg(feature = "tokio")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failure here is a failed test"
)]

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::Poll,
    time::Duration,
};

use hybriq::{
    Backend, ClientConfig, ConnectError, Connection, ConnectionError, Endpoint, Group, Identity,
    KeyExchange, ServerConfig, TransportConfig, Trust,
    events::{Event, Meta, Subscriber},
    fleet::Tickets,
    tls::{CertificateDer, Lineage, PrivateKeyDer},
    transport::Version,
};

use crate::endpoint_support::{Pair, client_config, server, server_config, soon};

/// A connection that `server` accepts with `config`.
async fn accepted_with(
    server: &Endpoint,
    client: &Endpoint,
    config: ServerConfig,
) -> (
    Result<Connection, ConnectError>,
    Result<Connection, ConnectError>,
) {
    let connecting = client.connect(server.local_address(), "localhost");
    soon(async {
        let accept = async { server.accept().await.unwrap().accept_with(config).await };
        tokio::join!(accept, connecting)
    })
    .await
}

fn pair(
    (server, client): (
        Result<Connection, ConnectError>,
        Result<Connection, ConnectError>,
    ),
    endpoints: (&Endpoint, &Endpoint),
) -> Pair {
    Pair {
        server: server.unwrap(),
        client: client.unwrap(),
        server_endpoint: endpoints.0.clone(),
        client_endpoint: endpoints.1.clone(),
    }
}

#[tokio::test]
async fn the_client_hello_says_what_to_choose_by() {
    let server = server("127.0.0.1:0");
    let config = client_config().alpn(["first", "test"]);
    let client = Endpoint::client(config).unwrap();
    let connecting = client.connect(server.local_address(), "localhost");
    let incoming = soon(server.accept()).await.unwrap();
    let hello = incoming.client_hello();
    assert_eq!(hello.server_name(), Some("localhost"));
    let protocols: Vec<&[u8]> = hello.alpn().collect();
    assert_eq!(protocols, [&b"first"[..], b"test"]);
    assert_eq!(hello.groups().first(), Some(&Group::X25519MLKEM768));
    let share = hello.key_shares().first().expect("a share");
    assert_eq!((share.group, share.len), (Group::X25519MLKEM768, 1216));
    assert_eq!(hello.cipher_suites().first(), Some(&0x1301));
    assert!(!hello.signature_schemes().is_empty() && hello.transport_params().is_some());
    assert!(hello.offers_post_quantum() && !hello.has_ticket() && !hello.wants_early_data());
    assert!(incoming.peer_address().ip().is_loopback());
    // Nothing was said yet.
    assert_eq!(server.stats().datagrams_sent, 0);
    let (accepted, connected) = soon(async { tokio::join!(incoming.accept(), connecting) }).await;
    assert_eq!(
        accepted.unwrap().handshake().alpn.as_deref(),
        Some(&b"test"[..])
    );
    connected.unwrap();
}

#[tokio::test]
async fn certificate_key_exchange_protocol_and_library_are_those_of_the_configuration() {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let chain = made.cert.der().to_vec();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    for backend in Backend::ALL {
        let key = key.clone_key();
        let identity = Identity::from_der(vec![CertificateDer::from(chain.clone())], key);
        let other = ServerConfig::new(identity)
            .alpn(["other"])
            .tls(backend)
            .key_exchange(KeyExchange::OnlyClassical);
        let trust = Trust::roots_der([CertificateDer::from(chain.clone())]);
        let config = ClientConfig::new().alpn(["test", "other"]).trust(trust);
        let (server, client) = (server("127.0.0.1:0"), Endpoint::client(config).unwrap());
        let pair = pair(
            accepted_with(&server, &client, other).await,
            (&server, &client),
        );
        let handshake = pair.client.handshake();
        assert_eq!(handshake.alpn.as_deref(), Some(&b"other"[..]));
        assert!(!handshake.key_exchange.is_post_quantum());
        assert_eq!(handshake.lineage, Lineage::Classical);
        assert_eq!(pair.client.peer_certificates()[0].as_ref(), chain);
        assert_eq!(pair.echo(b"hello").await, b"hello");
    }
}

#[tokio::test]
async fn a_required_group_is_that_of_the_configuration() {
    let config = client_config().key_exchange(KeyExchange::OnlyClassical);
    let (server, client) = (server("127.0.0.1:0"), Endpoint::client(config).unwrap());
    let strict = server_config().key_exchange(KeyExchange::RequirePostQuantum);
    let (accepted, connected) = accepted_with(&server, &client, strict).await;
    for outcome in [accepted, connected] {
        let error = outcome.unwrap_err();
        assert!(
            matches!(
                error,
                ConnectError::Connection(ConnectionError::KeyExchangeRefused { .. })
            ),
            "{error}"
        );
    }
}

#[derive(Default)]
struct Counts(AtomicUsize);

impl Subscriber for Counts {
    fn on_event(&self, _: &Meta, _: &Event<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn limits_timers_and_events_are_those_of_the_configuration() {
    let (server, client) = (server("127.0.0.1:0"), crate::endpoint_support::client());
    let counts = Arc::new(Counts::default());
    let transport = TransportConfig::new()
        .max_bidi_streams(1)
        .max_uni_streams(0)
        .idle_timeout(Some(Duration::from_millis(200)))
        .subscriber(counts.clone());
    let other = server_config().transport(transport);
    let pair = pair(
        accepted_with(&server, &client, other).await,
        (&server, &client),
    );
    let _first = soon(pair.client.open_bidi()).await.unwrap();
    {
        let mut second = std::pin::pin!(pair.client.open_bidi());
        let mut third = std::pin::pin!(pair.client.open_uni());
        let both = std::future::poll_fn(|cx| {
            Poll::Ready((
                second.as_mut().poll(cx).is_pending(),
                third.as_mut().poll(cx).is_pending(),
            ))
        });
        assert_eq!(both.await, (true, true));
    }
    assert!(counts.0.load(Ordering::Relaxed) > 0);
    // The endpoint's own would take longer than the test may.
    assert_eq!(soon(pair.client.closed()).await, ConnectionError::TimedOut);
}

#[tokio::test]
async fn the_version_is_that_of_the_configuration() {
    for version in [Version::V1, Version::V2] {
        let (server, client) = (server("127.0.0.1:0"), crate::endpoint_support::client());
        let transport = TransportConfig::new().versions([version]);
        let other = server_config().transport(transport);
        let pair = pair(
            accepted_with(&server, &client, other).await,
            (&server, &client),
        );
        assert_eq!(pair.client.handshake().version, version);
        assert_eq!(pair.server.handshake().version, version);
        assert_eq!(pair.echo(b"hello").await, b"hello");
    }
}

#[tokio::test]
async fn tickets_are_known_where_configurations_have_them_in_common() {
    let common = || server_config().transport(TransportConfig::new());
    let tickets = Tickets::new();
    let server = Endpoint::server("127.0.0.1:0", common().tickets(tickets.clone())).unwrap();
    let client = crate::endpoint_support::client();
    let apart = common();
    let together = common().tickets(tickets);
    for (config, resumed) in [(&together, false), (&together, true), (&apart, false)] {
        let outcome = accepted_with(&server, &client, config.clone()).await;
        let pair = pair(outcome, (&server, &client));
        // With the answer the ticket has come.
        assert_eq!(pair.echo(b"hello").await, b"hello");
        assert_eq!(pair.client.handshake().resumed, resumed);
        assert_eq!(pair.server.handshake().resumed, resumed);
        assert_eq!(pair.client.handshake().lineage, Lineage::PostQuantum);
    }
    // A session that began classically, met by one who requires more.
    let classical = together.clone().key_exchange(KeyExchange::OnlyClassical);
    let strict = together.key_exchange(KeyExchange::RequirePostQuantum);
    let client = crate::endpoint_support::client();
    let expected = [
        (&classical, false, Lineage::Classical),
        (&classical, true, Lineage::Classical),
        (&strict, false, Lineage::PostQuantum),
        (&strict, true, Lineage::PostQuantum),
    ];
    for (config, resumed, lineage) in expected {
        let outcome = accepted_with(&server, &client, config.clone()).await;
        let pair = pair(outcome, (&server, &client));
        assert_eq!(pair.echo(b"hello").await, b"hello");
        assert_eq!(pair.client.handshake().resumed, resumed);
        assert_eq!(pair.server.handshake().lineage, lineage);
    }
}

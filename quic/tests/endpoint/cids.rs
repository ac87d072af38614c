//! Connection ids and stateless resets over real sockets.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use crate::endpoint_support::{Pair, client, client_config, keep, server_config, soon};
use hybriq::{
    ConnectError, Connection, ConnectionError, Endpoint, EndpointBuilder, EndpointError,
    fleet::{CidGenerator, FleetKeys, QuicLb, RandomCids, ResetKey},
    transport::SystemRandom,
};
use tokio::runtime::Runtime;

fn keyed(key: &ResetKey) -> EndpointBuilder {
    Endpoint::builder()
        .server(server_config())
        .reset_key(key.clone())
}

/// A server, in a runtime that can be taken away from under it, and a client's
/// connection to it.
async fn connected(builder: EndpointBuilder) -> (Runtime, Endpoint, Endpoint, Connection) {
    let machine = Runtime::new().unwrap();
    let server = {
        let _guard = machine.enter();
        builder.bind("127.0.0.1:0").unwrap()
    };
    let client = client();
    let connecting = client.connect(server.local_address(), "localhost");
    let accepting = async { server.accept().await.unwrap().accept().await.unwrap() };
    let (accepted, connection) = soon(async { tokio::join!(accepting, connecting) }).await;
    let connection = connection.unwrap();
    // The handshake is confirmed on both ends once data went there and back.
    let (mut send, mut recv) = connection.open_bidi().await.unwrap();
    send.write_all(b"?").await.unwrap();
    let (mut answer, _question) = soon(accepted.accept_bidi()).await.unwrap().unwrap();
    answer.write_all(b"!").await.unwrap();
    assert_eq!(soon(recv.read(&mut [0; 8])).await, Ok(1));
    keep(&accepted);
    drop(machine.spawn(async move {
        let _kept = (accepted, answer);
        std::future::pending::<()>().await;
    }));
    (machine, server, client, connection)
}

/// Proves: rfc9000 10.3.2 reset-tokens-cannot-be-guessed
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_was_restarted_ends_what_it_lost() {
    let key = ResetKey::from_secret([42; 32]);
    restarted_ends_what_it_lost(keyed(&key), keyed(&key)).await;
}

/// The second process begins with a new secret, and keeps the resets of the first one.
#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_server_of_a_fleet_ends_what_it_lost_before_the_rotation() {
    let (old, new) = ([42; 32], [43; 32]);
    let before = FleetKeys::from_secret(&old).unwrap();
    let after = FleetKeys::from_secret(&new).and_then(|keys| keys.keep_resets_of(&old));
    let builder = Endpoint::builder().server(server_config());
    restarted_ends_what_it_lost(
        builder.clone().fleet_keys(&before),
        builder.fleet_keys(&after.unwrap()),
    )
    .await;
}

async fn restarted_ends_what_it_lost(before: EndpointBuilder, after: EndpointBuilder) {
    let (machine, server, _client, connection) = connected(before).await;
    let address = server.local_address();
    machine.shutdown_background();
    soon(server.idle()).await;
    let restarted = loop {
        // The old socket closes when its task is gone.
        match after.clone().bind(address) {
            Ok(restarted) => break restarted,
            Err(EndpointError::InUse(_)) => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    };
    // Not if a probe of the client was answered already.
    if let Ok(mut send) = connection.open_uni().await {
        let _ = send.write_all(b"are you there?").await;
    }
    assert_eq!(soon(connection.closed()).await, ConnectionError::Reset);
    while restarted.stats().stateless_resets == 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn ids_of_any_kind_work_on_either_end() {
    let clear = QuicLb::plaintext(0, &[7; 3], 6, &mut SystemRandom::new()).unwrap();
    let encrypted = QuicLb::encrypted(1, &[7; 3], 6, [1; 16], &mut SystemRandom::new()).unwrap();
    let servers = [
        (server_with(RandomCids::of_len(20)), "long"),
        (server_with(clear), "in the clear"),
        (server_with(encrypted), "encrypted"),
    ];
    for (server, name) in servers {
        let builder = Endpoint::builder().client(client_config());
        let client = builder.cid_generator(RandomCids::of_len(11));
        let pair = Pair::of(server, client.bind("127.0.0.1:0").unwrap()).await;
        assert_eq!(pair.echo(name.as_bytes()).await, name.as_bytes());
        assert_eq!(pair.server_endpoint.stats().stateless_resets, 0);
    }
}

fn server_with(generator: impl CidGenerator + 'static) -> Endpoint {
    let builder = Endpoint::builder().server(server_config());
    let builder = builder.cid_generator(generator);
    builder.bind("127.0.0.1:0").unwrap()
}

#[tokio::test]
async fn ids_are_changed_while_streams_go_on() {
    let pair = Pair::new("127.0.0.1:0").await;
    for round in 0..5_u8 {
        assert_eq!(pair.echo(&[round; 1000]).await, [round; 1000]);
        // An answer from the previous round may still be in flight.
        for connection in [&pair.client, &pair.server] {
            soon(async {
                while !connection.rotate_cids() {
                    pair.echo(b"wait").await;
                }
            })
            .await;
        }
    }
}

#[tokio::test]
async fn without_ids_a_client_has_one_connection_to_each_server() {
    let builder = Endpoint::builder().client(client_config());
    let client = builder.zero_length_cids().bind("127.0.0.1:0").unwrap();
    let pair = Pair::of(crate::endpoint_support::server("127.0.0.1:0"), client).await;
    assert_eq!(pair.echo(b"hello").await, b"hello");
    let address = pair.server_endpoint.local_address();
    let again = soon(pair.client_endpoint.connect(address, "localhost")).await;
    assert!(
        matches!(&again, Err(ConnectError::AddressInUse(at)) if *at == address),
        "{again:?}"
    );
    let other = crate::endpoint_support::server("127.0.0.1:0");
    let connecting = pair
        .client_endpoint
        .connect(other.local_address(), "localhost");
    let accepting = async { other.accept().await.unwrap().accept().await };
    let (accepted, connected) = soon(async { tokio::join!(accepting, connecting) }).await;
    assert!(accepted.is_ok() && connected.is_ok());
}

#[tokio::test]
async fn ids_that_cannot_work_are_refused() {
    #[derive(Debug)]
    struct OfLen(usize);
    impl CidGenerator for OfLen {
        fn len(&self) -> usize {
            self.0
        }
        fn generate(&self, _: u8, _: &mut [u8]) {}
        fn worker(&self, _: &[u8]) -> Option<u8> {
            None
        }
    }
    let bind = |len| {
        let builder = Endpoint::builder().server(server_config());
        builder.cid_generator(OfLen(len)).bind("127.0.0.1:0").err()
    };
    assert!(bind(8).is_none() && bind(20).is_none());
    assert!(matches!(bind(7), Some(EndpointError::CidLength(7))));
    assert!(matches!(bind(21), Some(EndpointError::CidLength(21))));
    let builder = Endpoint::builder()
        .server(server_config())
        .zero_length_cids();
    let refused = builder.bind("127.0.0.1:0").err();
    assert!(matches!(refused, Some(EndpointError::ZeroLengthCids)));
}

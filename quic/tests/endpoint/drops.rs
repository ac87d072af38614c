//! Handles that are dropped early, in every order, while data is on its way.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use crate::endpoint_support::{Pair, client_config, reachable, server_config, soon};
use std::time::Duration;

use hybriq::{
    Connection, ConnectionError, Endpoint, ReadError, RecvStream, SendStream, TransportConfig,
    error::By, transport::ApplicationCodes,
};

/// More than the first window of congestion control lets out at once.
const MUCH: usize = 300_000;

/// A handle that is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Handle {
    Endpoint,
    Connection,
    Streams,
}

const ORDERS: [[Handle; 3]; 6] = {
    use Handle::{Connection, Endpoint, Streams};
    [
        [Endpoint, Connection, Streams],
        [Endpoint, Streams, Connection],
        [Connection, Endpoint, Streams],
        [Connection, Streams, Endpoint],
        [Streams, Endpoint, Connection],
        [Streams, Connection, Endpoint],
    ]
};

/// The end that drops its handles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaver {
    Client,
    Server,
}

async fn pair(workers: usize) -> Pair {
    let server = Endpoint::builder().server(server_config()).workers(workers);
    let client = Endpoint::builder().client(client_config()).workers(workers);
    Pair::of(
        server.bind("127.0.0.1:0").unwrap(),
        client.bind("127.0.0.1:0").unwrap(),
    )
    .await
}

/// All handles of one end.
struct Handles {
    endpoint: Option<Endpoint>,
    connection: Option<Connection>,
    streams: Vec<(SendStream, RecvStream)>,
}

impl Handles {
    fn drop(&mut self, which: Handle) {
        match which {
            Handle::Endpoint => drop(self.endpoint.take()),
            Handle::Connection => drop(self.connection.take()),
            Handle::Streams => self.streams.clear(),
        }
    }
}

/// Writes and finishes streams, and drops everything at once. The peer reads all of it.
async fn leave(workers: usize, leaver: Leaver, order: [Handle; 3]) {
    let pair = pair(workers).await;
    let (endpoint, connection, peer, peer_endpoint) = match leaver {
        Leaver::Client => (
            pair.client_endpoint,
            pair.client,
            pair.server,
            pair.server_endpoint,
        ),
        Leaver::Server => (
            pair.server_endpoint,
            pair.server,
            pair.client,
            pair.client_endpoint,
        ),
    };
    let mut streams = Vec::new();
    for number in 0..2_u8 {
        let (mut send, recv) = connection.open_bidi().await.unwrap();
        send.write_all(&vec![number; MUCH]).await.unwrap();
        send.finish();
        streams.push((send, recv));
    }
    let observer = endpoint.clone();
    let mut handles = Handles {
        endpoint: Some(endpoint),
        connection: Some(connection),
        streams,
    };
    for handle in order {
        handles.drop(handle);
    }
    let read = async {
        for _ in 0..2 {
            let (_send, mut recv) = peer.accept_bidi().await.unwrap().unwrap();
            let data = recv.read_to_end(2 * MUCH).await.unwrap();
            assert_eq!(data.len(), MUCH);
        }
        peer.closed().await
    };
    let end = soon(read).await;
    let clean = ConnectionError::Application {
        by: By::Peer,
        code: 0,
        reason: "".into(),
    };
    assert_eq!(end, clean);
    soon(observer.idle()).await;
    drop(peer_endpoint);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_finished_arrives_whatever_is_dropped_first() {
    for workers in [1, 3] {
        for leaver in [Leaver::Client, Leaver::Server] {
            for order in ORDERS {
                eprintln!("{workers} workers, the {leaver:?} drops {order:?}");
                leave(workers, leaver, order).await;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_is_dropped_ends_nothing() {
    for workers in [1, 3] {
        let Pair {
            server,
            client,
            server_endpoint,
            client_endpoint,
        } = pair(workers).await;
        let address = reachable(&server_endpoint);
        let (mut send, mut recv) = client.open_bidi().await.unwrap();
        send.write_all(&[1; 1000]).await.unwrap();
        drop((server_endpoint, client_endpoint));
        let serve = async {
            let (mut send, mut recv) = server.accept_bidi().await.unwrap().unwrap();
            tokio::io::copy(&mut recv, &mut send).await.unwrap();
            send.finish();
        };
        let ask = async {
            for _ in 0..50 {
                send.write_all(&[2; 10_000]).await.unwrap();
            }
            send.finish();
        };
        let (echoed, (), ()) =
            soon(async { tokio::join!(recv.read_to_end(MUCH * 2), ask, serve) }).await;
        assert_eq!(echoed.unwrap().len(), 501_000);
        // The address is free once the last connection is gone.
        client.close(0, b"");
        drop((client, server, send, recv));
        soon(async {
            while Endpoint::server(address, server_config()).is_err() {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
}

/// Nothing is finished: the close does not wait.
#[tokio::test]
async fn what_was_not_finished_is_reset_and_delays_nothing() {
    let Pair {
        server,
        client,
        server_endpoint: _server,
        client_endpoint,
    } = pair(1).await;
    let mut send = client.open_uni().await.unwrap();
    send.write_all(&[1; 1000]).await.unwrap();
    drop((send, client));
    soon(client_endpoint.idle()).await;
    assert!(soon(server.closed()).await.is_clean());
}

/// The application protocol's codes leave instead of 0, and its normal end is one for `hybriq`, too.
#[tokio::test]
async fn dropped_handles_send_the_codes_of_the_application_protocol() {
    let codes = ApplicationCodes::new()
        .no_error(0x100)
        .dropped_send(0x10c)
        .dropped_recv(0x10d);
    let transport = TransportConfig::new().application_codes(codes);
    let server = server_config().transport(transport.clone());
    let server = Endpoint::server("127.0.0.1:0", server).unwrap();
    let client = Endpoint::client(client_config().transport(transport)).unwrap();
    let Pair {
        server,
        client,
        server_endpoint: _server,
        client_endpoint: _client,
    } = Pair::of(server, client).await;
    let (mut send, recv) = client.open_bidi().await.unwrap();
    send.write_all(b"half of").await.unwrap();
    let (answer, mut question) = soon(server.accept_bidi()).await.unwrap().unwrap();
    drop((send, recv));
    let reset = soon(question.read_to_end(100)).await;
    assert_eq!(reset, Err(ReadError::Reset(0x10c)));
    assert_eq!(soon(answer.stopped()).await.unwrap(), Some(0x10d));
    drop((answer, question));

    let waiting = server.clone();
    let waiting = tokio::spawn(async move { waiting.accept_uni().await.map(|it| it.is_some()) });
    drop(client);
    let reason = soon(server.closed()).await;
    let ConnectionError::Application { by, code, .. } = &reason else {
        panic!("{reason}")
    };
    assert_eq!((*by, *code), (By::Peer, 0x100));
    assert_eq!(soon(waiting).await.unwrap(), Ok(false));
    assert!(codes.is_clean(&reason) && !reason.is_clean());
}

/// A close of the endpoint does not wait for connections that nobody has a handle of.
#[tokio::test]
async fn a_close_reaches_connections_that_wait_for_their_last_data() {
    // The peer reads nothing, and takes no more than this.
    let small = TransportConfig::new()
        .receive_window(10_000)
        .stream_receive_window(10_000);
    let server = Endpoint::server("127.0.0.1:0", server_config().transport(small)).unwrap();
    let client = Endpoint::client(client_config()).unwrap();
    let Pair {
        server,
        client,
        server_endpoint: _server,
        client_endpoint,
    } = Pair::of(server, client).await;
    let mut send = client.open_uni().await.unwrap();
    send.write_all(&vec![1; 20_000]).await.unwrap();
    send.finish();
    drop((send, client));
    let mut recv = soon(server.accept_uni()).await.unwrap().unwrap();
    assert_eq!(server.close_reason(), None, "it waits for its data");
    let idle = tokio::time::timeout(Duration::ZERO, client_endpoint.idle());
    assert!(idle.await.is_err(), "the connection is still there");
    client_endpoint.close(3, b"");
    let end = soon(server.closed()).await;
    assert!(
        matches!(end, ConnectionError::Application { code: 3, .. }),
        "{end}"
    );
    assert!(soon(recv.read_to_end(MUCH)).await.is_err());
    soon(client_endpoint.idle()).await;
}

//! Ends of connections and endpoints, and the effects of dropping a handle.

use std::time::Duration;

use hybriq::{
    ConnectError, ConnectionError, Endpoint, ReadError, TransportConfig, WriteError,
    error::{By, Code},
};

use crate::endpoint_support::{Pair, client, client_config, server, server_config, soon};

fn application(by: By, code: u64, reason: &'static [u8]) -> ConnectionError {
    ConnectionError::Application {
        by,
        code,
        reason: reason.into(),
    }
}

#[tokio::test]
async fn the_peer_learns_the_code_and_the_reason_of_a_close() {
    let pair = Pair::new("127.0.0.1:0").await;
    pair.client.close(7, b"enough");
    assert_eq!(
        pair.client.closed().await,
        application(By::Local, 7, b"enough")
    );
    assert_eq!(
        soon(pair.server.closed()).await,
        application(By::Peer, 7, b"enough")
    );
    let error = pair.server.accept_bidi().await.unwrap_err();
    assert_eq!(error, application(By::Peer, 7, b"enough"));
    assert_eq!(pair.server.open_uni().await.unwrap_err(), error);
}

#[tokio::test]
async fn code_zero_ends_accepting_cleanly() {
    let pair = Pair::new("127.0.0.1:0").await;
    pair.client.close(0, b"");
    assert!(soon(pair.server.accept_bidi()).await.unwrap().is_none());
    assert!(pair.server.accept_uni().await.unwrap().is_none());
}

#[tokio::test]
async fn everybody_who_waits_learns_of_a_close() {
    let pair = Pair::new("127.0.0.1:0").await;
    let (mut send, mut recv) = pair.client.open_bidi().await.unwrap();
    send.write_all(b"x").await.unwrap();
    let (echo, mut heard) = soon(pair.server.accept_bidi()).await.unwrap().unwrap();
    assert_eq!(heard.read(&mut [0; 8]).await, Ok(1));

    let closed = application(By::Peer, 3, b"");
    let waiting = async {
        tokio::join!(
            async { assert_eq!(heard.read(&mut [0; 8]).await, Err(closed.clone().into())) },
            async { assert_eq!(echo.stopped().await, Err(closed.clone().into())) },
            async { assert_eq!(pair.server.accept_uni().await.unwrap_err(), closed) },
            async { assert_eq!(pair.server.closed().await, closed) },
            async { pair.client.close(3, b"") },
        );
    };
    soon(waiting).await;
    let closed = application(By::Local, 3, b"");
    assert_eq!(recv.read(&mut [0; 8]).await, Err(closed.clone().into()));
    assert_eq!(send.write(b"y").await, Err(WriteError::Connection(closed)));
}

#[tokio::test]
async fn the_last_handle_of_a_connection_closes_it() {
    let Pair { server, client, .. } = Pair::new("127.0.0.1:0").await;
    let (send, recv) = client.open_bidi().await.unwrap();
    let second = client.clone();
    drop((client, second, send));
    // The receiving end is a handle like the others.
    assert_eq!(recv.id().to_string(), "0");
    let mut probe = server.open_uni().await.unwrap();
    probe.write_all(b"alive?").await.unwrap();
    soon(probe.acknowledged()).await.unwrap();
    drop(recv);
    assert_eq!(soon(server.closed()).await, application(By::Peer, 0, b""));
}

#[tokio::test]
async fn a_send_stream_dropped_unfinished_is_no_end() {
    let pair = Pair::new("127.0.0.1:0").await;
    let mut send = pair.client.open_uni().await.unwrap();
    send.write_all(b"half").await.unwrap();
    let mut recv = soon(pair.server.accept_uni()).await.unwrap().unwrap();
    drop(send);
    let error = soon(recv.read_to_end(100)).await.unwrap_err();
    assert_eq!(error, ReadError::Reset(0));
    assert_eq!(recv.read(&mut [0; 8]).await, Err(error), "and again");
}

#[tokio::test]
async fn a_finished_stream_arrives_although_its_handle_is_gone() {
    let pair = Pair::new("127.0.0.1:0").await;
    let mut send = pair.client.open_uni().await.unwrap();
    send.write_all(b"whole").await.unwrap();
    send.finish();
    drop(send);
    let mut recv = soon(pair.server.accept_uni()).await.unwrap().unwrap();
    assert_eq!(soon(recv.read_to_end(100)).await.unwrap(), b"whole");
}

#[tokio::test]
async fn a_reset_carries_its_code() {
    let pair = Pair::new("127.0.0.1:0").await;
    let mut send = pair.client.open_uni().await.unwrap();
    send.write_all(b"half").await.unwrap();
    send.reset(42);
    assert_eq!(send.write(b"more").await, Err(WriteError::Closed));
    assert_eq!(send.acknowledged().await, Err(WriteError::Closed));
    let mut recv = soon(pair.server.accept_uni()).await.unwrap().unwrap();
    assert_eq!(soon(recv.read_to_end(100)).await, Err(ReadError::Reset(42)));
}

#[tokio::test]
async fn a_recv_stream_dropped_unread_stops_the_peer() {
    let pair = Pair::new("127.0.0.1:0").await;
    let mut send = pair.client.open_uni().await.unwrap();
    send.write_all(b"unwanted").await.unwrap();
    let mut recv = soon(pair.server.accept_uni()).await.unwrap().unwrap();
    recv.stop(9);
    assert_eq!(recv.read(&mut [0; 8]).await, Err(ReadError::Stopped));
    assert_eq!(soon(send.stopped()).await, Ok(Some(9)));
    assert_eq!(send.write(b"more").await, Err(WriteError::Stopped(9)));

    let mut send = pair.client.open_uni().await.unwrap();
    send.write_all(b"unwanted").await.unwrap();
    drop(soon(pair.server.accept_uni()).await.unwrap().unwrap());
    assert_eq!(soon(send.stopped()).await, Ok(Some(0)));
    assert_eq!(send.acknowledged().await, Err(WriteError::Stopped(0)));
}

/// Proves: rfc9000 10.2 close-goes-with-the-last-acknowledgement
#[tokio::test]
async fn what_arrived_is_acknowledged_although_the_peer_closes_at_once() {
    for round in 0..20 {
        let pair = Pair::new("127.0.0.1:0").await;
        let (from, to) = match round % 2 {
            0 => (&pair.client, &pair.server),
            _ => (&pair.server, &pair.client),
        };
        let mut send = from.open_uni().await.unwrap();
        send.write_all(&[7; 3000]).await.unwrap();
        send.finish();
        let mut recv = soon(to.accept_uni()).await.unwrap().unwrap();
        assert_eq!(soon(recv.read_to_end(4000)).await.unwrap().len(), 3000);
        to.close(0, b"");
        soon(send.acknowledged()).await.unwrap();
        assert_eq!(soon(from.closed()).await, application(By::Peer, 0, b""));
    }
}

#[tokio::test]
async fn a_stream_that_was_too_long_stays_an_error() {
    let pair = Pair::new("127.0.0.1:0").await;
    let mut send = pair.client.open_uni().await.unwrap();
    send.write_all(&[7; 3000]).await.unwrap();
    send.finish();
    let mut recv = soon(pair.server.accept_uni()).await.unwrap().unwrap();
    let too_long = ReadError::TooLong { limit: 1000 };
    for _ in 0..2 {
        assert_eq!(soon(recv.read_to_end(1000)).await, Err(too_long.clone()));
    }
    assert_eq!(recv.read(&mut [0; 8]).await, Err(too_long));
}

#[tokio::test]
async fn what_came_before_the_close_can_still_be_read() {
    let pair = Pair::new("127.0.0.1:0").await;
    let mut send = pair.client.open_uni().await.unwrap();
    send.write_all(b"last words").await.unwrap();
    soon(send.acknowledged()).await.unwrap();
    pair.client.close(0, b"");
    soon(pair.server.closed()).await;
    let mut recv = pair.server.accept_uni().await.unwrap().unwrap();
    assert_eq!(recv.read_to_end(100).await.unwrap(), b"last words");
    assert!(pair.server.accept_uni().await.unwrap().is_none());
}

#[tokio::test]
async fn a_stream_longer_than_allowed_is_refused() {
    let pair = Pair::new("127.0.0.1:0").await;
    let mut send = pair.client.open_uni().await.unwrap();
    send.write_all(&[1; 101]).await.unwrap();
    send.finish();
    let mut recv = soon(pair.server.accept_uni()).await.unwrap().unwrap();
    let error = soon(recv.read_to_end(100)).await.unwrap_err();
    assert_eq!(error, ReadError::TooLong { limit: 100 });
}

#[tokio::test]
async fn a_refused_client_is_told() {
    let (server, client) = (server("127.0.0.1:0"), client());
    for drop_it in [false, true] {
        let connecting = client.connect(server.local_address(), "localhost");
        let incoming = soon(server.accept()).await.unwrap();
        assert_eq!(incoming.client_hello().server_name(), Some("localhost"));
        assert_eq!(
            incoming.peer_address().port(),
            client.local_address().port()
        );
        if drop_it {
            drop(incoming);
        } else {
            incoming.refuse();
        }
        let error = soon(connecting).await.unwrap_err();
        let ConnectError::Connection(ConnectionError::Transport { by, code, .. }) = error else {
            panic!("{error}");
        };
        assert_eq!((by, code), (By::Peer, Code::CONNECTION_REFUSED));
    }
    assert_eq!(server.stats().connections, 0);
}

#[tokio::test]
async fn an_ignored_client_hears_nothing() {
    let server = server("127.0.0.1:0");
    let transport = TransportConfig::new().handshake_timeout(Duration::from_millis(100));
    let client = Endpoint::client(client_config().transport(transport)).unwrap();
    let ignoring = tokio::spawn({
        let server = server.clone();
        async move {
            while let Some(incoming) = server.accept().await {
                incoming.ignore();
            }
        }
    });
    let error = soon(client.connect(server.local_address(), "localhost"))
        .await
        .unwrap_err();
    assert!(
        matches!(error, ConnectError::Connection(ConnectionError::NoAnswer)),
        "{error}"
    );
    assert_eq!(server.stats().datagrams_sent, 0);
    server.close(0, b"");
    soon(ignoring).await.unwrap();
}

#[tokio::test]
async fn a_configuration_can_be_chosen_per_client() {
    let (server, client) = (server("127.0.0.1:0"), client());
    let connecting = client.connect(server.local_address(), "localhost");
    let incoming = soon(server.accept()).await.unwrap();
    let other = server_config().alpn(["other"]);
    let (accepted, connected) =
        soon(async { tokio::join!(incoming.accept_with(other), connecting) }).await;
    for outcome in [accepted, connected] {
        let error = outcome.unwrap_err();
        let ConnectError::Connection(ConnectionError::Transport { code, .. }) = error else {
            panic!("{error}");
        };
        assert_eq!(code.alert(), Some(120));
    }
}

#[tokio::test]
async fn giving_up_a_handshake_leaves_nothing_behind() {
    // Without a measured round trip the closing period is three times the one assumed.
    let transport = TransportConfig::new().initial_rtt(Duration::from_millis(5));
    let config = server_config().transport(transport.clone());
    let server = Endpoint::server("127.0.0.1:0", config).unwrap();
    let client = Endpoint::client(client_config().transport(transport)).unwrap();
    let connecting = client.connect(server.local_address(), "localhost");
    let incoming = soon(server.accept()).await.unwrap();
    drop(connecting);
    soon(client.idle()).await;
    // Whoever accepts it finds that nobody is there.
    drop(incoming.accept());
    soon(server.idle()).await;
}

#[tokio::test]
async fn a_closed_endpoint_ends_everything() {
    let pair = Pair::new("127.0.0.1:0").await;
    let address = pair.server_endpoint.local_address();
    pair.server_endpoint.close(5, b"bye");
    assert_eq!(
        pair.server.closed().await,
        application(By::Local, 5, b"bye")
    );
    assert_eq!(
        soon(pair.client.closed()).await,
        application(By::Peer, 5, b"bye")
    );
    assert!(soon(pair.server_endpoint.accept()).await.is_none());

    pair.client_endpoint.close(0, b"");
    let error = pair
        .client_endpoint
        .connect(address, "localhost")
        .await
        .unwrap_err();
    assert!(matches!(error, ConnectError::EndpointClosed), "{error}");
    soon(async {
        tokio::join!(pair.server_endpoint.idle(), pair.client_endpoint.idle());
    })
    .await;
    assert_eq!(pair.server_endpoint.stats().connections, 0);
}

#[tokio::test]
async fn closing_refuses_those_who_wait() {
    let (server, client) = (server("127.0.0.1:0"), client());
    let connecting = client.connect(server.local_address(), "localhost");
    // Accepted and put aside: the ClientHello is here.
    let first = soon(server.accept()).await.unwrap();
    server.close(0, b"");
    drop(first);
    let error = soon(connecting).await.unwrap_err();
    assert!(matches!(error, ConnectError::Connection(_)), "{error}");
}

#[tokio::test]
async fn connections_outlive_their_endpoints() {
    let Pair {
        server,
        client,
        server_endpoint,
        client_endpoint,
    } = Pair::new("127.0.0.1:0").await;
    drop((server_endpoint, client_endpoint));
    let mut send = client.open_uni().await.unwrap();
    send.write_all(b"still here").await.unwrap();
    send.finish();
    let mut recv = soon(server.accept_uni()).await.unwrap().unwrap();
    assert_eq!(soon(recv.read_to_end(100)).await.unwrap(), b"still here");
}

#[tokio::test]
async fn who_came_before_the_endpoint_went_can_still_be_accepted() {
    let (server, client) = (server("127.0.0.1:0"), client());
    let connecting = client.connect(server.local_address(), "localhost");
    let incoming = soon(server.accept()).await.unwrap();
    drop((server, client));
    let (server, client) = soon(async { tokio::join!(incoming.accept(), connecting) }).await;
    client.unwrap().close(1, b"");
    assert_eq!(
        soon(server.unwrap().closed()).await,
        application(By::Peer, 1, b"")
    );
}

#[tokio::test]
async fn an_endpoint_without_handles_gives_its_port_back() {
    let endpoint = server("127.0.0.1:0");
    let address = endpoint.local_address();
    drop(endpoint);
    soon(async {
        while Endpoint::server(address, server_config()).is_err() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn an_endpoint_without_connections_is_idle() {
    soon(client().idle()).await;
    soon(server("127.0.0.1:0").idle()).await;
}

#[tokio::test]
async fn a_silent_peer_times_out() {
    let transport = TransportConfig::new().idle_timeout(Some(Duration::from_millis(50)));
    let pair = Pair::of(
        server("127.0.0.1:0"),
        Endpoint::client(client_config().transport(transport)).unwrap(),
    )
    .await;
    assert_eq!(soon(pair.server.closed()).await, ConnectionError::TimedOut);
    assert_eq!(soon(pair.client.closed()).await, ConnectionError::TimedOut);
    assert_eq!(
        pair.client.open_uni().await.unwrap_err(),
        ConnectionError::TimedOut
    );
}

#[test]
fn a_runtime_that_ends_leaves_no_handle_waiting() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let pair = runtime.block_on(Pair::new("127.0.0.1:0"));
    runtime.shutdown_timeout(Duration::from_secs(20));
    let other = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    other.block_on(async {
        let error = soon(pair.client.accept_bidi()).await.unwrap_err();
        assert!(
            matches!(error, ConnectionError::Transport { by: By::Local, .. }),
            "{error}"
        );
        assert!(soon(pair.server_endpoint.accept()).await.is_none());
        soon(pair.client_endpoint.idle()).await;
    });
}

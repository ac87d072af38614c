//! An error stays an error: no later call of the same kind makes a failure look like success.
#![expect(
    clippy::unwrap_used,
    reason = "a scenario that cannot go on has failed"
)]

use std::time::Duration;

use hybriq::{
    ConnectError, Connection, ConnectionError, Endpoint, EndpointError, ReadError, RecvStream,
    SendStream, TransportConfig, WriteError,
    error::{By, EarlyError, ExportError, MigrateError, ResetAtError, SendDatagramError},
};

use crate::endpoint_support::{
    Pair, client, client_config, reachable, server, server_config, soon,
};

/// Number of times that each call is repeated.
const TIMES: usize = 3;

/// Makes a call several times and expects the same error each time.
macro_rules! stays {
    ($call:expr, $error:pat) => {
        for turn in 0..TIMES {
            let result = soon(async { $call.await }).await;
            match result {
                Err($error) => {}
                other => panic!("call {turn} of {}: {other:?}", stringify!($call)),
            }
        }
    };
}

/// Makes a call that does not wait several times and expects the same error each time.
macro_rules! stays_at_once {
    ($call:expr, $error:pat) => {
        stays!(async { $call }, $error)
    };
}

/// Returns a stream from the client to the server on which a byte has arrived.
async fn stream(pair: &Pair) -> (SendStream, RecvStream) {
    let mut send = pair.client.open_uni().await.unwrap();
    send.write_all(b"x").await.unwrap();
    let recv = soon(pair.server.accept_uni()).await.unwrap().unwrap();
    (send, recv)
}

/// Reads in every way that there is, and expects the same error each time.
macro_rules! every_read_stays {
    ($recv:expr, $error:pat) => {
        let mut buffer = [0; 8];
        let mut chunks = [bytes::Bytes::new()];
        stays!($recv.read_to_end(100), $error);
        stays!($recv.read(&mut buffer), $error);
        stays!($recv.read_chunk(8), $error);
        stays!($recv.read_chunks(&mut chunks), $error);
        stays!($recv.read_unordered(8), $error);
        stays!($recv.read_to_end(100), $error);
    };
}

/// Writes in every way that there is, and expects the same error each time.
macro_rules! every_write_stays {
    ($send:expr, $error:pat) => {
        stays!($send.write(b"y"), $error);
        stays!($send.write_all(b"y"), $error);
        stays!($send.write_chunk("y".into()), $error);
        stays!($send.write_chunks(&mut ["y".into()]), $error);
        stays!($send.finish_with(&mut ["y".into()]), $error);
    };
}

#[tokio::test]
async fn a_stream_that_was_reset_stays_reset() {
    let pair = Pair::new("127.0.0.1:0").await;
    let (mut send, mut recv) = stream(&pair).await;
    send.reset(7);
    soon(recv.received_reset()).await.unwrap();
    every_read_stays!(recv, ReadError::Reset(7));
    every_write_stays!(send, WriteError::Closed);
    stays!(send.acknowledged(), WriteError::Closed);
    stays_at_once!(send.reset_at(7, 0), ResetAtError::Closed);
    assert_eq!(soon(send.stopped()).await, Ok(None), "the reset arrived");
    stays!(send.acknowledged(), WriteError::Closed);
}

#[tokio::test]
async fn a_stream_that_was_stopped_here_stays_stopped() {
    let pair = Pair::new("127.0.0.1:0").await;
    let (mut send, mut recv) = stream(&pair).await;
    recv.stop(7);
    every_read_stays!(recv, ReadError::Stopped);
    send.finish();
    soon(send.stopped()).await.unwrap();
    every_read_stays!(recv, ReadError::Stopped);
}

#[tokio::test]
async fn a_stream_that_was_too_long_stays_too_long() {
    let pair = Pair::new("127.0.0.1:0").await;
    let (mut send, mut recv) = stream(&pair).await;
    send.write_all(&[1; 1000]).await.unwrap();
    send.finish();
    let error = soon(recv.read_to_end(10)).await.unwrap_err();
    assert_eq!(error, ReadError::TooLong { limit: 10 });
    every_read_stays!(recv, ReadError::TooLong { limit: 10 });
}

#[tokio::test]
async fn ordered_reads_after_unordered_ones_fail_also_at_the_end() {
    let pair = Pair::new("127.0.0.1:0").await;
    let (mut send, mut recv) = stream(&pair).await;
    assert!(soon(recv.read_unordered(8)).await.unwrap().is_some());
    stays!(recv.read_chunk(8), ReadError::Unordered);
    send.finish();
    assert_eq!(soon(recv.read_unordered(8)).await, Ok(None));
    let mut buffer = [0; 8];
    let mut chunks = [bytes::Bytes::new()];
    stays!(recv.read_to_end(100), ReadError::Unordered);
    stays!(recv.read(&mut buffer), ReadError::Unordered);
    stays!(recv.read_chunk(8), ReadError::Unordered);
    stays!(recv.read_chunks(&mut chunks), ReadError::Unordered);
    assert_eq!(soon(recv.read_unordered(8)).await, Ok(None));
}

#[tokio::test]
async fn a_stream_that_the_peer_stopped_was_never_delivered() {
    let pair = Pair::new("127.0.0.1:0").await;
    let (mut send, mut recv) = stream(&pair).await;
    recv.stop(7);
    assert_eq!(soon(send.stopped()).await, Ok(Some(7)));
    let_acknowledgements_arrive(&pair).await;
    every_write_stays!(send, WriteError::Stopped(7));
    stays!(send.acknowledged(), WriteError::Stopped(7));
    assert_eq!(soon(send.stopped()).await, Ok(Some(7)));
    stays_at_once!(send.reset_at(7, 0), ResetAtError::Closed);
}

/// The acknowledgement of our reset may come before the task that waits is polled.
#[tokio::test]
async fn a_stream_that_the_peer_stopped_after_its_end_was_not_delivered() {
    // Nothing beyond the first bytes can be sent.
    let narrow = server_config().transport(TransportConfig::new().stream_receive_window(100));
    let server = Endpoint::server("127.0.0.1:0", narrow).unwrap();
    let pair = Pair::of(server, client()).await;
    let mut send = pair.client.open_uni().await.unwrap();
    send.write_all(&[1; 1000]).await.unwrap();
    send.finish();
    let mut recv = soon(pair.server.accept_uni()).await.unwrap().unwrap();
    recv.stop(7);
    let_acknowledgements_arrive(&pair).await;
    stays!(send.acknowledged(), WriteError::Stopped(7));
    assert_eq!(soon(send.stopped()).await, Ok(Some(7)));
}

/// Waits for several round trips and delayed acknowledgements.
async fn let_acknowledgements_arrive(pair: &Pair) {
    for _ in 0..5 {
        let mut send = pair.client.open_uni().await.unwrap();
        send.write_all(b"x").await.unwrap();
        soon(send.acknowledged()).await.unwrap();
    }
}

async fn every_call_stays(connection: &Connection, is_right: fn(&ConnectionError) -> bool) {
    for _ in 0..TIMES {
        let error = |error: Option<ConnectionError>| assert!(is_right(&error.unwrap()));
        error(soon(connection.open_bidi()).await.err());
        error(soon(connection.open_uni()).await.err());
        error(soon(connection.accept_bidi()).await.err());
        error(soon(connection.accept_uni()).await.err());
        error(soon(connection.recv_datagram()).await.err());
        error(Some(soon(connection.closed()).await));
        error(connection.close_reason());
        let closed = |result: Result<(), SendDatagramError>| match result {
            Err(SendDatagramError::Connection(error)) => assert!(is_right(&error)),
            other => panic!("{other:?}"),
        };
        closed(connection.send_datagram("x".into()));
        closed(soon(connection.send_datagram_wait("x".into())).await);
        let migrated = soon(connection.migrate(([127, 0, 0, 1], 0).into())).await;
        assert!(
            matches!(migrated, Err(MigrateError::Closed)),
            "{migrated:?}"
        );
        // A later close changes nothing.
        connection.close(99, b"later");
    }
}

#[tokio::test]
async fn a_connection_that_is_over_stays_over_for_the_same_reason() {
    let pair = Pair::new("127.0.0.1:0").await;
    let (mut send, mut recv) = stream(&pair).await;
    let (mut echo, mut answer) = pair.client.open_bidi().await.unwrap();
    echo.write_all(b"x").await.unwrap();
    pair.server.close(7, b"");
    soon(pair.client.closed()).await;
    let by_peer = |error: &ConnectionError| {
        matches!(
            error,
            ConnectionError::Application {
                by: By::Peer,
                code: 7,
                ..
            }
        )
    };
    every_call_stays(&pair.client, by_peer).await;
    every_call_stays(&pair.server, |error| {
        matches!(
            error,
            ConnectionError::Application {
                by: By::Local,
                code: 7,
                ..
            }
        )
    })
    .await;
    every_read_stays!(answer, ReadError::Connection(_));
    stays!(answer.received_reset(), ReadError::Connection(_));
    every_write_stays!(send, WriteError::Connection(_));
    stays!(send.stopped(), WriteError::Connection(_));
    stays_at_once!(send.reset_at(7, 0), ResetAtError::Connection(_));
    stays!(send.acknowledged(), WriteError::Connection(_));
    // Data that came before the end can be read, and nothing more.
    assert_eq!(soon(recv.read_chunk(8)).await.unwrap().unwrap(), &b"x"[..]);
    every_read_stays!(recv, ReadError::Connection(_));
}

#[tokio::test]
async fn a_request_that_cannot_be_met_is_refused_again() {
    let pair = Pair::new("127.0.0.1:0").await;
    let mut out = [0; 8];
    stays_at_once!(
        pair.client.export_keying_material(b"", b"", &mut out),
        ExportError::Request(_)
    );
    let large = bytes::Bytes::from(vec![0; 100_000]);
    stays_at_once!(
        pair.client.send_datagram(large.clone()),
        SendDatagramError::TooLarge { .. }
    );
    stays!(
        pair.client.send_datagram_wait(large.clone()),
        SendDatagramError::TooLarge { .. }
    );
}

#[tokio::test]
async fn a_closed_endpoint_stays_closed() {
    let (server, client) = (server("127.0.0.1:0"), client());
    let address = reachable(&server);
    client.close(0, b"");
    server.close(0, b"");
    stays!(
        client.connect(address, "localhost"),
        ConnectError::EndpointClosed
    );
    stays_at_once!(client.rebind("127.0.0.1:0"), EndpointError::Closed);
    for _ in 0..TIMES {
        assert!(soon(server.accept()).await.is_none());
    }
    tokio::time::sleep(Duration::from_millis(10)).await;
    stays!(
        client.connect(address, "localhost"),
        ConnectError::EndpointClosed
    );
    stays_at_once!(client.rebind("127.0.0.1:0"), EndpointError::Closed);
}

/// The server refuses 0-RTT data, and everything that was sent in it.
#[tokio::test]
async fn early_data_that_was_refused_stays_refused() {
    let first = Endpoint::server("127.0.0.1:0", server_config().accept_early_data()).unwrap();
    let address = reachable(&first);
    let client = Endpoint::client(client_config().offer_early_data()).unwrap();
    let pair = Pair::of(first.clone(), client.clone()).await;
    // The ticket comes with the first data or before.
    assert_eq!(pair.echo(b"x").await, b"x");
    drop(pair);
    first.close(0, b"");
    drop(first);
    soon(client.idle()).await;
    // The same server with other ticket keys.
    let second = loop {
        match Endpoint::server(address, server_config().accept_early_data()) {
            Ok(second) => break second,
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    };
    let accept = tokio::spawn(async move {
        let connection = second.accept().await.unwrap().accept().await.unwrap();
        connection.closed().await
    });
    let early = soon(client.connect(address, "localhost").early())
        .await
        .expect("there is a ticket");
    let (mut send, mut recv) = soon(early.open_bidi()).await.unwrap();
    send.write_all(b"early").await.unwrap();
    let (connection, _) = soon(early.complete()).await.unwrap();
    stays!(early.open_uni(), EarlyError::ZeroRttRejected);
    stays!(early.open_bidi(), EarlyError::ZeroRttRejected);
    stays!(early.accept_uni(), EarlyError::ZeroRttRejected);
    stays!(early.accept_bidi(), EarlyError::ZeroRttRejected);
    stays!(early.recv_datagram(), EarlyError::ZeroRttRejected);
    stays!(early.complete(), ConnectError::HandedOut);
    every_write_stays!(send, WriteError::ZeroRttRejected);
    stays!(send.stopped(), WriteError::ZeroRttRejected);
    every_read_stays!(recv, ReadError::ZeroRttRejected);
    stays!(recv.received_reset(), ReadError::ZeroRttRejected);
    stays_at_once!(send.reset_at(7, 0), ResetAtError::Closed);
    drop(send.acknowledged());
    stays!(send.acknowledged(), WriteError::ZeroRttRejected);
    connection.close(0, b"");
    soon(accept).await.unwrap();
}

/// The handshake fails for the same reason however often it is asked.
#[tokio::test]
async fn a_handshake_that_failed_stays_failed() {
    let server = Endpoint::server("127.0.0.1:0", server_config().accept_early_data()).unwrap();
    let address = reachable(&server);
    // This client trusts nobody here, so it closes the connection in the middle of the handshake.
    let wary = Endpoint::client(hybriq::ClientConfig::new().alpn(["test"])).unwrap();
    let connecting = wary.connect(address, "localhost");
    let incoming = soon(server.accept()).await.unwrap();
    let early = soon(incoming.accept().early()).await;
    assert!(soon(connecting).await.is_err());
    if let Ok(early) = early {
        stays!(early.complete(), ConnectError::Connection(_));
        stays!(early.open_uni(), EarlyError::Connection(_));
        stays!(early.accept_uni(), EarlyError::Connection(_));
        stays!(early.recv_datagram(), EarlyError::Connection(_));
    }
}

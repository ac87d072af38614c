//! Datagrams (RFC 9221) through the public API, over real loopback sockets.
#![expect(clippy::unwrap_used, reason = "a failure here is a failed test")]

use std::{future::poll_fn, pin::Pin, time::Duration};

use crate::endpoint_support::{Pair, client_config, server_config, soon};
use bytes::Bytes;
use hybriq::{
    ConnectionError, Endpoint, TransportConfig,
    error::SendDatagramError,
    transport::{DatagramConfig, WhenFull},
};

async fn pair_with(client: DatagramConfig, server: DatagramConfig) -> Pair {
    let transport = |datagrams| TransportConfig::new().datagrams(datagrams);
    Pair::of(
        Endpoint::server("127.0.0.1:0", server_config().transport(transport(server))).unwrap(),
        Endpoint::client(client_config().transport(transport(client))).unwrap(),
    )
    .await
}

#[tokio::test]
async fn datagrams_go_both_ways() {
    let pair = Pair::new("127.0.0.1:0").await;
    let most = pair.client.max_datagram_size().unwrap();
    assert!(most >= 1150, "{most}");
    let question = Bytes::from(vec![7; most]);
    pair.client.send_datagram(question.clone()).unwrap();
    let got = soon(pair.server.recv_datagram()).await.unwrap();
    assert_eq!(got, Some(question));
    pair.server.send_datagram(Bytes::new()).unwrap();
    let got = soon(pair.client.recv_datagram()).await.unwrap();
    assert_eq!(got, Some(Bytes::new()));
    assert_eq!(pair.server.stats().datagram_frames.received, 1);
}

#[tokio::test]
async fn what_does_not_fit_is_refused_and_the_limit_told() {
    let pair = Pair::new("127.0.0.1:0").await;
    let max = pair.client.max_datagram_size().unwrap();
    let data = Bytes::from(vec![0; max + 1]);
    let error = SendDatagramError::TooLarge { len: max + 1, max };
    assert_eq!(pair.client.send_datagram(data.clone()), Err(error.clone()));
    assert_eq!(soon(pair.client.send_datagram_wait(data)).await, Err(error));
}

#[tokio::test]
async fn who_takes_none_is_sent_none() {
    let none = DatagramConfig::new().receive_buffer(0);
    let pair = pair_with(DatagramConfig::new(), none).await;
    assert_eq!(pair.client.max_datagram_size(), None);
    assert_eq!(
        pair.client.send_datagram(Bytes::new()),
        Err(SendDatagramError::Unsupported)
    );
    pair.server.send_datagram("one way".into()).unwrap();
    let got = soon(pair.client.recv_datagram()).await.unwrap();
    assert_eq!(got.as_deref(), Some(&b"one way"[..]));
}

#[tokio::test]
async fn a_waiting_sender_loses_none_to_a_full_queue() {
    let small = DatagramConfig::new()
        .send_queue(4000)
        .receive_buffer(1 << 20);
    let pair = pair_with(small, small).await;
    let send = async {
        for number in 0..2000_u32 {
            let mut data = vec![0; 1000];
            data[..4].copy_from_slice(&number.to_be_bytes());
            pair.client.send_datagram_wait(data.into()).await.unwrap();
        }
    };
    soon(send).await;
    let stats = pair.client.stats().datagram_frames;
    assert_eq!(stats.dropped_unsent, 0);
}

/// One that is too old when its turn comes is counted, and the next one is sent.
#[tokio::test]
async fn an_expired_datagram_is_not_sent() {
    let config = DatagramConfig::new();
    let pair = pair_with(config, config).await;
    let client = &pair.client;
    client
        .send_datagram_for("old".into(), Duration::ZERO)
        .unwrap();
    client
        .send_datagram_for("new".into(), Duration::MAX)
        .unwrap();
    let got = soon(pair.server.recv_datagram()).await.unwrap();
    assert_eq!(got.as_deref(), Some(&b"new"[..]));
    let stats = client.stats().datagram_frames;
    assert_eq!((stats.sent, stats.expired, stats.dropped_unsent), (1, 1, 0));
}

#[tokio::test]
async fn a_full_queue_refuses_where_that_is_asked_for() {
    let refuse = DatagramConfig::new()
        .send_queue(3000)
        .when_full(WhenFull::Refuse);
    let pair = pair_with(refuse, refuse).await;
    // The worker runs on this thread: nothing leaves between these.
    let taken = (0..10)
        .map(|_| pair.client.send_datagram(vec![0; 1000].into()))
        .take_while(Result::is_ok)
        .count();
    assert_eq!(taken, 2);
    assert_eq!(
        pair.client.send_datagram(vec![0; 1000].into()),
        Err(SendDatagramError::Full)
    );
}

#[tokio::test]
async fn what_came_before_the_end_is_still_handed_out() {
    let pair = Pair::new("127.0.0.1:0").await;
    pair.client.send_datagram("last".into()).unwrap();
    // The peer has it once it is acknowledged.
    soon(async {
        while pair.client.stats().datagram_frames.acknowledged == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    pair.client.close(0, b"");
    soon(pair.server.closed()).await;
    let got = soon(pair.server.recv_datagram()).await.unwrap();
    assert_eq!(got.as_deref(), Some(&b"last"[..]));
    assert_eq!(soon(pair.server.recv_datagram()).await, Ok(None));
    assert!(matches!(
        pair.server.send_datagram(Bytes::new()),
        Err(SendDatagramError::Connection(
            ConnectionError::Application { .. }
        ))
    ));
}

#[tokio::test]
async fn the_end_of_the_connection_wakes_who_waits() {
    let pair = Pair::new("127.0.0.1:0").await;
    let (got, ()) = soon(async {
        tokio::join!(pair.server.recv_datagram(), async {
            tokio::task::yield_now().await;
            pair.client.close(3, b"enough");
        })
    })
    .await;
    assert!(matches!(
        got,
        Err(ConnectionError::Application { code: 3, .. })
    ));
}

#[tokio::test]
async fn a_dropped_wait_takes_no_datagram() {
    let pair = Pair::new("127.0.0.1:0").await;
    {
        let waiting = pair.server.recv_datagram();
        tokio::select! {
            biased;
            got = waiting => panic!("nothing was sent: {got:?}"),
            () = tokio::task::yield_now() => {}
        }
    }
    pair.client.send_datagram("kept".into()).unwrap();
    let got = soon(pair.server.recv_datagram()).await.unwrap();
    assert_eq!(got.as_deref(), Some(&b"kept"[..]));
}

/// Datagrams, streams and clients by the traits of the crate `futures`.
#[tokio::test]
async fn streams_and_sinks_carry_what_the_methods_do() {
    use futures_core::Stream;
    use futures_sink::Sink;

    async fn next<S: Stream + Unpin>(stream: &mut S) -> Option<S::Item> {
        soon(poll_fn(|cx| Pin::new(&mut *stream).poll_next(cx))).await
    }

    let server = Endpoint::server("127.0.0.1:0", server_config()).unwrap();
    let config = DatagramConfig::new().send_queue(3000);
    let config = client_config().transport(TransportConfig::new().datagrams(config));
    let client = Endpoint::client(config).unwrap();
    let connecting = client.connect(server.local_address(), "localhost");
    let mut clients = server.clients();
    let accept = async { next(&mut clients).await.unwrap().accept().await.unwrap() };
    let (there, here) = soon(async { tokio::join!(accept, connecting) }).await;
    let here = here.unwrap();

    // More than the queue holds: nothing is dropped, because the sink waits.
    let mut sink = here.datagrams();
    let mut datagrams = there.datagrams();
    for number in 0..20 {
        soon(poll_fn(|cx| Pin::new(&mut sink).poll_ready(cx)))
            .await
            .unwrap();
        let data = Bytes::from(vec![number; 1000]);
        Pin::new(&mut sink).start_send(data).unwrap();
    }
    soon(poll_fn(|cx| Pin::new(&mut sink).poll_close(cx)))
        .await
        .unwrap();
    let stats = here.stats().datagram_frames;
    assert_eq!(stats.dropped_unsent, 0);
    for number in 0..20 {
        assert_eq!(next(&mut datagrams).await.unwrap().unwrap()[0], number);
    }

    let (mut bidi, mut uni) = (there.bidi_streams(), there.uni_streams());
    let (mut send, _recv) = here.open_bidi().await.unwrap();
    send.write_all(b"x").await.unwrap();
    let mut one_way = here.open_uni().await.unwrap();
    one_way.write_all(b"x").await.unwrap();
    assert_eq!(next(&mut bidi).await.unwrap().unwrap().0.id(), send.id());
    assert_eq!(next(&mut uni).await.unwrap().unwrap().id(), one_way.id());
    here.close(7, b"");
    assert!(next(&mut bidi).await.unwrap().is_err());
    assert!(next(&mut bidi).await.is_none(), "nothing after an error");
    while next(&mut datagrams).await.unwrap().is_ok() {}
    assert!(next(&mut datagrams).await.is_none());
    server.close(0, b"");
    assert!(next(&mut clients).await.is_none());
}

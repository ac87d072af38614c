//! Promises of stream handles, besides carrying bytes.

use std::sync::atomic::Ordering;

use hybriq::{Endpoint, TransportConfig, transport::Priority};

use crate::endpoint_support::{Pair, client_config, relay, server, soon};

#[tokio::test]
async fn a_writer_goes_on_when_data_is_sent_and_does_not_wait_for_acknowledgements() {
    let server = server("127.0.0.1:0");
    let (address, silent) = relay(server.local_address()).await;
    let config = client_config().transport(TransportConfig::new().send_buffer(500));
    let client = Endpoint::client(config).unwrap();
    let connecting = client.connect(address, "localhost");
    let accept = async { server.accept().await.unwrap().accept().await.unwrap() };
    let (_accepted, connection) = soon(async { tokio::join!(accept, connecting) }).await;
    let mut send = connection.unwrap().open_uni().await.unwrap();
    silent.store(true, Ordering::Relaxed);
    // Twelve times the buffer, and less than what the first congestion window leaves after the last
    // flight of the handshake and an MTU probe, which may never be acknowledged.
    soon(send.write_all(&[0; 6000])).await.unwrap();
}

#[tokio::test]
async fn a_stream_has_the_priority_it_was_given_to_its_end_and_beyond() {
    let pair = Pair::new("127.0.0.1:0").await;
    let mut send = pair.client.open_uni().await.unwrap();
    assert_eq!(send.priority(), Priority::default());
    send.set_priority(Priority::new(6).non_incremental());
    send.write_all(b"x").await.unwrap();
    assert_eq!(send.priority(), Priority::new(6).non_incremental());
    soon(send.acknowledged()).await.unwrap();
    send.set_priority(Priority::new(1));
    assert_eq!(send.priority(), Priority::new(1));
}

#[tokio::test]
async fn what_the_peer_allows_can_be_asked_without_waiting() {
    let limits = TransportConfig::new()
        .max_bidi_streams(2)
        .max_uni_streams(1)
        .stream_receive_window(1000)
        .receive_window(1500);
    let config = crate::endpoint_support::server_config().transport(limits);
    let server = Endpoint::server("127.0.0.1:0", config).unwrap();
    let pair = Pair::of(server, crate::endpoint_support::client()).await;
    let client = &pair.client;
    assert_eq!((client.openable_bidi(), client.openable_uni()), (2, 1));
    let (mut first, _answer) = client.try_open_bidi().unwrap().unwrap();
    let second = client.try_open_uni().unwrap().unwrap();
    assert_eq!((client.openable_bidi(), client.openable_uni()), (1, 0));
    assert!(client.try_open_uni().unwrap().is_none());

    let (stream, connection) = (first.credit(), second.credit());
    assert!(stream > 0 && connection > 0);
    first.write_all(&vec![1; stream as usize]).await.unwrap();
    assert_eq!(first.credit(), 0, "the stream's limit is used up");
    first.write_all(b"more waits here").await.unwrap();
    assert_eq!(first.credit(), 0);

    let mut received = pair.server.accept_bidi().await.unwrap().unwrap().1;
    let mut left = stream as usize;
    while left > 0 {
        let mut bytes = vec![0; left];
        left -= soon(received.read(&mut bytes)).await.unwrap();
    }
    // What was read is allowed again.
    soon(async {
        while first.credit() == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    client.close(0, b"");
    assert_eq!(first.credit(), 0);
    assert!(client.try_open_bidi().is_err());
}

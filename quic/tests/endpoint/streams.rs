//! Promises of stream handles, besides carrying bytes.

use std::sync::atomic::Ordering;

use hybriq::{BidiStream, Endpoint, ReadExactError, TransportConfig, transport::Priority};

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

/// A bidirectional stream as one value works with tokio's traits, and comes apart again.
#[tokio::test]
async fn both_ends_of_a_stream_are_one_value() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    let pair = Pair::new("127.0.0.1:0").await;
    let mut asks = BidiStream::from(pair.client.open_bidi().await.unwrap());
    soon(asks.write_all(b"question")).await.unwrap();
    let answers = soon(pair.server.accept_bidi()).await.unwrap().unwrap();
    let mut answers = BidiStream::from(answers);
    let mut question = [0; 8];
    soon(answers.read_exact(&mut question)).await.unwrap();
    assert_eq!(&question, b"question");
    soon(answers.write_all(b"answer")).await.unwrap();
    answers.shutdown().await.unwrap();
    let mut answer = String::new();
    soon(asks.read_to_string(&mut answer)).await.unwrap();
    assert_eq!(answer, "answer");
    let (send, recv) = asks.split();
    assert_eq!(send.id(), recv.id());
    let mut asks = BidiStream::join(send, recv);
    asks.send_mut().reset(5);
    let reset = soon(answers.recv_mut().received_reset()).await;
    assert_eq!(reset, Ok(Some(5)));
}

#[tokio::test]
async fn a_read_of_a_known_length_fills_the_buffer_or_tells_how_far_it_came() {
    let pair = Pair::new("127.0.0.1:0").await;
    let mut send = pair.client.open_uni().await.unwrap();
    send.write_all(b"1234").await.unwrap();
    let mut recv = soon(pair.server.accept_uni()).await.unwrap().unwrap();
    let mut buffer = [0; 6];
    let (read, ()) = soon(async {
        tokio::join!(recv.read_exact(&mut buffer), async {
            tokio::task::yield_now().await;
            send.write_all(b"5678").await.unwrap();
            send.finish();
        })
    })
    .await;
    assert_eq!((read, &buffer), (Ok(()), b"123456"));
    let short = ReadExactError::TooShort { read: 2, wanted: 6 };
    assert_eq!(soon(recv.read_exact(&mut buffer)).await, Err(short.clone()));
    assert_eq!(&buffer[..2], b"78");
    let kind = std::io::Error::from(short).kind();
    assert_eq!(kind, std::io::ErrorKind::UnexpectedEof);
    assert_eq!(recv.read_exact(&mut []).await, Ok(()));
}

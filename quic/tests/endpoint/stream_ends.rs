//! Ends of streams other than by finishing, and limits that change, through the public API.

use hybriq::{Endpoint, ReadError, TransportConfig, WriteError, error::ResetAtError};

use crate::endpoint_support::{Pair, client_config, server_config, soon};

#[tokio::test]
async fn what_is_reliable_is_read_before_the_reset() {
    let pair = Pair::new("127.0.0.1:0").await;
    let mut send = pair.client.open_uni().await.unwrap();
    send.write_all(b"header, and a body that does not matter")
        .await
        .unwrap();
    send.reset_at(7, 6).unwrap();
    let mut recv = soon(pair.server.accept_uni()).await.unwrap().unwrap();
    assert_eq!(soon(recv.received_reset()).await, Ok(Some(7)));
    let mut read = Vec::new();
    let error = soon(async {
        loop {
            match recv.read_chunk(100).await {
                Ok(Some(chunk)) => read.extend_from_slice(&chunk),
                other => return other.unwrap_err(),
            }
        }
    })
    .await;
    assert_eq!((&read[..], error), (&b"header"[..], ReadError::Reset(7)));
    assert_eq!(soon(recv.received_reset()).await, Ok(Some(7)));
    assert_eq!(soon(send.stopped()).await, Ok(None), "all of it arrived");
    assert_eq!(send.write_all(b"x").await, Err(WriteError::Closed));
    assert_eq!(send.reset_at(7, 0), Err(ResetAtError::Closed));
}

#[tokio::test]
async fn a_reset_behind_reliable_data_can_become_a_plain_one() {
    let pair = Pair::new("127.0.0.1:0").await;
    let mut send = pair.client.open_uni().await.unwrap();
    send.write_all(&[1; 5000]).await.unwrap();
    send.reset_at(7, 4000).unwrap();
    send.reset(9);
    drop(send);
    let mut recv = soon(pair.server.accept_uni()).await.unwrap().unwrap();
    // The first code was told, or may have been.
    assert_eq!(soon(recv.received_reset()).await, Ok(Some(7)));
}

#[tokio::test]
async fn the_end_of_a_stream_can_be_waited_for_without_reading() {
    let pair = Pair::new("127.0.0.1:0").await;
    let mut send = pair.client.open_uni().await.unwrap();
    send.write_all(b"all of it").await.unwrap();
    let mut recv = soon(pair.server.accept_uni()).await.unwrap().unwrap();
    let (end, ()) = soon(async {
        tokio::join!(recv.received_reset(), async {
            tokio::task::yield_now().await;
            send.finish();
        })
    })
    .await;
    assert_eq!(end, Ok(None));
    assert_eq!(recv.read_to_end(100).await.unwrap(), b"all of it");
    let mut send = pair.client.open_uni().await.unwrap();
    send.write_all(b"some of it").await.unwrap();
    let mut recv = soon(pair.server.accept_uni()).await.unwrap().unwrap();
    send.reset(3);
    assert_eq!(soon(recv.received_reset()).await, Ok(Some(3)));
}

#[tokio::test]
async fn a_connection_that_ends_wakes_who_waits_for_the_end_of_a_stream() {
    let pair = Pair::new("127.0.0.1:0").await;
    let mut send = pair.client.open_uni().await.unwrap();
    send.write_all(b"some of it").await.unwrap();
    let mut recv = soon(pair.server.accept_uni()).await.unwrap().unwrap();
    let (end, ()) = soon(async {
        tokio::join!(recv.received_reset(), async {
            tokio::task::yield_now().await;
            pair.client.close(1, b"");
        })
    })
    .await;
    assert!(end.is_err());
}

#[tokio::test]
async fn a_server_can_forbid_streams_until_it_knows_the_client() {
    let none = TransportConfig::new()
        .max_bidi_streams(0)
        .max_uni_streams(0);
    let pair = Pair::of(
        Endpoint::server("127.0.0.1:0", server_config().transport(none)).unwrap(),
        Endpoint::client(client_config()).unwrap(),
    )
    .await;
    let (opened, ()) = soon(async {
        tokio::join!(pair.client.open_bidi(), async {
            tokio::task::yield_now().await;
            pair.server.set_max_bidi_streams(1);
        })
    })
    .await;
    opened.unwrap();
    let (opened, ()) = soon(async {
        tokio::join!(pair.client.open_uni(), async {
            tokio::task::yield_now().await;
            pair.server.set_max_uni_streams(1);
        })
    })
    .await;
    opened.unwrap();
}

#[tokio::test]
async fn a_window_can_be_opened_later() {
    let narrow = TransportConfig::new().receive_window(1000);
    let pair = Pair::of(
        Endpoint::server("127.0.0.1:0", server_config().transport(narrow)).unwrap(),
        Endpoint::client(client_config()).unwrap(),
    )
    .await;
    let mut send = pair.client.open_uni().await.unwrap();
    send.write_all(&[1; 5000]).await.unwrap();
    send.finish();
    // Nobody reads: only the wider window lets all of it through.
    let mut recv = soon(pair.server.accept_uni()).await.unwrap().unwrap();
    pair.server.set_receive_window(5000);
    assert_eq!(soon(send.stopped()).await, Ok(None));
    assert_eq!(recv.read_to_end(5000).await.unwrap().len(), 5000);
}

#[tokio::test]
async fn a_stream_is_read_in_any_order_and_then_no_longer_in_order() {
    let pair = Pair::new("127.0.0.1:0").await;
    let data: Vec<u8> = (0..300_000u32).map(|at| (at % 251) as u8).collect();
    let mut send = pair.client.open_uni().await.unwrap();
    let writing = async {
        send.write_all(&data).await.unwrap();
        send.finish();
    };
    let reading = async {
        let mut recv = pair.server.accept_uni().await.unwrap().unwrap();
        let mut all = vec![0; data.len()];
        let mut total = recv.read(&mut all[..100]).await.unwrap();
        while let Some(chunk) = recv.read_unordered(10_000).await.unwrap() {
            let start = chunk.offset as usize;
            all[start..start + chunk.bytes.len()].copy_from_slice(&chunk.bytes);
            total += chunk.bytes.len();
            if total < data.len() {
                assert_eq!(recv.read(&mut [0]).await, Err(ReadError::Unordered));
            }
        }
        assert_eq!((total, all == data), (data.len(), true));
        assert_eq!(recv.read_unordered(1).await, Ok(None));
    };
    soon(async { tokio::join!(writing, reading) }).await;
}

#[tokio::test]
async fn a_reset_is_told_to_unordered_reads() {
    let pair = Pair::new("127.0.0.1:0").await;
    let mut send = pair.client.open_uni().await.unwrap();
    send.write_all(b"some of it").await.unwrap();
    let mut recv = soon(pair.server.accept_uni()).await.unwrap().unwrap();
    let chunk = soon(recv.read_unordered(4)).await.unwrap().unwrap();
    assert_eq!((chunk.offset, &chunk.bytes[..]), (0, &b"some"[..]));
    assert_eq!(recv.read(&mut [0]).await, Err(ReadError::Unordered));
    send.reset(9);
    assert_eq!(soon(recv.received_reset()).await, Ok(Some(9)));
    for _ in 0..2 {
        let read = soon(recv.read_unordered(1)).await;
        assert_eq!(read, Err(ReadError::Reset(9)));
    }
    assert_eq!(recv.read(&mut [0]).await, Err(ReadError::Reset(9)));
    assert_eq!(soon(recv.received_reset()).await, Ok(Some(9)));
}

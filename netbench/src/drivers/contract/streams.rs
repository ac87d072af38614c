//! Streams and datagrams.

use std::cell::Cell as Shared;

use super::*;
use crate::system::outcome::Kind;

const LONG: usize = 1 << 20;

#[test]
fn bytes_arrive_whole_in_both_directions_and_streams_end() {
    every_pair(&Cell::default(), |mut ends| async move {
        let (client, server) = ends.connect().await;
        let ask = async {
            let (mut writer, mut reader) = client.open_bidi().await.unwrap();
            let sending = async {
                send(&mut *writer, pattern(1, LONG)).await.unwrap();
                finish(&mut *writer).await.unwrap();
            };
            let ((), received) = tokio::join!(sending, receive_all(&mut *reader));
            assert!(received.unwrap() == pattern(1, LONG), "other bytes came");
            client.close(0);
        };
        tokio::join!(ask, echo(&*server));
    });
}

#[test]
fn many_streams_at_once_are_kept_apart() {
    every_pair(&Cell::default(), |mut ends| async move {
        let (client, server) = ends.connect().await;
        let ask = async {
            // The first part of every stream is sent before any answer is read.
            let mut open = Vec::new();
            for number in 0..50 {
                let (mut writer, reader) = client.open_bidi().await.unwrap();
                send(&mut *writer, pattern(number, 700)).await.unwrap();
                open.push((number, writer, reader));
            }
            for (number, mut writer, mut reader) in open {
                send(&mut *writer, pattern(number, 20_000)).await.unwrap();
                finish(&mut *writer).await.unwrap();
                let received = receive_all(&mut *reader).await.unwrap();
                let sent = [pattern(number, 700), pattern(number, 20_000)].concat();
                assert!(received == sent, "other bytes on stream {number}");
            }
            client.close(0);
        };
        tokio::join!(ask, echo(&*server));
    });
}

#[test]
fn streams_in_one_direction_go_both_ways() {
    every_pair(&Cell::default(), |mut ends| async move {
        let (client, server) = ends.connect().await;
        for (from, to) in [(&client, &server), (&server, &client)] {
            let sending = async {
                let mut writer = from.open_uni().await.unwrap();
                send(&mut *writer, pattern(3, 100_000)).await.unwrap();
                finish(&mut *writer).await.unwrap();
            };
            let receiving = async {
                let mut reader = to.accept_uni().await.unwrap().unwrap();
                receive_all(&mut *reader).await.unwrap()
            };
            let ((), received) = tokio::join!(sending, receiving);
            assert!(received == pattern(3, 100_000), "other bytes came");
        }
    });
}

#[test]
fn a_server_opens_streams_in_both_directions_too() {
    every_pair(&Cell::default(), |mut ends| async move {
        let (client, server) = ends.connect().await;
        let ask = async {
            let (mut writer, mut reader) = server.open_bidi().await.unwrap();
            send(&mut *writer, pattern(4, 5000)).await.unwrap();
            finish(&mut *writer).await.unwrap();
            let received = receive_all(&mut *reader).await.unwrap();
            assert!(received == pattern(4, 5000), "other bytes came");
            server.close(0);
        };
        tokio::join!(ask, echo(&*client));
    });
}

#[test]
fn a_reader_takes_no_more_than_it_asks_for() {
    every_pair(&Cell::default(), |mut ends| async move {
        let (client, server) = ends.connect().await;
        let mut writer = client.open_uni().await.unwrap();
        send(&mut *writer, pattern(5, 3000)).await.unwrap();
        finish(&mut *writer).await.unwrap();
        let mut reader = server.accept_uni().await.unwrap().unwrap();
        let mut received = Vec::new();
        while let Some(bytes) = receive(&mut *reader, 7).await.unwrap() {
            assert!((1..=7).contains(&bytes.len()));
            received.extend_from_slice(&bytes);
        }
        assert!(received == pattern(5, 3000), "other bytes came");
    });
}

#[test]
fn a_slow_reader_holds_its_writer_back() {
    const FLOOD: usize = 24 << 20;
    let transport = Transport {
        window: Some(256 * 1024),
        ..Transport::default()
    };
    every_pair_with(&Cell::default(), &transport, |mut ends| async move {
        let (client, server) = ends.connect().await;
        // The work here gives the flood time to go as far as it can.
        let (beside, answerer) = ends.connect().await;
        let mut flood = client.open_uni().await.unwrap();
        let (taken, done) = (Shared::new(0), Shared::new(false));
        let flooding = async {
            let mut bytes = Bytes::from(pattern(6, FLOOD));
            while !bytes.is_empty() {
                std::future::poll_fn(|cx| flood.poll_send(cx, &mut bytes))
                    .await
                    .unwrap();
                taken.set(FLOOD - bytes.len());
            }
            finish(&mut *flood).await.unwrap();
            done.set(true);
        };
        let others = async {
            let mut reader = server.accept_uni().await.unwrap().unwrap();
            let (mut writer, mut answers) = beside.open_bidi().await.unwrap();
            let asking = async {
                for _ in 0..200 {
                    send(&mut *writer, &b"?"[..]).await.unwrap();
                    receive_exactly(&mut *answers, 1).await.unwrap();
                }
            };
            let answering = async {
                let (mut writer, mut reader) = answerer.accept_bidi().await.unwrap().unwrap();
                for _ in 0..200 {
                    let question = receive_exactly(&mut *reader, 1).await.unwrap();
                    send(&mut *writer, question).await.unwrap();
                }
                (writer, reader)
            };
            let ((), _open) = tokio::join!(asking, answering);
            assert!(
                taken.get() < FLOOD / 2,
                "{} bytes went nowhere",
                taken.get()
            );
            assert!(!done.get());
            let received = receive_all(&mut *reader).await.unwrap();
            assert!(received == pattern(6, FLOOD), "other bytes came");
        };
        tokio::join!(flooding, others);
    });
}

#[test]
fn a_stream_that_is_reset_does_not_end() {
    every_pair(&Cell::default(), |mut ends| async move {
        let (client, server) = ends.connect().await;
        let mut writer = client.open_uni().await.unwrap();
        send(&mut *writer, pattern(7, 100)).await.unwrap();
        let mut reader = server.accept_uni().await.unwrap().unwrap();
        writer.reset(9);
        let failed = receive_all(&mut *reader).await.unwrap_err();
        assert_eq!(failed.kind, Kind::Reset, "{failed}");
    });
}

#[test]
fn a_reset_leaves_the_other_direction_alone() {
    every_pair(&Cell::default(), |mut ends| async move {
        let (client, server) = ends.connect().await;
        let (mut writer, mut reader) = client.open_bidi().await.unwrap();
        send(&mut *writer, pattern(8, 100)).await.unwrap();
        let (mut answer, mut question) = server.accept_bidi().await.unwrap().unwrap();
        writer.reset(9);
        assert!(receive_all(&mut *question).await.is_err());
        send(&mut *answer, pattern(8, 5000)).await.unwrap();
        finish(&mut *answer).await.unwrap();
        let received = receive_all(&mut *reader).await.unwrap();
        assert!(received == pattern(8, 5000), "other bytes came");
    });
}

#[test]
fn a_writer_that_is_dropped_is_no_end() {
    every_pair(&Cell::default(), |mut ends| async move {
        let (client, server) = ends.connect().await;
        let mut writer = client.open_uni().await.unwrap();
        send(&mut *writer, pattern(9, 100)).await.unwrap();
        let mut reader = server.accept_uni().await.unwrap().unwrap();
        drop(writer);
        let failed = receive_all(&mut *reader).await.unwrap_err();
        assert_eq!(failed.kind, Kind::Reset, "{failed}");
    });
}

#[test]
fn datagrams_come_back_from_who_echoes_them() {
    every_pair(&Cell::default(), |mut ends| async move {
        let (client, server) = ends.connect().await;
        if ends.setup.cell.client == crate::scenario::axes::Stack::TcpTls {
            let failed = client.send_datagram(Bytes::new()).await.unwrap_err();
            println!("left out: {}", failed.detail);
            return;
        }
        let asking = async {
            for number in 0..20 {
                let sent = Bytes::from(pattern(number, 900));
                client.send_datagram(sent.clone()).await.unwrap();
                assert_eq!(client.receive_datagram().await.unwrap(), Some(sent));
            }
            client.close(0);
        };
        let echoing = async {
            while let Ok(Some(datagram)) = server.receive_datagram().await {
                server.send_datagram(datagram).await.unwrap();
            }
        };
        tokio::join!(asking, echoing);
    });
}

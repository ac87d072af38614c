//! The end of a connection.

use super::*;
use crate::system::outcome::Kind;

#[test]
fn code_0_is_a_clean_end_at_both_ends() {
    every_pair(&Cell::default(), |mut ends| async move {
        for client_closes in [true, false] {
            let (client, server) = ends.connect().await;
            let (closing, other) = if client_closes {
                (client, server)
            } else {
                (server, client)
            };
            closing.close(0);
            let (by, of) = tokio::join!(closing.closed(), other.closed());
            by.unwrap();
            of.unwrap();
            assert!(other.accept_bidi().await.unwrap().is_none());
            assert!(other.accept_uni().await.unwrap().is_none());
            assert!(other.receive_datagram().await.unwrap().is_none());
        }
    });
}

#[test]
fn another_code_is_told_to_the_peer() {
    every_pair(&Cell::default(), |mut ends| async move {
        for client_closes in [true, false] {
            let (client, server) = ends.connect().await;
            let (closing, other) = if client_closes {
                (client, server)
            } else {
                (server, client)
            };
            let (mut writer, _reader) = other.open_bidi().await.unwrap();
            send(&mut *writer, &b"?"[..]).await.unwrap();
            let (_writer, mut reader) = closing.accept_bidi().await.unwrap().unwrap();
            receive(&mut *reader, 1).await.unwrap();
            closing.close(7);
            let (by, of) = tokio::join!(closing.closed(), other.closed());
            assert_eq!(by.unwrap_err().kind, Kind::Application(7));
            assert_eq!(of.unwrap_err().kind, Kind::Application(7));
            let failed = other.accept_bidi().await.err().unwrap();
            assert_eq!(failed.kind, Kind::Application(7));
            let failed = receive_all(&mut *reader).await.unwrap_err();
            println!("a reader is told: {failed}");
        }
    });
}

#[test]
fn dropping_an_end_ends_the_other() {
    every_pair(&Cell::default(), |mut ends| async move {
        let (client, server) = ends.connect().await;
        let (mut writer, reader) = client.open_bidi().await.unwrap();
        send(&mut *writer, &b"?"[..]).await.unwrap();
        let (_answer, mut question) = server.accept_bidi().await.unwrap().unwrap();
        receive_exactly(&mut *question, 1).await.unwrap();
        drop((writer, reader, client, ends.connector));
        // Stacks differ in whether this counts as clean.
        let _ = server.closed().await;
        assert!(receive_all(&mut *question).await.is_err());
    });
}

#[test]
fn what_was_sent_before_the_close_of_the_peer_can_still_be_read() {
    every_pair(&Cell::default(), |mut ends| async move {
        let (client, server) = ends.connect().await;
        let (mut writer, mut reader) = client.open_bidi().await.unwrap();
        send(&mut *writer, pattern(1, 5000)).await.unwrap();
        finish(&mut *writer).await.unwrap();
        let (mut answer, mut question) = server.accept_bidi().await.unwrap().unwrap();
        assert!(receive_all(&mut *question).await.unwrap() == pattern(1, 5000));
        send(&mut *answer, pattern(2, 5000)).await.unwrap();
        finish(&mut *answer).await.unwrap();
        assert!(receive_all(&mut *reader).await.unwrap() == pattern(2, 5000));
        client.close(0);
        let (by, of) = tokio::join!(client.closed(), server.closed());
        by.unwrap();
        of.unwrap();
    });
}

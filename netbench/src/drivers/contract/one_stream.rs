//! Connections that are set up for one bidirectional stream of their client. Stacks with their own
//! streams ignore this setting.

use super::*;
use crate::drivers::Streams;
use crate::scenario::axes::{Resumption, Stack};
use crate::system::outcome::Kind;

fn one() -> Transport {
    Transport {
        streams: Streams::One,
        ..Transport::default()
    }
}

fn asks(ends: &Ends) -> bool {
    ends.setup.cell.driver == Stack::TcpTls
}

/// Exchanges a request and an answer on the only stream, and closes.
async fn exchange(ends: &mut Ends, len: usize) {
    let address = ends.listener.address();
    let asking = async {
        let connect = ends.connector.connect(address, certificates::SERVER_NAME);
        let client = connect.await.unwrap();
        let (mut writer, mut reader) = client.open_bidi().await.unwrap();
        let sending = async {
            send(&mut *writer, pattern(1, len)).await.unwrap();
            finish(&mut *writer).await.unwrap();
        };
        let (told, (), answer) =
            tokio::join!(client.established(), sending, receive_all(&mut *reader));
        told.unwrap();
        assert!(answer.unwrap() == pattern(1, len), "other bytes came");
        client.close(0);
        client.closed().await.unwrap();
    };
    let answering = async {
        let server = ends.listener.accept().await.unwrap().await.unwrap();
        echo(&*server).await;
        server.closed().await.unwrap();
    };
    tokio::join!(asking, answering);
}

#[test]
fn bytes_arrive_whole_and_the_end_is_clean() {
    every_pair_with(&Cell::default(), &one(), |mut ends| async move {
        if asks(&ends) {
            exchange(&mut ends, 1 << 20).await;
        }
    });
}

#[test]
fn early_data_is_answered() {
    let cell = Cell {
        resumption: Resumption::ZeroRtt,
        ..Cell::default()
    };
    every_pair_with(&cell, &one(), |mut ends| async move {
        for _ in 0..if asks(&ends) { 3 } else { 0 } {
            exchange(&mut ends, 1000).await;
        }
    });
}

#[test]
fn a_writer_that_is_dropped_is_no_end() {
    every_pair_with(&Cell::default(), &one(), |mut ends| async move {
        if !asks(&ends) {
            return;
        }
        let (client, server) = ends.connect().await;
        let (mut writer, _reader) = client.open_bidi().await.unwrap();
        send(&mut *writer, pattern(2, 100)).await.unwrap();
        let (_answer, mut question) = server.accept_bidi().await.unwrap().unwrap();
        receive_exactly(&mut *question, 100).await.unwrap();
        drop(writer);
        let failed = receive_all(&mut *question).await.unwrap_err();
        assert_eq!(failed.kind, Kind::Reset, "{failed}");
    });
}

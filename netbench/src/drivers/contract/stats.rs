//! Counters of drivers.

use super::*;
use crate::drivers::Traffic;

const PAYLOAD: usize = 200_000;

/// Transfers enough that the packets of one end outnumber all others.
async fn transfer(ends: &mut Ends) -> (Rc<dyn Connection>, Rc<dyn Connection>) {
    let (client, server) = ends.connect().await;
    let asking = async {
        let (mut writer, mut reader) = client.open_bidi().await.unwrap();
        send(&mut *writer, pattern(1, PAYLOAD)).await.unwrap();
        finish(&mut *writer).await.unwrap();
        receive_all(&mut *reader).await.unwrap();
        client.close(0);
        client.closed().await.unwrap();
    };
    let answering = async {
        let (mut writer, mut reader) = server.accept_bidi().await.unwrap().unwrap();
        receive_all(&mut *reader).await.unwrap();
        finish(&mut *writer).await.unwrap();
        server.closed().await.unwrap();
    };
    tokio::join!(asking, answering);
    (client, server)
}

fn arrived(sent: Traffic, received: Traffic) {
    // TCP counts the FIN as a received byte.
    assert!(
        received.received_bytes <= sent.sent_bytes + 1,
        "{sent:?} {received:?}"
    );
    // Nothing is lost on loopback, but the last packets of either end may still be in flight.
    let missing = sent.sent_bytes.saturating_sub(received.received_bytes);
    assert!(missing < 5000, "{sent:?} {received:?}");
}

#[test]
fn what_one_end_sent_is_what_the_other_received() {
    every_pair(&Cell::default(), |mut ends| async move {
        let (client, server) = transfer(&mut ends).await;
        let (client, server) = (client.stats(), server.stats());
        if let Some(sent) = client.traffic {
            assert!(sent.sent_bytes >= PAYLOAD as u64, "{sent:?}");
            assert!(sent.sent_bytes < PAYLOAD as u64 * 5 / 4, "{sent:?}");
            assert!(sent.sent_datagrams >= 4, "{sent:?}");
            assert!(client.packets_sent >= sent.sent_datagrams / 2, "{client:?}");
        }
        if let (Some(client), Some(server)) = (client.traffic, server.traffic) {
            arrived(client, server);
            arrived(server, client);
        }
    });
}

#[test]
fn a_socket_counts_what_its_connections_do() {
    every_pair(&Cell::default(), |mut ends| async move {
        let (client, server) = transfer(&mut ends).await;
        transfer(&mut ends).await;
        for (one, all) in [
            (client.stats().traffic, ends.connector.traffic()),
            (server.stats().traffic, ends.listener.traffic()),
        ] {
            let (Some(one), Some(all)) = (one, all) else {
                println!("left out: it is not told");
                continue;
            };
            let twice = |bytes: u64| bytes * 7 / 4..bytes * 9 / 4;
            assert!(
                twice(one.sent_bytes).contains(&all.sent_bytes),
                "{one:?} {all:?}"
            );
            let received = twice(one.received_bytes);
            assert!(received.contains(&all.received_bytes), "{one:?} {all:?}");
        }
    });
}

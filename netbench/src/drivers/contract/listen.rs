//! Servers.

use std::task::Poll;

use super::*;
use crate::drivers::Answer;
use crate::system::outcome::Kind;

#[test]
fn a_port_in_use_is_told_in_one_line_that_names_it() {
    every_pair(&Cell::default(), |ends| async move {
        let driver = driver(ends.setup.cell.driver).unwrap();
        let address = ends.listener.address();
        let failure = driver.listen(&ends.setup, address).err();
        let failure = failure.expect("two cannot listen there").to_string();
        assert!(failure.contains(&address.to_string()), "{failure}");
        assert!(!failure.contains('\n'), "{failure}");
    });
}

#[test]
fn a_server_that_is_not_there_refuses_or_stays_silent() {
    let transport = Transport {
        idle_timeout_ms: Some(300),
        ..Transport::default()
    };
    every_pair_with(&Cell::default(), &transport, |ends| async move {
        let address = ends.listener.address();
        drop(ends.listener);
        let connect = ends.connector.connect(address, certificates::SERVER_NAME);
        let failed = connect.await.err().unwrap();
        assert!(
            matches!(failed.kind, Kind::Timeout | Kind::Refused),
            "{failed}"
        );
    });
}

#[test]
fn accepting_does_not_wait_for_a_slow_handshake() {
    every_pair(&Cell::default(), |mut ends| async move {
        let address = ends.listener.address();
        let other = Ends::connector(&ends.setup, &*ends.listener);
        let first = other.connect(address, certificates::SERVER_NAME);
        let accept = async {
            // The handshake stands still because nobody polls it.
            let _slow = ends.listener.accept().await.unwrap();
            let second = ends.connector.connect(address, certificates::SERVER_NAME);
            let accept = async { ends.listener.accept().await?.await };
            let (client, server) = tokio::join!(second, accept);
            client.unwrap();
            server.unwrap();
        };
        // Some stacks continue all the same.
        let first = async {
            let _first = first.await;
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = first => {}
            () = accept => {}
        }
    });
}

#[test]
fn many_connect_at_once() {
    every_pair(&Cell::default(), |mut ends| async move {
        let address = ends.listener.address();
        let clients = async {
            let connect = |_| ends.connector.connect(address, certificates::SERVER_NAME);
            all((0..20).map(connect).collect()).await
        };
        let servers = async {
            let mut accepted = Vec::new();
            for _ in 0..20 {
                let accepting = ends.listener.accept().await.unwrap();
                accepted.push(tokio::task::spawn_local(async {
                    accepting.await.map(drop)
                }));
            }
            for accepted in accepted {
                accepted.await.unwrap().unwrap();
            }
        };
        let (clients, ()) = tokio::join!(clients, servers);
        for client in clients {
            client.unwrap();
        }
    });
}

/// Runs all futures concurrently.
async fn all<T>(mut futures: Vec<Answer<'_, T>>) -> Vec<Result<T, Failed>> {
    let mut done = Vec::new();
    std::future::poll_fn(|cx| {
        futures.retain_mut(|future| match future.as_mut().poll(cx) {
            Poll::Ready(result) => {
                done.push(result);
                false
            }
            Poll::Pending => true,
        });
        if futures.is_empty() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
    done
}

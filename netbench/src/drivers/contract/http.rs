//! Connections that carry HTTP. Stacks without it are left out.

use super::*;
use crate::axes::Stack;
use crate::drivers::Streams;
use crate::outcome::Kind;
use crate::scenario::Fetch;

fn over_http() -> Transport {
    Transport {
        streams: Streams::Http,
        ..Transport::default()
    }
}

fn has_http(ends: &Ends) -> bool {
    let cell = &ends.setup.cell;
    let both = [cell.driver, cell.client].map(|stack| driver(stack).unwrap().has_http());
    both == [true, true]
}

/// Makes a connection, on which `asking` makes requests, and ends it.
async fn asked(ends: &mut Ends, asking: impl AsyncFnOnce(&dyn Connection)) {
    let address = ends.listener.address();
    let client = async {
        let connect = ends.connector.connect(address, certificates::SERVER_NAME);
        let client = connect.await.unwrap();
        client.established().await.unwrap();
        asking(&*client).await;
        client.close(0);
        client.closed().await.unwrap();
    };
    let server = async {
        let server = ends.listener.accept().await.unwrap().await.unwrap();
        server.closed().await.unwrap();
    };
    tokio::join!(client, server);
}

#[test]
fn requests_and_responses_arrive_whole() {
    every_pair_with(&Cell::default(), &over_http(), |mut ends| async move {
        if !has_http(&ends) {
            return;
        }
        asked(&mut ends, async |client| {
            for (send, receive) in [(0, 0), (0, 100), (1, 0), (70_000, 3_000_000)] {
                client.fetch(Fetch { send, receive }).await.unwrap();
            }
            let fetches = (0..150).map(|at| {
                let (send, receive) = (at % 3 * 700, at * 40);
                client.fetch(Fetch { send, receive })
            });
            for fetched in futures_util::future::join_all(fetches).await {
                fetched.unwrap();
            }
        })
        .await;
    });
}

#[test]
fn streams_of_scripts_are_refused() {
    every_pair_with(&Cell::default(), &over_http(), |mut ends| async move {
        if has_http(&ends) {
            asked(&mut ends, async |client| {
                let refused = client.open_uni().await.err().unwrap();
                assert_eq!(refused.kind, Kind::Other, "{refused}");
                let fetch = Fetch {
                    send: 0,
                    receive: 1,
                };
                client.fetch(fetch).await.unwrap();
            })
            .await;
        }
    });
}

#[test]
fn connections_without_http_make_no_requests() {
    let cell = Cell {
        driver: Stack::Hybriq,
        client: Stack::Hybriq,
        ..Cell::default()
    };
    every_pair_with(&cell, &Transport::default(), |mut ends| async move {
        let (client, _server) = ends.connect().await;
        let fetch = Fetch {
            send: 0,
            receive: 1,
        };
        assert!(client.fetch(fetch).await.is_err());
    });
}

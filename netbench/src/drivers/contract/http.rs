//! Connections that carry HTTP. Stacks without it are left out.

use std::path::{Path, PathBuf};

use super::*;
use crate::drivers::{Driver as _, Streams, program::Program};
use crate::scenario::Fetch;
use crate::scenario::axes::Stack;
use crate::system::os;
use crate::system::outcome::Kind;

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

#[test]
fn a_server_that_is_a_program_answers_and_its_time_is_known() {
    let judges = std::env::var_os("HYBRIQ_JUDGES").map(PathBuf::from);
    if judges.is_none_or(|judges| !judges.join("chroot/usr/sbin/nginx").exists()) {
        test_summary::skip("without nginx, which .ci/judges installs");
        return;
    }
    let cell = Cell {
        driver: Stack::Nginx,
        client: Stack::Hybriq,
        ..Cell::default()
    };
    let setup = Setup {
        certificates: certificates::make(certificates::Wanted::of(&cell)).unwrap(),
        cell,
        transport: over_http(),
    };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("servers/nginx");
    let nginx = Program::at(Stack::Nginx, path);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let asking = async {
        let listener = nginx.listen(&setup, ([127, 0, 0, 1], 0).into()).unwrap();
        let connector = Ends::connector(&setup, &*listener);
        let connect = connector.connect(listener.address(), certificates::SERVER_NAME);
        let client = connect.await.unwrap();
        for receive in [0, 100, 1024] {
            client.fetch(Fetch { send: 0, receive }).await.unwrap();
        }
        let used = os::cpu_time_of(listener.process().unwrap()).unwrap();
        assert!(used > Duration::ZERO);
        client.close(0);
    };
    runtime.block_on(tokio::task::LocalSet::new().run_until(asking));
}

//! Memory of idle connections at a server. A program of its own, because it counts every byte that
//! is allocated.
#![expect(
    clippy::unwrap_used,
    reason = "a scenario that cannot go on has failed"
)]

mod endpoint_support;

use std::time::Duration;

use endpoint_support::{client, server_config, soon};
use hybriq::{Backend, Connection, Endpoint, fleet::Placement};
use hybriq_sim::heap;
use tokio::task::JoinHandle;

/// Connections that are there before, so that the endpoint has allocated what it needs once.
const BEFORE: usize = 64;

/// Connections whose memory is counted: as many as make every table that doubles twice as large.
const COUNTED: usize = 192;

/// Table with the bytes of the heap that an idle connection keeps at the server.
const TABLE: &str = include_str!("../evidence/instructions.md");

/// Returns the most bytes that a connection may keep: 3 % more than the table says.
fn most(provider: Backend) -> usize {
    let name = match provider {
        Backend::Rustls => "| idle connection, rustls | server | ",
        _ => "| idle connection, s2n-tls | server | ",
    };
    let line = TABLE.lines().find_map(|line| line.strip_prefix(name));
    let bytes = line.unwrap().trim_end_matches(" |");
    bytes.parse::<usize>().unwrap() * 103 / 100
}

#[global_allocator]
static ALLOCATOR: heap::Counting = heap::Counting;

/// Returns the bytes that the thread of a connection's worker holds.
async fn held(connection: &Connection) -> usize {
    let counted = connection.spawn(async { heap::allocated_by_thread() });
    counted.await.unwrap()
}

/// Returns the bytes that it holds once they stay the same for a second.
async fn at_rest(connection: &Connection) -> usize {
    let mut bytes = held(connection).await;
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let now = held(connection).await;
        if now == bytes {
            return now;
        }
        bytes = now;
    }
}

/// A connection that made one request.
struct Made {
    accepted: Connection,
    _connected: Connection,
    /// Its memory is of the thread that spawned the task, and must not be freed by that of the worker: which of them
    /// lets go of it last is chance.
    _served: JoinHandle<()>,
}

/// Makes a connection and one request on it.
async fn connect(server: &Endpoint, client: &Endpoint) -> Made {
    let accept = async { server.accept().await.unwrap().accept().await };
    let connect = client.connect(server.local_address(), "localhost");
    let (accepted, connected) = tokio::join!(accept, connect);
    let (accepted, connected) = (accepted.unwrap(), connected.unwrap());
    let serving = accepted.clone();
    // On the worker's thread, where the buffers of the streams are counted.
    let mut served = accepted.spawn(async move {
        let (mut send, mut recv) = serving.accept_bidi().await.unwrap().unwrap();
        tokio::io::copy(&mut recv, &mut send).await.unwrap();
        send.finish();
        send.acknowledged().await.unwrap();
    });
    let ask = async {
        let (mut send, mut recv) = connected.open_bidi().await.unwrap();
        send.write_all(&[7; 300]).await.unwrap();
        send.finish();
        assert_eq!(recv.read_to_end(1000).await.unwrap().len(), 300);
    };
    tokio::join!(&mut served, ask).0.unwrap();
    Made {
        accepted,
        _connected: connected,
        _served: served,
    }
}

/// Waits until no idle connection keeps more than a bound.
async fn an_idle_connection_keeps_little(provider: Backend) {
    let server = Endpoint::builder()
        .server(server_config().tls(provider))
        .placement(Placement::Threads)
        .bind("127.0.0.1:0")
        .unwrap();
    let client = client();
    let first = connect(&server, &client).await;
    let mut connections = Vec::new();
    for _ in 1..BEFORE {
        connections.push(connect(&server, &client).await);
    }
    let before = at_rest(&first.accepted).await;
    for _ in 0..COUNTED {
        connections.push(connect(&server, &client).await);
    }
    let most = most(provider);
    loop {
        let each = at_rest(&first.accepted).await.wrapping_sub(before) / COUNTED;
        println!("{provider:?}: {each} bytes for an idle connection, at most {most}");
        if each <= most {
            return;
        }
    }
}

#[tokio::test]
async fn an_idle_connection_keeps_little_with_rustls() {
    soon(an_idle_connection_keeps_little(Backend::Rustls)).await;
}

#[cfg(feature = "s2n-tls")]
#[tokio::test]
async fn an_idle_connection_keeps_little_with_s2n_tls() {
    soon(an_idle_connection_keeps_little(Backend::S2nTls)).await;
}

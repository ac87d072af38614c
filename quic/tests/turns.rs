//! The longest turn of a worker with many connections, during which everything else waits: by the
//! clock, and in CPU time, which other programs do not prolong.
//!
//! The whole measurement, which needs 4 GB and takes minutes; the number is the environment variable
//! `HYBRIQ_TURNS`, 100,000 by default:
//!
//! ```text
//! cargo test --release -p hybriq --test turns -- --ignored --nocapture
//! ```
#![cfg(all(feature = "metrics", target_os = "linux"))]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(unsafe_code, reason = "the clock of a thread has no safe interface")]

mod endpoint_support;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use endpoint_support::{client_config, server_config};
use hybriq::{Connection, Endpoint, Incoming, TransportConfig, fleet::Placement};
use metrics::{
    Counter, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit,
};
use tokio::task::JoinSet;

/// The aim of `evidence/performance.md`, in seconds.
const AIM: f64 = 0.010;

/// Handshakes in progress at once.
const OPENING: usize = 64;

/// Client endpoints, each with a port.
const CLIENTS: usize = 4;

/// Turns of the server's worker since the last look.
#[derive(Clone, Copy, Debug, Default)]
struct Turns {
    count: u64,
    longest: f64,
    /// Number of turns that took longer than the aim.
    too_long: u64,
    /// The same of the CPU time of the worker's thread, the time between turns included.
    longest_cpu: f64,
    too_long_cpu: u64,
    /// CPU time of the thread at the end of the last turn.
    last: f64,
}

/// Returns the CPU time of this thread in seconds.
fn cpu() -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is valid for the call, which writes one `timespec`.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(result, 0);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

#[derive(Debug, Default)]
struct Watch(Mutex<Turns>);

impl HistogramFn for Watch {
    /// Called by the worker's thread at the end of each turn.
    fn record(&self, seconds: f64) {
        let now = cpu();
        let mut turns = self.0.lock().unwrap();
        turns.count += 1;
        turns.longest = turns.longest.max(seconds);
        turns.too_long += u64::from(seconds > AIM);
        let worked = now - turns.last;
        turns.longest_cpu = turns.longest_cpu.max(worked);
        turns.too_long_cpu += u64::from(worked > AIM);
        turns.last = now;
    }
}

impl Watch {
    /// Prints the turns since the last look, and returns them.
    fn look(&self, during: &str) -> Turns {
        let mut kept = self.0.lock().unwrap();
        let turns = *kept;
        *kept = Turns {
            last: turns.last,
            ..Turns::default()
        };
        drop(kept);
        println!(
            "{during}: {} turns; the longest {:.2} ms, {} longer than 10 ms; of CPU {:.2} ms, {}",
            turns.count,
            turns.longest * 1000.0,
            turns.too_long,
            turns.longest_cpu * 1000.0,
            turns.too_long_cpu
        );
        turns
    }
}

/// Records the turns of the endpoint named `server`, and nothing else.
struct Only(Arc<Watch>);

impl Recorder for Only {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
        Counter::noop()
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        let is_server = key.labels().any(|label| label.value() == "server");
        if key.name() == "hybriq_turn_seconds" && is_server {
            Histogram::from_arc(self.0.clone())
        } else {
            Histogram::noop()
        }
    }
}

fn transport() -> TransportConfig {
    TransportConfig::new()
        .idle_timeout(Some(Duration::from_secs(3600)))
        .handshake_timeout(Duration::from_secs(60))
}

async fn serve(incoming: Incoming) {
    let Ok(connection) = incoming.accept().await else {
        return;
    };
    // On another thread, so that the worker's CPU time is its own.
    tokio::spawn(async move {
        while let Ok(Some((mut send, mut receive))) = connection.accept_bidi().await {
            if tokio::io::copy(&mut receive, &mut send).await.is_ok() {
                send.finish();
            }
        }
    });
}

async fn open(clients: &[Endpoint], server: &Endpoint, count: usize) -> Vec<Connection> {
    let address = server.local_address();
    let (mut opening, mut open) = (JoinSet::new(), Vec::new());
    for index in 0..count {
        let client = clients[index % clients.len()].clone();
        opening.spawn(async move { client.connect(address, "localhost").await.unwrap() });
        if opening.len() == OPENING {
            open.push(opening.join_next().await.unwrap().unwrap());
        }
    }
    open.extend(opening.join_all().await);
    open
}

async fn ask(connection: &Connection) {
    let (mut send, mut receive) = connection.open_bidi().await.unwrap();
    send.write_all(&[7; 100]).await.unwrap();
    send.finish();
    assert_eq!(receive.read_to_end(100).await.unwrap(), [7; 100]);
}

/// Opens connections, uses some and then all of them, and ends them, each time by another end.
async fn measure(count: usize, requests: usize, watch: &Watch) {
    let server = Endpoint::builder()
        .server(server_config().transport(transport()))
        .name("server")
        .placement(Placement::Threads)
        .bind("127.0.0.1:0")
        .unwrap();
    let accepting = server.clone();
    tokio::spawn(async move {
        while let Some(incoming) = accepting.accept().await {
            tokio::spawn(serve(incoming));
        }
    });
    let config = client_config().transport(transport());
    let client = || Endpoint::client(config.clone()).unwrap();
    let clients: Vec<_> = (0..CLIENTS).map(|_| client()).collect();

    let connections = open(&clients, &server, count).await;
    assert!(watch.look("opening").count > 0);
    let active = connections.iter().take(10);
    for connection in active.cycle().take(requests) {
        ask(connection).await;
    }
    watch.look("requests on ten");
    for connection in &connections {
        ask(connection).await;
    }
    watch.look("a request on each");
    for client in &clients[..CLIENTS / 2] {
        client.close(0, b"");
        client.idle().await;
    }
    watch.look("half closed by clients");
    let drained = server.drain(Duration::ZERO, 0, b"").await;
    let turns = watch.look("the rest drained and closed by the server");
    assert!(turns.count > 0);
    println!("{drained} connections were left");
}

fn run(count: usize, requests: usize) {
    let watch = Arc::new(Watch::default());
    metrics::set_global_recorder(Only(watch.clone())).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(Box::pin(measure(count, requests, &watch)));
}

#[test]
#[ignore = "its result stands in evidence/performance.md"]
fn the_longest_turn_with_a_hundred_thousand_connections() {
    let count = std::env::var("HYBRIQ_TURNS").ok();
    run(
        count.map_or(100_000, |count| count.parse().unwrap()),
        20_000,
    );
}

#[test]
fn every_phase_has_turns() {
    // One process has one recorder: the measurement runs alone.
    if !std::env::args().any(|argument| argument.contains("ignored")) {
        run(300, 100);
    }
}

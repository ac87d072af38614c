//! Hostile peers of HTTP/1.1, HTTP/2, HTTP/3 and WebTransport against an application that cancels, drops
//! and stalls, drawn from seeds. The census tells whether anything is left.
//!
//! `HYBRIQ_SEEDS=1000 cargo test --release -p hybriq-http --test adversary` draws more of them;
//! `HYBRIQ_FIRST_SEED` begins elsewhere.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod app;
mod giving_up;
mod http2;
mod http3;
mod peer;
#[path = "../support/mod.rs"]
mod support;

use std::{panic, time::Duration};

use hybriq::{TransportConfig, stats::Census};
use hybriq_http::{Http3, Limits, Server, webtransport};
use hybriq_sim::Rng;

use self::{
    app::Kept,
    giving_up::GivingUp,
    http2::{Http1Peer, Http2Peer},
    http3::Http3Peer,
    peer::{Moves, Peer},
    support::{Certificate, Running, run_with},
};

/// Bytes that the server may hold for each byte that it got, beside [`CONSTANT`].
const FACTOR: u64 = 64;

/// Bytes that the server may hold in any case: answers that wait for a client within their windows.
const CONSTANT: u64 = 16 << 20;

/// Time in which everything ends that has an end: the limits below, several times over.
const END: Duration = Duration::from_secs(20);

/// Time that a shutdown gets, and what it may take beyond.
const GRACE: Duration = Duration::from_millis(100);

/// Versions of HTTP that the peers speak.
#[derive(Clone, Copy, Debug)]
enum Speaks {
    Http1,
    Http2,
    Http3,
}

/// How a scenario ends.
#[derive(Clone, Copy, Debug)]
enum Ending {
    /// The peer gives up its requests: the connection is at rest.
    Rest,
    Leave(Moves),
    /// The server shuts down while everything is under way.
    Shutdown,
}

fn limits() -> Limits {
    let mut limits = Limits::default();
    limits.header_time = Duration::from_millis(300);
    limits.stall_time = Duration::from_millis(300);
    limits
}

fn server(kept: &Kept) -> Running {
    let transport = TransportConfig::new().idle_timeout(Some(Duration::from_millis(500)));
    let config = Certificate::shared().config().transport(transport);
    let builder = Server::builder()
        .limits(limits())
        .extended_connect()
        .webtransport(webtransport::Limits::default());
    run_with(builder, config, app::router(kept))
}

/// Lets the server, its workers and the system work until nothing is ready.
async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

/// Waits until a server accepts connections.
async fn started(server: &Running) {
    while server.handle.census().entries("waits for a phase") == 0 {
        tokio::task::yield_now().await;
    }
    settle().await;
}

/// Returns what a server holds, its endpoint and all connections included.
async fn census(server: &Running) -> Census {
    let mut census = server.handle.census();
    census.extend(&server.handle.endpoint().census().await);
    census
}

/// Waits until a census has not more than the fresh one. Panics with what is left.
async fn at_rest(what: &str, fresh: &Census, census: impl AsyncFn() -> Census) {
    let mut left = Census::default();
    let rested = async {
        loop {
            left = census().await.grown_since(fresh);
            if left.is_empty() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let rested = tokio::time::timeout(END, rested).await;
    assert!(rested.is_ok(), "{what}, still held: {left}, beside {fresh}");
}

/// Lets a peer act, and compares what the server holds with what it got.
async fn play(server: &Running, peer: &mut impl Peer, rng: &mut Rng) {
    for _ in 0..20 + rng.below(100) {
        peer.act(rng);
        if rng.below(3) == 0 {
            settle().await;
            let (census, sent) = (census(server).await, peer.sent());
            let most = CONSTANT + FACTOR * sent;
            assert!(
                census.bytes() as u64 <= most,
                "after {sent} bytes the server holds {census}"
            );
        }
        if peer.is_over() {
            return;
        }
    }
}

async fn scenario(speaks: Speaks, seed: u64) {
    let mut rng = Rng::new(seed);
    let kept = Kept::new(rng.draw());
    let server = server(&kept);
    started(&server).await;
    let (fresh, idle_tasks) = (census(&server).await, server.tasks());
    let ending = match rng.below(4) {
        0 => Ending::Rest,
        1 => Ending::Leave(Moves::Close),
        2 => Ending::Leave(Moves::Vanish),
        _ => Ending::Shutdown,
    };
    match speaks {
        Speaks::Http1 => {
            let peer = Http1Peer::connect(&server).await;
            // Its requests end with their connection.
            let ending = match ending {
                Ending::Rest => Ending::Leave(Moves::Close),
                other => other,
            };
            end(&server, peer, &mut rng, ending, &kept).await;
        }
        Speaks::Http2 => {
            let peer = Http2Peer::connect(&server, &mut rng).await;
            end(&server, peer, &mut rng, ending, &kept).await;
        }
        Speaks::Http3 => {
            let peer = Http3Peer::connect(&server).await;
            end(&server, peer, &mut rng, ending, &kept).await;
        }
    }
    kept.release().await;
    if !matches!(ending, Ending::Shutdown) {
        at_rest("without clients", &fresh, async || census(&server).await).await;
        let ended = async {
            while server.tasks() > idle_tasks {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let ended = tokio::time::timeout(END, ended).await;
        let left = server.tasks();
        assert!(
            ended.is_ok(),
            "{left} tasks, of which {idle_tasks} are idle"
        );
        server.handle.shutdown(GRACE).await;
    }
    support::soon(server.serving).await.unwrap();
}

/// Plays, and ends as the seed decides.
async fn end(server: &Running, mut peer: impl Peer, rng: &mut Rng, ending: Ending, kept: &Kept) {
    // The handshake is confirmed, and what belongs to it is over.
    tokio::time::sleep(Duration::from_millis(50)).await;
    let fresh = census(server).await;
    play(server, &mut peer, rng).await;
    match ending {
        Ending::Rest => {
            peer.let_go();
            kept.release().await;
            if !peer.is_over() {
                at_rest("with a client at rest", &fresh, async || {
                    census(server).await
                })
                .await;
            }
            peer.leave(Moves::Close).await;
        }
        Ending::Leave(moves) => peer.leave(moves).await,
        Ending::Shutdown => {
            let shutdown = server.handle.shutdown(GRACE);
            let ended = tokio::time::timeout(END, shutdown).await;
            assert!(
                ended.is_ok(),
                "the shutdown has no end: {}",
                server.handle.census()
            );
            peer.leave(Moves::Vanish).await;
        }
    }
}

/// Has our own client give up requests, and compares what both ends hold with what they held when their
/// connection was fresh.
async fn give_up(http3: Http3, seed: u64) {
    let mut rng = Rng::new(seed);
    let kept = Kept::new(rng.draw());
    let server = server(&kept);
    let mut asking = GivingUp::new(&server, http3);
    asking.ask().await;
    settle().await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    let fresh = (census(&server).await, asking.client().census());
    for _ in 0..10 {
        asking.start(&mut rng);
        for _ in 0..rng.below(10) {
            tokio::task::yield_now().await;
        }
    }
    asking.over().await;
    asking.ask().await;
    let server_census = async || census(&server).await;
    at_rest("with our client at rest", &fresh.0, server_census).await;
    let client_census = async || asking.client().census();
    at_rest("by our client", &fresh.1, client_census).await;
    drop(asking);
    server.handle.shutdown(GRACE).await;
    support::soon(server.serving).await.unwrap();
}

fn number(variable: &str, default: u64) -> u64 {
    let value = std::env::var(variable).ok();
    value.map_or(default, |value| value.parse().expect(variable))
}

/// Runs the scenarios of many seeds, and names the one that fails.
fn run_all<F: Future<Output = ()>>(what: &str, scenario: impl Fn(u64) -> F + panic::RefUnwindSafe) {
    let first = number("HYBRIQ_FIRST_SEED", 0);
    for seed in first..first + number("HYBRIQ_SEEDS", 12) {
        let run = panic::catch_unwind(|| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(scenario(seed));
        });
        if let Err(failure) = run {
            println!("{what}: HYBRIQ_FIRST_SEED={seed} HYBRIQ_SEEDS=1 fails");
            panic::resume_unwind(failure);
        }
    }
}

#[test]
fn nothing_is_left_of_hostile_peers_of_http_1() {
    run_all("HTTP/1", |seed| scenario(Speaks::Http1, seed));
}

#[test]
fn nothing_is_left_of_hostile_peers_of_http_2() {
    run_all("HTTP/2", |seed| scenario(Speaks::Http2, seed));
}

#[test]
fn nothing_is_left_of_hostile_peers_of_http_3_and_webtransport() {
    run_all("HTTP/3", |seed| scenario(Speaks::Http3, seed));
}

#[test]
fn nothing_is_left_of_requests_over_http_3_that_our_client_gives_up() {
    run_all("client of HTTP/3", |seed| give_up(Http3::Only, seed));
}

#[test]
fn nothing_is_left_of_requests_over_http_2_that_our_client_gives_up() {
    run_all("client of HTTP/2", |seed| give_up(Http3::Off, seed));
}

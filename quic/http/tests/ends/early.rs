//! Requests in 0-RTT packets whose handshake does not become complete.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{Extension, Router, routing::any};
use http::{Method, StatusCode};
use hybriq::{EarlyConnection, TransportConfig};
use hybriq_http::{EarlyMethods, Limits, Server, Upgrade};
use tokio::net::UdpSocket;

use crate::{
    common::{Guard, Guards, Silent, connect, headers},
    support::{Certificate, Http3, Running, client_config, post, run_with, soon},
};

/// A way to a server on which its datagrams can be lost.
pub(crate) struct OneWay {
    pub(crate) address: SocketAddr,
    mute: Arc<AtomicBool>,
}

impl OneWay {
    pub(crate) async fn to(server: SocketAddr) -> Self {
        let outside = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let inside = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        inside.connect(server).await.unwrap();
        let way = Self {
            address: outside.local_addr().unwrap(),
            mute: Arc::default(),
        };
        let mute = way.mute.clone();
        tokio::spawn(async move {
            let (mut out, mut back) = (vec![0; 65_535], vec![0; 65_535]);
            let mut client = None;
            loop {
                tokio::select! {
                    received = outside.recv_from(&mut out) => {
                        let (len, from) = received.unwrap();
                        client = Some(from);
                        // The server may be gone.
                        let _ = inside.send(&out[..len]).await;
                    }
                    received = inside.recv(&mut back) => {
                        if let (Ok(len), Some(to), false) = (received, client, mute.load(Ordering::Acquire)) {
                            let _ = outside.send_to(&back[..len], to).await;
                        }
                    }
                }
            }
        });
        way
    }

    /// Loses everything that the server sends from now on.
    pub(crate) fn mute(&self) {
        self.mute.store(true, Ordering::Release);
    }
}

/// A server that takes requests in 0-RTT packets, and waits so long for handshakes.
pub(crate) fn server(guards: &Guards, handshake: Duration) -> Running {
    let (silent, deaf, reads, upgraded) =
        (guards.make(), guards.make(), guards.make(), guards.make());
    let wait = async |_: Guard| std::future::pending::<StatusCode>().await;
    let router = Router::new()
        .route("/silent", any(async move || Silent::body(b"x", silent())))
        .route("/deaf", any(async move || wait(deaf()).await))
        .route(
            "/reads",
            any(async move |body: axum::body::Body| {
                let _guard = reads();
                let _ = axum::body::to_bytes(body, usize::MAX).await;
                StatusCode::OK
            }),
        )
        .route(
            "/upgrade",
            any(async move |_: Extension<Upgrade>| {
                let _guard = upgraded();
                StatusCode::OK
            }),
        );
    let transport = TransportConfig::new().handshake_timeout(handshake);
    let config = Certificate::shared().config().transport(transport);
    let mut limits = Limits::default();
    limits.early_methods = EarlyMethods::All;
    let builder = Server::builder().limits(limits).extended_connect();
    run_with(builder, config.accept_early_data(), router)
}

/// A client with a ticket of a server.
pub(crate) async fn returning(way: &OneWay) -> Http3 {
    let transport = TransportConfig::new().handshake_timeout(Duration::from_secs(600));
    let config = client_config(&Certificate::shared()).transport(transport);
    let mut client = Http3::with(way.address, config.offer_early_data()).await;
    let asked = client.ask(post("/", "ticket")).await;
    assert_eq!(asked.unwrap().body(), "ticket");
    client.connection.close(0x100, b"");
    way.mute();
    client
}

/// Begins a connection with some bytes on a stream.
pub(crate) async fn begin(
    client: &Http3,
    way: &OneWay,
    bytes: &[u8],
) -> (EarlyConnection, hybriq::SendStream, hybriq::RecvStream) {
    let connecting = client.endpoint.connect(way.address, "localhost");
    let Ok(early) = soon(connecting.early()).await else {
        panic!("there is a ticket");
    };
    let (mut send, recv) = soon(early.open_bidi()).await.unwrap();
    soon(send.write_all(bytes)).await.unwrap();
    (early, send, recv)
}

pub(crate) async fn until(what: &str, is_so: impl Fn() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(20), waiting).await;
    assert!(waited.is_ok(), "{what}");
}

/// How a handshake fails.
#[derive(Clone, Copy, Debug)]
enum Failure {
    /// The client says nothing more.
    Silence,
    /// It closes the connection.
    Close,
}

#[tokio::test]
async fn requests_whose_handshake_fails_leave_nothing() {
    let guards = Guards::new();
    let whole = |path| headers(&Method::GET, path);
    let cases: [(&str, Vec<u8>); 6] = [
        ("no end of the fields", whole("/deaf")[..5].to_vec()),
        ("a service that waits", whole("/deaf")),
        ("a silent response", whole("/silent")),
        ("a silent request", headers(&Method::POST, "/reads")),
        ("another protocol", connect()),
        ("a request that is reset", whole("/deaf")[..5].to_vec()),
    ];
    for failure in [Failure::Silence, Failure::Close] {
        // Of each kind, one after the other. Silence takes its time each.
        let (time, connections) = match failure {
            Failure::Silence => (Duration::from_secs(1), 2),
            Failure::Close => (Duration::from_secs(600), 4),
        };
        let server = server(&guards, time);
        let rests = || server.handle.connections() == 0;
        let waits = || server.handle.census().entries("waits for a phase");
        until("it listens", || waits() == 1).await;
        let (fresh, before) = (server.handle.census(), server.tasks());
        let came = || server.handle.census().entries("requests");
        for (name, bytes) in &cases {
            for _ in 0..connections {
                let way = OneWay::to(server.address()).await;
                let client = returning(&way).await;
                until("the first connection ends", rests).await;
                let (early, mut send, recv) = begin(&client, &way, bytes).await;
                until("it came", || came() == 1).await;
                if *name == "a request that is reset" {
                    send.reset(0x10c);
                }
                if let Failure::Close = failure {
                    early.close(0x100, b"");
                }
                until("the handshake fails", rests).await;
                drop((early, send, recv));
            }
            let left = || server.handle.census().grown_since(&fresh);
            let what = format!("{name}, {failure:?}");
            until(&what, || left().is_empty() && server.tasks() == before).await;
        }
    }
}

/// The handshake goes on, and the client gives its request up before it is complete.
#[tokio::test]
async fn a_request_that_is_given_up_before_the_handshake_is_complete_ends() {
    let mut guards = Guards::new();
    let server = server(&guards, Duration::from_secs(600));
    let way = OneWay::to(server.address()).await;
    let client = returning(&way).await;
    for path in ["/deaf", "/silent"] {
        let (early, send, mut recv) = begin(&client, &way, &headers(&Method::GET, path)).await;
        until("it came", || {
            server.handle.census().entries("requests") == 1
        })
        .await;
        recv.stop(0x10c);
        guards.dropped(path).await;
        until("it ends", || {
            server.handle.census().entries("requests") == 0
        })
        .await;
        drop((early, send, recv));
    }
}

//! Requests in 0-RTT packets.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{Extension, Router, routing::get as on_get};
use http::StatusCode;
use hybriq::{
    ConnectionError, Endpoint, SendStream, TransportConfig, fleet::Tickets, memory::ServerMemory,
    stage::Stage,
};
use hybriq_http::{Client, EarlyMethods, Http3, Limits, Peer, Server};

use crate::{
    common::{bytes, client_with, config, get, peer, post, uri},
    support::{Certificate, Running, run_with, soon},
};

/// A server that would answer unsafe requests in 0-RTT packets, too.
fn server(router: Router) -> Running {
    let config = Certificate::shared().config().accept_early_data();
    let mut limits = Limits::default();
    limits.early_methods = EarlyMethods::All;
    run_with(Server::builder().limits(limits), config, router)
}

/// A client that knows the server, and has no connection to it.
async fn returning(server: &Running) -> Client {
    let builder = Client::builder().http3(Http3::Only);
    let client = client_with(builder, config().offer_early_data());
    let first = post(&client, server.address(), "ticket").await.unwrap();
    assert!(!peer(&first).early);
    assert_eq!(bytes(first).await, "ticket");
    client.close_idle();
    client
}

#[tokio::test]
async fn safe_requests_alone_are_sent_early() {
    let server = server(Router::new());
    let client = returning(&server).await;
    let response = get(&client, server.address()).await;
    assert_eq!(response.headers()["x-early"], "true");
    let early = peer(&response);
    assert!(early.early && early.tls.resumed);
    // The connection is an ordinary one now.
    let later = get(&client, server.address()).await;
    assert_eq!(later.headers()["x-early"], "false");
    assert!(!peer(&later).early);
    client.close_idle();
    let response = post(&client, server.address(), "unsafe").await.unwrap();
    assert_eq!(response.headers()["x-early"], "false");
    assert!(peer(&response).tls.resumed);
    assert_eq!(bytes(response).await, "unsafe");
}

/// Many requests at once share the early connection, and the unsafe ones among them wait.
#[tokio::test]
async fn requests_at_once_share_an_early_connection() {
    let server = server(Router::new());
    let client = returning(&server).await;
    let safe = (0..20).map(|_| get(&client, server.address()));
    let unsafe_ones = (0..20).map(|_| post(&client, server.address(), "x"));
    let (safe, unsafe_ones) = tokio::join!(
        futures_util::future::join_all(safe),
        futures_util::future::join_all(unsafe_ones),
    );
    assert!(
        safe.iter()
            .any(|response| response.headers()["x-early"] == "true")
    );
    for response in unsafe_ones {
        assert_eq!(response.unwrap().headers()["x-early"], "false");
    }
}

/// A server that answers 425 gets the request again after the handshake (RFC 8470 §5.2).
#[tokio::test]
async fn a_request_that_came_too_early_is_sent_again() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let careful = move |Extension(peer): Extension<Peer>| {
        count.fetch_add(1, Ordering::Relaxed);
        std::future::ready(if peer.early {
            StatusCode::TOO_EARLY
        } else {
            StatusCode::OK
        })
    };
    let always = || async { StatusCode::TOO_EARLY };
    let router = Router::new().route("/careful", on_get(careful));
    let server = server(router.route("/always", on_get(always)));
    let client = returning(&server).await;
    let response = soon(client.get(uri(server.address(), "/careful")))
        .await
        .unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert!(!peer(&response).early);
    assert_eq!(asked.load(Ordering::Relaxed), 2);
    // The answer to a request that was not early is the answer.
    let response = soon(client.get(uri(server.address(), "/always")))
        .await
        .unwrap();
    assert_eq!(response.status(), StatusCode::TOO_EARLY);
}

/// A server that has forgotten its sessions refuses early data. The requests are sent again.
#[tokio::test]
async fn refused_early_data_is_sent_again() {
    let server = server(Router::new());
    let client = returning(&server).await;
    // Tickets of other keys, as in another process.
    let config = Certificate::shared().config().accept_early_data();
    let config = config.tickets(Tickets::new());
    server.handle.reload(config).unwrap();
    let responses = (0..10).map(|_| get(&client, server.address()));
    for response in futures_util::future::join_all(responses).await {
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["x-early"], "false");
        assert!(!peer(&response).tls.resumed);
    }
}

/// SETTINGS with a dynamic table of 4,096 bytes for which 16 streams may wait.
const TABLE: &[u8] = &[0, 4, 5, 1, 0x50, 0, 7, 16];

async fn tell(connection: &hybriq::Connection<impl Stage>, settings: &[u8]) -> SendStream {
    let mut control = soon(connection.open_uni()).await.unwrap();
    control.write_all(settings).await.unwrap();
    control
}

/// Requests in 0-RTT packets are encoded by the settings of the last connection, which the server must not take back
/// (RFC 9114 §7.2.4.2).
#[tokio::test]
async fn settings_are_remembered_for_early_requests() {
    let for_http3 = Certificate::shared().config().alpn([hybriq_h3::ALPN]);
    let endpoint = Endpoint::server("127.0.0.1:0", for_http3.accept_early_data()).unwrap();
    let address = endpoint.local_address();
    let builder = Client::builder().http3(Http3::Only);
    let memory = ServerMemory::new();
    let config = config().offer_early_data().server_memory(memory.clone());
    let client = client_with(builder, config);
    let serves = async {
        let incoming = soon(endpoint.accept()).await.unwrap();
        let first = soon(incoming.accept()).await.unwrap();
        let _control = tell(&first, TABLE).await;
        let (mut send, mut recv) = soon(first.accept_bidi()).await.unwrap().unwrap();
        soon(recv.read_to_end(1_000)).await.unwrap();
        send.write_all(b"\x01\x03\0\0\xd9").await.unwrap();
        send.finish();
        soon(first.closed()).await;
        let incoming = soon(endpoint.accept()).await.unwrap();
        let early = soon(incoming.accept().early()).await.unwrap();
        let mut streams = Vec::new();
        loop {
            let mut stream = soon(early.accept_uni()).await.unwrap().unwrap();
            let mut kind = [0];
            soon(stream.read_exact(&mut kind)).await.unwrap();
            if kind == [2] {
                // It announces the capacity of its table before it has our settings.
                let mut capacity = [0; 3];
                soon(stream.read_exact(&mut capacity)).await.unwrap();
                assert_eq!(capacity, [0x3f, 0xe1, 0x1f]);
                streams.push(stream);
                break;
            }
            streams.push(stream);
        }
        let _control = tell(&early, &[0, 4, 0]).await;
        soon(early.closed()).await
    };
    let asks = async {
        let first = soon(client.get(uri(address, "/"))).await.unwrap();
        bytes(first).await;
        client.close_idle();
        let _ = client.get(uri(address, "/")).await;
        std::future::pending::<()>().await;
    };
    let end = tokio::select! {
        end = serves => end,
        () = asks => unreachable!("it waits for ever"),
    };
    let code = hybriq_h3::Code::H3_SETTINGS_ERROR.0;
    assert!(
        matches!(&end, ConnectionError::Application { code: had, .. } if *had == code),
        "{end}"
    );
    // They are in the memory of servers, and so in its file.
    let saved = ServerMemory::from_bytes(&memory.to_bytes()).unwrap();
    let server = saved.get(&saved.names()[0]).unwrap();
    assert_eq!(server.settings(), Some(&TABLE[3..]));
}

/// Early requests do not wait for a path that is dead: they are sent again over TCP.
#[tokio::test]
async fn early_requests_leave_a_dead_path() {
    let server = server(Router::new());
    let front = crate::front::Front::of(server.address()).await;
    let minute = Duration::from_secs(60);
    let builder = Client::builder().http3(Http3::First);
    let builder = builder.connect_timeout(minute);
    let transport = TransportConfig::new().handshake_timeout(minute);
    let config = config().offer_early_data().transport(transport);
    let client = client_with(builder, config);
    let first = post(&client, front.address, "ticket").await.unwrap();
    assert_eq!(first.version(), http::Version::HTTP_3);
    assert_eq!(bytes(first).await, "ticket");
    client.close_idle();
    front.cut_udp();
    let response = get(&client, front.address).await;
    assert_eq!(response.version(), http::Version::HTTP_2);
}

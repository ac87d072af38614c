//! What layers add to the client, and what it sends again.

use std::time::Duration;

use axum::{Router, extract::Request, response::Redirect, routing::any};
use http::header::{CONTENT_ENCODING, HOST};
use http_body_util::BodyExt as _;
use hybriq_http::{ClientError, Http3};
use tokio::sync::mpsc;
use tower::{ServiceBuilder, ServiceExt as _, timeout::TimeoutLayer};
use tower_http::{decompression::DecompressionLayer, follow_redirect::FollowRedirectLayer};

use crate::{
    common::{bytes, client, get, post, request, uri},
    connections::http1_server,
    support::{run, soon},
    tcp::{HEADERS, RST_STREAM, frame, http2_begin, http2_read, listen, write},
};

/// "hello, hello, hello", compressed by gzip.
const HELLO: &[u8] = &[
    31, 139, 8, 0, 0, 0, 0, 0, 2, 3, 203, 72, 205, 201, 201, 215, 81, 200, 64, 162, 0, 159, 161,
    202, 9, 19, 0, 0, 0,
];

/// Redirects, decompression and time limits are layers of tower and tower-http.
#[tokio::test]
async fn layers_add_what_the_client_leaves_out() {
    let router = Router::new()
        .route("/old", any(async || Redirect::to("/new")))
        .route("/new", any(async || ([(CONTENT_ENCODING, "gzip")], HELLO)))
        .route("/silent", any(std::future::pending::<()>));
    let server = run(router);
    for http3 in [Http3::Only, Http3::Off] {
        let layered = ServiceBuilder::new()
            .layer(TimeoutLayer::new(Duration::from_millis(300)))
            .layer(FollowRedirectLayer::new())
            .layer(DecompressionLayer::new())
            .service(client(http3));
        let ask = |path| {
            let request = request(http::Method::POST, &uri(server.address(), path), "x");
            soon(layered.clone().oneshot(request))
        };
        let silent = ask("/silent").await.map(drop).unwrap_err();
        assert!(silent.is::<tower::timeout::error::Elapsed>(), "{silent}");
        // A slow machine needs more time.
        let response = loop {
            match ask("/old").await {
                Ok(response) => break response,
                Err(error) => assert!(error.is::<tower::timeout::error::Elapsed>(), "{error}"),
            }
        };
        let page = soon(response.into_body().collect()).await.unwrap();
        assert_eq!(page.to_bytes(), "hello, hello, hello");
    }
}

/// The caller's field is the host of the request over every version; the URI says where the request goes.
#[tokio::test]
async fn the_host_of_the_caller_is_that_of_every_version() {
    let name = async |request: Request| {
        let authority = request
            .uri()
            .authority()
            .map(|host| host.as_str().to_owned());
        let field = request
            .headers()
            .get(HOST)
            .map(|host| host.to_str().unwrap().to_owned());
        assert!(field.is_none() || authority.is_none() || field == authority);
        authority.or(field).unwrap()
    };
    let server = run(Router::new().route("/", any(name)));
    let (http1, _) = http1_server().await;
    for (http3, server) in [
        (Http3::Only, server.address()),
        (Http3::Off, server.address()),
        (Http3::Off, http1),
    ] {
        let client = client(http3);
        let ask = |hosts: &[&'static str]| {
            let mut request = request(http::Method::GET, &uri(server, "/"), "");
            for host in hosts {
                request.headers_mut().append(HOST, host.parse().unwrap());
            }
            soon(client.request(request))
        };
        let named = ask(&["other.example:8443"]).await.unwrap();
        assert_eq!(bytes(named).await, "other.example:8443");
        let unnamed = ask(&[]).await.unwrap();
        assert_eq!(bytes(unnamed).await, format!("localhost:{}", server.port()));
        for hosts in [&["a", "a"][..], &[""], &["me@a"], &["a b"], &[":1"]] {
            let refused = ask(hosts).await.unwrap_err();
            assert!(matches!(refused, ClientError::Host), "{hosts:?}: {refused}");
        }
    }
}

const GOAWAY: u8 = 7;
const REFUSED_STREAM: u8 = 7;
const END: u8 = 5;

/// What a server of HTTP/2 does with the first request of a connection.
#[derive(Clone, Copy)]
enum Fate {
    /// GOAWAY with this as the last stream that it processes, and the end.
    Leave(u8),
    Refuse,
    Answer,
}

/// A server whose connections have these fates, in order. Tells about every request.
async fn server(fates: &'static [Fate]) -> (std::net::SocketAddr, mpsc::UnboundedReceiver<()>) {
    let (tell, told) = mpsc::unbounded_channel();
    let fates = std::sync::Mutex::new(fates.iter().copied());
    let address = listen("h2", move |mut stream| {
        let (fate, tell) = (fates.lock().unwrap().next(), tell.clone());
        async move {
            http2_begin(&mut stream).await;
            while let Some(read) = http2_read(&mut stream).await {
                if read.kind == HEADERS {
                    tell.send(()).unwrap();
                    let answer = match fate.unwrap_or(Fate::Answer) {
                        Fate::Leave(last) => frame(GOAWAY, 0, 0, &[0, 0, 0, last, 0, 0, 0, 0]),
                        Fate::Refuse => frame(RST_STREAM, 0, read.id, &[0, 0, 0, REFUSED_STREAM]),
                        // The first octet is `:status 200` (RFC 7541 appendix A).
                        Fate::Answer => frame(HEADERS, END, read.id, &[0x88]),
                    };
                    write(&mut stream, &answer).await;
                    if matches!(fate, Some(Fate::Leave(_))) {
                        return;
                    }
                }
            }
        }
    })
    .await;
    (address, told)
}

/// A request that the server has not processed is sent again over HTTP/2 whatever its method, one that it may have
/// processed only if that does no harm.
#[tokio::test]
async fn refused_requests_are_sent_again_over_http2() {
    let client = || client(Http3::Off);
    let (address, mut told) = server(&[Fate::Leave(0), Fate::Refuse]).await;
    post(&client(), address, "x").await.unwrap();
    for _ in 0..3 {
        told.recv().await.unwrap();
    }
    assert!(told.try_recv().is_err());

    let (address, mut told) = server(&[Fate::Leave(1), Fate::Leave(1)]).await;
    let lost = post(&client(), address, "x").await.unwrap_err();
    assert!(matches!(lost, ClientError::Lost { .. }), "{lost}");
    told.recv().await.unwrap();
    assert!(told.try_recv().is_err());
    get(&client(), address).await;

    let (address, _told) = server(&[Fate::Refuse; 10]).await;
    let refused = post(&client(), address, "x").await.unwrap_err();
    assert!(matches!(refused, ClientError::Lost { .. }), "{refused}");
}

//! Times: those of routes, of exchanges that are silent in one direction, and between two PINGs.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes},
    routing::{any, get as on_get},
};
use http::{Method, Version};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody, channel::Channel};
use hybriq::TransportConfig;
use hybriq_http::{BindError, Limits, Server, StallTime};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    sync::Notify,
    time::Instant,
};

use crate::{
    messages::{VERSIONS, ask, begin, request},
    support::{Certificate, Http3, Running, connect_tls, get, run_with, soon},
};

fn serve(router: Router, stall_time: Duration) -> Running {
    let mut limits = Limits::default();
    limits.stall_time = stall_time;
    let builder = Server::builder().limits(limits);
    run_with(builder, Certificate::shared().config(), router)
}

/// Reads the request, and tells how that ended.
async fn read(body: Body) -> String {
    match body.collect().await {
        Ok(_) => "whole".to_owned(),
        Err(error) => {
            std::error::Error::source(&error).map_or_else(String::new, ToString::to_string)
        }
    }
}

/// A client that begins a body, and sends nothing of it.
#[tokio::test]
async fn a_route_has_a_stall_time_of_its_own() {
    let hasty = Router::new().route("/", any(read));
    let hasty = hasty.layer(StallTime::new(Duration::from_millis(50)));
    let server = serve(hasty, Duration::from_secs(600));
    for version in VERSIONS {
        let (_sender, body) = Channel::<Bytes, Infallible>::new(1);
        let post = request(server.address(), Method::POST, "/", Box::pin(body));
        let response = ask(version, server.address(), post).await.unwrap();
        let told = response.into_body().to_bytes();
        let expected = "the client sent no data of the body for 50ms";
        assert_eq!(told, expected, "{version:?}");
    }
}

/// As with gRPC: the service waits for messages of the client while it sends some.
#[tokio::test]
async fn a_request_may_be_silent_while_its_response_is_not() {
    const STALL: Duration = Duration::from_millis(400);
    let stalled = Arc::new(AtomicBool::new(false));
    let told = stalled.clone();
    let handler = async move |body: Body| {
        tokio::spawn(async move {
            let is_stalled = read(body).await.contains("sent no data");
            told.fetch_or(is_stalled, Ordering::SeqCst);
        });
        let part = || Ok::<_, Infallible>(Frame::data(Bytes::from_static(&[7; 1000])));
        Body::new(StreamBody::new(futures_util::stream::repeat_with(part)))
    };
    let server = serve(Router::new().route("/", any(handler)), STALL);
    let talk = async |version| {
        let (_sender, body) = Channel::<Bytes, Infallible>::new(1);
        let post = request(server.address(), Method::POST, "/", Box::pin(body));
        let begun = begin(version, server.address(), post);
        let mut body = soon(begun).await.unwrap().into_body();
        let end = Instant::now() + 3 * STALL;
        while Instant::now() < end {
            let frame = soon(body.frame()).await.unwrap();
            assert!(frame.is_ok(), "{version:?}");
            // A stream of messages, and not a download.
            tokio::task::yield_now().await;
        }
        assert!(!stalled.load(Ordering::SeqCst), "{version:?}");
    };
    let [http1, http2, http3] = VERSIONS.map(talk);
    tokio::join!(http1, http2, http3);
}

/// A handler takes long, and the client hears from the server meanwhile. The shorter one of the server's time and that of
/// its transport counts.
#[tokio::test]
async fn a_client_of_a_slow_handler_hears_pings() {
    let (short, long) = (Duration::from_millis(20), Duration::from_secs(600));
    for (ours, transports) in [(short, None), (short, Some(long)), (long, Some(short))] {
        hears_pings(ours, transports).await;
    }
}

async fn hears_pings(ours: Duration, transports: Option<Duration>) {
    let go_on = Arc::new(Notify::new());
    let held = go_on.clone();
    let slow = async move || held.notified().await;
    let router = Router::new().route("/", on_get(slow));
    let builder = Server::builder().keep_alive(ours);
    let config = Certificate::shared().config();
    let transport = TransportConfig::new();
    let config = match transports {
        Some(time) => config.transport(transport.keep_alive(time)),
        None => config,
    };
    let server = run_with(builder, config, router);

    let mut client = Http3::connect(server.address()).await;
    let connection = client.connection.clone();
    let asked = tokio::spawn(async move { client.ask(get("/")).await });
    let begun = connection.stats().packets_received;
    soon(async {
        while connection.stats().packets_received < begun + 20 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    go_on.notify_one();
    soon(asked).await.unwrap().unwrap();
    if ours > Duration::from_secs(1) {
        return;
    }

    let mut client = connect_tls(server.address(), "h2").await.unwrap();
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    client.write_all(preface).await.unwrap();
    loop {
        let mut head = [0; 9];
        soon(client.read_exact(&mut head)).await.unwrap();
        let [_, _, len, kind, ..] = head;
        soon(client.read_exact(&mut vec![0; len.into()]))
            .await
            .unwrap();
        if kind == 6 {
            break;
        }
    }
}

#[tokio::test]
async fn times_of_nothing_are_refused_with_advice() {
    let config = || Certificate::shared().config();
    let refused = |builder: hybriq_http::ServerBuilder| {
        let error = builder.bind("127.0.0.1:0", config()).unwrap_err();
        assert!(matches!(error, BindError::NoTime(_)), "{error}");
        error.to_string()
    };
    let error = refused(Server::builder().keep_alive(Duration::ZERO));
    let expected = "ServerBuilder::keep_alive is 0, so that nothing could ever be in time; give it a time such as 15 s";
    assert_eq!(error, expected);
    let set: [fn(&mut Limits) -> &mut Duration; 3] = [
        |limits| &mut limits.header_time,
        |limits| &mut limits.stall_time,
        |limits| &mut limits.idle_time,
    ];
    for set in set {
        let mut limits = Limits::default();
        *set(&mut limits) = Duration::ZERO;
        refused(Server::builder().limits(limits));
    }
}

/// Over HTTP/1.1, they come if the client wants them and the response names them (RFC 9110 §6.5.1).
#[tokio::test]
async fn trailers_of_responses_arrive_over_all_versions() {
    let handler = async || {
        let mut trailers = http::HeaderMap::new();
        trailers.insert("server-timing", "total;dur=1".parse().unwrap());
        let frames = [
            Frame::data(Bytes::from_static(b"page")),
            Frame::trailers(trailers),
        ];
        let body = StreamBody::new(futures_util::stream::iter(frames.map(Ok::<_, Infallible>)));
        let response = http::Response::builder().header("trailer", "server-timing");
        response.body(Body::new(body)).unwrap()
    };
    let server = serve(
        Router::new().route("/", any(handler)),
        Duration::from_secs(60),
    );
    for version in VERSIONS {
        let empty = http_body_util::Empty::<Bytes>::new();
        let mut get = request(server.address(), Method::GET, "/", empty);
        get.headers_mut().insert("te", "trailers".parse().unwrap());
        if version == Version::HTTP_11 {
            get.headers_mut()
                .insert("host", "localhost".parse().unwrap());
        }
        let response = ask(version, server.address(), get).await.unwrap();
        let trailers = response.body().trailers().unwrap();
        assert_eq!(trailers["server-timing"], "total;dur=1", "{version:?}");
        assert_eq!(response.into_body().to_bytes(), "page");
    }
}

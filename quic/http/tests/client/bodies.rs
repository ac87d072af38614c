//! Bodies in both directions.

use std::{convert::Infallible, error::Error as _};

use axum::{Router, response::Response, routing::any};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use http_body::{Body as _, Frame};
use http_body_util::{BodyExt as _, Full, StreamBody, channel::Channel};
use hybriq_http::{BodyError, ClientError, Http3};

use crate::{
    common::{bytes, client, get, post, request, uri},
    support::{run, soon},
};

const ALL: [Http3; 2] = [Http3::Only, Http3::Off];

/// Answers with the body while it comes.
async fn mirror(request: axum::extract::Request) -> Response {
    Response::new(request.into_body())
}

fn router() -> Router {
    Router::new().route("/mirror", any(mirror))
}

/// Each piece of the body is answered before the next one is sent.
#[tokio::test]
async fn bodies_flow_in_both_directions_at_once() {
    let server = run(router());
    for http3 in ALL {
        let client = client(http3);
        let (mut send, body) = Channel::<Bytes, Infallible>::new(1);
        let request = Request::post(uri(server.address(), "/mirror"))
            .body(body)
            .unwrap();
        let response = soon(client.request(request)).await.unwrap();
        let mut body = response.into_body();
        for piece in ["one", "two", "three"] {
            soon(send.send_data(piece.into())).await.unwrap();
            let mut echo = Vec::new();
            while echo.len() < piece.len() {
                let frame = soon(body.frame()).await.unwrap().unwrap();
                echo.extend(frame.into_data().unwrap());
            }
            assert_eq!(echo, piece.as_bytes());
        }
        let trailers =
            HeaderMap::from_iter([("x-sum".parse().unwrap(), HeaderValue::from_static("3"))]);
        soon(send.send_trailers(trailers.clone())).await.unwrap();
        drop(send);
        let frame = soon(body.frame()).await.unwrap().unwrap();
        assert_eq!(frame.into_trailers().unwrap(), trailers);
        assert!(soon(body.frame()).await.is_none());
        assert!(body.is_end_stream());
    }
}

#[tokio::test]
async fn long_bodies_pass() {
    let server = run(router());
    let body = Bytes::from(vec![3; 20 << 20]);
    for http3 in ALL {
        let client = client(http3);
        let uri = uri(server.address(), "/mirror");
        let sent = request(Method::PUT, &uri, body.clone());
        let response = soon(client.request(sent)).await.unwrap();
        assert!(bytes(response).await == body);
    }
}

#[tokio::test]
async fn a_body_beyond_the_limit_is_an_error() {
    let server = run(router());
    for http3 in ALL {
        let response = post(&client(http3), server.address(), "hello")
            .await
            .unwrap();
        let refused = soon(response.into_body().bytes(4)).await;
        assert!(matches!(refused, Err(BodyError::TooLong(4))), "{refused:?}");
        let response = post(&client(http3), server.address(), "hello")
            .await
            .unwrap();
        assert_eq!(soon(response.into_body().bytes(5)).await.unwrap(), "hello");
    }
}

/// The error of the implementation underneath is the source.
#[tokio::test]
async fn a_body_that_ends_early_has_its_cause() {
    let (begin, mut begun) = tokio::sync::mpsc::unbounded_channel();
    let app = any(async move || {
        let (send, body) = Channel::<Bytes, std::io::Error>::new(1);
        begin.send(send).unwrap();
        Response::new(axum::body::Body::new(body))
    });
    let server = run(Router::new().route("/", app));
    for http3 in ALL {
        let response = get(&client(http3), server.address()).await;
        let send = soon(begun.recv()).await.unwrap();
        send.abort(std::io::Error::other("the disk is gone"));
        let failed = soon(response.into_body().bytes(5)).await.unwrap_err();
        let cause = failed.source().expect("a cause");
        match http3 {
            Http3::Only => {
                let cause = cause.downcast_ref();
                assert!(
                    matches!(cause, Some(hybriq_http::StreamError::Ended(_))),
                    "{failed:?}"
                );
            }
            _ => assert!(cause.is::<hyper::Error>(), "{failed:?}"),
        }
    }
}

/// A body that fails ends the request, and its error is told.
#[tokio::test]
async fn a_body_that_fails_is_told() {
    let server = run(router());
    for http3 in ALL {
        let client = client(http3);
        let frames = [
            Ok(Frame::data(Bytes::from("start"))),
            Err(std::io::Error::other("the disk is gone")),
        ];
        let body = StreamBody::new(futures_util::stream::iter(frames));
        let request = Request::post(uri(server.address(), "/"))
            .body(body)
            .unwrap();
        let failed = soon(client.request(request)).await.unwrap_err();
        assert!(matches!(failed, ClientError::Body(_)), "{failed:?}");
        assert!(
            format!("{failed:?}").contains("the disk is gone"),
            "{failed:?}"
        );
        assert_eq!(
            get(&client, server.address()).await.status(),
            StatusCode::OK
        );
    }
}

/// Responses to HEAD, and those of some statuses, have no body but may have its length.
#[tokio::test]
async fn responses_without_a_body() {
    let page = Router::new()
        .route("/page", axum::routing::get(async || "page"))
        .route("/none", any(async || StatusCode::NO_CONTENT));
    let server = run(page);
    for http3 in ALL {
        let client = client(http3);
        let head = request(Method::HEAD, &uri(server.address(), "/page"), "");
        let response = soon(client.request(head)).await.unwrap();
        assert_eq!(response.headers()["content-length"], "4");
        assert_eq!(bytes(response).await, "");
        let none = soon(client.get(uri(server.address(), "/none")))
            .await
            .unwrap();
        assert_eq!(none.status(), StatusCode::NO_CONTENT);
        assert_eq!(bytes(none).await, "");
    }
}

/// A response that is dropped does not harm the next requests.
#[tokio::test]
async fn responses_may_be_dropped() {
    let server = run(router());
    let body = Bytes::from(vec![3; 1 << 20]);
    for http3 in ALL {
        let client = client(http3);
        let first = get(&client, server.address()).await.headers()["x-peer"].clone();
        for _ in 0..20 {
            let sent = request(
                Method::POST,
                &uri(server.address(), "/mirror"),
                body.clone(),
            );
            drop(soon(client.request(sent)).await.unwrap());
            let sent = request(
                Method::POST,
                &uri(server.address(), "/mirror"),
                body.clone(),
            );
            drop(client.request(sent));
        }
        let last = get(&client, server.address()).await;
        assert_eq!(last.headers()["x-peer"], first);
    }
}

/// A request without a known length says none, one with a length says it.
#[tokio::test]
async fn lengths_are_sent() {
    let show = async |fields: HeaderMap| {
        let length = fields.get("content-length");
        length.map_or("none".to_owned(), |length| {
            length.to_str().unwrap().to_owned()
        })
    };
    let server = run(Router::new().route("/", any(show)));
    for http3 in ALL {
        let client = client(http3);
        for (method, body, expected) in [
            (Method::POST, "hello", "5"),
            (Method::POST, "", "0"),
            (Method::GET, "", "none"),
            (Method::GET, "x", "1"),
        ] {
            let sent = request(method.clone(), &uri(server.address(), "/"), body);
            let response = soon(client.request(sent)).await.unwrap();
            assert_eq!(bytes(response).await, expected, "{http3:?} {method} {body}");
        }
        let frames = [Ok::<_, Infallible>(Frame::data(Bytes::from("x")))];
        let body = StreamBody::new(futures_util::stream::iter(frames));
        let sent = Request::post(uri(server.address(), "/"))
            .body(body)
            .unwrap();
        let response = soon(client.request(sent)).await.unwrap();
        assert_eq!(bytes(response).await, "none");
    }
}

/// The fields, a short body and its end leave in one datagram.
#[tokio::test]
async fn a_short_request_is_one_datagram() {
    let server = run(router());
    let client = client(Http3::Only);
    bytes(get(&client, server.address()).await).await;
    let received = || server.handle.endpoint().stats().datagrams_received;
    let before = received();
    for _ in 0..100 {
        let response = post(&client, server.address(), "hello").await.unwrap();
        assert_eq!(bytes(response).await, "hello");
    }
    // A few acknowledgements may leave alone.
    let datagrams = received() - before;
    assert!(datagrams < 150, "{datagrams} datagrams");
}

/// Without reading, over both versions.
#[tokio::test]
async fn a_response_known_to_be_empty_is_empty() {
    let router = Router::new()
        .route("/page", any(async || "page"))
        .route("/empty", any(async || ""))
        .route("/204", any(async || StatusCode::NO_CONTENT));
    let server = run(router);
    for http3 in ALL {
        let client = client(http3);
        for (method, path, size) in [
            (Method::HEAD, "/page", 0),
            (Method::GET, "/empty", 0),
            (Method::GET, "/204", 0),
            (Method::GET, "/page", 4),
        ] {
            let sent = request(method.clone(), &uri(server.address(), path), "");
            let response = soon(client.request(sent)).await.unwrap();
            let name = format!("{http3:?} {method} {path}");
            assert_eq!(response.body().is_end_stream(), size == 0, "{name}");
            assert_eq!(response.body().size_hint().exact(), Some(size), "{name}");
        }
    }
}

/// The server would have to refuse it (RFC 9110 §8.6).
#[tokio::test]
async fn a_request_of_another_length_than_announced_is_not_sent() {
    let server = run(Router::new());
    for http3 in ALL {
        let client = client(http3);
        for (length, is_right) in [("4", false), ("5", true), ("6", false)] {
            let parts =
                ["hel", "lo"].map(|part| Ok::<Frame<Bytes>, Infallible>(Frame::data(part.into())));
            let parts = StreamBody::new(futures_util::stream::iter(parts)).boxed();
            let whole = Full::<Bytes>::from("hello").boxed();
            for body in [whole, parts] {
                let sent =
                    Request::post(uri(server.address(), "/")).header("content-length", length);
                let sent = sent.body(body).unwrap();
                let answer = soon(client.request(sent)).await;
                match answer {
                    Ok(response) if is_right => assert_eq!(bytes(response).await, "hello"),
                    Err(ClientError::Body(_)) if !is_right => {}
                    answer => panic!("{http3:?} {length}: {answer:?}"),
                }
            }
        }
    }
}

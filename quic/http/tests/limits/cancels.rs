//! Requests that clients cancel.

use std::{convert::Infallible, time::Duration};

use axum::{
    Router,
    body::{Body, Bytes},
    routing::get,
};
use http_body::Frame;
use http_body_util::channel::Channel;
use hybriq_http::Limits;
use tokio::sync::mpsc;

use crate::{
    client::{Client, Outcome, Version, connections},
    serve,
    support::{Running, soon},
};

type Download = http_body_util::channel::Sender<Bytes, Infallible>;

/// Versions in which a request can be cancelled without the connection.
const VERSIONS: [Version; 2] = [Version::Http2, Version::Http3];

/// A server of downloads, which the test sends, and of requests that are never answered.
fn serve_downloads(cancelled: u32) -> (Running, mpsc::UnboundedReceiver<Download>) {
    let (begun, downloads) = mpsc::unbounded_channel();
    let download = async move || {
        let (mut sender, body) = Channel::<Bytes, Infallible>::new(4);
        sender.send(Frame::data("begun".into())).await.unwrap();
        begun.send(sender).unwrap();
        Body::new(body)
    };
    let router = Router::new()
        .route("/download", get(download))
        .route("/held", get(std::future::pending::<()>));
    let server = serve(router, |limits| {
        limits.cancelled = cancelled;
        limits.header_time = Duration::from_secs(1);
    });
    (server, downloads)
}

/// Above the limit new requests are refused; the download beside them goes on.
#[tokio::test]
async fn a_client_that_gives_up_many_requests_keeps_its_download() {
    for version in VERSIONS {
        let (server, mut downloads) = serve_downloads(20);
        let mut client = Client::connect(version, server.address()).await;
        let download = client.send("/download").await.unwrap();
        let mut sender = soon(downloads.recv()).await.unwrap();
        for _ in 0..30 {
            let asked = client.send("/held").await.unwrap();
            client.cancel(asked).await;
        }
        // The cancels arrive before this.
        while client.ask("/").await != Outcome::Refused {}
        sender.send(Frame::data("rest".into())).await.unwrap();
        drop(sender);
        assert_eq!(
            client.take(download).await,
            Outcome::Answered(200),
            "{version:?}"
        );
    }
}

/// A client that ignores the refusals gets GOAWAY. Its download is finished first; then the connection ends.
#[tokio::test]
async fn a_flood_of_cancelled_requests_ends_the_connection_after_its_download() {
    for version in VERSIONS {
        let (server, mut downloads) = serve_downloads(20);
        let mut client = Client::connect(version, server.address()).await;
        let download = client.send("/download").await.unwrap();
        let mut sender = soon(downloads.recv()).await.unwrap();
        for _ in 0..30 {
            let asked = client.send("/held").await.unwrap();
            client.cancel(asked).await;
        }
        while client.ask("/").await != Outcome::Refused {}
        // It goes on, and reads nothing meanwhile.
        let mut last = client.send("/").await.unwrap();
        for _ in 0..40 {
            last = client.send("/").await.unwrap();
        }
        assert_eq!(client.take(last).await, Outcome::Refused, "{version:?}");
        sender.send(Frame::data("rest".into())).await.unwrap();
        drop(sender);
        assert_eq!(
            client.take(download).await,
            Outcome::Answered(200),
            "{version:?}"
        );
        let code = client.ended().await;
        if version == Version::Http3 {
            assert_eq!(code, Some(0x107), "H3_EXCESSIVE_LOAD");
        }
        connections(&server.handle, 0).await;
    }
}

/// A client that does not heed that either is cut off, whatever is under way.
#[tokio::test]
async fn a_flood_that_goes_on_after_goaway_is_cut_off() {
    for version in VERSIONS {
        let (server, mut downloads) = serve_downloads(20);
        let mut client = Client::connect(version, server.address()).await;
        let _download = client.send("/download").await.unwrap();
        let _sender = soon(downloads.recv()).await.unwrap();
        soon(async {
            while let Some(asked) = client.send("/held").await {
                client.cancel(asked).await;
            }
        })
        .await;
        connections(&server.handle, 0).await;
    }
}

/// Requests that are answered pay for those that are cancelled, however many are under way beside them.
#[tokio::test]
async fn a_client_that_cancels_every_second_request_is_served() {
    for version in VERSIONS {
        let (server, _downloads) = serve_downloads(20);
        let mut client = Client::connect(version, server.address()).await;
        let mut held = Vec::new();
        for _ in 0..40 {
            held.push(client.send("/held").await.unwrap());
        }
        for _ in 0..100 {
            let asked = client.send("/held").await.unwrap();
            client.cancel(asked).await;
            assert_eq!(client.ask("/").await, Outcome::Answered(200), "{version:?}");
        }
    }
}

/// Requests that fail before the service gets them count like cancelled ones: more are refused, and a client that
/// goes on loses its connection, but not its download.
#[tokio::test]
async fn requests_that_are_malformed_count_as_cancelled() {
    for version in VERSIONS {
        let (server, mut downloads) = serve_downloads(20);
        let mut client = Client::connect(version, server.address()).await;
        let download = client.send("/download").await.unwrap();
        let mut sender = soon(downloads.recv()).await.unwrap();
        for _ in 0..15 {
            let asked = client.send_malformed().await.unwrap();
            let outcome = client.take(asked).await;
            assert!(matches!(outcome, Outcome::Reset(_)), "{outcome:?}");
        }
        assert_eq!(client.ask("/").await, Outcome::Answered(200), "{version:?}");
        for _ in 0..15 {
            let asked = client.send_malformed().await.unwrap();
            client.take(asked).await;
        }
        assert_eq!(client.ask("/").await, Outcome::Refused, "{version:?}");
        let mut asked = Vec::new();
        for _ in 0..20 {
            asked.push(client.send_malformed().await);
        }
        sender.send(Frame::data("rest".into())).await.unwrap();
        drop(sender);
        assert_eq!(
            client.take(download).await,
            Outcome::Answered(200),
            "{version:?}"
        );
        client.ended().await;
        connections(&server.handle, 0).await;
    }
}

/// A limit beyond which a connection has too many requests that fail.
struct Bound {
    change: fn(&mut Limits),
    /// Number of those that fail before it ends.
    most: usize,
}

const BOUNDS: [Bound; 2] = [
    Bound {
        change: |limits| limits.cancelled = 20,
        // As many again are refused.
        most: 2 * 20,
    },
    Bound {
        change: |limits| limits.requests = 60,
        most: 60 - 1,
    },
];

/// h2 answers them itself.
#[tokio::test]
async fn over_http2_requests_with_too_many_fields_count_as_cancelled() {
    for Bound { change, most } in BOUNDS {
        let server = serve(Router::new(), |limits| {
            change(limits);
            limits.header_list = 2048;
        });
        let mut client = Client::connect(Version::Http2, server.address()).await;
        assert_eq!(client.ask("/").await, Outcome::Answered(200));
        let mut answered = 0;
        while let Some(asked) = client.send_with("/", 60).await {
            match client.take(asked).await {
                // A status that came before is in the table of RFC 7541.
                Outcome::Answered(431 | 0) => answered += 1,
                outcome => assert_eq!(outcome, Outcome::Gone),
            }
        }
        // GOAWAY takes a moment.
        assert!((most..most + 20).contains(&answered), "{answered}");
        connections(&server.handle, 0).await;
    }
}

/// h2 refuses them: there are too many at once.
#[tokio::test]
async fn over_http2_requests_that_are_refused_count_as_cancelled() {
    for Bound { change, most } in BOUNDS {
        let router = Router::new().route("/held", get(std::future::pending::<()>));
        let server = serve(router, |limits| {
            change(limits);
            limits.requests += 100;
        });
        let mut client = Client::connect(Version::Http2, server.address()).await;
        assert_eq!(client.ask("/").await, Outcome::Answered(200));
        let mut held = Vec::new();
        for _ in 0..100 {
            held.push(client.send("/held").await.unwrap());
        }
        for _ in 0..most - 10 {
            assert_eq!(client.ask("/").await, Outcome::Refused);
        }
        // That was not too much yet.
        client.cancel(held.remove(0)).await;
        let again = client.ask("/").await;
        if most == 2 * 20 {
            assert_eq!(again, Outcome::Refused);
        } else {
            assert_eq!(again, Outcome::Answered(200));
        }
        soon(async { while client.send("/held").await.is_some() {} }).await;
        connections(&server.handle, 0).await;
    }
}

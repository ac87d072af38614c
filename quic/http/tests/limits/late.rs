//! Frames that came too late, or for nothing, over HTTP/2.

use axum::{Router, routing::any};
use http::StatusCode;

use crate::{
    client::{Client, Outcome, Version, frame},
    serve,
};

/// Fields of a POST to `/no` over HTTP/2.
const POST: &[u8] = b"\x83\x87\x41\x01a\x04\x03/no";

/// h2 resets a stream again for each frame that was on its way when the stream was over. That is no fault of the
/// client.
#[tokio::test]
async fn over_http2_uploads_that_are_refused_keep_their_connection() {
    let no = any(async || StatusCode::NOT_FOUND);
    let server = serve(Router::new().route("/no", no), |_| {});
    let client = Client::connect(Version::Http2, server.address()).await;
    let Client::Http2(mut client) = client else {
        unreachable!("a client of HTTP/2");
    };
    let mut late = Vec::new();
    // Beyond those that h2 remembers, which are 50.
    for id in (1..).step_by(2).take(1_300) {
        let bytes = [late, frame(1, 4, id, POST)].concat();
        assert!(client.bytes(&bytes).await);
        assert_eq!(client.response(id).await, Outcome::Answered(404));
        // The end of the response comes before the reset.
        assert_eq!(client.response(id).await, Outcome::Reset(0));
        late = frame(0, 0, id, &[7; 100]);
    }
    assert!(client.bytes(&frame(1, 4, 3_001, POST)).await);
    assert_eq!(client.response(3_001).await, Outcome::Answered(404));
}

/// Frames for which there may be resets stop reading only until what there is to send has left.
#[tokio::test]
async fn over_http2_frames_that_h2_ignores_stop_nothing() {
    let server = serve(Router::new(), |_| {});
    let client = Client::connect(Version::Http2, server.address()).await;
    let Client::Http2(mut client) = client else {
        unreachable!("a client of HTTP/2");
    };
    let priority = frame(2, 0, 1, &[0, 0, 0, 0, 15]);
    assert!(client.bytes(&priority.repeat(10_000)).await);
    let mut client = Client::Http2(client);
    assert_eq!(client.ask("/").await, Outcome::Answered(200));
}

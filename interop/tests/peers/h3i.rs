//! Illegal scripts that h3i, on quiche, plays to a server of hybriq-http.
#![cfg(feature = "quiche")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../../../quic/http/tests/malformed/cases.rs"]
mod cases;

use std::{
    convert::Infallible,
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll},
};

use cases::{
    CASES, Case, End,
    Expected::{self, Connection as Closes, Stream as Resets},
    MESSAGE_ERROR,
    On::{Bidi, Uni},
};
use h3i::{
    actions::h3::{Action, ExpectedStreamSendResult, StreamEvent, StreamEventType, WaitType},
    client::{
        connection_summary::{ConnectionSummary, StreamMap},
        sync_client,
    },
    config::Config,
    frame::H3iFrame,
    quiche::ConnectionError,
};
use http::{Request, Response};
use http_body_util::BodyExt as _;
use hybriq::{Identity, ServerConfig, tls::PrivateKeyDer};
use hybriq_http::{Body, Server};
use tower_service::Service;

/// Stream of the request that follows each script: no case opens so many.
const AFTER: u64 = 4 * 20;

/// A service without resources, which reads each request to its end.
#[derive(Clone)]
struct NotFound;

impl Service<Request<Body>> for NotFound {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(async {
            let _ = request.into_body().collect().await;
            let response = Response::builder().status(404).body(String::new());
            Ok(response.unwrap())
        })
    }
}

fn bytes(stream_id: u64, bytes: &[u8], fin_stream: bool) -> Action {
    Action::StreamBytes {
        stream_id,
        fin_stream,
        bytes: bytes.to_vec(),
        expected_result: ExpectedStreamSendResult::Ok,
    }
}

/// Returns a case as actions of h3i, and its last stream. A request comes behind it, and the end of the
/// connection when that is answered: this shows a server that ignores the case.
fn script(case: &Case) -> (Vec<Action>, u64) {
    let (mut bidi, mut uni) = (0, 2);
    let mut actions = Vec::new();
    let mut last = 0;
    for (i, (on, sent)) in case.streams.iter().enumerate() {
        let next = match on {
            Bidi => &mut bidi,
            Uni => &mut uni,
        };
        last = *next;
        *next += 4;
        let ends = case.end == End::Finish && i + 1 == case.streams.len();
        actions.push(bytes(last, sent, ends));
        actions.push(Action::FlushPackets);
    }
    let get = [1, 8, 0, 0, 0xd1, 0xd7, 0xc1, 0x50, 1, b'a'];
    let answered = |stream_id| Action::Wait {
        wait_type: WaitType::StreamEvent(StreamEvent {
            stream_id,
            event_type: StreamEventType::Finished,
        }),
    };
    if matches!(case.expected, Resets(_)) {
        actions.push(answered(last));
    }
    // A violation may be found after the next request.
    for request in 0..3 {
        actions.push(bytes(AFTER + 4 * request, &get, true));
        actions.push(Action::FlushPackets);
        actions.push(answered(AFTER + 4 * request));
    }
    let error = ConnectionError {
        is_app: true,
        error_code: 0x100,
        reason: Vec::new(),
    };
    actions.push(Action::ConnectionClose { error });
    (actions, last)
}

/// Returns the server's answer to a case.
fn answer(summary: &ConnectionSummary, stream: u64) -> Option<Expected> {
    if let Some(error) = summary.conn_close_details.peer_error() {
        return error.is_app.then_some(Closes(error.error_code));
    }
    let frames = &summary.stream_map;
    let is_answered = |id| !frames.headers_on_stream(id).is_empty();
    // The connection went on.
    assert!(is_answered(AFTER), "{summary:?}");
    on_stream(frames, stream)
}

/// Returns the code of a stream's end. Status 400 is as good (RFC 9114 §4.1.2).
fn on_stream(frames: &StreamMap, stream: u64) -> Option<Expected> {
    let reset = frames
        .stream(stream)
        .into_iter()
        .find_map(|frame| match frame {
            H3iFrame::ResetStream(reset) => Some(Resets(reset.error_code)),
            _ => None,
        });
    let is_refused = || {
        let fields = frames.headers_on_stream(stream);
        let status = fields
            .iter()
            .find_map(|fields| fields.status_code().cloned());
        status.as_deref() == Some(b"400")
    };
    reset.or_else(|| is_refused().then_some(Resets(MESSAGE_ERROR)))
}

fn play(server: SocketAddr, case: &Case) -> Option<Expected> {
    let config = Config::new()
        .with_host_port("localhost".to_owned())
        .with_connect_to(server.to_string())
        .verify_peer(false)
        .with_idle_timeout(20_000);
    let (actions, stream) = script(case);
    let summary = sync_client::connect(config.build().unwrap(), actions, None);
    answer(&summary.unwrap(), stream)
}

#[tokio::test(flavor = "multi_thread")]
async fn illegal_scripts_of_h3i_are_answered_with_the_code_of_the_rfc() {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let identity = Identity::from_der(vec![made.cert.der().clone()], key);
    let server = Server::bind("127.0.0.1:0", ServerConfig::new(identity)).unwrap();
    let address = server.local_address();
    let serving = tokio::spawn(server.serve(NotFound));
    assert!(CASES.len() >= 40);
    let wrong = tokio::task::spawn_blocking(move || {
        let mut wrong = Vec::new();
        for case in CASES {
            let answer = play(address, case);
            if answer != Some(case.expected) {
                let expected = case.expected;
                let line = format!("{}: {answer:x?} instead of {expected:x?}", case.name);
                wrong.push(line);
            }
        }
        wrong
    });
    let wrong = wrong.await.unwrap();
    serving.abort();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

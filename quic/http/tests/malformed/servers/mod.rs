//! The other side: servers that break rules, and what our client does.

mod control;
mod messages;
mod qpack;

use std::{collections::HashSet, future::poll_fn, net::SocketAddr, time::Duration};

use bytes::Bytes;
use futures_util::future::join_all;
use http::{Method, Request};
use http_body_util::Empty;
use hybriq::{
    ClientConfig, Connection, ConnectionError, Endpoint, RecvStream, SendStream, TransportConfig,
    Trust,
};
use hybriq_h3::Code;
use hybriq_http::{BodyError, Client, ClientError, Http3, StreamError};
use tokio::{sync::oneshot, time::timeout};

use crate::{
    cases::Expected::{Connection as Closes, Stream as Resets},
    closed,
    scripts::{Last, Outcome, SETTINGS},
    stop,
    support::{Certificate, soon},
};

/// A stream of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum To {
    Uni,
    /// The streams of all requests.
    Requests,
    /// A bidirectional stream of its own.
    Bidi,
}

/// What a server does.
struct Script {
    name: String,
    method: Method,
    /// Requests that it awaits before it begins.
    requests: usize,
    /// Streams in the order in which they are opened, with their bytes. Requests that are not among them are
    /// answered, if the client continues.
    streams: Vec<(To, Vec<u8>)>,
    last: Last,
    outcome: Outcome,
    /// What the application gets, if no rule is broken: status and content, or a part of the error.
    told: &'static str,
}

/// A line of a table: name, bytes, and what they lead to.
type Line<'l> = (&'l str, &'l [u8], Outcome);

/// A whole response.
const FINE: &[u8] = b"\x01\x03\0\0\xd9\0\x04fine";

/// What the application gets of that.
const TOLD: &str = "200 fine";

impl Script {
    /// The script of a server that answers.
    fn new(name: &str, streams: Vec<(To, Vec<u8>)>, last: Last, outcome: Outcome) -> Self {
        Self {
            name: name.to_owned(),
            method: Method::POST,
            requests: 1,
            streams,
            last,
            outcome,
            told: TOLD,
        }
    }

    /// The script of a server that answers with these bytes.
    fn answer(name: &str, bytes: &[u8], outcome: Outcome) -> Self {
        let streams = vec![(To::Uni, SETTINGS.to_vec()), (To::Requests, bytes.to_vec())];
        Self::new(name, streams, Last::Finished, outcome)
    }

    fn told(mut self, told: &'static str) -> Self {
        self.told = told;
        self
    }

    fn asked(mut self, method: Method, requests: usize) -> Self {
        self.method = method;
        self.requests = requests;
        self
    }
}

fn all() -> Vec<Script> {
    let all = [control::scripts(), messages::scripts(), qpack::scripts()];
    all.into_iter().flatten().collect()
}

/// A request that failed, or the content of its response.
#[derive(Debug)]
enum Failed {
    Request(ClientError),
    Body(BodyError),
}

impl Failed {
    fn text(&self) -> String {
        match self {
            Self::Request(error) => error.to_string(),
            Self::Body(BodyError::Quic(error)) => error.to_string(),
            Self::Body(error) => error.to_string(),
        }
    }

    /// Returns the code of the rule that the server broke.
    fn code(&self) -> Option<Code> {
        let error = match self {
            Self::Request(ClientError::Lost { cause, .. }) => cause.downcast_ref()?,
            Self::Body(BodyError::Quic(error)) => error,
            Self::Body(BodyError::Length) => return Some(Code::H3_MESSAGE_ERROR),
            _ => return None,
        };
        match error {
            StreamError::Violation(violation) => Some(violation.code()),
            StreamError::Connection(ConnectionError::Application { code, .. }) => Some(Code(*code)),
            _ => None,
        }
    }
}

/// A client without connections.
fn client() -> Client {
    let trust = Trust::roots_der([Certificate::shared().der()]);
    let builder = Client::builder().http3(Http3::Only);
    let builder = builder.resolve("localhost", [SocketAddr::from(([127, 0, 0, 1], 0))]);
    builder.build(ClientConfig::new().trust(trust)).unwrap()
}

/// Asks, and returns status and content as text.
async fn ask(client: &Client, server: SocketAddr, method: &Method) -> Result<String, Failed> {
    let mut request = Request::new(Empty::<Bytes>::new());
    *request.method_mut() = method.clone();
    *request.uri_mut() = format!("https://localhost:{}/", server.port())
        .parse()
        .unwrap();
    let response = client.request(request).await.map_err(Failed::Request)?;
    let status = response.status().as_u16();
    let content = response.into_body().bytes(1 << 20).await;
    let content = content.map_err(Failed::Body)?;
    Ok(format!("{status} {}", content.escape_ascii()))
}

/// The requests of a script, and some behind it.
async fn ask_all(
    client: &Client,
    server: SocketAddr,
    script: &Script,
    asked: impl FnOnce(Vec<Result<String, Failed>>),
) {
    let requests = (0..script.requests).map(|_| ask(client, server, &script.method));
    asked(join_all(requests).await);
    loop {
        let _ = ask(client, server, &Method::POST).await;
    }
}

async fn next_request(connection: &Connection) -> Option<(SendStream, RecvStream)> {
    let (send, mut recv) = connection.accept_bidi().await.ok()??;
    let _ = recv.read_to_end(10_000).await;
    Some((send, recv))
}

/// Answers so many requests.
async fn answer(connection: &Connection, requests: usize) {
    for _ in 0..requests {
        let Some((mut send, _)) = next_request(connection).await else {
            return std::future::pending().await;
        };
        let _ = send.write_all(FINE).await;
        send.finish();
    }
}

/// Resets a stream once its data has arrived.
async fn reset(connection: &Connection, stream: &mut SendStream) {
    let id = stream.id();
    let is_taken = poll_fn(|cx| connection.poll_stream_room(id, usize::MAX, cx));
    let _ = soon(is_taken).await;
    stream.reset(Code::H3_REQUEST_CANCELLED.0);
}

/// Plays a script on a connection, and returns what the client does.
async fn play(connection: &Connection, script: &Script) -> Outcome {
    let mut asked = Vec::new();
    while asked.len() < script.requests {
        let (send, _) = next_request(connection).await.unwrap();
        asked.push(send);
    }
    let mut open = Vec::new();
    for (index, (to, bytes)) in script.streams.iter().enumerate() {
        let streams = match to {
            To::Requests => std::mem::take(&mut asked),
            To::Uni => vec![connection.open_uni().await.unwrap()],
            To::Bidi => vec![connection.open_bidi().await.unwrap().0],
        };
        let from = open.len();
        open.extend(streams);
        for stream in &mut open[from..] {
            // The connection may be closed for an earlier one.
            let _ = stream.write_all(bytes).await;
            if *to == To::Requests && index + 1 < script.streams.len() {
                stream.finish();
            }
        }
    }
    // A server that is expected to go on answers. So does one whose streams have to be known before they end.
    if script.outcome == Outcome::GoesOn || script.last == Last::Reset {
        for mut stream in asked.drain(..) {
            let _ = stream.write_all(FINE).await;
            stream.finish();
            if script.last == Last::Reset {
                answer(connection, 3).await;
            }
        }
    }
    let (to, _) = script.streams.last().unwrap();
    let last = if *to == To::Requests {
        script.requests
    } else {
        1
    };
    let from = open.len() - last;
    for stream in &mut open[from..] {
        match script.last {
            Last::Open => {}
            Last::Finished => stream.finish(),
            Last::Reset => reset(connection, stream).await,
            Last::Stops(kind) => stop(connection, kind).await,
        }
    }
    tokio::select! {
        biased;
        reason = connection.closed() => closed(&reason),
        // Nothing comes if the client ignores it, and asks again.
        () = answer(connection, 3) => Outcome::GoesOn,
    }
}

/// Plays a script to a client. Returns what it does, and what its caller gets.
async fn outcome(
    transport: &TransportConfig,
    script: &Script,
) -> (Outcome, Vec<Result<String, Failed>>) {
    let config = Certificate::shared().config().alpn([hybriq_h3::ALPN]);
    // One for each script: the client connects again.
    let endpoint = Endpoint::server("127.0.0.1:0", config.transport(transport.clone())).unwrap();
    let client = client();
    let (tell, told) = oneshot::channel();
    let asks = ask_all(&client, endpoint.local_address(), script, |results| {
        let _ = tell.send(results);
    });
    let plays = async {
        let connection = endpoint.accept().await.unwrap().accept().await.unwrap();
        let outcome = play(&connection, script).await;
        // A request of a connection that is over has failed.
        (outcome, told.await.unwrap())
    };
    tokio::select! {
        () = asks => unreachable!("it asks for ever"),
        played = plays => played,
    }
}

/// Returns what is wrong with what a client did.
fn wrong(script: &Script, outcome: Outcome, told: &[Result<String, Failed>]) -> Option<String> {
    let code = told.iter().find_map(|told| told.as_ref().err()?.code());
    // The server may not learn of the error of a stream that it has finished.
    let outcome = match (outcome, code) {
        (Outcome::GoesOn, Some(code)) => Outcome::Fails(Resets(code.0)),
        (outcome, _) => outcome,
    };
    if outcome != script.outcome {
        return Some(format!("{outcome} instead of {}: {told:?}", script.outcome));
    }
    let is_told = match outcome {
        // Its code says why, if there is no response.
        Outcome::Fails(Closes(expected) | Resets(expected)) if script.told == TOLD => {
            told.iter().all(Result::is_ok) || code == Some(Code(expected))
        }
        _ => told.iter().all(|told| match told {
            Ok(text) => text == script.told,
            Err(error) => error.text().contains(script.told),
        }),
    };
    (!is_told).then(|| format!("{told:?} instead of {}", script.told))
}

#[tokio::test]
async fn servers_that_break_rules_are_answered_with_the_code_of_the_rfc() {
    let (transport, scripts) = (TransportConfig::new(), all());
    let mut all = Vec::new();
    for script in &scripts {
        let played = outcome(&transport, script);
        let Ok((outcome, told)) = timeout(Duration::from_secs(30), played).await else {
            all.push(format!("{}: hangs", script.name));
            continue;
        };
        if let Some(wrong) = wrong(script, outcome, &told) {
            all.push(format!("{}: {wrong}", script.name));
        }
    }
    assert!(all.is_empty(), "\n{}", all.join("\n"));
    let names: HashSet<_> = scripts.iter().map(|script| &script.name).collect();
    assert_eq!(names.len(), scripts.len(), "names that come twice");
    let page = include_str!("../../../../evidence/http3-verdicts.md");
    let count = format!("The {} scripts of [servers]", scripts.len());
    assert!(page.contains(&count), "{count}");
}

/// A response that comes in datagrams of one byte each is the same.
#[tokio::test]
async fn a_response_may_come_byte_by_byte() {
    let transport = TransportConfig::new().send_buffer(1);
    let script = Script::answer("bytes", FINE, Outcome::GoesOn);
    let (outcome, told) = soon(outcome(&transport, &script)).await;
    assert_eq!(wrong(&script, outcome, &told), None);
}

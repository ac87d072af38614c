//! The server's h2, whose frames are followed.

use std::sync::atomic::AtomicUsize;

use bytes::Bytes;
use h2::{Reason, RecvStream, server::SendResponse};
use http::{Request, Response};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream},
    net::{TcpListener, TcpStream},
    task::yield_now,
};

use super::*;
use crate::versions::http2::frames::Frames;

type Respond = SendResponse<Bytes>;

fn settings() -> h2::server::Builder {
    let mut settings = h2::server::Builder::new();
    settings
        .max_local_error_reset_streams(None)
        .max_pending_accept_reset_streams(10_000);
    settings
}

/// Sends what the client takes, for ever.
async fn download(mut respond: Respond) {
    let mut stream = respond.send_response(Response::new(()), false).unwrap();
    loop {
        stream.reserve_capacity(16 << 10);
        let capacity = std::future::poll_fn(|cx| stream.poll_capacity(cx)).await;
        let Some(Ok(len)) = capacity else { return };
        if stream.send_data(vec![7; len].into(), false).is_err() {
            return;
        }
    }
}

/// Serves a connection. Counts the requests that are cancelled, until which they are not answered.
async fn serve(stream: TcpStream, seen: Arc<Seen>, cancelled: Arc<AtomicUsize>) {
    // As if no round came to its end.
    let observed = observe(stream, Some(seen.clone()), u64::MAX);
    let pauses = observed.pauses();
    let mut connection = settings().handshake::<_, Bytes>(observed).await.unwrap();
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        seen.on_request();
        match request.uri().path() {
            "/download" => drop(tokio::spawn(download(respond))),
            "/pauses" => {
                let pauses = pauses.load(Ordering::Relaxed).to_string();
                let mut stream = respond.send_response(Response::new(()), false).unwrap();
                stream.send_data(pauses.into(), true).unwrap();
            }
            _ => {
                let cancelled = cancelled.clone();
                tokio::spawn(async move {
                    let reset = std::future::poll_fn(|cx| respond.poll_reset(cx)).await;
                    assert_eq!(reset.unwrap(), Reason::CANCEL);
                    cancelled.fetch_add(1, Ordering::Relaxed);
                });
            }
        }
    }
}

/// Takes a body. Returns its first part, and goes on if it is endless.
async fn take(mut body: RecvStream) -> Option<Bytes> {
    let mut first = None;
    while let Some(Ok(data)) = body.data().await {
        body.flow_control().release_capacity(data.len()).unwrap();
        first.get_or_insert(data);
    }
    first
}

#[tokio::test]
async fn honest_cancels_beside_a_download_stop_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (seen, cancelled) = (Arc::new(Seen::default()), Arc::new(AtomicUsize::new(0)));
    let (observer, count) = (seen.clone(), cancelled.clone());
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        serve(stream, observer, count).await;
    });
    let stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let (mut client, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    let get = |path| Request::get(format!("https://a{path}")).body(()).unwrap();
    let (response, _) = client.send_request(get("/download"), true).unwrap();
    tokio::spawn(take(response.await.unwrap().into_body()));
    for number in 0..3_000 {
        client = client.ready().await.unwrap();
        let (_response, mut stream) = client.send_request(get("/held"), true).unwrap();
        stream.send_reset(Reason::CANCEL);
        while cancelled.load(Ordering::Relaxed) < number {
            yield_now().await;
        }
    }
    let (response, _) = client.send_request(get("/pauses"), true).unwrap();
    let pauses = take(response.await.unwrap().into_body()).await;
    assert_eq!(pauses.unwrap(), "0");
    assert_eq!(seen.failed.load(Ordering::Relaxed), 0);
}

/// A client that makes h2 reset streams, and counts what it takes.
struct Flood {
    line: DuplexStream,
    unsent: VecDeque<u8>,
    /// Frames that were sent whole, and what came for them.
    sent: usize,
    resets: usize,
    received: Frames,
}

impl Flood {
    /// Begins a connection, whose server is polled by another task.
    fn new() -> Self {
        let (line, stream) = tokio::io::duplex(1 << 16);
        let observed = observe(stream, Some(Arc::new(Seen::default())), u64::MAX);
        tokio::spawn(async move {
            let mut connection = settings().handshake::<_, Bytes>(observed).await.unwrap();
            while let Some(Ok(_)) = connection.accept().await {}
        });
        let mut unsent = VecDeque::from(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec());
        unsent.extend(frame(SETTINGS, 0, 0, &[]));
        Self {
            line,
            unsent,
            sent: 0,
            resets: 0,
            received: Frames::of_server(),
        }
    }

    /// Sends frames until the server takes no more, this number at most.
    async fn send(&mut self, most: usize, pings: usize) {
        let mut waits = 0;
        while waits < 100 && self.sent < most {
            if self.unsent.is_empty() {
                self.sent += 1;
                self.unsent.extend(itself(2 * self.sent as u32 + 1));
                self.unsent.extend(frame(6, 0, 0, &[0; 8]).repeat(pings));
            }
            tokio::select! {
                biased;
                written = self.line.write_buf(&mut self.unsent) => {
                    written.unwrap();
                    waits = 0;
                }
                () = yield_now() => waits += 1,
            }
        }
    }

    async fn receive(&mut self, len: usize) {
        let mut bytes = vec![0; len];
        self.line.read_exact(&mut bytes).await.unwrap();
        let mut bytes = bytes.as_slice();
        while let Some(frame) = self.received.next_in(&mut bytes) {
            self.resets += usize::from(frame.kind == RST_STREAM);
        }
    }
}

/// Frames that fit in the buffers of both ends, beside those that wait in h2.
const ELSEWHERE: usize = (2 * (1 << 16) + (1 << 15)) / 13;

#[tokio::test]
async fn resets_behind_a_client_that_takes_nothing_stop_the_server() {
    let mut client = Flood::new();
    client.send(100_000, 0).await;
    let held = client.sent - client.resets;
    assert!(held >= RESETS, "{held}");
    assert!(held < RESETS + 1200 + ELSEWHERE, "{held}");
}

/// h2 answers PING before it sends resets, and flushes the answers.
#[tokio::test]
async fn answers_that_leave_are_no_resets() {
    let mut client = Flood::new();
    for _ in 0..1_000 {
        client.send(100_000, 3).await;
        client.receive(4096).await;
    }
    let held = client.sent - client.resets;
    assert!(held < RESETS + 1200 + ELSEWHERE, "{held}");
}

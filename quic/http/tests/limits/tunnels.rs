//! Streams of other protocols that the service is through with, and of which the client takes nothing.

use std::{
    future::poll_fn,
    io,
    pin::{Pin, pin},
    sync::Arc,
    task::Poll,
    time::Duration,
};

use axum::{
    Extension, Router,
    response::Response,
    routing::{any, get},
};
use hybriq_http::{Limits, Server, Upgrade};
use tokio::{
    io::{AsyncWrite as _, AsyncWriteExt as _},
    sync::{Notify, mpsc},
};

use crate::{
    client::{Asked, Client, Manners, Outcome, Version, connections},
    support::{Certificate, Running, agreed, run_with, soon},
};

/// Outcome of a shutdown that was waited for.
type Shutdown = Option<Result<(), io::ErrorKind>>;

/// What the service does with the stream before it drops it.
#[derive(Clone, Copy, Debug)]
enum End {
    /// It writes this much, and shuts the stream down.
    After(usize),
    /// It writes as much as there is room for, and does not wait for the end of the shutdown.
    Full,
}

/// Tells what became of the shutdown when it has dropped the stream, if it waited for that.
async fn serve(upgrade: Upgrade, end: End, dropped: mpsc::UnboundedSender<Shutdown>) {
    let mut upgraded = upgrade.upgraded().await.unwrap();
    let shut = match end {
        End::After(len) => {
            upgraded.write_all(&vec![7; len]).await.unwrap();
            Some(upgraded.shutdown().await.map_err(|error| error.kind()))
        }
        End::Full => {
            let data = vec![7; 60_000];
            poll_fn(|cx| {
                while Pin::new(&mut upgraded).poll_write(cx, &data).is_ready() {}
                Poll::Ready(())
            })
            .await;
            poll_fn(|cx| Poll::Ready(pin!(&mut upgraded).poll_shutdown(cx).is_ready())).await;
            None
        }
    };
    drop(upgraded);
    dropped.send(shut).unwrap();
}

/// A server with `/upgrade`, and with `/poll`, which waits until it may go on.
struct Host {
    server: Running,
    go_on: Arc<Notify>,
    dropped: mpsc::UnboundedReceiver<Shutdown>,
}

impl Host {
    fn new(end: End) -> Self {
        let (tell, dropped) = mpsc::unbounded_channel();
        let go_on = Arc::new(Notify::new());
        let held = go_on.clone();
        let upgrade = async move |version: http::Version, Extension(upgrade)| -> Response {
            tokio::spawn(serve(upgrade, end, tell));
            agreed(version)
        };
        let poll = async move || held.notified().await;
        let mut limits = Limits::default();
        limits.stall_time = Duration::from_millis(300);
        limits.header_time = Duration::from_millis(500);
        let router = Router::new().route("/upgrade", any(upgrade));
        let builder = Server::builder().limits(limits).extended_connect();
        let config = Certificate::shared().config();
        Self {
            server: run_with(builder, config, router.route("/poll", get(poll))),
            go_on,
            dropped,
        }
    }
}

/// A client that takes nothing of a tunnel, and has a long poll beside it.
struct Guest {
    host: Host,
    client: Client,
    poll: Asked,
    stuck: Option<Asked>,
    shut: Shutdown,
}

impl Guest {
    async fn new(version: Version, end: End, window: u32) -> Self {
        let mut host = Host::new(end);
        let manners = Manners {
            window: Some(window),
            is_silent: false,
        };
        let mut client = Client::with(version, host.server.address(), manners).await;
        let poll = client.send("/poll").await.unwrap();
        let stuck = client.upgrade().await.unwrap();
        let shut = soon(host.dropped.recv()).await.unwrap();
        Self {
            host,
            client,
            poll,
            stuck: Some(stuck),
            shut,
        }
    }

    async fn poll_lives(mut self) -> (Host, Client) {
        self.host.go_on.notify_one();
        assert_eq!(self.client.take(self.poll).await, Outcome::Answered(200));
        (self.host, self.client)
    }
}

#[tokio::test]
async fn over_http1_a_tunnel_that_is_over_and_not_taken_ends_its_connection() {
    for end in [End::After(1000), End::Full] {
        let mut host = Host::new(end);
        let address = host.server.address();
        let mut client = Client::connect(Version::Http1, address).await;
        client.upgrade().await.unwrap();
        soon(host.dropped.recv()).await.unwrap();
        connections(&host.server.handle, 0).await;
    }
}

/// The stream is reset. Where a part is stuck below it, the connection ends after its other requests.
#[tokio::test]
async fn over_http2_a_tunnel_that_is_over_and_not_taken_ends() {
    let mut guest = Guest::new(Version::Http2, End::Full, 0).await;
    let stuck = guest.stuck.take().unwrap();
    let reset = guest.client.take(stuck).await;
    assert_eq!(reset, Outcome::Reset(8), "CANCEL");
    guest.poll_lives().await;
    for (end, shutdown) in [
        (End::Full, None),
        (End::After(50_000), Some(Err(io::ErrorKind::TimedOut))),
    ] {
        let guest = Guest::new(Version::Http2, end, 64).await;
        assert_eq!(guest.shut, shutdown);
        let (host, mut client) = guest.poll_lives().await;
        assert_eq!(client.ended().await, Some(0), "NO_ERROR");
        connections(&host.server.handle, 0).await;
    }
}

#[tokio::test]
async fn over_http3_a_tunnel_that_is_over_and_not_taken_is_reset() {
    let mut guest = Guest::new(Version::Http3, End::After(50_000), 64).await;
    assert_eq!(guest.shut, Some(Ok(())));
    let stuck = guest.stuck.take().unwrap();
    let mut recv = stuck.receiver().unwrap();
    // The client learns of the reset without reading.
    let reset = soon(recv.received_reset()).await;
    assert_eq!(reset, Ok(Some(0x10c)), "H3_REQUEST_CANCELLED");
    guest.poll_lives().await;
}

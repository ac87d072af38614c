//! Our own client, whose requests are dropped wherever they wait.

use std::{net::SocketAddr, pin::Pin, task::Context, task::Poll};

use bytes::Bytes;
use http::{Method, Request};
use http_body::Frame;
use http_body_util::BodyExt as _;
use hybriq::{ClientConfig, Trust};
use hybriq_http::{Client, Http3};
use hybriq_sim::Rng;
use tokio::task::JoinSet;

use super::{
    app::{PATHS, at_most},
    support::{Certificate, Running},
};

/// The body of a request that gives some data, and then ends or falls silent.
struct Upload {
    frames: u64,
    silent: bool,
}

impl http_body::Body for Upload {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::convert::Infallible>>> {
        if self.frames > 0 {
            self.frames -= 1;
            return Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[7; 5000])))));
        }
        if self.silent {
            return Poll::Pending;
        }
        Poll::Ready(None)
    }
}

/// A client and the requests that are under way.
pub(crate) struct GivingUp {
    client: Client,
    address: SocketAddr,
    asking: JoinSet<()>,
}

impl GivingUp {
    pub(crate) fn new(server: &Running, http3: Http3) -> Self {
        let trust = Trust::roots_der([Certificate::shared().der()]);
        let client = Client::builder()
            .http3(http3)
            .resolve("localhost", [SocketAddr::from(([127, 0, 0, 1], 0))])
            .build(ClientConfig::new().trust(trust))
            .unwrap();
        Self {
            client,
            address: server.address(),
            asking: JoinSet::new(),
        }
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Asks to the end, so that there is a connection.
    pub(crate) async fn ask(&self) {
        let uri = format!("https://localhost:{}/now", self.address.port());
        let response = super::support::soon(self.client.get(uri)).await.unwrap();
        let body = super::support::soon(response.into_body().bytes(100)).await;
        assert_eq!(body.unwrap(), "now");
    }

    /// Starts requests, each of which is given up after some polls: of its response, and of its body.
    pub(crate) fn start(&mut self, rng: &mut Rng) {
        for _ in 0..=rng.below(8) {
            let path = PATHS[rng.below(PATHS.len() as u64) as usize];
            let uri = format!("https://localhost:{}{path}", self.address.port());
            let method = match rng.below(2) {
                0 => Method::GET,
                _ => Method::POST,
            };
            let frames = match method {
                Method::GET => 0,
                _ => rng.below(5),
            };
            let upload = Upload {
                frames,
                silent: frames > 0 && rng.below(2) == 0,
            };
            let request = Request::builder().method(method).uri(uri);
            let response = self.client.request(request.body(upload).unwrap());
            let (head_polls, body_polls) = (1 + rng.below(6), rng.below(6));
            self.asking.spawn(async move {
                if let Some(Ok(response)) = at_most(head_polls, response).await {
                    at_most(body_polls, response.into_body().collect()).await;
                }
            });
        }
    }

    /// Waits until everything is given up.
    pub(crate) async fn over(&mut self) {
        // Those that nothing wakes are dropped where they are.
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
        self.asking.shutdown().await;
    }
}

//! HTTP/2 by hyper, over any connection of bytes.

use std::convert::Infallible;

use http::{Request, Response};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::spawn_local;

use super::body::Pattern;
use super::{Come, Fetching, asked, check, not_found, request};
use crate::drivers::Answer;
use crate::scenario::Fetch;
use crate::system::outcome::Failed;

/// Runs the tasks of hyper on this thread.
#[derive(Clone)]
struct Here;

impl<F: Future + 'static> hyper::rt::Executor<F> for Here {
    fn execute(&self, task: F) {
        drop(spawn_local(async move {
            task.await;
        }));
    }
}

/// Makes requests on a connection.
pub(crate) struct Client(SendRequest<Pattern>);

impl Client {
    /// Starts HTTP/2 on a connection.
    pub(crate) async fn start(
        io: impl AsyncRead + AsyncWrite + Unpin + 'static,
    ) -> Result<Self, Failed> {
        let builder = hyper::client::conn::http2::Builder::new(Here);
        let started = builder.handshake(TokioIo::new(io)).await;
        let (requests, connection) = started.map_err(Failed::other)?;
        // The requests show why it ended.
        spawn_local(async move { drop(connection.await) });
        Ok(Self(requests))
    }

    async fn one(&self, fetch: Fetch) -> Result<(), Failed> {
        let mut requests = self.0.clone();
        let request = request(fetch, Pattern::new(fetch.send))?;
        requests.ready().await.map_err(Failed::other)?;
        let response = requests.send_request(request).await;
        let response = response.map_err(Failed::other)?;
        check(&response)?;
        let come = read(response.into_body()).await?;
        come.end(fetch.receive)
    }
}

impl Fetching for Client {
    fn fetch(&self, fetch: Fetch) -> Answer<'_, ()> {
        Box::pin(self.one(fetch))
    }
}

/// Reads a body to its end.
async fn read(mut body: Incoming) -> Result<Come, Failed> {
    let mut come = Come::default();
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame.map_err(Failed::other)?.into_data() {
            come.add(data)?;
        }
    }
    Ok(come)
}

/// Answers the requests of a connection until it ends.
pub(crate) async fn serve(io: impl AsyncRead + AsyncWrite + Unpin + 'static) {
    let mut builder = hyper::server::conn::http2::Builder::new(Here);
    builder.max_concurrent_streams(None);
    let connection = builder.serve_connection(TokioIo::new(io), service_fn(answer));
    // The client shows why it ended.
    drop(connection.await);
}

async fn answer(request: Request<Incoming>) -> Result<Response<Pattern>, Infallible> {
    let asked = asked(request.uri());
    let read = read(request.into_body()).await;
    Ok(match (asked, read) {
        (Some(bytes), Ok(_)) => Response::new(Pattern::new(bytes)),
        _ => not_found(),
    })
}

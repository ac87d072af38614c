//! HTTP/3 over quinn by h3-quinn: the crate `h3` as its examples use it.

use std::future::poll_fn;
use std::rc::Rc;

use bytes::Bytes;
use h3::client::SendRequest;
use h3::server::RequestResolver;
use http::Response;
use http::header::{CONTENT_LENGTH, DATE};
use quinn::Connecting;
use tokio::task::spawn_local;

use super::connection::Opened;
use crate::drivers::http::{
    Come, Fetching, Http, Serving, asked, body::Pattern, check, date::date, not_found, request,
};
use crate::drivers::{Answer, Connection, Handover};
use crate::scenario::Fetch;
use crate::system::outcome::Failed;

/// Accepts a connection, and answers its requests.
pub(super) async fn accept(
    connecting: Connecting,
    handover: Handover,
) -> Result<Rc<dyn Connection>, Failed> {
    let opened = Opened::accept(connecting, handover).await?;
    let transport = h3_quinn::Connection::new(opened.connection.clone());
    // The connection shows why it ended.
    spawn_local(async move { drop(serve(transport).await) });
    Ok(Http::over(opened, Serving))
}

/// Starts HTTP/3 on a client's connection.
pub(super) async fn over(opened: Rc<Opened>) -> Result<Rc<dyn Connection>, Failed> {
    let transport = h3_quinn::Connection::new(opened.connection.clone());
    let started = h3::client::builder().build(transport).await;
    let (mut driver, requests) = started.map_err(Failed::other)?;
    spawn_local(async move { poll_fn(|cx| driver.poll_close(cx)).await });
    Ok(Http::over(opened, Client(requests)))
}

/// Makes requests on a connection, which lives until this is dropped.
struct Client(SendRequest<h3_quinn::OpenStreams, Bytes>);

impl Client {
    async fn one(&self, fetch: Fetch) -> Result<(), Failed> {
        let mut requests = self.0.clone();
        let mut stream = requests
            .send_request(request(fetch, ())?)
            .await
            .map_err(Failed::other)?;
        for data in Pattern::new(fetch.send) {
            stream.send_data(data).await.map_err(Failed::other)?;
        }
        stream.finish().await.map_err(Failed::other)?;
        check(&stream.recv_response().await.map_err(Failed::other)?)?;
        let mut come = Come::default();
        while let Some(data) = stream.recv_data().await.map_err(Failed::other)? {
            come.add(data)?;
        }
        come.end(fetch.receive)
    }
}

impl Fetching for Client {
    fn fetch(&self, fetch: Fetch) -> Answer<'_, ()> {
        Box::pin(self.one(fetch))
    }
}

/// Answers the requests of a connection until it ends.
async fn serve(connection: h3_quinn::Connection) -> Result<(), Failed> {
    let connection = h3::server::builder().build(connection).await;
    let mut connection = connection.map_err(Failed::other)?;
    while let Some(request) = connection.accept().await.map_err(Failed::other)? {
        // The client shows how a request ended.
        spawn_local(async move { drop(answer(request).await) });
    }
    Ok(())
}

/// Returns the head of a response, with the fields that hybriq-http and hyper send, too. Origin servers with a
/// clock tell the date (RFC 9110 §6.6.1).
fn response(bytes: u64) -> Result<Response<()>, Failed> {
    let response = Response::builder()
        .header(CONTENT_LENGTH, bytes)
        .header(DATE, date());
    response.body(()).map_err(Failed::other)
}

async fn answer(resolver: RequestResolver<h3_quinn::Connection, Bytes>) -> Result<(), Failed> {
    let resolved = resolver.resolve_request().await;
    let (request, mut stream) = resolved.map_err(Failed::other)?;
    let mut come = Come::default();
    while let Some(data) = stream.recv_data().await.map_err(Failed::other)? {
        come.add(data)?;
    }
    let Some(bytes) = asked(request.uri()) else {
        stream
            .send_response(not_found())
            .await
            .map_err(Failed::other)?;
        return stream.finish().await.map_err(Failed::other);
    };
    stream
        .send_response(response(bytes)?)
        .await
        .map_err(Failed::other)?;
    for data in Pattern::new(bytes) {
        stream.send_data(data).await.map_err(Failed::other)?;
    }
    stream.finish().await.map_err(Failed::other)
}

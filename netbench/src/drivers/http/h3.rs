//! HTTP/3 by the crate `h3`, over any transport that it has.

use std::future::poll_fn;

use bytes::{Buf, Bytes};
use h3::client::SendRequest;
use h3::quic;
use h3::server::RequestResolver;
use http::Response;
use http::header::{CONTENT_LENGTH, DATE};
use tokio::task::spawn_local;

use super::body::Pattern;
use super::date::date;
use super::{Come, Fetching, asked, check, not_found, request};
use crate::drivers::Answer;
use crate::outcome::Failed;
use crate::scenario::Fetch;

/// Makes requests on a connection. `B` is the type of bodies that the transport takes.
pub(crate) struct Client<O: quic::OpenStreams<B>, B: Buf>(SendRequest<O, B>);

impl<O, B> Client<O, B>
where
    O: quic::OpenStreams<B> + Clone + 'static,
    B: Buf + From<Bytes> + 'static,
{
    /// Starts HTTP/3 on a connection, which lives until the client is dropped.
    pub(crate) async fn start<C>(connection: C) -> Result<Self, Failed>
    where
        C: quic::Connection<B, OpenStreams = O> + 'static,
    {
        let started = h3::client::builder().build(connection).await;
        let (mut driver, requests) = started.map_err(Failed::other)?;
        spawn_local(async move { poll_fn(|cx| driver.poll_close(cx)).await });
        Ok(Self(requests))
    }

    async fn one(&self, fetch: Fetch) -> Result<(), Failed> {
        let mut requests = self.0.clone();
        let mut stream = requests
            .send_request(request(fetch, ())?)
            .await
            .map_err(Failed::other)?;
        for data in Pattern::new(fetch.send) {
            stream.send_data(data.into()).await.map_err(Failed::other)?;
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

impl<O, B> Fetching for Client<O, B>
where
    O: quic::OpenStreams<B> + Clone + 'static,
    B: Buf + From<Bytes> + 'static,
{
    fn fetch(&self, fetch: Fetch) -> Answer<'_, ()> {
        Box::pin(self.one(fetch))
    }
}

/// Answers the requests of a connection until it ends.
pub(crate) async fn serve<C>(connection: C) -> Result<(), Failed>
where
    C: quic::Connection<Bytes> + 'static,
{
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

async fn answer<C>(resolver: RequestResolver<C, Bytes>) -> Result<(), Failed>
where
    C: quic::Connection<Bytes>,
{
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

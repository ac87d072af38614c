//! HTTP/3 by the crate `h3`, over any transport that it has.

use std::future::poll_fn;

use bytes::{Buf, Bytes};
use h3::client::SendRequest;
use h3::quic;
use tokio::task::spawn_local;

use super::body::Pattern;
use super::{Come, Fetching, check, request};
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

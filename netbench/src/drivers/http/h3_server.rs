//! A server of HTTP/3 by the crate `h3`, for stacks without one of their own.

use bytes::Bytes;
use h3::quic;
use h3::server::RequestResolver;
use http::Response;
use http::header::{CONTENT_LENGTH, DATE};
use tokio::task::spawn_local;

use super::body::Pattern;
use super::date::date;
use super::{Come, asked, not_found};
use crate::outcome::Failed;

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

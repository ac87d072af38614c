//! One request over HTTP/3.

use std::{pin::pin, time::Duration};

use bytes::Buf;
use h3::{error::Code, server::RequestResolver};
use http::{HeaderValue, Method, Response, StatusCode, Version, header::CONTENT_LENGTH};
use http_body_util::BodyExt as _;
use hybriq_h3::{Payload, SendStream};

use super::{
    app::{App, BoxError},
    fields,
    state::{Established, Quic},
    tunnel::{Offer, Refusal},
};
use crate::{Body, EarlyMethods, Peer};

type Resolver = RequestResolver<hybriq_h3::Connection, Payload>;
type Send = h3::server::RequestStream<SendStream<Payload>, Payload>;

/// Reads a request, has it answered by the service, and sends the response.
pub(super) async fn answer<A: App>(quic: &Quic, resolver: Resolver, app: A) {
    let limits = &quic.shared.limits;
    let resolved = Box::pin(resolver.resolve_request());
    let (mut request, stream) = match tokio::time::timeout(limits.header_time, resolved).await {
        Ok(Ok(resolved)) => resolved,
        Ok(Err(error)) => return tracing::debug!(%error, "a request failed"),
        Err(_) => return tracing::debug!("a request took too long to come"),
    };
    let (mut send, recv) = stream.split();
    if fields::is_malformed(request.headers()) {
        return send.stop_stream(Code::H3_MESSAGE_ERROR);
    }
    let protocols = quic.protocols.as_ref();
    let protocol = protocols.and_then(|all| all.take(send.send_id(), request.headers_mut()));
    let early = quic.is_replayable(send.send_id());
    // Other protocols begin after the handshake.
    let established = if early && protocol.is_none() {
        None
    } else {
        quic.established().await
    };
    let established = established.as_deref();
    let Some(peer) = peer(quic, established, early) else {
        return;
    };
    if early && limits.early_methods == EarlyMethods::Safe && !request.method().is_safe() {
        return refuse(&mut send, StatusCode::TOO_EARLY).await;
    }
    if let Some(field) = request.headers().get("priority") {
        set_priority(established, &send, field);
    }
    *request.version_mut() = Version::HTTP_3;
    request.extensions_mut().insert(peer);
    if let (Some(protocol), Some(established)) = (protocol, established) {
        let mut request = request.map(|()| Body::empty());
        match Offer::new(quic, established, &protocol, &mut request, recv) {
            Ok(offer) => return tunnel(quic, established, send, offer, app.answer(request)).await,
            Err(Refusal::Malformed) => return send.stop_stream(Code::H3_MESSAGE_ERROR),
            Err(Refusal::Status(status)) => return refuse(&mut send, status).await,
        }
    }
    let length = request.headers().get(CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
    let body = Body::of_quic(recv, length, limits.stall_time);
    let is_head = request.method() == Method::HEAD;
    let request = request.map(|()| body);
    let Some(response) = respond(quic, established, &mut send, app.answer(request)).await else {
        return;
    };
    if let Some(field) = response.headers().get("priority") {
        set_priority(established, &send, field);
    }
    let sent = send_response(quic, &mut send, response, is_head).await;
    if let Err(error) = sent {
        tracing::debug!(%error, "a response was not sent to its end");
    }
}

/// Has a request of extended CONNECT answered, and waits until its stream is over.
async fn tunnel<B>(
    quic: &Quic,
    established: &Established,
    mut send: Send,
    offer: Offer,
    answer: impl Future<Output = Result<Response<B>, BoxError>>,
) where
    B: http_body::Body<Error: Into<BoxError>>,
{
    let Some(response) = respond(quic, Some(established), &mut send, answer).await else {
        return;
    };
    if let Err((mut send, response)) = offer.answered(quic, send, response).await {
        if let Err(error) = send_response(quic, &mut send, response, false).await {
            tracing::debug!(%error, "a response was not sent to its end");
        }
    }
}

/// Answers with a status alone.
async fn refuse(send: &mut Send, status: StatusCode) {
    let mut response = Response::new(());
    *response.status_mut() = status;
    // The client may be gone.
    let _ = send.send_response(response).await;
    let _ = send.finish().await;
}

/// Returns the facts about the connection.
fn peer(quic: &Quic, established: Option<&Established>, early: bool) -> Option<Peer> {
    let (address, local_address, tls) = if let Some(established) = established {
        let connection = &established.connection;
        let address = connection.peer_address();
        (address, connection.local_address(), established.tls.clone())
    } else {
        let (connection, tls) = quic.early()?;
        let local_address = quic.shared.endpoint.local_address();
        (connection.peer_address(), local_address, tls.clone())
    };
    Some(Peer {
        address,
        local_address,
        version: Version::HTTP_3,
        tls,
        early,
    })
}

/// Sends the response by the urgency that the client, or the service, asks for (RFC 9218).
fn set_priority(established: Option<&Established>, send: &Send, field: &HeaderValue) {
    if let Some(established) = established {
        let stream = hybriq::StreamId(send.send_id().into_inner());
        let priority = hybriq_h3::priority(field.as_bytes());
        established.connection.set_stream_priority(stream, priority);
    }
}

/// Calls the service. Returns `None` if the client cancelled the request or the service failed.
async fn respond<B>(
    quic: &Quic,
    established: Option<&Established>,
    send: &mut Send,
    answer: impl Future<Output = Result<Response<B>, BoxError>>,
) -> Option<Response<B>> {
    let stream = hybriq::StreamId(send.send_id().into_inner());
    let cancelled = async {
        match established {
            Some(established) => {
                let stopped = established.connection.stream_stopped(stream).await;
                (stopped.is_ok(), &established.connection)
            }
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        answered = answer => match answered {
            Ok(response) => Some(response),
            Err(error) => {
                tracing::error!(%error, "the service failed");
                send.stop_stream(Code::H3_INTERNAL_ERROR);
                None
            }
        },
        (by_client, connection) = cancelled => {
            if by_client {
                quic.on_cancelled(connection);
            }
            send.stop_stream(Code::H3_REQUEST_CANCELLED);
            None
        }
    }
}

/// Sends a response.
async fn send_response<B>(
    quic: &Quic,
    send: &mut Send,
    response: Response<B>,
    is_head: bool,
) -> Result<(), BoxError>
where
    B: http_body::Body<Error: Into<BoxError>>,
{
    let stall_time = quic.shared.limits.stall_time;
    let (mut parts, body) = response.into_parts();
    let headers = &mut parts.headers;
    fields::complete(headers);
    if let (Some(length), false) = (
        body.size_hint().exact(),
        headers.contains_key(CONTENT_LENGTH),
    ) {
        if has_length(parts.status) && (length > 0 || !is_head) {
            headers.insert(CONTENT_LENGTH, length.into());
        }
    }
    let is_empty = is_head || body.is_end_stream();
    let head = Response::from_parts(parts, ());
    tokio::time::timeout(stall_time, send.send_response(head)).await??;
    if !is_empty {
        send_body(send, body, stall_time).await?;
    }
    tokio::time::timeout(stall_time, send.finish()).await??;
    Ok(())
}

/// Sends the body of a response, and its trailers.
async fn send_body<B>(send: &mut Send, body: B, stall_time: Duration) -> Result<(), BoxError>
where
    B: http_body::Body<Error: Into<BoxError>>,
{
    let mut body = pin!(body);
    loop {
        let frame = match body.frame().await {
            Some(Ok(frame)) => frame,
            Some(Err(error)) => {
                send.stop_stream(Code::H3_INTERNAL_ERROR);
                return Err(error.into());
            }
            None => return Ok(()),
        };
        match frame.into_data() {
            Ok(mut data) if data.has_remaining() => {
                let len = data.remaining();
                let data = Payload::from(data.copy_to_bytes(len));
                tokio::time::timeout(stall_time, send.send_data(data)).await??;
            }
            Ok(_) => {}
            Err(frame) => {
                if let Ok(trailers) = frame.into_trailers() {
                    tokio::time::timeout(stall_time, send.send_trailers(trailers)).await??;
                }
                return Ok(());
            }
        }
    }
}

/// Returns true if responses of this status have a length (RFC 9110 §8.6).
fn has_length(status: StatusCode) -> bool {
    !status.is_informational()
        && status != StatusCode::NO_CONTENT
        && status != StatusCode::NOT_MODIFIED
}

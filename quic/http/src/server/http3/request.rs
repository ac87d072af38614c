//! One request over HTTP/3.

use std::pin::pin;

use h3::{error::Code, server::RequestResolver};
use http::{HeaderName, HeaderValue, Method, Response, StatusCode, Version, header::RETRY_AFTER};
use hybriq_h3::Payload;

use super::{
    connection::{Established, Gone, Quic, Running},
    response::{Asked, Destination, Send, send_response, send_status},
    tunnel::{Offer, Refusal},
};
use crate::{
    Body, EarlyMethods, Peer, body,
    server::{App, BoxError, clock::within, fields},
};

type Resolver = RequestResolver<hybriq_h3::Connection, Payload>;

static PRIORITY: HeaderName = HeaderName::from_static("priority");

/// Reads a request, lets the service answer it, and sends the response.
pub(super) async fn answer<A: App>(running: Running, resolver: Resolver, app: A) {
    let quic = &*running.0;
    let limits = &quic.shared.limits;
    let stream = hybriq::StreamId(resolver.frame_stream.id().into_inner());
    // The block ends the future, so that others can reuse its memory.
    let resolved = {
        let resolving = quic.requests.resolve(resolver);
        within(limits.header_time, pin!(resolving)).await
    };
    let (mut request, stream) = match resolved {
        Ok(Ok(resolved)) => resolved,
        Ok(Err(error)) => {
            tracing::debug!(%error, "a request failed");
            if error.is_answered() {
                drop(quic.on_answer(stream));
            } else {
                quic.on_cancelled();
            }
            return;
        }
        Err(_) => {
            tracing::debug!("a request took too long to arrive");
            return quic.on_cancelled();
        }
    };
    let (mut send, recv) = stream.split();
    if quic.shared.watch.memory.is_short() {
        return Box::pin(refuse(quic, &mut send, StatusCode::SERVICE_UNAVAILABLE)).await;
    }
    *request.version_mut() = Version::HTTP_3;
    let _share = quic.share(fields::memory(&request));
    // `hybriq_h3` has checked the other fields.
    let Ok(length) = body::length(request.headers()) else {
        return refuse_malformed(quic, &mut send);
    };
    let protocols = quic.protocols.as_ref();
    let protocol = protocols.and_then(|all| all.take(send.send_id(), request.headers_mut()));
    let early = quic.is_replayable(send.send_id());
    let established = if early && protocol.is_none() {
        None
    } else {
        // Other protocols begin after the handshake.
        let stream = hybriq::StreamId(send.send_id().into_inner());
        match quic.established(stream).await {
            Ok(established) => Some(established),
            Err(error) => return tracing::debug!(%error, "a request failed"),
        }
    };
    let established = established.as_deref();
    let Some(mut peer) = peer(quic, established) else {
        return;
    };
    peer.early = early;
    if early && limits.early_methods == EarlyMethods::Safe && !request.method().is_safe() {
        return Box::pin(refuse(quic, &mut send, StatusCode::TOO_EARLY)).await;
    }
    if let Some(field) = request.headers().get(&PRIORITY) {
        set_priority(established, &send, field);
    }
    request.extensions_mut().insert(peer);
    if let (Some(protocol), Some(established)) = (protocol, established) {
        let mut request = request.map(|()| Body::empty());
        match Offer::new(quic, established, &protocol, &mut request, recv) {
            Ok(offer) => {
                let answer = app.answer(request);
                return Box::pin(tunnel(quic, established, send, offer, answer)).await;
            }
            Err(Refusal::Malformed) => return refuse_malformed(quic, &mut send),
            Err(Refusal::Status(status)) => return refuse(quic, &mut send, status).await,
        }
    }
    let body = Body::of_quic(recv, length, limits.stall_time);
    let asked = match *request.method() {
        Method::HEAD => Asked::Head,
        _ => Asked::All,
    };
    let request = request.map(|()| body);
    let Some(response) = respond(quic, established, &mut send, app.answer(request)).await else {
        return;
    };
    if response.status().is_informational() {
        let status = response.status();
        tracing::error!(%status, "the service answered with an interim status (1xx) instead of a final one");
        return Box::pin(refuse(quic, &mut send, StatusCode::INTERNAL_SERVER_ERROR)).await;
    }
    if let Some(field) = response.headers().get(&PRIORITY) {
        set_priority(established, &send, field);
    }
    let to = Destination { quic, established };
    let sent = send_response(to, &mut send, response, asked).await;
    if let Err(error) = sent {
        tracing::debug!(%error, "a response was not sent completely");
    }
}

/// Lets the service answer an extended CONNECT request, and waits until its stream is over.
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
    if let Err((mut send, response)) = offer.answered(quic, established, send, response).await {
        let to = Destination {
            quic,
            established: Some(established),
        };
        if let Err(error) = send_response(to, &mut send, response, Asked::All).await {
            tracing::debug!(%error, "a response was not sent completely");
        }
    }
}

/// Resets the stream of a malformed request (RFC 9114 §4.1.2), which counts as cancelled.
fn refuse_malformed(quic: &Quic, send: &mut Send) {
    send.stop_stream(Code::H3_MESSAGE_ERROR);
    quic.on_cancelled();
}

/// Answers with a status alone.
async fn refuse(quic: &Quic, send: &mut Send, status: StatusCode) {
    let _answer = quic.on_answer(hybriq::StreamId(send.send_id().into_inner()));
    let mut response = Response::new(());
    *response.status_mut() = status;
    if status == StatusCode::SERVICE_UNAVAILABLE {
        let later = HeaderValue::from_static("1");
        response.headers_mut().insert(RETRY_AFTER, later);
    }
    send_status(send, response).await;
}

/// Returns the facts about the connection, as they are for a request after the handshake.
fn peer(quic: &Quic, established: Option<&Established>) -> Option<Peer> {
    let (address, local_address, tls) = if let Some(established) = established {
        let connection = &established.connection;
        let address = connection.peer_address();
        (address, connection.local_address(), established.tls.clone())
    } else {
        let (connection, tls) = quic.before_handshake()?;
        let local_address = quic.shared.endpoint.local_address();
        (connection.peer_address(), local_address, tls.clone())
    };
    Some(Peer {
        address,
        local_address,
        version: Version::HTTP_3,
        tls,
        early: false,
    })
}

/// Sends the response with the urgency that the client or the service asks for (RFC 9218).
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
    match quic.unless_gone(established, stream, answer).await {
        Ok(Ok(response)) => Some(response),
        Ok(Err(error)) => {
            tracing::error!(%error, "the service failed");
            send.stop_stream(Code::H3_INTERNAL_ERROR);
            None
        }
        Err(gone) => {
            if gone == Gone::Stopped {
                quic.on_cancelled();
            }
            send.stop_stream(Code::H3_REQUEST_CANCELLED);
            None
        }
    }
}

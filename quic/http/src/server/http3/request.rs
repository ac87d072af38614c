//! One request over HTTP/3.

use std::pin::pin;

use http::{HeaderName, HeaderValue, Method, Response, StatusCode, Version, header::RETRY_AFTER};
use hybriq_h3::{Code, Protocol, Scope};

use super::{
    connection::{Established, Gone, Quic, Running},
    response::{Asked, Destination, send_response, send_status},
    tunnel::{Offer, Refusal},
};
use crate::{
    Body, EarlyMethods, Peer,
    server::{App, BoxError, clock::within, fields},
    versions::http3::{Arrived, Send, StreamError},
};

static PRIORITY: HeaderName = HeaderName::from_static("priority");

/// Reads a request, lets the service answer it, and sends the response.
pub(super) async fn answer<A: App>(running: Running, request: Arrived, app: A) {
    let quic = &*running.0;
    let limits = &quic.shared.limits;
    let (mut send, mut recv) = request;
    let head = within(limits.header_time, pin!(recv.head())).await;
    let mut request = match head {
        Ok(Ok(request)) => request,
        Ok(Err(StreamError::HeadTooLarge(_))) => {
            quic.on_cancelled();
            // The rest is not needed, which is no error (RFC 9114 §4.1).
            recv.stop(Code::H3_NO_ERROR);
            let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
            return Box::pin(refuse(quic, &mut send, status)).await;
        }
        Ok(Err(error)) => {
            tracing::debug!(%error, "a request failed");
            if let StreamError::Violation(violation) = error {
                if violation.scope() == Scope::Stream {
                    send.reset(violation.code());
                }
            }
            return quic.on_cancelled();
        }
        Err(_) => {
            tracing::debug!("a request took too long to arrive");
            return quic.on_cancelled();
        }
    };
    if quic.shared.watch.memory.is_short() {
        recv.stop(Code::H3_NO_ERROR);
        return Box::pin(refuse(quic, &mut send, StatusCode::SERVICE_UNAVAILABLE)).await;
    }
    let _share = quic.share(fields::memory(&request));
    let protocol = request.extensions_mut().remove::<Protocol>();
    let early = recv.is_early();
    let established = if early && protocol.is_none() {
        None
    } else {
        // Other protocols begin after the handshake.
        match quic.established(send.id()).await {
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
        recv.stop(Code::H3_NO_ERROR);
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
            Err(Refusal(status)) => return refuse(quic, &mut send, status).await,
        }
    }
    let body = Body::of_quic(recv, limits.stall_time);
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

/// Answers with a status alone.
async fn refuse(quic: &Quic, send: &mut Send, status: StatusCode) {
    let _answer = quic.on_answer(send.id());
    let later = HeaderValue::from_static("1");
    let later = (status == StatusCode::SERVICE_UNAVAILABLE).then_some((RETRY_AFTER, later));
    send_status(send, status, later).await;
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
        let stream = send.id();
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
    let stream = send.id();
    match quic.unless_gone(established, stream, answer).await {
        Ok(Ok(response)) => Some(response),
        Ok(Err(error)) => {
            tracing::error!(%error, "the service failed");
            send.reset(Code::H3_INTERNAL_ERROR);
            None
        }
        Err(gone) => {
            if gone == Gone::Stopped {
                quic.on_cancelled();
            }
            send.reset(Code::H3_REQUEST_CANCELLED);
            None
        }
    }
}

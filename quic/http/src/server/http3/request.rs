//! One request over HTTP/3.

use std::{borrow::Cow, convert::Infallible, pin::pin, sync::Arc, time::Duration};

use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, Version};
use hybriq::StreamId;
use hybriq_h3::{Code, Priority, Protocol, Scope, priority, qpack::FieldRef, response_priority};

use super::{
    answers::Inbox,
    connection::{Established, Gone, Quic, Running},
    response::{Destination, send_response, send_status},
    tunnel::{Offer, Refusal},
};
use crate::{
    Body, EarlyMethods, Peer, StallTime,
    limits::Patience,
    server::{
        App, BoxError,
        clock::{poll_once, within},
        fields,
        state::Hints,
    },
    versions::{
        content::Asked,
        http3::{Arrived, Recv, Send, Stream, StreamError},
        interim::{Continue, Interims, expects_continue},
    },
};

static PRIORITY: HeaderName = HeaderName::from_static("priority");

/// Reads requests, one after the other, lets the service answer them, and sends the responses.
pub(super) async fn answer<A: App>(requests: Inbox<(Running, Stream)>, app: A) {
    while let Some((mut running, request)) = requests.next().await {
        answer_one(&mut running, request, &app).await;
    }
}

/// Reads a request, lets the service answer it, and sends the response.
async fn answer_one<A: App>(running: &mut Running, request: Stream, app: &A) {
    let Running(quic, share) = running;
    let limits = &quic.shared.limits;
    let Arrived { mut send, mut recv } = request.into_request(&quic.link);
    let head = within(limits.header_time, |cx| recv.poll_head(cx)).await;
    let mut request = match head {
        Ok(Ok(request)) => request,
        Ok(Err(error)) => return Box::pin(fail(quic, error, send, recv)).await,
        Err(_) => {
            tracing::debug!("a request took too long to arrive");
            return quic.on_cancelled();
        }
    };
    if quic.shared.watch.memory.is_short() {
        recv.stop(Code::H3_NO_ERROR);
        return Box::pin(refuse(quic, &mut send, StatusCode::SERVICE_UNAVAILABLE)).await;
    }
    share.grow(fields::memory(&request));
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
    let Some(mut peer) = peer(quic, established) else {
        return;
    };
    peer.early = early;
    if early && limits.early_methods == EarlyMethods::Safe && !request.method().is_safe() {
        recv.stop(Code::H3_NO_ERROR);
        return Box::pin(refuse(quic, &mut send, StatusCode::TOO_EARLY)).await;
    }
    if !quic.hosts.serve(&request, &peer.tls) {
        recv.stop(Code::H3_NO_ERROR);
        // The key exchange may not be known yet.
        let status = match established {
            Some(_) => StatusCode::MISDIRECTED_REQUEST,
            None => StatusCode::TOO_EARLY,
        };
        return Box::pin(refuse(quic, &mut send, status)).await;
    }
    let wanted = priority_field(request.headers()).map(|field| priority(&field));
    let wanted = quic.link.begin_priority(send.id(), wanted);
    request.extensions_mut().insert(peer);
    let is_expected = recv.content_left() != Some(0) && expects_continue(request.headers());
    let has_hints = quic.shared.features.interim == Hints::Sent;
    let interims = (has_hints || is_expected).then(Interims::new);
    if let Some(interims) = interims.as_ref().filter(|_| has_hints) {
        request.extensions_mut().insert(interims.sender());
    }
    if let (Some(protocol), Some(established)) = (protocol, established) {
        let mut request = request.map(|()| Body::empty());
        let offer = Offer::new(quic, established, &protocol, &mut request, recv.id());
        match Box::pin(offer).await {
            Ok(offer) => {
                share.grow(offer.memory());
                let answer = app.clone().answer(request);
                let respond = respond(quic, Some(established), &mut send, interims, answer);
                if let Some(response) = Box::pin(respond).await {
                    let stream = Arrived { send, recv };
                    Box::pin(tunnel(quic, established, stream, offer, response)).await;
                }
            }
            Err(Refusal::Status(status)) => {
                refuse(quic, &mut send, status).await;
                recv.stop(Code::H3_NO_ERROR);
            }
            Err(Refusal::Reset(code)) => {
                send.reset(code);
                recv.stop(code);
            }
        }
        return;
    }
    let expected = interims.as_ref().filter(|_| is_expected);
    let expected = expected.map(Interims::expected);
    let asked = Asked::by(request.method());
    let (request, mut patience) = with_body(request, recv, limits.stall_time, expected);
    let response = {
        // Pinned here, because every future that it is moved into has room for it twice.
        let answer = pin!(app.clone().answer(request));
        respond(quic, established, &mut send, interims, answer).await
    };
    let Some(response) = response else {
        return;
    };
    prioritize(quic, send.id(), response.headers(), wanted);
    StallTime::apply(&response, &mut patience, limits.stall_time);
    let to = Destination {
        quic,
        established,
        patience: patience.as_ref(),
    };
    if let Err(error) = send_response(to, &mut send, response, asked).await {
        tracing::debug!(%error, "a response was not sent completely");
    }
}

/// Gives a response the priority that the service asks for, merged with what the client wanted (RFC 9218 §8).
fn prioritize(quic: &Quic, stream: StreamId, fields: &HeaderMap, wanted: Option<Priority>) {
    if let Some(field) = priority_field(fields) {
        let wanted = quic.link.updated_priority(stream).or(wanted);
        let wanted = wanted.unwrap_or_else(|| priority(b""));
        let priority = response_priority(&field, wanted);
        quic.link.set_priority(stream, priority);
    }
}

/// Returns a request with its body, and its patience if the body has not ended.
fn with_body(
    mut request: Request<()>,
    recv: Recv<Request<()>>,
    stall_time: Duration,
    expected: Option<Continue>,
) -> (Request<Body>, Option<Arc<Patience>>) {
    if recv.is_end() {
        return (request.map(|()| Body::empty()), None);
    }
    let patience = Patience::new(stall_time);
    request.extensions_mut().insert(patience.clone());
    let body = Body::of_quic(recv, patience.clone(), expected);
    (request.map(|()| body), Some(patience))
}

/// Ends a request without a head.
async fn fail(quic: &Quic, error: StreamError, mut send: Send, mut recv: Recv<Request<()>>) {
    quic.on_cancelled();
    tracing::debug!(%error, "a request failed");
    match error {
        StreamError::HeadTooLarge(_) => {
            // The rest is not needed, which is no error (RFC 9114 §4.1).
            recv.stop(Code::H3_NO_ERROR);
            let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
            refuse(quic, &mut send, status).await;
        }
        StreamError::Violation(violation) if violation.scope() == Scope::Stream => {
            send.reset(violation.code());
        }
        _ => {}
    }
}

/// Answers an extended CONNECT request, and waits until its stream is over.
async fn tunnel<B>(
    quic: &Quic,
    established: &Established,
    stream: Arrived,
    offer: Offer,
    response: Response<B>,
) where
    B: http_body::Body<Error: Into<BoxError>>,
{
    let answered = offer.answered(quic, established, stream, response).await;
    if let Err((Arrived { mut send, mut recv }, response)) = answered {
        let to = Destination {
            quic,
            established: Some(established),
            patience: None,
        };
        match send_response(to, &mut send, response, Asked::Connect).await {
            // The rest is not needed, which is no error (RFC 9114 §4.1).
            Ok(()) => recv.stop(Code::H3_NO_ERROR),
            Err(error) => tracing::debug!(%error, "a response was not sent completely"),
        }
    }
}

/// Answers with a status alone.
async fn refuse(quic: &Quic, send: &mut Send, status: StatusCode) {
    let _answer = quic.on_answer(send.id(), None);
    let later =
        (status == StatusCode::SERVICE_UNAVAILABLE).then_some(FieldRef::new(b"retry-after", b"1"));
    send_status(send, status, later).await;
}

/// Returns the facts about the connection, as they are for a request after the handshake.
fn peer(quic: &Quic, established: Option<&Established>) -> Option<Peer> {
    let (address, local_address, tls) = if let Some(established) = established {
        let connection = &established.connection;
        let address = connection.peer_address();
        (address, connection.local_address(), established.tls.clone())
    } else {
        let early = quic.before_handshake()?;
        let local_address = quic.shared.endpoint.local_address();
        let address = early.connection.peer_address();
        (address, local_address, early.tls.clone())
    };
    Some(Peer {
        address,
        local_address,
        version: Version::HTTP_3,
        tls,
        early: false,
    })
}

/// Returns the field in which the client or the service asks for a priority (RFC 9218 §5). Its lines are one dictionary.
fn priority_field(fields: &HeaderMap) -> Option<Cow<'_, [u8]>> {
    let mut lines = fields.get_all(&PRIORITY).iter().map(HeaderValue::as_bytes);
    let first = lines.next()?;
    Some(lines.fold(first.into(), |field, line| {
        [&field[..], b",", line].concat().into()
    }))
}

/// Waits for a response, and sends the interim responses before it.
async fn with_interims<T>(
    interims: Interims,
    send: &mut Send,
    response: impl Future<Output = T>,
) -> T {
    let response = tokio::select! {
        biased;
        response = response => response,
        never = pass_on(&interims, send) => match never {},
    };
    for interim in interims.end() {
        // They are sent with the response.
        let _ = send.response(interim.status(), interim.headers(), []);
    }
    response
}

/// Sends interim responses as the service makes them.
async fn pass_on(interims: &Interims, send: &mut Send) -> Infallible {
    loop {
        let (interim, ()) = interims.next().await.into_parts();
        // One that the client does not accept is no loss, and others find out that the client is gone.
        let _ = send.response(interim.status, &interim.headers, []);
        let _ = send.flush().await;
    }
}

/// Calls the service, and sends its interim responses. Returns `None` if the client cancelled the request or the
/// service failed.
async fn respond<B>(
    quic: &Quic,
    established: Option<&Established>,
    send: &mut Send,
    interims: Option<Interims>,
    answer: impl Future<Output = Result<Response<B>, BoxError>>,
) -> Option<Response<B>> {
    let stream = send.id();
    let mut answer = pin!(answer);
    let answered = match interims {
        Some(interims) => {
            let answered = quic.unless_gone(established, stream, answer);
            Box::pin(with_interims(interims, send, answered)).await
        }
        None => match poll_once(answer.as_mut()).await {
            Some(answered) => Ok(answered),
            None => Box::pin(quic.unless_gone(established, stream, answer)).await,
        },
    };
    match answered {
        Ok(Ok(response)) if response.status().is_informational() => {
            let status = response.status();
            tracing::error!(%status, "the service answered with an interim status (1xx) instead of a final one");
            Box::pin(refuse(quic, send, StatusCode::INTERNAL_SERVER_ERROR)).await;
            None
        }
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

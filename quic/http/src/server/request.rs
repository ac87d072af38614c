//! One request over HTTP/3.

use std::pin::{Pin, pin};

use bytes::{Buf, Bytes};
use h3::{
    error::{Code, StreamError},
    server::RequestResolver,
};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, Version,
    header::{CONTENT_LENGTH, DATE, RETRY_AFTER},
    response,
};
use http_body::Frame;
use http_body_util::BodyExt as _;
use hybriq_h3::{Follows, Payload, ResponseHead, SendStream};

use super::{
    app::{App, BoxError},
    clock::{poll_once, within},
    fields,
    state::{Established, Gone, Quic, Running},
    tunnel::{Offer, Refusal},
};
use crate::{Body, EarlyMethods, Peer, body};

type Resolver = RequestResolver<hybriq_h3::Connection, Payload>;
type Send = h3::server::RequestStream<SendStream<Payload>, Payload>;

static PRIORITY: HeaderName = HeaderName::from_static("priority");

/// Reads a request, has it answered by the service, and sends the response.
pub(super) async fn answer<A: App>(running: Running, resolver: Resolver, app: A) {
    let quic = &*running.0;
    let limits = &quic.shared.limits;
    let stream = hybriq::StreamId(resolver.frame_stream.id().into_inner());
    // The block ends the future, whose place others take then.
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
        tracing::error!(%status, "the service answered with a status that is no end of a request");
        return Box::pin(refuse(quic, &mut send, StatusCode::INTERNAL_SERVER_ERROR)).await;
    }
    if let Some(field) = response.headers().get(&PRIORITY) {
        set_priority(established, &send, field);
    }
    let to = Destination { quic, established };
    let sent = send_response(to, &mut send, response, asked).await;
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
    if let Err((mut send, response)) = offer.answered(quic, established, send, response).await {
        let to = Destination {
            quic,
            established: Some(established),
        };
        if let Err(error) = send_response(to, &mut send, response, Asked::All).await {
            tracing::debug!(%error, "a response was not sent to its end");
        }
    }
}

/// Resets the stream of a request that is malformed (RFC 9114 §4.1.2), which counts as one that was cancelled.
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

/// Sends a response without a body. The client may be gone, or take no response at all.
async fn send_status(send: &mut Send, response: Response<()>) {
    if Box::pin(send.send_response(response)).await.is_err() {
        return send.stop_stream(Code::H3_INTERNAL_ERROR);
    }
    let _ = Box::pin(send.finish()).await;
}

/// Returns true for fields that are larger than the client takes: they are not sent (RFC 9114 §4.2.2).
fn are_too_large<T>(sent: &Result<T, StreamError>) -> bool {
    matches!(sent, Err(StreamError::HeaderTooBig { .. }))
}

/// Sends trailers. Without them the response would not be whole, so it is reset if the client does not take them.
async fn send_trailers(send: &mut Send, trailers: HeaderMap) -> Result<(), StreamError> {
    let sent = Box::pin(send.send_trailers(trailers)).await;
    if are_too_large(&sent) {
        send.stop_stream(Code::H3_INTERNAL_ERROR);
    }
    sent
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

/// The connection that a response goes to.
#[derive(Clone, Copy)]
struct Destination<'a> {
    quic: &'a Quic,
    /// The same, if the handshake was complete when the request came.
    established: Option<&'a Established>,
}

/// Part of the response that a request asks for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    All,
    /// Nothing but the head (RFC 9110 §9.3.2).
    Head,
}

/// Sends a response. Its head, what the body has at once and the end leave together. If the client takes nothing
/// of it for long, the watch resets the stream.
async fn send_response<B>(
    to: Destination<'_>,
    send: &mut Send,
    response: Response<B>,
    asked: Asked,
) -> Result<(), BoxError>
where
    B: http_body::Body<Error: Into<BoxError>>,
{
    let stream = hybriq::StreamId(send.send_id().into_inner());
    let _answer = to.quic.on_answer(stream);
    let (mut parts, body) = response.into_parts();
    fields::strip(&mut parts.headers);
    let asked = if has_content(parts.status) {
        asked
    } else {
        if parts.status != StatusCode::NOT_MODIFIED {
            parts.headers.remove(CONTENT_LENGTH);
        }
        Asked::Head
    };
    let length = missing_length(&parts, body.size_hint().exact(), asked);
    let mut promised = Promised::by(&parts.headers, asked);
    let mut body = pin!((asked == Asked::All).then_some(body));
    let first = match body.as_mut().as_pin_mut() {
        Some(mut body) if !body.is_end_stream() => match poll_once(body.frame()).await {
            Some(Some(frame)) => Some(Some(frame.map_err(Into::into))),
            Some(None) => Some(None),
            None => None,
        },
        _ => Some(None),
    };
    let after_first = match body.as_ref().as_pin_ref() {
        Some(body) if !body.is_end_stream() => Rest::Frames,
        _ => Rest::Nothing,
    };
    let begun = first.map(|frame| begin(frame, after_first)).transpose();
    let (data, rest) = match begun {
        Ok(begun) => begun.unwrap_or_else(|| (Bytes::new(), Rest::Frames)),
        Err(error) => {
            send.stop_stream(Code::H3_INTERNAL_ERROR);
            return Err(error);
        }
    };
    let is_all = !matches!(rest, Rest::Frames);
    if let Err(error) = promised.on_data(data.len(), is_all) {
        send.stop_stream(Code::H3_INTERNAL_ERROR);
        return Err(error.into());
    }
    let follows = if matches!(rest, Rest::Nothing) {
        Follows::Nothing
    } else {
        Follows::More
    };
    let mut head = ResponseHead::new(parts.status, &parts.headers);
    head.length = length;
    head.date = fields::date(&parts.headers);
    head.most = to.quic.requests.most_fields();
    if let Some(payload) = Payload::response(&head, data.clone(), follows) {
        send.send_data(payload).await?;
        if follows == Follows::Nothing {
            return Ok(());
        }
    } else {
        let ResponseHead { length, date, .. } = head;
        let fields = &mut parts.headers;
        fields.extend(length.map(|length| (CONTENT_LENGTH, length.into())));
        fields.extend(date.map(|date| (DATE, date)));
        let head = Response::from_parts(parts, ());
        let sent = Box::pin(send.send_response(head)).await;
        if are_too_large(&sent) {
            let mut response = Response::new(());
            *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            send_status(send, response).await;
        }
        sent?;
        if !data.is_empty() {
            Box::pin(send.send_data(data.into())).await?;
        }
    }
    match rest {
        Rest::Nothing | Rest::Trailers(None) => {}
        Rest::Frames => {
            if let Some(body) = body.as_pin_mut() {
                Box::pin(send_body(to, send, body, promised)).await?;
            }
        }
        Rest::Trailers(Some(trailers)) => {
            send_trailers(send, trailers).await?;
        }
    }
    Box::pin(send.finish()).await?;
    Ok(())
}

/// Bytes of a response that its `content-length` promises and that have not come yet, if it has one.
#[derive(Clone, Copy)]
struct Promised(Option<u64>);

/// A service whose response has not the length that it says (RFC 9114 §4.1.2).
#[derive(Debug, thiserror::Error)]
#[error("the body of the response is not as long as its content-length says")]
struct BrokenPromise;

impl Promised {
    fn by(headers: &HeaderMap, asked: Asked) -> Self {
        let length = body::length(headers).unwrap_or_default();
        Self(length.filter(|_| asked == Asked::All))
    }

    /// Takes the length of a part of the body, which may be the last.
    fn on_data(&mut self, len: usize, is_last: bool) -> Result<(), BrokenPromise> {
        let Some(left) = &mut self.0 else {
            return Ok(());
        };
        *left = left.checked_sub(len as u64).ok_or(BrokenPromise)?;
        if is_last && *left > 0 {
            return Err(BrokenPromise);
        }
        Ok(())
    }
}

/// Part of a response that is sent after its first write.
enum Rest {
    Nothing,
    /// Frames of the body.
    Frames,
    /// Nothing but trailers.
    Trailers(Option<HeaderMap>),
}

/// Returns the data of the first frame of a body, and what comes after it: `rest`, if the frame has
/// data.
fn begin<D: Buf>(
    frame: Option<Result<Frame<D>, BoxError>>,
    rest: Rest,
) -> Result<(Bytes, Rest), BoxError> {
    let Some(frame) = frame else {
        return Ok((Bytes::new(), Rest::Nothing));
    };
    Ok(match frame?.into_data() {
        Ok(mut data) => (data.copy_to_bytes(data.remaining()), rest),
        Err(frame) => (Bytes::new(), Rest::Trailers(frame.into_trailers().ok())),
    })
}

/// Returns the length of a response that has no field with it.
fn missing_length(parts: &response::Parts, length: Option<u64>, asked: Asked) -> Option<u64> {
    length.filter(|&length| {
        let is_told = has_length(parts.status) && (length > 0 || asked == Asked::All);
        is_told && !parts.headers.contains_key(CONTENT_LENGTH)
    })
}

/// Sends the body of a response, and its trailers. A body that is silent is dropped when nobody needs it any
/// more.
async fn send_body<B>(
    to: Destination<'_>,
    send: &mut Send,
    mut body: Pin<&mut B>,
    mut promised: Promised,
) -> Result<(), BoxError>
where
    B: http_body::Body<Error: Into<BoxError>>,
{
    let stream = hybriq::StreamId(send.send_id().into_inner());
    loop {
        let frame = to.quic.unless_gone(to.established, stream, body.frame());
        let frame = frame.await?.transpose().map_err(Into::into);
        let frame = frame.and_then(|frame| {
            let data = frame.as_ref().and_then(Frame::data_ref);
            let is_last = frame.as_ref().is_none_or(Frame::is_trailers);
            promised.on_data(data.map_or(0, Buf::remaining), is_last)?;
            Ok(frame)
        });
        let frame = match frame {
            Ok(Some(frame)) => frame,
            Ok(None) => return Ok(()),
            Err(error) => {
                send.stop_stream(Code::H3_INTERNAL_ERROR);
                return Err(error);
            }
        };
        match frame.into_data() {
            Ok(mut data) if data.has_remaining() => {
                let len = data.remaining();
                let data = Payload::from(data.copy_to_bytes(len));
                send.send_data(data).await?;
            }
            Ok(_) => {}
            Err(frame) => {
                if let Ok(trailers) = frame.into_trailers() {
                    send_trailers(send, trailers).await?;
                }
                return Ok(());
            }
        }
    }
}

/// Returns true if responses of this status have content (RFC 9110 §6.4.1).
fn has_content(status: StatusCode) -> bool {
    status != StatusCode::NO_CONTENT
        && status != StatusCode::RESET_CONTENT
        && status != StatusCode::NOT_MODIFIED
}

/// Returns true if responses of this status have a length (RFC 9110 §8.6).
fn has_length(status: StatusCode) -> bool {
    !status.is_informational() && has_content(status)
}

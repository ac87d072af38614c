//! One response over HTTP/3.

use std::{
    pin::{Pin, pin},
    sync::Arc,
};

use bytes::{Buf, Bytes};
use http::{
    HeaderMap, HeaderValue, Response, StatusCode,
    header::{self, DATE},
};
use http_body::Frame;
use http_body_util::BodyExt as _;
use hybriq_h3::{Code, qpack::FieldRef};

use super::connection::{Established, Quic};
use crate::{
    limits::Patience,
    server::{
        BoxError,
        clock::{self, poll_once},
    },
    versions::{
        content::{Asked, Content, Promised},
        http3::{Send, StreamError},
    },
};

/// Returns the date for a response without a `date` field.
pub(super) fn date(fields: &HeaderMap) -> Option<HeaderValue> {
    if fields.contains_key(DATE) {
        None
    } else {
        clock::date()
    }
}

/// Returns the field of a date.
pub(super) fn date_field(date: &HeaderValue) -> FieldRef<'_> {
    FieldRef::new(b"date", date.as_bytes())
}

/// Returns the value of a field that is a number, written into the end of `digits`.
fn write_number(number: u64, digits: &mut [u8; 20]) -> &[u8] {
    let mut start = digits.len();
    let mut rest = number;
    for (index, digit) in digits.iter_mut().enumerate().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
        start = index;
        if rest == 0 {
            break;
        }
    }
    digits.split_at(start).1
}

/// The connection that a response goes to.
#[derive(Clone, Copy)]
pub(super) struct Destination<'a> {
    pub(super) quic: &'a Quic,
    /// The established connection, if the handshake was complete when the request arrived.
    pub(super) established: Option<&'a Established>,
    /// Of a request with a body, or a route with its own time.
    pub(super) patience: Option<&'a Arc<Patience>>,
}

/// Sends a response. Its head, what the body has at once, and the end are sent together. If the client accepts
/// nothing of it for long, the watch resets the stream.
pub(super) async fn send_response<B>(
    to: Destination<'_>,
    send: &mut Send,
    response: Response<B>,
    asked: Asked,
) -> Result<(), BoxError>
where
    B: http_body::Body<Error: Into<BoxError>>,
{
    let stream = send.id();
    let _answer = to.quic.on_answer(stream, to.patience);
    let (mut parts, body) = response.into_parts();
    parts.headers.remove(header::ALT_SVC);
    let content = match Content::of(&mut parts, body.size_hint().exact(), asked) {
        Ok(content) => content,
        Err(error) => {
            send.reset(Code::H3_INTERNAL_ERROR);
            return Err(error.into());
        }
    };
    let mut promised = content.promised;
    let mut body = pin!(content.is_sent.then_some(body));
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
            send.reset(Code::H3_INTERNAL_ERROR);
            return Err(error);
        }
    };
    let is_all = !matches!(rest, Rest::Frames);
    if let Err(error) = promised.on_data(data.len(), is_all) {
        send.reset(Code::H3_INTERNAL_ERROR);
        return Err(error.into());
    }
    let mut digits = [0; 20];
    let length = content.missing_length;
    let length = length.map(|length| write_number(length, &mut digits));
    let length = length.map(|length| FieldRef::new(b"content-length", length));
    let date = date(&parts.headers);
    let date = date.as_ref().map(date_field);
    let extra = length.into_iter().chain(date);
    if let Err(error) = send.response(parts.status, &parts.headers, extra) {
        // The client does not take such a response, but may take another one.
        send_status(send, StatusCode::INTERNAL_SERVER_ERROR, None).await;
        return Err(error.into());
    }
    match rest {
        Rest::Nothing => return Ok(send.finish_with(data).await?),
        Rest::Trailers(trailers) => {
            send.data(data).await?;
            if let Some(trailers) = trailers {
                send_trailers(send, &trailers)?;
            }
        }
        Rest::Frames => {
            if data.is_empty() {
                send.flush().await?;
            } else {
                send.data(data).await?;
            }
            if let Some(body) = body.as_pin_mut() {
                Box::pin(send_body(to, send, body, promised)).await?;
            }
        }
    }
    Box::pin(send.finish()).await?;
    Ok(())
}

/// The part of a response that follows its first write.
enum Rest {
    Nothing,
    /// Frames of the body.
    Frames,
    /// Only trailers.
    Trailers(Option<HeaderMap>),
}

/// Returns the data of the first frame of a body, and what follows it: `rest`, if the frame has data.
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

/// Sends the body of a response, and its trailers. A silent body is dropped once it is no longer needed.
async fn send_body<B>(
    to: Destination<'_>,
    send: &mut Send,
    mut body: Pin<&mut B>,
    mut promised: Promised,
) -> Result<(), BoxError>
where
    B: http_body::Body<Error: Into<BoxError>>,
{
    let stream = send.id();
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
                send.reset(Code::H3_INTERNAL_ERROR);
                return Err(error);
            }
        };
        match frame.into_data() {
            Ok(mut data) if data.has_remaining() => {
                let len = data.remaining();
                send.data(data.copy_to_bytes(len)).await?;
                if let Some(patience) = to.patience {
                    patience.on_progress();
                }
            }
            Ok(_) => {}
            Err(frame) => {
                if let Ok(trailers) = frame.into_trailers() {
                    send_trailers(send, &trailers)?;
                }
                return Ok(());
            }
        }
    }
}

/// Sends a response without a body. The client may be gone, or accept no response at all.
pub(super) async fn send_status(send: &mut Send, status: StatusCode, field: Option<FieldRef<'_>>) {
    match send.response(status, &HeaderMap::new(), field) {
        Ok(()) => drop(Box::pin(send.finish()).await),
        Err(_) => send.reset(Code::H3_INTERNAL_ERROR),
    }
}

/// Encodes trailers. Without them the response would be incomplete, so it is reset if the client does not accept them.
fn send_trailers(send: &mut Send, trailers: &HeaderMap) -> Result<(), StreamError> {
    let sent = send.trailers(trailers);
    if sent.is_err() {
        send.reset(Code::H3_INTERNAL_ERROR);
    }
    sent
}

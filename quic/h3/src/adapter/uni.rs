//! The unidirectional streams of the peer.
//!
//! `h3` never reads the streams of QPACK, and takes no notice of their end. They are read here, and the
//! others are handed to `h3` once their type is known.

use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use h3::{error::Code, quic::ConnectionErrorIncoming};
use hybriq::{RecvStream, tls::Side};

use crate::adapter::{
    budget::Budget, frames::Stream, openings::Openings, transport::Transport, varint,
};

/// Types of unidirectional streams (RFC 9114 §6.2, RFC 9204 §4.2).
const CONTROL: u64 = 0;
const PUSH: u64 = 1;
const ENCODER: u64 = 2;
const DECODER: u64 = 3;

/// Largest part of a stream of QPACK that is read at once, in bytes.
const PART: usize = 1024;

/// The unidirectional streams of the peer that `h3` does not have.
pub(crate) struct Unis {
    /// Streams whose type is not whole. The transport limits their number.
    opening: Openings<Opening>,
    encoder: Option<RecvStream>,
    decoder: Option<RecvStream>,
    /// True in the middle of a Stream Cancellation of the decoder.
    cancelling: bool,
    /// Streams that begin, and parts of the streams of QPACK, in this turn.
    budget: Budget,
}

impl Default for Unis {
    fn default() -> Self {
        Self {
            opening: Openings::default(),
            encoder: None,
            decoder: None,
            cancelling: false,
            budget: Budget::new(),
        }
    }
}

/// A stream whose type is not whole.
struct Opening {
    stream: RecvStream,
    head: BytesMut,
}

/// Beginning of a stream.
enum Start {
    /// The stream ended before its type.
    End,
    /// A stream of this type, and the encoded length of the type in bytes.
    Type(u64, usize),
}

impl Opening {
    /// Returns the beginning once it is known.
    fn poll(&mut self, cx: &mut Context<'_>) -> Option<Start> {
        loop {
            match self.stream.poll_read_start(cx, usize::MAX) {
                Poll::Ready(Ok(Some(data))) => self.head.extend_from_slice(&data),
                Poll::Ready(Ok(None) | Err(_)) => return Some(Start::End),
                Poll::Pending => return None,
            }
            let mut rest = &self.head[..];
            let Some(kind) = varint::read(&mut rest) else {
                continue;
            };
            return Some(Start::Type(kind, self.head.len() - rest.len()));
        }
    }
}

/// A stream for `h3`, with the bytes that were read from it.
pub(crate) struct Opened {
    pub(crate) stream: RecvStream,
    pub(crate) head: Bytes,
    pub(crate) kind: Stream,
    /// Number of bytes of the type.
    pub(crate) type_len: usize,
}

/// Error of the peer, for which the connection is closed.
type Fault = (Code, &'static str);

impl Unis {
    /// Returns the number of streams whose type is not known.
    pub(crate) fn opening(&self) -> usize {
        self.opening.len()
    }

    /// Returns the next stream for `h3`.
    pub(crate) fn poll_accept(
        &mut self,
        transport: &mut Transport,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Opened, ConnectionErrorIncoming>> {
        ready!(self.budget.poll_turn(cx));
        loop {
            match transport.poll_accept_uni(cx) {
                Poll::Ready(Ok(stream)) => self.opening.add(Opening {
                    stream,
                    head: BytesMut::new(),
                }),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => break,
            }
        }
        let polled = self.poll_opening(transport.side(), cx);
        let fault = match polled.and_then(|opened| match opened {
            Some(opened) => Ok(Some(opened)),
            None => self.poll_qpack(cx).map(|()| None),
        }) {
            Ok(Some(opened)) => return Poll::Ready(Ok(opened)),
            Ok(None) => return Poll::Pending,
            Err(fault) => fault,
        };
        let (code, reason) = fault;
        transport.close(code.value(), reason.as_bytes());
        Poll::Ready(Err(ConnectionErrorIncoming::ApplicationClose {
            error_code: code.value(),
        }))
    }

    /// Reads the types of new streams.
    fn poll_opening(&mut self, side: Side, cx: &mut Context<'_>) -> Result<Option<Opened>, Fault> {
        loop {
            let polled = self.opening.poll(cx, Opening::poll);
            let Some((Opening { stream, head }, start)) = polled else {
                return Ok(None);
            };
            self.budget.step();
            let head = head.freeze();
            match start {
                // The end before the type is no error (RFC 9114 §6.2).
                Start::End => {}
                Start::Type(kind @ (ENCODER | DECODER), len) => {
                    self.on_qpack(kind, stream, &head.slice(len..))?;
                }
                Start::Type(PUSH, _) if side.is_server() => {
                    return Err((
                        Code::H3_STREAM_CREATION_ERROR,
                        "a client opened a push stream",
                    ));
                }
                Start::Type(kind, type_len) => {
                    let kind = match (kind, side) {
                        (CONTROL, Side::Server) => Stream::ControlOfClient,
                        (CONTROL, Side::Client) => Stream::ControlOfServer,
                        _ => Stream::Raw,
                    };
                    return Ok(Some(Opened {
                        stream,
                        head,
                        kind,
                        type_len,
                    }));
                }
            }
        }
    }

    /// Keeps a stream of QPACK.
    fn on_qpack(&mut self, kind: u64, stream: RecvStream, data: &[u8]) -> Result<(), Fault> {
        let slot = if kind == ENCODER {
            &mut self.encoder
        } else {
            &mut self.decoder
        };
        if slot.replace(stream).is_some() {
            return Err((
                Code::H3_STREAM_CREATION_ERROR,
                "a second QPACK stream of one kind",
            ));
        }
        if kind == ENCODER {
            check_encoder(data)
        } else {
            self.check_decoder(data)
        }
    }

    /// Reads the streams of QPACK.
    fn poll_qpack(&mut self, cx: &mut Context<'_>) -> Result<(), Fault> {
        while self.budget.poll_turn(cx).is_ready() {
            let encoder = poll_critical(&mut self.encoder, cx)?;
            let decoder = poll_critical(&mut self.decoder, cx)?;
            if encoder.is_none() && decoder.is_none() {
                break;
            }
            self.budget.step();
            check_encoder(&encoder.unwrap_or_default())?;
            self.check_decoder(&decoder.unwrap_or_default())?;
        }
        Ok(())
    }

    /// Checks instructions of the peer's decoder (RFC 9204 §4.4). This end inserts nothing into its
    /// table, so nothing can be acknowledged.
    fn check_decoder(&mut self, data: &[u8]) -> Result<(), Fault> {
        for byte in data {
            if self.cancelling {
                self.cancelling = byte & 0x80 != 0;
            } else if byte & 0xc0 == 0x40 {
                // Stream Cancellation; the id goes on if its prefix is full.
                self.cancelling = byte & 0x3f == 0x3f;
            } else {
                return Err((
                    Code::QPACK_DECODER_STREAM_ERROR,
                    "an acknowledgement of entries that were not inserted",
                ));
            }
        }
        Ok(())
    }
}

/// Checks instructions of the peer's encoder (RFC 9204 §4.3). The table of this end has no capacity, so
/// that only Set Dynamic Table Capacity to 0 is allowed.
fn check_encoder(data: &[u8]) -> Result<(), Fault> {
    if data.iter().all(|byte| *byte == 0x20) {
        Ok(())
    } else {
        Err((
            Code::QPACK_ENCODER_STREAM_ERROR,
            "an instruction for a dynamic table, which has no capacity",
        ))
    }
}

/// Reads from a stream that must not end (RFC 9204 §4.2).
fn poll_critical(
    stream: &mut Option<RecvStream>,
    cx: &mut Context<'_>,
) -> Result<Option<Bytes>, Fault> {
    let Some(open) = stream else {
        return Ok(None);
    };
    match open.poll_read_chunk(cx, PART) {
        Poll::Ready(Ok(Some(data))) => Ok(Some(data)),
        Poll::Ready(Ok(None) | Err(hybriq::ReadError::Reset(_))) => {
            Err((Code::H3_CLOSED_CRITICAL_STREAM, "a QPACK stream has ended"))
        }
        Poll::Ready(Err(_)) | Poll::Pending => Ok(None),
    }
}

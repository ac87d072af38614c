//! Received bodies: of requests at a server, of responses at a client.

mod http3;
mod stall;
mod tcp;

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt as _;

use self::{http3::Quic, tcp::Tcp};
use crate::versions::http3::StreamError;

/// The body of a request that a server received, or of a response that a client received, over any version
/// of HTTP.
pub struct Body(Kind);

enum Kind {
    Empty,
    Tcp(Tcp),
    Request(Box<Quic<http::Request<()>>>),
    Response(Box<Quic<http::Response<()>>>),
}

/// Error when reading a [`Body`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BodyError {
    /// The peer reset the stream or closed the connection, or the body was malformed.
    #[error("the body ended early over HTTP/3, or it is malformed")]
    Quic(#[source] StreamError),
    /// The same over TCP.
    #[error("the body ended early over TCP, or it is malformed")]
    Tcp(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The client sent nothing for [`Limits::stall_time`](crate::Limits::stall_time).
    #[error("the client sent no data of the body for {0:?}")]
    Stalled(Duration),
    /// The body is longer or shorter than its `content-length` (RFC 9114 §4.1.2).
    #[error("the length of the body differs from its content-length")]
    Length,
    /// The body is longer than the limit of [`Body::bytes`].
    #[error("the body is longer than {0} bytes; raise the limit, or read it frame by frame")]
    TooLong(usize),
}

impl Body {
    /// Reads the whole body, which may have at most `most` bytes. Trailers are discarded.
    ///
    /// # Errors
    /// The body is longer than `most`, or could not be read to its end.
    ///
    /// # Cancel safety
    /// Dropping the future loses the bytes read so far.
    pub async fn bytes(mut self, most: usize) -> Result<Bytes, BodyError> {
        let mut whole = BytesMut::new();
        while let Some(frame) = self.frame().await {
            let Ok(data) = frame?.into_data() else {
                continue;
            };
            if data.len() > most - whole.len() {
                return Err(BodyError::TooLong(most));
            }
            if whole.is_empty() && self.is_end_stream() {
                return Ok(data);
            }
            whole.extend_from_slice(&data);
        }
        Ok(whole.freeze())
    }

    /// Returns the body of a request whose stream is handed to another protocol.
    pub(crate) fn empty() -> Self {
        Self(Kind::Empty)
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Body").finish_non_exhaustive()
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut self.get_mut().0 {
            Kind::Empty => Poll::Ready(None),
            Kind::Tcp(body) => body.poll_frame(cx),
            Kind::Request(body) => body.poll_frame(cx),
            Kind::Response(body) => body.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Empty => true,
            Kind::Tcp(tcp) => tcp.is_end_stream(),
            Kind::Request(body) => body.is_end_stream(),
            Kind::Response(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Empty => SizeHint::with_exact(0),
            Kind::Tcp(tcp) => tcp.size_hint(),
            Kind::Request(body) => body.size_hint(),
            Kind::Response(body) => body.size_hint(),
        }
    }
}

//! Requests whose fields have not come.

use std::{
    future::poll_fn,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes};
use h3::{
    error::{Code, StreamError},
    frame::FrameStreamError,
    proto::frame::{Frame, PayloadLen},
    quic::{self, OpenStreams, SendStream as _, StreamErrorIncoming},
    server::{RequestResolver, RequestStream},
};
use http::Request;
use hybriq::stats::Census;

use crate::adapter::{common::Counts, refusal::Resolving};

/// The requests of a server's connection that `h3` has accepted and whose fields have not arrived.
///
/// `h3` forgets a request only once its fields have arrived: one that ends earlier, or whose reader is
/// dropped, stays in a list for the life of the connection. Requests that are read here do not.
///
/// # Examples
/// ```no_run
/// # use hybriq_h3::Payload;
/// # async fn run(connection: hybriq::Connection) -> Result<(), Box<dyn std::error::Error>> {
/// let connection = hybriq_h3::Connection::new(connection);
/// let requests = connection.requests();
/// let mut connection = h3::server::Connection::<_, Payload>::new(connection).await?;
/// while let Some(resolver) = connection.accept().await? {
///     let (request, stream) = requests.resolve(resolver).await?;
///     println!("{}", request.uri());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Requests(Arc<Counts>);

/// Reason why a request is not answered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The stream ended before the fields of the request. It was reset with H3_REQUEST_INCOMPLETE.
    #[error("the stream ended before the fields of the request were complete")]
    Incomplete,
    /// The client reset the stream, with this code of HTTP/3, before the fields of the request had arrived.
    #[error("the client reset the stream with code {0:#x}")]
    Reset(u64),
    /// The client broke a rule or a limit.
    #[error("{0}")]
    Broken(String),
    /// `h3` refused or answered the request, or the connection is over.
    #[error(transparent)]
    H3(#[from] StreamError),
}

impl RequestError {
    /// Returns true if the request was answered: it had too many fields.
    pub fn is_answered(&self) -> bool {
        matches!(self, Self::H3(StreamError::HeaderTooBig { .. }))
    }
}

type Resolved<C, B> = (
    Request<()>,
    RequestStream<<C as OpenStreams<B>>::BidiStream, B>,
);

impl Requests {
    pub(crate) fn new(counts: Arc<Counts>) -> Self {
        Self(counts)
    }

    /// Reads the fields of a request. As with [`Resolving`], the answer of `h3` to one with too many fields
    /// arrives.
    ///
    /// # Errors
    /// The stream or the connection ended first, the client broke a rule, or `h3` answered the request itself.
    ///
    /// # Cancel safety
    /// The stream is reset with H3_REQUEST_CANCELLED if the future is dropped before it is ready.
    pub async fn resolve<C: quic::Connection<B>, B: Buf>(
        &self,
        resolver: RequestResolver<C, B>,
    ) -> Result<Resolved<C, B>, RequestError> {
        let mut pending = Pending(Some((resolver, &self.0)));
        let read = poll_fn(|cx| pending.poll_frame(cx)).await;
        let (resolver, frame) = read?;
        let resolved = resolver.accept_with_frame(frame)?;
        self.0.on_request_over();
        Ok(Resolving::new(pin!(resolved.resolve())).await?)
    }

    /// Counts what the connection holds besides its transport: requests without fields, incomplete frames,
    /// streams whose type has not arrived. All are 0 on a connection at rest.
    ///
    /// Only requests that are read by [`resolve`](Self::resolve), or refused, are over.
    pub fn census(&self, census: &mut Census) {
        self.0.census(census);
    }

    /// Returns the bytes of incomplete frames, which are part of the [`census`](Self::census).
    pub fn held(&self) -> usize {
        self.0.held()
    }

    /// Refuses a request without reading it. Its stream is reset with this code.
    pub fn refuse<C: quic::Connection<B>, B: Buf>(
        &self,
        mut resolver: RequestResolver<C, B>,
        code: u64,
    ) {
        resolver.frame_stream.reset(code);
        drop(Pending(Some((resolver, &self.0))));
    }

    /// Refuses all requests that come from now on: their streams are reset with this code, and `h3` does not see
    /// them. Call it after the last GOAWAY, beyond which `h3` refuses requests as well, but tells nobody. The
    /// connection has to be polled for it. The first call counts.
    pub fn refuse_all(&self, code: u64) {
        self.0.refuse_all(code);
    }

    /// Returns the number of requests that were refused after [`refuse_all`](Self::refuse_all).
    pub fn refused(&self) -> u64 {
        self.0.refused()
    }

    /// Returns the largest size of a field section that the client takes, in bytes (RFC 9114 §4.2.2), for
    /// [`ResponseHead::most`](crate::adapter::ResponseHead::most): `u64::MAX` before its settings have come, or without a limit.
    pub fn most_fields(&self) -> u64 {
        self.0.most_fields()
    }

    /// Returns the number of requests, since the last call, whose client broke a rule or a limit behind their
    /// fields, by trailers that are malformed. Their streams were reset.
    pub fn take_broken(&self) -> u64 {
        self.0.take_broken()
    }
}

/// A request whose fields have not come.
struct Pending<'a, C: quic::Connection<B>, B: Buf>(Option<(RequestResolver<C, B>, &'a Counts)>);

/// First frame of a request, and the request.
type First<C, B> = (
    RequestResolver<C, B>,
    Result<Option<Frame<PayloadLen>>, FrameStreamError>,
);

impl<C: quic::Connection<B>, B: Buf> Pending<'_, C, B> {
    /// Returns the first frame, unless the stream ends before.
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Result<First<C, B>, RequestError>> {
        let Some((resolver, _)) = &mut self.0 else {
            return Poll::Pending;
        };
        let stream = &mut resolver.frame_stream;
        let frame = match ready!(stream.poll_next(cx)) {
            Ok(None) => {
                stream.reset(Code::H3_REQUEST_INCOMPLETE.value());
                return Poll::Ready(Err(RequestError::Incomplete));
            }
            Err(FrameStreamError::Quic(StreamErrorIncoming::StreamTerminated { error_code })) => {
                return Poll::Ready(Err(RequestError::Reset(error_code)));
            }
            Err(FrameStreamError::Quic(StreamErrorIncoming::Unknown(error))) => {
                return Poll::Ready(Err(RequestError::Broken(error.to_string())));
            }
            // Other errors end the connection.
            frame => frame,
        };
        let Some((resolver, _)) = self.0.take() else {
            return Poll::Pending;
        };
        Poll::Ready(Ok((resolver, frame)))
    }
}

impl<C: quic::Connection<B>, B: Buf> Drop for Pending<'_, C, B> {
    /// Makes `h3` forget the request, for which it must have fields: there are none in these.
    fn drop(&mut self) {
        let Some((resolver, counts)) = self.0.take() else {
            return;
        };
        let fields = Frame::Headers(Bytes::from_static(&[0, 0]));
        if resolver.accept_with_frame(Ok(Some(fields))).is_ok() {
            counts.on_request_over();
        }
    }
}

//! The bodies of responses over TCP.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Buf;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use super::{
    activity::Answering,
    responses::{Held, Response, Sent},
};
use crate::{
    server::BoxError,
    versions::content::{BrokenPromise, Promised, remove_those_of_connection},
};

/// Longest part of a body after which HTTP/2 gets the next part, or the end, before that part was sent. While the
/// body is waited for, its stream can be reset alone.
const SHORT: usize = 16 << 10;

pin_project! {
    /// The body of a response, which counts as a request until it is dropped.
    pub(super) struct Counted<B> {
        #[pin]
        body: Option<B>,
        response: Arc<Response>,
        answering: Answering,
        promised: Promised,
        given: Given,
    }
}

/// The part of a body that was yielded last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Given {
    Short,
    /// The next part must wait for it.
    Long,
    /// The same, and it is the last part.
    LongAndLast,
}

/// Error of a response, or of its body.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    #[error("the service failed: {0}")]
    Service(BoxError),
    #[error("the request was refused without being processed")]
    Refused(#[source] h2::Error),
    #[error("the body of the response failed: {0}")]
    Body(BoxError),
    #[error(transparent)]
    Length(#[from] BrokenPromise),
    #[error("the client does not read the response")]
    NotTaken(#[source] h2::Error),
}

impl<B: Body> Counted<B> {
    pub(super) fn new(
        body: B,
        response: Response,
        promised: Promised,
        mut answering: Answering,
    ) -> Self {
        let response = Arc::new(response);
        if body.is_end_stream() {
            answering.on_over();
        } else {
            answering.on_response(&response);
        }
        Self {
            body: Some(body),
            response,
            answering,
            promised,
            given: Given::Short,
        }
    }

    /// Returns an empty body.
    pub(super) fn none(mut answering: Answering) -> Self {
        answering.on_over();
        Self {
            body: None,
            response: Arc::default(),
            answering,
            promised: Promised::default(),
            given: Given::Short,
        }
    }
}

impl<B: Body<Error: Into<BoxError>>> Body for Counted<B> {
    type Data = Held<B::Data>;
    type Error = Fault;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Fault>>> {
        let mut this = self.project();
        this.answering.on_over();
        if *this.given != Given::Short {
            if ready!(this.response.poll_sent(cx)) == Sent::Ended {
                let reason = h2::Error::from(h2::Reason::CANCEL);
                return Poll::Ready(Some(Err(Fault::NotTaken(reason))));
            }
            if *this.given == Given::LongAndLast {
                return Poll::Ready(None);
            }
        }
        let Some(mut body) = this.body.as_mut().as_pin_mut() else {
            return Poll::Ready(None);
        };
        let frame = loop {
            let frame = ready!(body.as_mut().poll_frame(cx));
            // h2 of clients takes 100 frames without data on a connection.
            let is_empty =
                |frame: &Frame<B::Data>| frame.data_ref().is_some_and(|it| !it.has_remaining());
            if !matches!(&frame, Some(Ok(frame)) if is_empty(frame)) {
                break frame;
            }
        };
        let data = frame
            .as_ref()
            .and_then(|frame| frame.as_ref().ok()?.data_ref());
        let len = data.map_or(0, Buf::remaining);
        let is_end = body.is_end_stream();
        if frame.as_ref().is_none_or(Result::is_ok) {
            let is_last = data.is_none() || is_end;
            this.promised.on_data(len, is_last)?;
        }
        let is_long = len > SHORT;
        *this.given = match (is_long && this.response.has_task(), is_end) {
            (false, _) => Given::Short,
            (true, false) => Given::Long,
            (true, true) => Given::LongAndLast,
        };
        let held = |data| Held::new(data, this.response);
        let frame = frame.map(|frame| frame.map(|frame| frame.map_data(held)));
        let frame = frame.map(|frame| frame.map(without_connection));
        Poll::Ready(frame.map(|frame| frame.map_err(|error| Fault::Body(error.into()))))
    }

    fn is_end_stream(&self) -> bool {
        self.given != Given::LongAndLast && self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let hint = self.body.as_ref().map(Body::size_hint);
        hint.unwrap_or_else(|| SizeHint::with_exact(0))
    }
}

/// Removes from trailers what they must not have: hyper would send none of them.
fn without_connection<D>(mut frame: Frame<D>) -> Frame<D> {
    if let Some(trailers) = frame.trailers_mut() {
        remove_those_of_connection(trailers);
    }
    frame
}

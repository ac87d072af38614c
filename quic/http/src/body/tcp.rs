//! Bodies over TCP.

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use tokio::sync::oneshot;

use super::{Body, BodyError, Kind, stall::Stall};
use crate::{limits::Patience, usage::Exchange, versions::http2::inflow::Incoming};

/// A body over TCP.
pub(super) struct Tcp {
    body: Incoming,
    stall: Option<Stall>,
    /// The client's use of the connection, until the body ends.
    exchange: Option<Exchange>,
    /// Dropped at the end of the body.
    end: Option<oneshot::Sender<()>>,
}

impl Body {
    /// Returns the body of a response over HTTP/1.1, whose use of the connection is counted elsewhere. Drops `end`
    /// when the body ends.
    pub(crate) fn of_http1(body: hyper::body::Incoming, end: oneshot::Sender<()>) -> Self {
        let end = (!body.is_end_stream()).then_some(end);
        Self(Kind::Tcp(Tcp {
            body: Incoming::new(body, None),
            stall: None,
            exchange: None,
            end,
        }))
    }

    /// Returns the body of a request over TCP. One that has ended needs no patience.
    pub(crate) fn of_tcp_request(body: Incoming, patience: Option<Arc<Patience>>) -> Self {
        let stall = patience.filter(|_| !body.is_end_stream()).map(Stall::new);
        Self(Kind::Tcp(Tcp {
            body,
            stall,
            exchange: None,
            end: None,
        }))
    }

    /// Returns the body of a response over TCP.
    pub(crate) fn answered(body: hyper::body::Incoming, exchange: Exchange) -> Self {
        let exchange = if body.is_end_stream() {
            exchange.complete();
            None
        } else {
            Some(exchange)
        };
        Self(Kind::Tcp(Tcp {
            body: Incoming::new(body, None),
            stall: None,
            exchange,
            end: None,
        }))
    }
}

impl Tcp {
    pub(super) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let polled = self.body.poll_frame(cx);
        let Poll::Ready(frame) = polled else {
            let Some(stall) = &mut self.stall else {
                return Poll::Pending;
            };
            return stall.poll(cx).map(|error| Some(Err(error)));
        };
        if let Some(stall) = &mut self.stall {
            stall.on_news();
        }
        if !matches!(frame, Some(Ok(_))) {
            self.end = None;
        }
        match (&frame, &mut self.exchange) {
            (None, exchange) => exchange.take().map_or((), Exchange::complete),
            (Some(Err(_)), exchange) => *exchange = None,
            (Some(Ok(_)), _) => {}
        }
        Poll::Ready(frame.map(|frame| frame.map_err(|error| BodyError::Tcp(error.into()))))
    }

    pub(super) fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    pub(super) fn size_hint(&self) -> SizeHint {
        if self.is_end_stream() {
            // hyper gives what `content-length` says, even in the response to HEAD.
            return SizeHint::with_exact(0);
        }
        self.body.size_hint()
    }
}

//! Connections of the transport.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use h3::quic::ConnectionErrorIncoming;
use hybriq::{EarlyConnection, StreamId, tls::Side, transport::Priority};

use crate::adapter::error;

/// A connection of the transport, before or after its handshake is complete.
#[derive(Clone)]
pub(crate) enum Transport {
    Established(hybriq::Connection),
    Early(EarlyConnection, EarlyRequests),
}

impl Transport {
    pub(crate) fn poll_open_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(hybriq::SendStream, hybriq::RecvStream), ConnectionErrorIncoming>> {
        match self {
            Self::Established(connection) => {
                connection.poll_open_bidi(cx).map_err(error::connection)
            }
            Self::Early(connection, _) => connection.poll_open_bidi(cx).map_err(error::early),
        }
    }

    pub(crate) fn poll_open_uni(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<hybriq::SendStream, ConnectionErrorIncoming>> {
        match self {
            Self::Established(connection) => {
                connection.poll_open_uni(cx).map_err(error::connection)
            }
            Self::Early(connection, _) => connection.poll_open_uni(cx).map_err(error::early),
        }
    }

    pub(crate) fn poll_accept_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(hybriq::SendStream, hybriq::RecvStream), ConnectionErrorIncoming>> {
        let accepted = match self {
            Self::Established(connection) => {
                connection.poll_accept_bidi(cx).map_err(error::connection)
            }
            Self::Early(connection, _) => connection.poll_accept_bidi(cx).map_err(error::early),
        };
        accepted.map(|accepted| accepted?.ok_or_else(|| self.clean_end()))
    }

    pub(crate) fn poll_accept_uni(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<hybriq::RecvStream, ConnectionErrorIncoming>> {
        let accepted = match self {
            Self::Established(connection) => {
                connection.poll_accept_uni(cx).map_err(error::connection)
            }
            Self::Early(connection, _) => connection.poll_accept_uni(cx).map_err(error::early),
        };
        accepted.map(|accepted| accepted?.ok_or_else(|| self.clean_end()))
    }

    fn clean_end(&self) -> ConnectionErrorIncoming {
        error::clean_end(match self {
            Self::Established(connection) => connection.close_reason(),
            Self::Early(connection, _) => connection.close_reason(),
        })
    }

    pub(crate) fn close(&self, code: u64, reason: &[u8]) {
        match self {
            Self::Established(connection) => connection.close(code, reason),
            Self::Early(connection, _) => connection.close(code, reason),
        }
    }

    /// Returns which end this is.
    pub(crate) fn side(&self) -> Side {
        match self {
            Self::Established(connection) => connection.side(),
            Self::Early(connection, _) => connection.side(),
        }
    }

    /// Returns the streams with early data, if there can be any.
    pub(crate) fn early_requests(&self) -> Option<&EarlyRequests> {
        match self {
            Self::Established(_) => None,
            Self::Early(_, requests) => Some(requests),
        }
    }

    /// Resets the sending half of a stream. Streams of early data go on.
    pub(crate) fn reset_stream(&self, stream: StreamId, code: u64) {
        if let Self::Established(connection) = self {
            connection.reset_stream(stream, code, 0);
        }
    }

    /// Sets the priority of a stream. Streams of early data have the default.
    pub(crate) fn set_priority(&self, stream: StreamId, priority: Priority) {
        if let Self::Established(connection) = self {
            connection.set_stream_priority(stream, priority);
        }
    }
}

/// The streams of a connection on which data came in 0-RTT packets, which can be replayed (RFC 8470).
///
/// A stream is among them from the time at which `h3` has read its first data until `h3` drops it.
#[derive(Clone, Debug, Default)]
pub struct EarlyRequests(Option<Arc<Mutex<BTreeSet<u64>>>>);

impl EarlyRequests {
    /// Returns an empty list for a connection that may get some.
    pub(crate) fn new() -> Self {
        Self(Some(Arc::default()))
    }

    /// Returns true if data came early on the stream of a request.
    pub fn contains(&self, stream: h3::quic::StreamId) -> bool {
        let requests = self.lock();
        requests.is_some_and(|requests| requests.contains(&stream.into_inner()))
    }

    pub(crate) fn insert(&self, stream: StreamId) {
        if let Some(mut requests) = self.lock() {
            requests.insert(stream.0);
        }
    }

    pub(crate) fn forget(&self, stream: StreamId) {
        if let Some(mut requests) = self.lock() {
            requests.remove(&stream.0);
        }
    }

    /// Returns the numbers of the streams; `None` on a connection that cannot have any.
    fn lock(&self) -> Option<MutexGuard<'_, BTreeSet<u64>>> {
        let requests = self.0.as_deref()?;
        Some(requests.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

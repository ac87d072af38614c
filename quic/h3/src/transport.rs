//! Connections of the transport.

use std::task::{Context, Poll};

use h3::quic::ConnectionErrorIncoming;
use hybriq::{EarlyConnection, Priority, StreamId};

use crate::error;

/// A connection of the transport, before or after its handshake is complete.
#[derive(Clone)]
pub(crate) enum Transport {
    Established(hybriq::Connection),
    Early(EarlyConnection),
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
            Self::Early(connection) => connection.poll_open_bidi(cx).map_err(error::early),
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
            Self::Early(connection) => connection.poll_open_uni(cx).map_err(error::early),
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
            Self::Early(connection) => connection.poll_accept_bidi(cx).map_err(error::early),
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
            Self::Early(connection) => connection.poll_accept_uni(cx).map_err(error::early),
        };
        accepted.map(|accepted| accepted?.ok_or_else(|| self.clean_end()))
    }

    fn clean_end(&self) -> ConnectionErrorIncoming {
        error::clean_end(match self {
            Self::Established(connection) => connection.close_reason(),
            Self::Early(connection) => connection.close_reason(),
        })
    }

    pub(crate) fn close(&self, code: u64, reason: &[u8]) {
        match self {
            Self::Established(connection) => connection.close(code, reason),
            Self::Early(connection) => connection.close(code, reason),
        }
    }

    /// Sets the priority of a stream. Streams of early data have the default.
    pub(crate) fn set_priority(&self, stream: StreamId, priority: Priority) {
        if let Self::Established(connection) = self {
            connection.set_stream_priority(stream, priority);
        }
    }
}

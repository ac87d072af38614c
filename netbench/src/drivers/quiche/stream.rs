//! Streams and failures of quiche as scripts use them.

use std::task::{Context, Poll};

use bytes::Bytes;

use crate::drivers::{Reader, Writer, failures};
use crate::stacks::quiche::{Ended, Receiver, Sender, StreamError};
use crate::system::outcome::{Failed, Kind};

impl Writer for Sender {
    fn poll_send(&mut self, cx: &mut Context<'_>, data: &mut Bytes) -> Poll<Result<(), Failed>> {
        if data.is_empty() {
            return Poll::Ready(Ok(()));
        }
        self.poll_write(cx, data).map_err(given_up)
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failed>> {
        Self::poll_finish(self, cx).map_err(given_up)
    }

    fn reset(&mut self, code: u64) {
        Self::reset(self, code);
    }
}

impl Reader for Receiver {
    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<Result<Option<Bytes>, Failed>> {
        Self::poll_receive(self, cx, max).map_err(given_up)
    }
}

/// Returns the failure of a stream or of a datagram.
pub(super) fn given_up(error: StreamError) -> Failed {
    match error {
        StreamError::Stopped(_) | StreamError::Reset(_) => Failed::new(Kind::Reset, error),
        StreamError::Ended(ended) => over(ended),
        StreamError::Other(error) => Failed::other(error),
    }
}

/// Returns the failure of operations after the end of the connection.
pub(super) fn over(ended: Ended) -> Failed {
    let closed = || Failed::new(Kind::Reset, "the connection is closed");
    unless_clean(ended).err().unwrap_or_else(closed)
}

/// Returns the failure that ended a connection, unless it was closed without an error.
pub(super) fn unless_clean(ended: Ended) -> Result<(), Failed> {
    match ended {
        Ended::Application { code: 0, .. } => Ok(()),
        Ended::Application { code, reason } => Err(Failed::new(Kind::Application(code), reason)),
        Ended::Transport(close) => Err(failures::transport(close.code, close.reason)),
        Ended::TimedOut => Err(Failed::new(Kind::Timeout, ended)),
        Ended::Lost => Err(Failed::new(Kind::Reset, ended)),
    }
}

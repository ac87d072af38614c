//! What becomes of the data of a stream.

use std::{
    future::poll_fn,
    task::{Context, Poll},
};

use super::{SendStream, by_id, send::End};
use crate::{errors::WriteError, worker::StreamWatch};

/// Delivery and its end.
impl SendStream {
    /// Returns a future that waits until the peer needs nothing more of this stream. `Some` is the code of its
    /// STOP_SENDING; `None` means that the peer acknowledged all data and the end of the stream, or its reset.
    ///
    /// The future is independent of this handle: it may be awaited in another task and while the stream is written, and
    /// goes on after the handle is dropped. There may be several. Each counts as a handle of the connection.
    ///
    /// # Errors
    /// The connection is over.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(mut send: hybriq::SendStream) -> Result<(), hybriq::WriteError> {
    /// let stopped = send.stopped();
    /// tokio::select! {
    ///     written = send.write_all(b"a long film") => written?,
    ///     code = stopped => println!("the viewer left: {:?}", code?),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn stopped(
        &self,
    ) -> impl Future<Output = Result<Option<u64>, WriteError>> + Send + Sync + use<> {
        let mut watch = StreamWatch::new(&self.handle, self.id);
        poll_fn(move |cx| watch.poll(cx, None, by_id::ended)?)
    }

    /// Returns how the peer ended the stream once it is known; the twin of
    /// [`stopped`](Self::stopped). Wakes the task of its last call.
    ///
    /// # Errors
    /// The connection is over.
    pub fn poll_stopped(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<u64>, WriteError>> {
        by_id::poll_stopped(&self.handle, self.id, cx)
    }

    /// Finishes the stream if it is not finished yet, and waits until the peer has acknowledged all
    /// of it. The peer's transport has the data then; its application may not have read it yet.
    ///
    /// # Errors
    /// The peer stopped the stream, it was reset, or the connection is over.
    ///
    /// # Cancel safety
    /// The stream is finished even if the future is dropped.
    pub async fn acknowledged(&mut self) -> Result<(), WriteError> {
        self.finish();
        if matches!(self.end, End::Reset | End::ResetAt) {
            return Err(WriteError::Closed);
        }
        match poll_fn(|cx| self.poll_stopped(cx)).await? {
            None => Ok(()),
            Some(code) => Err(WriteError::Stopped(code)),
        }
    }
}

//! What becomes of the data of a stream.

use std::{
    future::poll_fn,
    task::{Context, Poll},
    time::Instant,
};

use hybriq_proto::owners::streams::{Delivery, StreamId};

use super::{SendStream, by_id, send::End};
use crate::{
    errors::{WriteError, wire_code},
    worker::{Ended, State, StreamWatch},
};

/// Delivery and its end.
impl SendStream {
    /// Returns a future that waits until the peer needs nothing more of this stream. `Some` is the code of its
    /// STOP_SENDING; `None` means that the peer acknowledged all data and the end of the stream, or its reset.
    ///
    /// The future is independent of this handle: it may be awaited in another task and while the stream is written, and
    /// continues after the handle is dropped. There may be several. Each counts as a handle of the connection.
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
            None if self.is_expired() => Err(WriteError::Expired),
            None => Ok(()),
            Some(code) => Err(WriteError::Stopped(code)),
        }
    }

    fn is_acknowledged(&self) -> bool {
        let state = self.handle.lock_stream().ok();
        state.is_some_and(|mut state| state.core.streams().is_send_acknowledged(self.id))
    }

    fn is_expired(&self) -> bool {
        let state = self.handle.lock_stream().ok();
        state.is_some_and(|mut state| state.send_ended(self.id) == Ended::Expired)
    }

    /// Returns a future that waits until the peer has acknowledged the first `bytes` bytes of the stream, or all of
    /// a finished stream that is shorter. The peer's transport has them then; its application may not have read them
    /// yet. The future is independent of this handle, as that of [`stopped`](Self::stopped).
    ///
    /// # Errors
    /// They will not be delivered: the peer stopped the stream, it was reset or expired, or the connection is over.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(mut send: hybriq::SendStream) -> Result<(), hybriq::WriteError> {
    /// send.write_all(b"first record").await?;
    /// let has_first = send.delivered(12);
    /// send.write_all(b"second record").await?;
    /// has_first.await?; // the first one is no longer needed
    /// # Ok(())
    /// # }
    /// ```
    pub fn delivered(
        &self,
        bytes: u64,
    ) -> impl Future<Output = Result<(), WriteError>> + Send + Sync + use<> {
        let mut watch = StreamWatch::new(&self.handle, self.id);
        // Later, a reset may follow the end.
        let has_all = self.end == End::Finished && self.is_acknowledged();
        poll_fn(move |cx| {
            watch.poll(cx, Some(bytes), |state, id| {
                poll_delivered(state, id, bytes, has_all)
            })?
        })
    }

    /// Returns how far the bytes of the stream were delivered so far; `None` if it was reset or stopped, if the peer
    /// has acknowledged all of it, or if the connection is over.
    pub fn delivery(&self) -> Option<Delivery> {
        let mut state = self.handle.lock_stream().ok()?;
        if state.closed.is_some() {
            return None;
        }
        state.core.streams().delivery(self.id)
    }

    /// Resets the stream with the application's code at a time, unless the peer has acknowledged all of it by then,
    /// and its end: data that has become worthless no longer takes bandwidth. The deadline also holds after this
    /// handle is dropped. A later call replaces an earlier one; `None` takes the deadline back. Has no effect on a
    /// stream that is over.
    ///
    /// Calls on an expired stream fail with [`WriteError::Expired`].
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(connection: hybriq::Connection) -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::{Duration, Instant};
    ///
    /// let mut picture = connection.open_uni().await?;
    /// picture.expire_at(Some(Instant::now() + Duration::from_millis(200)), 1);
    /// picture.write_all(b"a picture of a film").await?;
    /// picture.finish();
    /// # Ok(())
    /// # }
    /// ```
    pub fn expire_at(&self, at: Option<Instant>, code: u64) {
        let Ok(mut state) = self.handle.lock_stream() else {
            return;
        };
        if state.closed.is_none() {
            // A stream that is over needs no deadline.
            let _ = state.core.streams().expire_at(self.id, at, wire_code(code));
            drop(state);
            self.handle.touch();
        }
    }
}

/// Returns ready once the peer has acknowledged these bytes, or never will. `has_all`: all of the stream had arrived when
/// the wait began.
fn poll_delivered(
    state: &mut State,
    id: StreamId,
    bytes: u64,
    has_all: bool,
) -> Poll<Result<(), WriteError>> {
    let now = state.core.streams().delivery(id);
    let acknowledged = now.map_or(0, |now| now.acknowledged);
    if acknowledged.max(state.watches.delivered(id)) >= bytes {
        return Poll::Ready(Ok(()));
    }
    if state.send_ended(id) != Ended::No {
        return Poll::Ready(Err(by_id::refusal(state, id)));
    }
    match (&state.closed, now) {
        (Some(error), _) => Poll::Ready(Err(error.clone().into())),
        (None, Some(_)) => Poll::Pending,
        (None, None) if has_all => Poll::Ready(Ok(())),
        (None, None) => Poll::Ready(Err(WriteError::Closed)),
    }
}

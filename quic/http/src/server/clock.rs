//! The clock of servers.

use std::{
    cell::RefCell,
    future::poll_fn,
    pin::pin,
    task::{Context, Poll},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use http::HeaderValue;
use tokio::time::error::Elapsed;

/// Returns the time now.
#[expect(
    clippy::disallowed_methods,
    reason = "nothing else here reads the clock"
)]
pub(super) fn now() -> Instant {
    Instant::now()
}

/// Returns the value of a `date` field (RFC 9110 §6.6.1). Each thread makes it once a second.
#[expect(
    clippy::disallowed_methods,
    reason = "nothing else here reads the clock"
)]
pub(super) fn date() -> Option<HeaderValue> {
    thread_local! {
        static LAST: RefCell<Option<(u64, HeaderValue)>> = const { RefCell::new(None) };
    }
    let now = SystemTime::now();
    let second = now.duration_since(UNIX_EPOCH).ok()?.as_secs();
    LAST.with_borrow_mut(|last| {
        if let Some((_, date)) = last.as_ref().filter(|(at, _)| *at == second) {
            return Some(date.clone());
        }
        let date = HeaderValue::try_from(httpdate::fmt_http_date(now)).ok()?;
        *last = Some((second, date.clone()));
        Some(date)
    })
}

/// Waits until a poll is ready, at most for `time`. Takes no timer if it is ready at once.
pub(super) async fn within<T>(
    time: Duration,
    mut poll: impl FnMut(&mut Context<'_>) -> Poll<T> + Send,
) -> Result<T, Elapsed> {
    match poll_fn(|cx| Poll::Ready(poll(cx))).await {
        Poll::Ready(output) => Ok(output),
        Poll::Pending => Box::pin(tokio::time::timeout(time, poll_fn(poll))).await,
    }
}

/// Polls a future once.
pub(super) async fn poll_once<F: Future>(future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    poll_fn(|cx| {
        Poll::Ready(match future.as_mut().poll(cx) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        })
    })
    .await
}

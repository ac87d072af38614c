//! Answers that `h3` gives itself.

use std::{
    cell::Cell,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

thread_local! {
    /// True while a request is resolved on this thread.
    static RESOLVING: Cell<bool> = const { Cell::new(false) };
}

/// The future of [`resolve_request`](h3::server::RequestResolver::resolve_request), with which the
/// answer of `h3` to a request with too many fields arrives.
///
/// `h3` answers with 431 and drops the stream without its end. That would reset the stream, and the
/// reset may overtake the answer. A stream that is dropped inside this future is finished instead, if
/// an answer was written.
///
/// # Examples
/// ```no_run
/// # type Resolver = h3::server::RequestResolver<hybriq_h3::Connection, bytes::Bytes>;
/// # async fn run(resolver: Resolver) -> Result<(), h3::error::StreamError> {
/// let resolving = std::pin::pin!(resolver.resolve_request());
/// let (request, stream) = hybriq_h3::Resolving::new(resolving).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Resolving<F>(F);

impl<F: Future + Unpin> Resolving<F> {
    /// Wraps the future.
    pub const fn new(resolving: F) -> Self {
        Self(resolving)
    }
}

impl<F: Future + Unpin> Future for Resolving<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let _scope = Scope(RESOLVING.replace(true));
        Pin::new(&mut self.0).poll(cx)
    }
}

/// Ends a poll, also by a panic.
struct Scope(bool);

impl Drop for Scope {
    fn drop(&mut self) {
        RESOLVING.set(self.0);
    }
}

/// Returns true while a request is resolved on this thread.
pub(crate) fn is_resolving() -> bool {
    RESOLVING.get()
}

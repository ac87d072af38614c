//! Who is told what scripts do.

use std::time::Duration;

use futures_util::future::LocalBoxFuture;

/// The client counts and times; the server does not.
pub(super) trait Observer {
    /// Bytes of a stream that the stack took.
    fn sent(&self, bytes: u64);

    /// Bytes of a stream that arrived.
    fn received(&self, bytes: u64);

    /// A request is done, that long after its intended start.
    fn request(&self, label: &str, took: Duration);

    /// A datagram came back, that long after it should have been sent.
    fn echo(&self, took: Duration);

    /// Notes that so many datagrams did not come back.
    fn lost(&self, datagrams: u64);

    /// Returns true if nothing new is to be begun.
    fn is_stopping(&self) -> bool;

    /// Waits until nothing new is to be begun.
    fn stopping(&self) -> LocalBoxFuture<'_, ()>;
}

/// Nobody.
pub(super) struct Nobody;

impl Observer for Nobody {
    fn sent(&self, _: u64) {}

    fn received(&self, _: u64) {}

    fn request(&self, _: &str, _: Duration) {}

    fn echo(&self, _: Duration) {}

    fn lost(&self, _: u64) {}

    fn is_stopping(&self) -> bool {
        false
    }

    fn stopping(&self) -> LocalBoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
}

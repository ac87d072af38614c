//! Observers of scripts.

use std::time::Duration;

use futures_util::future::LocalBoxFuture;

/// Observer of a script. The client counts and times; the server does not.
pub(crate) trait Observer {
    /// Counts bytes that the stack took for a stream.
    fn sent(&self, bytes: u64);

    /// Counts bytes that arrived on a stream.
    fn received(&self, bytes: u64);

    /// Notes that a request ended this long after its intended start.
    fn request(&self, label: &str, took: Duration);

    /// Notes that an echo arrived this long after the datagram's intended time.
    fn echo(&self, took: Duration);

    /// Counts datagrams that did not come back.
    fn lost(&self, datagrams: u64);

    /// Returns true if nothing new may begin.
    fn is_stopping(&self) -> bool;

    /// Waits until nothing new may begin.
    fn stopping(&self) -> LocalBoxFuture<'_, ()>;
}

/// An observer that does nothing.
pub(crate) struct Nobody;

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

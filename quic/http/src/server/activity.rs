//! Activity of a connection over TCP, by which an idle one is found.

use std::{
    pin::Pin,
    sync::{
        Arc, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use http_body::{Body, Frame, SizeHint};
use hybriq::Census;
use pin_project_lite::pin_project;

use super::connections::{Connections, Holds, Registered};

/// Counts what happens on a connection.
#[derive(Default)]
pub(super) struct Activity {
    /// Place among the parts of connections, which are asked what they hold.
    _registered: Option<Registered>,
    /// Reads and writes.
    moves: AtomicUsize,
    /// Requests that are not answered to their end.
    running: AtomicUsize,
    /// Requests that came.
    requests: AtomicUsize,
}

/// A request that is answered, until this is dropped.
pub(super) struct Answering(Arc<Activity>);

pin_project! {
    /// The body of a response, which counts as a request until it is dropped.
    pub(super) struct Counted<B> {
        #[pin]
        body: B,
        answering: Answering,
    }
}

impl Holds for Activity {
    fn count(&self, census: &mut Census) {
        census.add("requests", self.running.load(Ordering::Relaxed), 0);
    }
}

impl Activity {
    /// Makes one that counts for a server.
    pub(super) fn counted_by(connections: &Connections) -> Arc<Self> {
        Arc::new_cyclic(|activity: &Weak<Self>| Self {
            _registered: Some(connections.register(activity.clone())),
            ..Self::default()
        })
    }

    /// Notes a read or a write.
    pub(super) fn on_moved(&self) {
        self.moves.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes a request.
    pub(super) fn on_request(self: &Arc<Self>) -> Answering {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.running.fetch_add(1, Ordering::Relaxed);
        Answering(self.clone())
    }

    /// Returns true if no request came at all.
    pub(super) fn is_silent(&self) -> bool {
        self.requests.load(Ordering::Relaxed) == 0
    }

    /// Returns after the connection was idle for this time, or for up to twice as long.
    pub(super) async fn idle(&self, time: Duration) {
        loop {
            let before = self.moves.load(Ordering::Relaxed);
            tokio::time::sleep(time).await;
            let is_still = self.moves.load(Ordering::Relaxed) == before;
            if is_still && self.running.load(Ordering::Relaxed) == 0 {
                return;
            }
        }
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<B> Counted<B> {
    pub(super) fn new(body: B, answering: Answering) -> Self {
        Self { body, answering }
    }
}

impl<B: Body> Body for Counted<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        self.project().body.poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

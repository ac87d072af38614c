//! Counts the requests that use a client's connection.

use std::sync::{
    Arc,
    atomic::{AtomicIsize, AtomicUsize, Ordering},
};
use std::time::Duration;

use tokio::sync::Notify;

/// Bit of [`Usage::requests`] that says that the connection takes no more requests.
const OVER: usize = 1 << (usize::BITS - 1);

/// Connections of a client that no request uses.
#[derive(Debug)]
pub(crate) struct Idle {
    count: AtomicIsize,
    most: usize,
    /// Request bodies that are still being sent although the response has arrived, over HTTP/3.
    uploads: AtomicUsize,
}

/// A request body that is sent in parallel with the response, until this is dropped.
pub(crate) struct Uploading(Arc<Idle>);

impl Idle {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            count: AtomicIsize::new(0),
            most,
            uploads: AtomicUsize::new(0),
        }
    }

    /// Returns the number of connections that no request uses.
    pub(crate) fn count(&self) -> usize {
        usize::try_from(self.count.load(Ordering::Acquire)).unwrap_or_default()
    }

    /// Returns the number of bodies that are sent in parallel with their responses.
    pub(crate) fn uploads(&self) -> usize {
        self.uploads.load(Ordering::Acquire)
    }

    /// Returns true if there are more idle connections than allowed.
    fn is_exceeded(&self) -> bool {
        usize::try_from(self.count.load(Ordering::Acquire)).is_ok_and(|count| count > self.most)
    }
}

/// Requests that use a connection.
///
/// ```text
///  idle ◄──────► in use
///   │ end
///   ▼
///  over
/// ```
#[derive(Debug)]
pub(crate) struct Usage {
    requests: AtomicUsize,
    /// Notified when the last request ends, and when the connection must end.
    changed: Notify,
    idle: Arc<Idle>,
}

impl Usage {
    /// Counts a connection that is idle at first.
    pub(crate) fn new(idle: Arc<Idle>) -> Arc<Self> {
        idle.count.fetch_add(1, Ordering::AcqRel);
        Arc::new(Self {
            requests: AtomicUsize::new(0),
            changed: Notify::new(),
            idle,
        })
    }

    /// Begins a request. Returns `None` if the connection takes no more.
    pub(crate) fn begin(self: &Arc<Self>) -> Option<Exchange> {
        let begun = self
            .requests
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |requests| {
                (requests & OVER == 0).then_some(requests + 1)
            });
        if begun.ok()? == 0 {
            self.idle.count.fetch_sub(1, Ordering::AcqRel);
        }
        Some(Exchange {
            usage: self.clone(),
            upload: None,
        })
    }

    /// Ends the connection once the requests in progress are over. It takes no more requests.
    pub(crate) fn end(&self) {
        if self.requests.fetch_or(OVER, Ordering::AcqRel) == 0 {
            self.idle.count.fetch_sub(1, Ordering::AcqRel);
        }
        self.changed.notify_one();
    }

    /// Ends the connection if no request uses it. Returns true if it takes no more requests now.
    pub(crate) fn end_if_idle(&self) -> bool {
        let ended = self
            .requests
            .compare_exchange(0, OVER, Ordering::AcqRel, Ordering::Acquire);
        if ended.is_ok() {
            self.idle.count.fetch_sub(1, Ordering::AcqRel);
            self.changed.notify_one();
        }
        !matches!(ended, Err(requests) if requests & OVER == 0)
    }

    /// Returns true if the connection takes no more requests.
    pub(crate) fn is_over(&self) -> bool {
        self.requests.load(Ordering::Acquire) & OVER != 0
    }

    /// Returns the number of requests that use the connection.
    pub(crate) fn exchanges(&self) -> usize {
        self.requests.load(Ordering::Acquire) & !OVER
    }

    /// Returns true if no request uses the connection.
    pub(crate) fn is_idle(&self) -> bool {
        self.requests.load(Ordering::Acquire) & !OVER == 0
    }

    /// Waits until the connection may be closed: no request uses it, and it takes no more requests or was idle for
    /// `idle`.
    pub(crate) async fn over(&self, idle: Duration) {
        loop {
            let changed = self.changed.notified();
            match self.requests.load(Ordering::Acquire) {
                OVER => return,
                0 => {
                    let waited = tokio::time::timeout(idle, changed).await;
                    if waited.is_err() {
                        self.end_if_idle();
                    }
                }
                _ => changed.await,
            }
        }
    }
}

/// Ends a connection when this is dropped. The task of the connection holds one, so that the connection ends however
/// the task does, even if its runtime shuts down.
pub(crate) struct Ending(pub(crate) Arc<Usage>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// A request and its response, which use a connection until this is dropped.
pub(crate) struct Exchange {
    usage: Arc<Usage>,
    /// Ends the sending of the request's body.
    upload: Option<Box<dyn FnOnce() + Send + Sync>>,
}

impl Exchange {
    /// Counts the body of the request, which is sent in parallel with the response.
    pub(crate) fn uploading(&self) -> Uploading {
        let idle = self.usage.idle.clone();
        idle.uploads.fetch_add(1, Ordering::AcqRel);
        Uploading(idle)
    }

    /// Ends the sending of the request's body if the response is abandoned.
    pub(crate) fn upload(&mut self, end: impl FnOnce() + Send + Sync + 'static) {
        self.upload = Some(Box::new(end));
    }

    /// Ends the exchange after the whole response has arrived. The rest of the request is still sent.
    pub(crate) fn complete(mut self) {
        self.upload = None;
    }
}

impl Drop for Uploading {
    fn drop(&mut self) {
        self.0.uploads.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if let Some(end) = self.upload.take() {
            end();
        }
        match self.usage.requests.fetch_sub(1, Ordering::AcqRel) {
            1 => {
                self.usage.idle.count.fetch_add(1, Ordering::AcqRel);
                if self.usage.idle.is_exceeded() {
                    self.usage.end_if_idle();
                }
                self.usage.changed.notify_one();
            }
            requests if requests == OVER | 1 => self.usage.changed.notify_one(),
            _ => {}
        }
    }
}

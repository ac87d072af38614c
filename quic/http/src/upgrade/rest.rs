//! What a service leaves to be sent when it is through with a tunnel over HTTP/2. hyper sends it in a task of its
//! own, which would wait for the client for ever.

use std::{
    cell::Cell,
    future::poll_fn,
    io,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
    time::Duration,
};

use tokio::{sync::oneshot, time::Instant};

thread_local! {
    /// The rest of the tunnel that the task which is being polled has agreed to.
    static AGREED: Cell<Option<Rest>> = const { Cell::new(None) };
}

/// Largest number of bytes that hyper takes at once. HTTP/2 holds as much beyond the client's credit.
pub(super) const PART: usize = 16 << 10;

/// Use of a tunnel by the service, until it is dropped.
pub(crate) struct Use {
    over: Option<oneshot::Sender<()>>,
    is_cut: Arc<AtomicBool>,
}

/// The sending of what is left.
pub(crate) struct Rest {
    over: oneshot::Receiver<()>,
    is_cut: Arc<AtomicBool>,
}

/// What became of the rest of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Sent,
    /// The client took nothing of it, and it was dropped.
    NotTaken,
}

/// Returns both ends of a tunnel that the client asks for.
pub(crate) fn tunnel() -> (Use, Rest) {
    let (tell, over) = oneshot::channel();
    let is_cut = Arc::new(AtomicBool::new(false));
    let using = Use {
        over: Some(tell),
        is_cut: is_cut.clone(),
    };
    (using, Rest { over, is_cut })
}

impl Use {
    /// Notes that the service writes nothing more.
    pub(super) fn end(&mut self) {
        self.over = None;
    }

    /// Fails if the rest was dropped.
    pub(super) fn check(&self) -> io::Result<()> {
        if self.is_cut.load(Ordering::Acquire) {
            let reason = "the client does not read what was written";
            return Err(io::Error::new(io::ErrorKind::TimedOut, reason));
        }
        Ok(())
    }
}

impl Rest {
    /// Leaves this to the task that hyper starts next for the tunnel, while it polls the response.
    pub(crate) fn agree(self) {
        AGREED.set(Some(self));
    }

    /// Returns the rest that was left last.
    pub(crate) fn agreed() -> Option<Self> {
        AGREED.take()
    }

    /// Runs the task of the tunnel. Once the service is through with it, the client may take nothing for `time`.
    pub(crate) async fn send(self, task: impl Future, time: Duration) -> Outcome {
        let mut task = pin!(task);
        tokio::select! {
            biased;
            _ = task.as_mut() => return Outcome::Sent,
            _ = self.over => {}
        }
        let mut timer = pin!(tokio::time::sleep(time));
        let outcome = poll_fn(|cx| {
            if timer.as_mut().poll(cx).is_ready() {
                self.is_cut.store(true, Ordering::Release);
                return Poll::Ready(Outcome::NotTaken);
            }
            // HTTP/2 wakes the task when the client gives credit.
            timer.as_mut().reset(Instant::now() + time);
            let _ = timer.as_mut().poll(cx);
            task.as_mut().poll(cx).map(|_| Outcome::Sent)
        });
        outcome.await
    }
}

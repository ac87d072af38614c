//! Tunnels over HTTP/2: received data, and what is left to send when the service has finished with a tunnel.
//!
//! hyper returns parts of frames, but whole frames are counted. It sends the rest in its own task, which would
//! wait for the client forever.

use std::{
    cell::Cell,
    future::poll_fn,
    io,
    mem::MaybeUninit,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker, ready},
    time::Duration,
};

use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, ReadBuf},
    sync::oneshot,
    time::Instant,
};

use crate::versions::http2::inflow::Reader;

thread_local! {
    /// The rest of the tunnel that the task being polled has agreed to.
    static AGREED: Cell<Option<Rest>> = const { Cell::new(None) };
}

/// Largest number of bytes that hyper takes at once. HTTP/2 buffers as many beyond the client's credit.
pub(super) const PART: usize = 16 << 10;

/// Use of a tunnel by the service, until it is dropped.
pub(crate) struct Use {
    over: Option<oneshot::Sender<()>>,
    is_cut: Arc<AtomicBool>,
}

/// The data that a service leaves to be sent.
pub(crate) struct Rest {
    over: oneshot::Receiver<()>,
    is_cut: Arc<AtomicBool>,
}

/// What became of the rest of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Sent,
    /// The client accepted nothing of it, and it was dropped.
    NotTaken,
}

/// Returns both halves of a tunnel that the client asks for.
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
    /// Passes this to the task that hyper starts next for the tunnel, while it polls the response.
    pub(crate) fn agree(self) {
        AGREED.set(Some(self));
    }

    /// Returns the rest that was passed last.
    pub(crate) fn agreed() -> Option<Self> {
        AGREED.take()
    }

    /// Runs the task of the tunnel. Once the service has finished with it, the client may accept nothing for at most
    /// `time`.
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

/// A tunnel over HTTP/2 whose frames are counted when they are read.
pub(super) struct Frames {
    pub(super) stream: TokioIo<hyper::upgrade::Upgraded>,
    /// Dropped at the end of the data.
    reader: Option<Reader>,
    /// A frame of which only a part was read.
    frame: Vec<u8>,
    read: usize,
}

impl Frames {
    pub(super) fn new(stream: hyper::upgrade::Upgraded, reader: Option<Reader>) -> Self {
        Self {
            stream: TokioIo::new(stream),
            reader,
            frame: Vec::new(),
            read: 0,
        }
    }

    /// Reads a frame into a buffer that has room for any frame.
    fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<usize>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        let len = buffer.filled().len() - before;
        if len == 0 {
            self.reader = None;
        }
        Poll::Ready(Ok(len))
    }

    fn on_taken(&self, len: usize) {
        if let Some(reader) = &self.reader {
            reader.on_taken(len as u64);
        }
    }
}

impl AsyncRead for Frames {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.frame.is_empty() && buffer.remaining() >= PART {
            let len = ready!(self.poll_frame(cx, buffer))?;
            self.on_taken(len);
            return Poll::Ready(Ok(()));
        }
        if self.frame.is_empty() {
            let mut room = [MaybeUninit::uninit(); PART];
            let mut frame = ReadBuf::uninit(&mut room);
            ready!(self.poll_frame(cx, &mut frame))?;
            (self.frame, self.read) = (frame.filled().to_vec(), 0);
        }
        let rest = self.frame.get(self.read..).unwrap_or_default();
        let len = rest.len().min(buffer.remaining());
        buffer.put_slice(rest.get(..len).unwrap_or_default());
        self.read += len;
        if self.read == self.frame.len() {
            self.on_taken(self.frame.len());
            self.frame = Vec::new();
        }
        Poll::Ready(Ok(()))
    }
}

impl Drop for Frames {
    /// Counts the data that is lost with the tunnel.
    fn drop(&mut self) {
        self.on_taken(self.frame.len());
        let mut cx = Context::from_waker(Waker::noop());
        let mut room = [MaybeUninit::uninit(); PART];
        while self.reader.is_some() {
            let polled = self.poll_frame(&mut cx, &mut ReadBuf::uninit(&mut room));
            let Poll::Ready(Ok(len)) = polled else {
                return;
            };
            self.on_taken(len);
        }
    }
}

//! Limits the time that a write over TCP may take, and closes connections without losing data.

use std::{
    io,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Waker, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, Interest, ReadBuf},
    net::TcpStream,
    runtime::Handle,
    sync::OwnedSemaphorePermit,
    time::{Instant, Sleep},
};
use tokio_rustls::server::TlsStream;

use super::lent::Buffered;
use crate::{
    limits::Patience,
    server::{
        connections::{Kind, Served},
        state::{Phase, Shared},
    },
};

/// Longest time to wait for the client's end.
const LINGER: Duration = Duration::from_secs(1);

/// A connection that is read to the client's end after this end was sent. The system answers unread data
/// with a reset, and then the client loses what it has not read yet (RFC 9112 §9.6).
pub(in crate::server::tcp) struct Lingering {
    /// Taken when this is dropped.
    stream: Option<TlsStream<TcpStream>>,
    place: Option<Place>,
    ended: Ended,
    stall: Stall,
}

/// The place of a connection among those that are served.
#[expect(dead_code, reason = "both count until they are dropped")]
pub(in crate::server::tcp) struct Place {
    pub(in crate::server::tcp) shared: Arc<Shared>,
    /// Counts until the last clone is dropped.
    pub(in crate::server::tcp) served: Arc<Served>,
    /// Counts for the limit.
    pub(in crate::server::tcp) permit: OwnedSemaphorePermit,
}

/// Limits the time in which the client accepts no written data.
struct Stall {
    /// Created when the client first accepts nothing.
    timer: Option<Pin<Box<Sleep>>>,
    state: Taking,
    patience: Arc<Patience>,
}

/// State of the client, as the last write found it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Taking {
    Something,
    /// Nothing: the timer runs since the exchange over HTTP/1.1 had made this progress.
    Nothing(u64),
}

impl Stall {
    /// Returns the outcome of a write. Fails if the client has accepted nothing for too long.
    fn check<T>(
        &mut self,
        written: Poll<io::Result<T>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.state = Taking::Something;
            return written;
        }
        let Some(time) = self.patience.time() else {
            return Poll::Pending;
        };
        let timer = &mut self.timer;
        let timer = timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(time)));
        let nothing = Taking::Nothing(self.patience.progress());
        if self.state != nothing {
            self.state = nothing;
            timer.as_mut().reset(Instant::now() + time);
        }
        ready!(timer.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

/// Ends that were seen.
#[derive(Clone, Copy, Default)]
struct Ended {
    here: bool,
    there: bool,
}

impl Lingering {
    pub(in crate::server::tcp) fn new(
        stream: TlsStream<TcpStream>,
        place: Place,
        patience: Arc<Patience>,
    ) -> Self {
        Self {
            stream: Some(stream),
            place: Some(place),
            ended: Ended::default(),
            stall: Stall {
                timer: None,
                state: Taking::Something,
                patience,
            },
        }
    }

    fn stream(&mut self) -> io::Result<Pin<&mut TlsStream<TcpStream>>> {
        let stream = self.stream.as_mut().map(Pin::new);
        stream.ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
}

impl Buffered for Lingering {
    fn has_unsent(&self) -> bool {
        let stream = self.stream.as_ref();
        stream.is_some_and(|stream| stream.get_ref().1.wants_write())
    }

    fn is_gone(&self) -> bool {
        let stream = self.stream.as_ref();
        stream.is_some_and(|stream| {
            let readable = pin!(stream.get_ref().0.ready(Interest::READABLE));
            let mut cx = Context::from_waker(Waker::noop());
            // Whoever reads or writes next finds an error.
            matches!(readable.poll(&mut cx), Poll::Ready(Ok(ready)) if ready.is_read_closed())
        })
    }
}

impl AsyncRead for Lingering {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(self.stream()?.poll_read(cx, buffer))?;
        self.ended.there |= buffer.filled().len() == before && buffer.remaining() > 0;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Lingering {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = self.stream()?.poll_write(cx, data);
        self.stall.check(written, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = self.stream()?.poll_write_vectored(cx, data);
        self.stall.check(written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream
            .as_ref()
            .is_some_and(AsyncWrite::is_write_vectored)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = self.stream()?.poll_flush(cx);
        self.stall.check(flushed, cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.ended.here = true;
        let shut = self.stream()?.poll_shutdown(cx);
        self.stall.check(shut, cx)
    }
}

impl Drop for Lingering {
    fn drop(&mut self) {
        let Some(stream) = self.stream.take() else {
            return;
        };
        let place = self.place.take();
        if let (
            Ended {
                here: true,
                there: false,
            },
            Ok(runtime),
        ) = (self.ended, Handle::try_current())
        {
            let lingering = place.as_ref().map(|place| {
                let connections = &place.shared.connections;
                connections.count_one(Kind::Lingering)
            });
            runtime.spawn(Box::pin(async move {
                let _lingering = lingering;
                let (mut tcp, _) = stream.into_inner();
                let read = async {
                    let mut buffer = [0; 1024];
                    while tcp.read(&mut buffer).await.is_ok_and(|len| len > 0) {}
                };
                let closing = async {
                    match &place {
                        Some(place) => place.shared.phase(Phase::Closing).await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    _ = tokio::time::timeout(LINGER, read) => {}
                    () = closing => {}
                }
                drop(tcp);
                drop(place);
            }));
        }
    }
}

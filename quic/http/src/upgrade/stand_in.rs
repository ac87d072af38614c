//! hyper's `OnUpgrade` for streams that are not hyper's.
//!
//! Only a connection of hyper makes an `OnUpgrade`. A stand-in is such a connection: it reads a request from memory, and
//! when the service agrees, its response, which nobody reads, hands over a line that leads to the stream.

use std::{
    convert::Infallible,
    future::poll_fn,
    io,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker, ready},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Empty;
use hyper::{body::Incoming, server::conn::http1, service::service_fn, upgrade::OnUpgrade};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf},
    sync::oneshot,
};

use super::Upgraded;

/// Bytes that a stand-in takes: hyper's buffers in both directions, and its state.
pub(crate) const STAND_IN: u64 = 19 << 10;

/// The request that hyper reads.
const REQUEST: &[u8] = b"CONNECT a:1 HTTP/1.1\r\nhost: a\r\n\r\n";

/// End of the response's head.
const END: &[u8] = b"\r\n\r\n";

/// A connection of hyper whose upgrade is pending. Dropping it refuses the upgrade.
pub(crate) struct StandIn {
    connection: Pin<Box<dyn Future<Output = ()> + Send>>,
    is_agreed: Arc<AtomicBool>,
    line: HandOver,
}

/// A line that a service holds, or will hold.
pub(crate) struct HandOver {
    give: oneshot::Sender<Upgraded>,
    back: oneshot::Receiver<Upgraded>,
}

/// The service's end: the stream, once it is there.
struct Line {
    /// The part of the request that hyper has not read.
    request: &'static [u8],
    /// Bytes of [`END`] that were written last.
    ended: usize,
    given: oneshot::Receiver<Upgraded>,
    stream: Option<Upgraded>,
    back: Option<oneshot::Sender<Upgraded>>,
}

impl StandIn {
    /// Returns a stand-in and its `OnUpgrade`.
    pub(crate) fn new() -> Option<(Self, OnUpgrade)> {
        let (give, given) = oneshot::channel();
        let (tell, back) = oneshot::channel();
        let line = Line {
            request: REQUEST,
            ended: 0,
            given,
            stream: None,
            back: Some(tell),
        };
        let pending = Arc::new(Mutex::new(None));
        let is_agreed = Arc::new(AtomicBool::new(false));
        let (found, agreed) = (pending.clone(), is_agreed.clone());
        let service = service_fn(move |request: Request<Incoming>| {
            let upgrade = hyper::upgrade::on(request);
            *found.lock().unwrap_or_else(PoisonError::into_inner) = Some(upgrade);
            let agreed = agreed.clone();
            // Whoever agrees polls the connection.
            poll_fn(move |_| {
                if agreed.load(Ordering::Acquire) {
                    Poll::Ready(Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new())))
                } else {
                    Poll::Pending
                }
            })
        });
        let connection = http1::Builder::new().serve_connection(TokioIo::new(line), service);
        let connection = connection.with_upgrades();
        let mut connection: Pin<Box<dyn Future<Output = ()> + Send>> =
            Box::pin(async move { drop(connection.await) });
        let mut cx = Context::from_waker(Waker::noop());
        // The request is there at once.
        let polled = connection.as_mut().poll(&mut cx);
        let mut pending = pending.lock().unwrap_or_else(PoisonError::into_inner);
        let pending = pending.take().filter(|_| polled.is_pending())?;
        let stand_in = Self {
            connection,
            is_agreed,
            line: HandOver { give, back },
        };
        Some((stand_in, pending))
    }

    /// Completes the `OnUpgrade`. Returns `None` if the service has dropped it.
    pub(crate) async fn agree(self) -> Option<HandOver> {
        self.is_agreed.store(true, Ordering::Release);
        self.connection.await;
        Some(self.line).filter(|line| !line.give.is_closed())
    }
}

impl HandOver {
    /// Passes the stream to the service, waits until the service drops it, and ends it in order, as hyper does over
    /// HTTP/2. That takes at most `time`.
    pub(crate) async fn serve(self, stream: Upgraded, time: Duration) {
        let stream = match self.give.send(stream) {
            Ok(()) => self.back.await.ok(),
            Err(stream) => Some(stream),
        };
        if let Some(mut stream) = stream {
            // Whoever could learn of an error has gone.
            let _ = tokio::time::timeout(time, stream.shutdown()).await;
        }
    }
}

impl Line {
    fn poll_stream(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Pin<&mut Upgraded>>> {
        if self.stream.is_none() {
            let given = ready!(Pin::new(&mut self.given).poll(cx));
            self.stream = given.ok();
        }
        let none = "the request was cancelled before the stream was there";
        let stream = self.stream.as_mut().map(Pin::new);
        Poll::Ready(stream.ok_or_else(|| io::Error::new(io::ErrorKind::ConnectionAborted, none)))
    }

    /// Drops a part of the response's head. Returns its length.
    fn drop_head(&mut self, data: &[u8]) -> usize {
        let mut dropped = 0;
        for &byte in data {
            dropped += 1;
            self.ended = match END.get(self.ended) {
                Some(&expected) if expected == byte => self.ended + 1,
                _ => usize::from(byte == b'\r'),
            };
            if self.ended == END.len() {
                break;
            }
        }
        dropped
    }
}

impl AsyncRead for Line {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.request.is_empty() {
            let len = self.request.len().min(buffer.remaining());
            let (part, rest) = self.request.split_at(len);
            buffer.put_slice(part);
            self.request = rest;
            return Poll::Ready(Ok(()));
        }
        ready!(self.poll_stream(cx))?.poll_read(cx, buffer)
    }
}

impl AsyncWrite for Line {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.ended < END.len() {
            return Poll::Ready(Ok(self.drop_head(data)));
        }
        ready!(self.poll_stream(cx))?.poll_write(cx, data)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Some(stream) => Pin::new(stream).poll_flush(cx),
            None => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_stream(cx))?.poll_shutdown(cx)
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        // It may just have come.
        let stream = self.stream.take().or_else(|| self.given.try_recv().ok());
        if let Some((back, stream)) = self.back.take().zip(stream) {
            // If nobody waits any more, the server has ended.
            let _ = back.send(stream);
        }
    }
}

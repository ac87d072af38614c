//! The connection itself: its critical streams, and what its messages share.

use std::{
    future::poll_fn,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream::FuturesUnordered, task::AtomicWaker};
use hybriq::{ReadError, RecvStream, SendStream, StreamId};
use hybriq_h3::core::{
    Code, Config, Connection, Critical, Event, Scope, Uni, UniReceiver, Violation,
};

use super::{StreamError, Transport};

/// Largest part of a critical stream that is read at once, in bytes.
const PART: usize = 4 << 10;

/// Bytes that may wait to be sent on a critical stream. A peer that gives no credit for more while it causes more
/// is closed.
const MOST_UNSENT: usize = 64 << 10;

/// Our critical streams: entries of the table go first, because others wait for them.
const CRITICAL: [Critical; 3] = [Critical::Encoder, Critical::Control, Critical::Decoder];

/// A connection of HTTP/3, which its messages share.
pub(crate) struct Link {
    pub(super) transport: Transport,
    core: Mutex<Core>,
    /// The task that drives the connection.
    driver: AtomicWaker,
}

/// State of a connection.
pub(crate) struct Core {
    pub(super) http3: Connection,
    /// Our critical streams, in the order of [`CRITICAL`], with what waits to be sent on them.
    streams: [Option<SendStream>; 3],
    unsent: [Bytes; 3],
    /// Messages that wait for entries of the dynamic table.
    blocked: Vec<(StreamId, Waker)>,
}

impl Link {
    /// Begins HTTP/3 on a connection, once the peer allows the streams that it needs. [`drive`](Self::drive) makes it
    /// go on.
    ///
    /// # Errors
    /// The connection is over.
    pub(crate) async fn begin(
        transport: Transport,
        config: Config,
    ) -> Result<Arc<Self>, StreamError> {
        let http3 = Connection::new(transport.side(), config);
        let link = Self {
            transport,
            core: Mutex::new(Core {
                http3,
                streams: Default::default(),
                unsent: Default::default(),
                blocked: Vec::new(),
            }),
            driver: AtomicWaker::new(),
        };
        link.open().await?;
        Ok(Arc::new(link))
    }

    pub(super) fn core(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the connection.
    pub(crate) fn close(&self, code: Code, reason: &str) {
        self.transport.close(code, reason.as_bytes());
    }

    /// Returns true if the peer takes no more requests, by its GOAWAY (RFC 9114 §5.2).
    pub(crate) fn is_going_away(&self) -> bool {
        // The largest id of a request.
        self.is_refused(StreamId((1 << 62) - 4))
    }

    /// Returns true if the server does not process the request on this stream.
    pub(crate) fn is_refused(&self, stream: StreamId) -> bool {
        self.core().http3.is_refused(stream)
    }

    /// Drives the connection until it is over, and returns the reason.
    pub(crate) async fn drive(&self) -> StreamError {
        match self.run().await {
            Ok(never) => match never {},
            Err(StreamError::Violation(violation)) => {
                self.close(violation.code(), &violation.to_string());
                violation.into()
            }
            Err(error) => error,
        }
    }

    async fn run(&self) -> Result<std::convert::Infallible, StreamError> {
        let mut streams = FuturesUnordered::new();
        loop {
            tokio::select! {
                accepted = self.transport.accept_uni() => streams.push(self.read(accepted?)),
                Some(read) = streams.next() => read?,
                accepted = self.transport.accept_bidi() => {
                    accepted?;
                    // WebTransport has a connection of its own.
                    return Err(Violation::StreamOfServer.into());
                }
                error = poll_fn(|cx| self.poll_flush(cx)) => return Err(error),
            }
        }
    }

    /// Opens our critical streams.
    async fn open(&self) -> Result<(), StreamError> {
        for index in 0..CRITICAL.len() {
            let stream = self.transport.open_uni().await?;
            let mut core = self.core();
            if let Some(place) = core.streams.get_mut(index) {
                *place = Some(stream);
            }
            core.flush(&self.driver)?;
        }
        Ok(())
    }

    /// Sends what waits, whenever there is something.
    fn poll_flush(&self, cx: &mut Context<'_>) -> Poll<StreamError> {
        self.driver.register(cx.waker());
        match self.core().poll_flush(cx) {
            Ok(()) => Poll::Pending,
            Err(error) => Poll::Ready(error),
        }
    }

    /// Reads a unidirectional stream of the peer.
    async fn read(&self, mut stream: RecvStream) -> Result<(), Violation> {
        let mut uni = UniReceiver::new();
        loop {
            match stream.read_chunk(PART).await {
                Ok(Some(data)) => match self.on_uni(&mut uni, data)? {
                    Uni::Ignored(violation) => {
                        stream.stop(violation.code().0);
                        return Ok(());
                    }
                    _ => {}
                },
                Ok(None) | Err(ReadError::Reset(_)) => return uni.on_end(),
                // The connection is over.
                Err(_) => return Ok(()),
            }
        }
    }

    fn on_uni(&self, uni: &mut UniReceiver, data: Bytes) -> Result<Uni, Violation> {
        let mut core = self.core();
        if self.transport.has_datagrams() {
            core.http3.on_transport_datagrams();
        }
        let read = uni.on_data(data, &mut core.http3)?;
        let mut unblocked = Vec::new();
        while let Some(event) = core.http3.poll_event() {
            if let Event::Unblocked(stream) = event {
                let waiting = core.blocked.iter().position(|(id, _)| *id == stream);
                unblocked.extend(waiting.map(|index| core.blocked.swap_remove(index)));
            }
        }
        // The receipt of entries is told later, together with that of their sections.
        drop(core);
        for (_, waker) in unblocked {
            waker.wake();
        }
        Ok(read)
    }

    /// Does something with the state of the connection, and sends what follows from it. A violation that ends the
    /// connection closes it.
    pub(super) fn with<T>(
        &self,
        act: impl FnOnce(&mut Core) -> Result<T, StreamError>,
    ) -> Result<T, StreamError> {
        let mut core = self.core();
        let done = act(&mut core);
        let flushed = core.flush(&self.driver);
        drop(core);
        if let Err(StreamError::Violation(violation)) = &done {
            if violation.scope() == Scope::Connection {
                self.close(violation.code(), &violation.to_string());
            }
        }
        let done = done?;
        flushed.map(|()| done)
    }
}

impl Core {
    /// Wakes a message once its entries have arrived.
    pub(super) fn wait(&mut self, stream: StreamId, waker: &Waker) {
        self.forget(stream);
        self.blocked.push((stream, waker.clone()));
    }

    /// Forgets a message that waits.
    pub(super) fn forget(&mut self, stream: StreamId) {
        self.blocked.retain(|(waiting, _)| *waiting != stream);
    }

    /// Sends what can be sent at once, and leaves the rest to the driver.
    fn flush(&mut self, driver: &AtomicWaker) -> Result<(), StreamError> {
        if !self.http3.has_output() {
            return Ok(());
        }
        self.poll_flush(&mut Context::from_waker(Waker::noop()))?;
        if self.unsent.iter().any(|unsent| !unsent.is_empty()) {
            driver.wake();
        }
        Ok(())
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Result<(), StreamError> {
        let unsent = self.unsent.iter_mut();
        for ((unsent, stream), kind) in unsent.zip(&mut self.streams).zip(CRITICAL) {
            let Some(stream) = stream else {
                continue;
            };
            loop {
                if unsent.is_empty() {
                    *unsent = self.http3.take_output(kind);
                }
                if unsent.is_empty() {
                    break;
                }
                match stream.poll_write_chunk(cx, unsent) {
                    Poll::Ready(Ok(_)) => {}
                    Poll::Ready(Err(error)) => {
                        let error = StreamError::from(error);
                        // RFC 9114 §6.2.1: nobody may ask us to stop.
                        return Err(match error {
                            StreamError::Ended(_) => Violation::CriticalStreamClosed.into(),
                            error => error,
                        });
                    }
                    Poll::Pending => break,
                }
            }
        }
        if self.http3.unsent() > MOST_UNSENT {
            return Err(Violation::CriticalStreamUnread.into());
        }
        Ok(())
    }
}

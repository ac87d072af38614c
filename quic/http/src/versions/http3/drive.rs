//! What drives a connection: its critical streams, and the other streams that the peer opens.

use std::{
    convert::Infallible,
    future::poll_fn,
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use hybriq::{ReadError, RecvStream, SendStream, tls::Side};
use hybriq_h3::{Code, Event, Uni, UniReceiver, Violation};

use tokio::time::Sleep;

use super::{
    Link, StreamError,
    accept::{Few, Stream},
    link::CRITICAL,
};

/// Largest part of a critical stream that is read at once, in bytes.
const PART: usize = 4 << 10;

/// Time after which the peer learns what was received, if nothing is sent to it before.
const LATER: Duration = Duration::from_millis(25);

/// Bytes of a stream that are read before its type is known, at most.
const FIRST: usize = 16;

/// A critical stream of the peer (RFC 9114 §6.2).
struct CriticalStream(RecvStream, UniReceiver);

/// The end of the reading of a connection, and its reason.
struct Over<'l>(&'l Link, StreamError);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.on_over(self.1.clone());
    }
}

impl Link {
    /// Drives the connection until it is over, and returns the reason.
    pub(crate) async fn drive(&self) -> StreamError {
        let mut over = Over(self, StreamError::Closed);
        let Err(error) = self.run().await;
        if let StreamError::Violation(violation) = &error {
            self.close(violation.code(), &violation.to_string());
        }
        over.1 = error.clone();
        error
    }

    async fn run(&self) -> Result<Infallible, StreamError> {
        let mut opening = Few::new();
        let mut critical = Vec::new();
        let mut bidis = Few::new();
        let mut later = None;
        loop {
            // Streams without number do not keep other tasks waiting.
            tokio::task::consume_budget().await;
            tokio::select! {
                accepted = self.transport.accept_uni() => opening.push(self.sort(accepted?)),
                sorted = opening.next() => {
                    if let Some(stream) = sorted? {
                        critical.reserve_exact(1);
                        critical.push(stream);
                    }
                }
                error = poll_fn(|cx| self.poll_critical(&mut critical, cx)) => return Err(error.into()),
                sorted = bidis.next() => {
                    let other: Option<Stream> = sorted?;
                    if other.is_some() {
                        // Only sessions of WebTransport have these.
                        return Err(Violation::StreamOfServer.into());
                    }
                }
                accepted = self.accept_of_server() => {
                    let (send, recv) = accepted?;
                    bidis.push(Stream::new(send, recv).sort(self));
                }
                error = poll_fn(|cx| self.poll_flush(cx, &mut later)) => return Err(error),
            }
        }
    }

    /// Returns the next bidirectional stream of a server. Those of a client are requests.
    async fn accept_of_server(&self) -> Result<(SendStream, RecvStream), StreamError> {
        match self.transport.side() {
            // Boxed, because servers have no use for its memory.
            Side::Client => Box::pin(self.transport.accept_bidi()).await,
            Side::Server => std::future::pending().await,
        }
    }

    /// Opens our critical streams, once the peer allows them.
    ///
    /// # Errors
    /// The connection is over.
    pub(crate) async fn open(&self) -> Result<(), StreamError> {
        for index in 0..CRITICAL.len() {
            let stream = self.transport.open_uni().await?;
            let mut core = self.core();
            if let Some(place) = core.streams.get_mut(index) {
                *place = Some(stream);
            }
            core.flush(&self.driver)?;
        }
        self.open_reserved();
        Ok(())
    }

    /// Sends a stream of a reserved type, if the peer allows one more at once.
    fn open_reserved(&self) {
        let Some(content) = self.core().http3.reserved_stream() else {
            return;
        };
        let mut cx = Context::from_waker(Waker::noop());
        let opened = pin!(self.transport.open_uni()).poll(&mut cx);
        if let Poll::Ready(Ok(mut stream)) = opened {
            let written = stream.poll_write_last(&mut cx, &content);
            if !matches!(written, Poll::Ready(Ok(len)) if len == content.len()) {
                // RFC 9114 §6.2.3.
                stream.reset(Code::H3_NO_ERROR.0);
            }
        }
    }

    /// Sends what waits, whenever there is something; what may wait, when its time is over.
    fn poll_flush(
        &self,
        cx: &mut Context<'_>,
        later: &mut Option<Pin<Box<Sleep>>>,
    ) -> Poll<StreamError> {
        self.driver.register(cx.waker());
        let mut core = self.core();
        if let Err(error) = core.poll_stopped(cx) {
            return Poll::Ready(error);
        }
        if core.is_later {
            let time = later.get_or_insert_with(|| Box::pin(tokio::time::sleep(LATER)));
            if time.as_mut().poll(cx).is_pending() && !core.is_unsent() {
                return Poll::Pending;
            }
            *later = None;
            core.is_later = false;
        }
        match core.poll_flush(cx) {
            Ok(()) => Poll::Pending,
            Err(error) => Poll::Ready(error),
        }
    }

    /// Reads the beginning of a unidirectional stream of the peer. Returns the stream if it is critical.
    async fn sort(&self, mut stream: RecvStream) -> Result<Option<CriticalStream>, Violation> {
        let mut uni = UniReceiver::new();
        let counted = self.counts.opening_uni();
        loop {
            // The end of a session's stream is left for the session.
            match poll_fn(|cx| stream.poll_read_start(cx, FIRST)).await {
                Ok(Some(data)) => match self.on_uni(&mut uni, data)? {
                    Uni::NeedData if uni.is_critical() => {
                        return Ok(Some(CriticalStream(stream, uni)));
                    }
                    Uni::NeedData => {}
                    Uni::Session(id, data) => {
                        drop(counted);
                        if let Some(sessions) = &self.sessions {
                            sessions.on_uni(id, stream, data);
                        }
                        return Ok(None);
                    }
                    Uni::Ignored(violation) => {
                        stream.stop(violation.code().0);
                        return Ok(None);
                    }
                    _ => return Ok(None),
                },
                // No error before its type.
                Ok(None) | Err(_) => return Ok(None),
            }
        }
    }

    /// Reads the critical streams of the peer.
    fn poll_critical(
        &self,
        critical: &mut [CriticalStream],
        cx: &mut Context<'_>,
    ) -> Poll<Violation> {
        for CriticalStream(stream, uni) in critical {
            let over = loop {
                match stream.poll_read_chunk(cx, PART) {
                    Poll::Ready(Ok(Some(data))) => match self.on_uni(uni, data) {
                        Ok(_) => {}
                        Err(violation) => break Err(violation),
                    },
                    Poll::Ready(Ok(None) | Err(ReadError::Reset(_))) => break uni.on_end(),
                    // What else ends a stream ends the connection, too.
                    Poll::Ready(Err(_)) | Poll::Pending => break Ok(()),
                }
            };
            if let Err(violation) = over {
                return Poll::Ready(violation);
            }
        }
        Poll::Pending
    }

    fn on_uni(&self, uni: &mut UniReceiver, data: Bytes) -> Result<Uni, Violation> {
        let mut core = self.core();
        if self.transport.has_datagrams() {
            core.http3.on_transport_datagrams();
        }
        let read = uni.on_data(data, &mut core.http3)?;
        let mut unblocked = Vec::new();
        while let Some(event) = core.http3.poll_event() {
            match event {
                Event::Unblocked(stream) => {
                    unblocked.extend(core.forget(stream));
                }
                Event::Settings => self.settings.notify_waiters(),
                Event::Goaway(_) => self.leaving.notify_waiters(),
                Event::Priority(stream, priority) => {
                    self.on_priority(&mut core, stream, priority)?;
                }
                _ => {}
            }
        }
        // The receipt of entries is told later, together with that of their sections.
        drop(core);
        for waker in unblocked {
            waker.wake();
        }
        Ok(read)
    }
}

//! The connection itself: its critical streams, and what its messages share.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use hybriq::{SendStream, StreamId, stats::Census};
use hybriq_h3::webtransport::{self, Sessions};
use hybriq_h3::{Code, Config, Connection, Critical, Scope, Settings, Violation};
use tokio::sync::Notify;

use super::{StreamError, Transport, counts::Counts};

/// Bytes that may wait to be sent on a critical stream. A peer that gives no credit for more while it causes more
/// is closed.
const MOST_UNSENT: usize = 64 << 10;

/// Our critical streams: entries of the table go first, because others wait for them.
pub(super) const CRITICAL: [Critical; 3] =
    [Critical::Encoder, Critical::Control, Critical::Decoder];

/// A connection of HTTP/3, which its messages share.
pub(crate) struct Link {
    pub(super) transport: Transport,
    core: Mutex<Core>,
    /// The task that drives the connection.
    pub(super) driver: AtomicWaker,
    pub(super) counts: Counts,
    /// Sessions of WebTransport, if they are allowed.
    pub(super) sessions: Option<Sessions>,
    /// Told when the settings of the peer arrive.
    pub(super) settings: Notify,
}

/// What one end allows on a connection.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) config: Config,
    pub(crate) sessions: Option<Sessions>,
}

impl Setup {
    /// Makes a setup for field sections of at most so many bytes (RFC 9114 §4.2.2).
    pub(crate) fn new(max_field_section: u64) -> Self {
        let mut settings = Settings::new();
        settings.max_field_section_size = Some(max_field_section);
        Self {
            config: Config::new(settings),
            sessions: None,
        }
    }

    /// Allows requests of extended CONNECT (RFC 9220), on a server.
    pub(crate) fn extended_connect(&mut self) {
        self.config.settings.enable_connect_protocol = true;
    }

    /// Allows sessions of WebTransport.
    pub(crate) fn webtransport(&mut self, limits: webtransport::Limits) {
        self.extended_connect();
        let settings = &mut self.config.settings;
        settings.h3_datagram = true;
        settings.others.push((webtransport::ENABLE, 1));
        let sessions = limits.sessions as u64;
        settings.others.push((webtransport::MAX_SESSIONS, sessions));
        self.sessions = Some(Sessions::new(limits));
    }
}

/// State of a connection.
pub(crate) struct Core {
    pub(super) http3: Connection,
    /// Our critical streams, in the order of [`CRITICAL`], with what waits to be sent on them.
    pub(super) streams: [Option<SendStream>; 3],
    unsent: [Bytes; 3],
    /// Messages that wait for entries of the dynamic table.
    pub(super) blocked: Vec<(StreamId, Waker)>,
}

impl Link {
    /// Begins HTTP/3 on a connection, once the peer allows the streams that it needs. [`drive`](Self::drive) makes it
    /// go on.
    ///
    /// # Errors
    /// The connection is over.
    pub(crate) async fn begin(
        transport: Transport,
        setup: Setup,
    ) -> Result<Arc<Self>, StreamError> {
        let link = Arc::new(Self::new(transport, setup));
        link.open().await?;
        Ok(link)
    }

    /// The same, before the streams that it needs are [open](Self::open).
    pub(crate) fn new(transport: Transport, setup: Setup) -> Self {
        let http3 = Connection::new(transport.side(), setup.config);
        Self {
            transport,
            core: Mutex::new(Core {
                http3,
                streams: Default::default(),
                unsent: Default::default(),
                blocked: Vec::new(),
            }),
            driver: AtomicWaker::new(),
            counts: Counts::default(),
            sessions: setup.sessions,
            settings: Notify::new(),
        }
    }

    pub(super) fn core(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the settings of the peer.
    pub(crate) async fn peer_settings(&self) -> Settings {
        loop {
            let arrived = self.settings.notified();
            if let Some(settings) = self.core().http3.peer_settings() {
                return settings.clone();
            }
            arrived.await;
        }
    }

    /// Says that requests from this stream on are not processed (RFC 9114 §5.2).
    ///
    /// # Errors
    /// The connection is over.
    pub(crate) fn go_away(&self, first: StreamId) -> Result<(), StreamError> {
        self.with(|core| {
            core.http3.go_away(first);
            Ok(())
        })
    }

    /// Returns the number of requests, since the last call, that turned out to be malformed behind their heads.
    pub(crate) fn take_broken(&self) -> u64 {
        self.counts.take_broken()
    }

    /// Counts what the connection holds besides its transport. All are 0 on a connection at rest.
    pub(crate) fn census(&self, census: &mut Census) {
        self.counts.census(census);
    }

    /// Returns the bytes of memory that the messages under way and the tables of QPACK hold.
    pub(crate) fn held(&self) -> usize {
        self.counts.held() + self.core().http3.memory()
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
        let done = done.and_then(|done| flushed.map(|()| done));
        if let Err(StreamError::Violation(violation)) = &done {
            if violation.scope() == Scope::Connection {
                self.close(violation.code(), &violation.to_string());
            }
        }
        done
    }
}

impl Core {
    /// Wakes a message once its entries have arrived. Returns the waker that it replaces.
    #[must_use = "a waker may run its own code when it is dropped: do so without the lock"]
    pub(super) fn wait(&mut self, stream: StreamId, waker: &Waker) -> Option<Waker> {
        let replaced = self.forget(stream);
        self.blocked.push((stream, waker.clone()));
        replaced
    }

    /// Forgets a message that waits, and returns its waker.
    #[must_use = "a waker may run its own code when it is dropped: do so without the lock"]
    pub(super) fn forget(&mut self, stream: StreamId) -> Option<Waker> {
        let index = self
            .blocked
            .iter()
            .position(|(waiting, _)| *waiting == stream)?;
        Some(self.blocked.swap_remove(index).1)
    }

    /// Sends what can be sent at once, and leaves the rest to the driver.
    pub(super) fn flush(&mut self, driver: &AtomicWaker) -> Result<(), StreamError> {
        if !self.http3.has_output() {
            return Ok(());
        }
        self.poll_flush(&mut Context::from_waker(Waker::noop()))?;
        if self.unsent.iter().any(|unsent| !unsent.is_empty()) {
            driver.wake();
        }
        Ok(())
    }

    pub(super) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Result<(), StreamError> {
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

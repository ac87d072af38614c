//! The connection itself: its critical streams, and what its messages share.

use std::{
    fmt,
    hash::{BuildHasher as _, RandomState},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use hybriq::{RecvStream, SendStream, StreamId, stats::Census};
use hybriq_h3::{
    Code, Config, Connection, Critical, Inserted, Priority, Scope, Settings, Violation,
};
use tokio::sync::Notify;

use super::{StreamError, Transport, counts::Counts, priorities::Priorities};

/// Bytes that may wait to be sent on a critical stream. A peer that gives no credit for more while it causes more
/// is closed.
const MOST_UNSENT: usize = 64 << 10;

/// Messages that may wait for entries of the dynamic table at once.
const BLOCKED_STREAMS: u64 = 16;

/// Our critical streams: entries of the table go first, because others wait for them.
pub(super) const CRITICAL: [Critical; 3] =
    [Critical::Encoder, Critical::Control, Critical::Decoder];

/// Bytes that may wait for the next message, or for the driver, because nobody waits for them: they say what was
/// received.
const MOST_LATER: usize = 64;

/// A connection of HTTP/3, which its messages share.
pub(crate) struct Link {
    pub(super) transport: Transport,
    core: Mutex<Core>,
    /// The task that drives the connection.
    pub(super) driver: AtomicWaker,
    pub(super) counts: Counts,
    /// Takes the streams of sessions, if there are any.
    pub(super) sessions: Option<Arc<dyn TakesStreams>>,
    /// Told when the settings of the peer arrive.
    pub(super) settings: Notify,
    /// Told when the peer takes fewer requests than before.
    pub(super) leaving: Notify,
}

/// Takes the streams of the peer that belong to a session, behind the id of that, with the data that arrived with it.
pub(crate) trait TakesStreams: fmt::Debug + Send + Sync {
    /// Takes a bidirectional stream.
    fn on_bidi(&self, session: StreamId, send: SendStream, recv: RecvStream, data: Bytes);

    /// Takes a unidirectional stream.
    fn on_uni(&self, session: StreamId, recv: RecvStream, data: Bytes);

    /// Returns the time in which the first bytes of a bidirectional stream have to arrive.
    fn header_time(&self) -> Duration;
}

/// What one end allows on a connection.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) config: Config,
    /// Takes the streams of sessions, if there are any.
    pub(crate) streams: Option<Arc<dyn TakesStreams>>,
}

impl Setup {
    /// Makes a setup for field sections of at most this many bytes (RFC 9114 §4.2.2), with reserved values.
    pub(crate) fn new(max_field_section: u64) -> Self {
        let mut settings = Settings::new();
        settings.max_field_section_size = Some(max_field_section);
        let mut config = Config::new(settings);
        // These hide nothing. The keys differ from connection to connection.
        config.grease = Some(RandomState::new().hash_one(0));
        Self {
            config,
            streams: None,
        }
    }

    /// Sends reserved values, or none.
    pub(crate) fn reserved(&mut self, reserved: Reserved) {
        if reserved == Reserved::None {
            self.config.grease = None;
        }
    }

    /// Allows dynamic tables of this capacity, in bytes, in both directions.
    pub(crate) fn tables(&mut self, capacity: u64) {
        let settings = &mut self.config.settings;
        settings.qpack_max_table_capacity = capacity;
        settings.qpack_blocked_streams = if capacity > 0 { BLOCKED_STREAMS } else { 0 };
        self.config.encoder_table = capacity as usize;
    }

    /// Allows requests of extended CONNECT (RFC 9220), on a server.
    pub(crate) fn extended_connect(&mut self) {
        self.config.settings.enable_connect_protocol = true;
    }
}

/// Whether values are sent that mean nothing, which keep peers used to what they do not know (RFC 9114 §7.2.8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Reserved {
    #[default]
    Sent,
    None,
}

/// State of a connection.
pub(crate) struct Core {
    pub(super) http3: Connection,
    /// Our critical streams, in the order of [`CRITICAL`], with what waits to be sent on them.
    pub(super) streams: [Option<SendStream>; 3],
    unsent: [Bytes; 3],
    /// Messages that wait for entries of the dynamic table.
    pub(super) blocked: Vec<(StreamId, Waker)>,
    pub(super) priorities: Priorities,
    /// Reason why nothing of the connection is read any longer.
    pub(super) over: Option<StreamError>,
    /// True if the driver sends what waits after a while, unless a message takes it along before.
    pub(super) is_later: bool,
}

impl Link {
    /// Begins HTTP/3 on a connection, once the peer allows the streams that it needs. [`drive`](Self::drive) then
    /// drives it.
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
                priorities: Priorities::default(),
                over: None,
                is_later: false,
            }),
            driver: AtomicWaker::new(),
            counts: Counts::default(),
            sessions: setup.streams,
            settings: Notify::new(),
            leaving: Notify::new(),
        }
    }

    pub(super) fn core(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the settings of the peer.
    pub(crate) async fn peer_settings(&self) -> Settings {
        loop {
            let arrived = self.settings.notified();
            let settings = {
                let http3 = &self.core().http3;
                let settings = http3.peer_settings().cloned();
                settings.filter(|_| http3.has_peer_settings())
            };
            if let Some(settings) = settings {
                return settings;
            }
            arrived.await;
        }
    }

    /// Returns true if the peer takes HTTP Datagrams, by settings that have arrived (RFC 9297 §2.1.1).
    pub(crate) fn takes_datagrams(&self) -> bool {
        let core = self.core();
        let settings = core.http3.peer_settings();
        settings.is_some_and(|settings| settings.h3_datagram)
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

    /// Returns the bytes of memory that the messages in progress and the tables of QPACK hold.
    pub(crate) fn held(&self) -> usize {
        self.counts.held() + self.core().http3.memory()
    }

    /// Returns the number of entries that were inserted into the dynamic tables.
    pub(crate) fn inserted(&self) -> Inserted {
        self.core().http3.inserted()
    }

    /// Sets the priority of a response to a request with this one in its fields. That of an earlier PRIORITY_UPDATE goes
    /// before it (RFC 9218 §7). Returns the one that holds.
    pub(crate) fn begin_priority(
        &self,
        stream: StreamId,
        of_fields: Option<Priority>,
    ) -> Option<Priority> {
        let updated = self.core().priorities.begin(stream);
        let priority = updated.or(of_fields);
        if let Some(priority) = priority {
            self.set_priority(stream, priority);
        }
        priority
    }

    /// Returns the priority of a PRIORITY_UPDATE that arrived since the request was read, if it is remembered.
    pub(crate) fn updated_priority(&self, stream: StreamId) -> Option<Priority> {
        self.core().priorities.updated(stream)
    }

    /// Sets the priority of a response.
    pub(crate) fn set_priority(&self, stream: StreamId, priority: Priority) {
        self.transport.set_priority(stream, priority);
    }

    /// Takes a PRIORITY_UPDATE.
    pub(super) fn on_priority(
        &self,
        core: &mut Core,
        stream: StreamId,
        priority: Priority,
    ) -> Result<(), Violation> {
        if !self.transport.may_peer_open(stream) {
            return Err(Violation::PriorityBeyondLimit);
        }
        core.priorities.set(stream, priority);
        self.set_priority(stream, priority);
        Ok(())
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

    /// Waits until it is clear that the server does not process the request on this stream: it says so once, and need not
    /// reset the stream (RFC 9114 §5.2).
    pub(crate) async fn refused(&self, stream: StreamId) {
        loop {
            let changed = self.leaving.notified();
            if self.is_refused(stream) {
                return;
            }
            changed.await;
        }
    }

    /// Ends the messages that wait for entries of the dynamic table, because none will come.
    pub(super) fn on_over(&self, error: StreamError) {
        let mut core = self.core();
        core.over.get_or_insert(error);
        let blocked = std::mem::take(&mut core.blocked);
        drop(core);
        for (_, waker) in blocked {
            waker.wake();
        }
    }

    /// Does something with the state of the connection, and sends what follows from it. A violation that ends the
    /// connection closes it.
    pub(super) fn with<T>(
        &self,
        act: impl FnOnce(&mut Core) -> Result<T, StreamError>,
    ) -> Result<T, StreamError> {
        self.act(act, Core::flush)
    }

    /// The same for what this end receives: what follows from it may be sent later, together with something else.
    pub(super) fn receive<T>(
        &self,
        act: impl FnOnce(&mut Core) -> Result<T, StreamError>,
    ) -> Result<T, StreamError> {
        self.act(act, Core::flush_later)
    }

    fn act<T>(
        &self,
        act: impl FnOnce(&mut Core) -> Result<T, StreamError>,
        flush: impl FnOnce(&mut Core, &AtomicWaker) -> Result<(), StreamError>,
    ) -> Result<T, StreamError> {
        let mut core = self.core();
        let done = act(&mut core);
        let flushed = flush(&mut core, &self.driver);
        drop(core);
        let done = done.and_then(|done| flushed.map(|()| done));
        if let Err(error) = &done {
            self.on_error(error);
        }
        done
    }

    /// Closes the connection if the error ends it.
    pub(super) fn on_error(&self, error: &StreamError) {
        if let StreamError::Violation(violation) = error {
            if violation.scope() == Scope::Connection {
                self.close(violation.code(), &violation.to_string());
            }
        }
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
        if self.is_unsent() {
            driver.wake();
        }
        Ok(())
    }

    /// The same after a while, unless there is much.
    pub(super) fn flush_later(&mut self, driver: &AtomicWaker) -> Result<(), StreamError> {
        if self.http3.unsent() > MOST_LATER {
            return self.flush(driver);
        }
        if self.http3.has_output() && !std::mem::replace(&mut self.is_later, true) {
            driver.wake();
        }
        Ok(())
    }

    /// Returns true if a critical stream takes no more.
    pub(super) fn is_unsent(&self) -> bool {
        self.unsent.iter().any(|unsent| !unsent.is_empty())
    }

    /// Returns an error once the peer has stopped a critical stream (RFC 9114 §6.2.1): nobody may ask for that.
    pub(super) fn poll_stopped(&mut self, cx: &mut Context<'_>) -> Result<(), StreamError> {
        for stream in self.streams.iter_mut().flatten() {
            if let Poll::Ready(stopped) = stream.poll_stopped(cx) {
                stopped?;
                return Err(Violation::CriticalStreamClosed.into());
            }
        }
        Ok(())
    }

    pub(super) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Result<(), StreamError> {
        if !self.http3.has_output() && !self.is_unsent() {
            return Ok(());
        }
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
                        return Err(match StreamError::from(error) {
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

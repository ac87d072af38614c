//! Flow control of a session, and the capsules that it sends and receives.

use std::{
    collections::HashMap,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use hybriq::{
    Connection, Direction, StreamId,
    transport::{Tallied, Tally},
};
use hybriq_h3::{
    Violation,
    webtransport::{Event, Session, Terms},
};
use tokio::sync::Notify;

/// Account of a session: what its streams use, and what is told to the peer about it.
///
/// The transport calls it while the connection is locked: nothing here calls the connection, or wakes other tasks than
/// the one that drives the session, while it is locked itself.
#[derive(Debug)]
pub(in crate::webtransport) struct Account {
    inner: Mutex<Inner>,
    /// Told when there is something to send.
    output: Notify,
    /// Told when there is credit to share, or a fault.
    news: Notify,
    /// Told when there may be credit for streams.
    credit: Notify,
}

#[derive(Debug)]
struct Inner {
    session: Session,
    fault: Option<Violation>,
    /// Writers that wait for credit.
    writers: HashMap<StreamId, Waker>,
    is_over: bool,
}

/// Count of one stream of a session with flow control.
#[derive(Debug)]
pub(in crate::webtransport) struct Counter {
    account: Arc<Account>,
    /// Bytes before the data that this end sends.
    header: u64,
    sent: Mutex<Sent>,
    /// Direction of a stream of the peer, which may open another one once this is over.
    of_peer: Option<Direction>,
}

#[derive(Debug, Default)]
struct Sent {
    written: u64,
    /// Bytes of data that the peer knows of, once the sending half is over.
    known: Option<u64>,
}

/// A stream that may be opened, and is given back if it is not.
pub(in crate::webtransport) struct Place<'a> {
    account: &'a Account,
    direction: Direction,
    is_used: bool,
}

impl Account {
    pub(super) fn new(terms: Terms) -> Self {
        Self {
            inner: Mutex::new(Inner {
                session: Session::new(terms),
                fault: None,
                writers: HashMap::new(),
                is_over: false,
            }),
            output: Notify::new(),
            news: Notify::new(),
            credit: Notify::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with the session, and tells the task that drives it what follows.
    pub(in crate::webtransport) fn with<T>(&self, act: impl FnOnce(&mut Session) -> T) -> T {
        let mut inner = self.lock();
        let done = act(&mut inner.session);
        if inner.session.has_output() {
            self.output.notify_one();
        }
        if inner.session.has_credit() {
            self.news.notify_one();
        }
        done
    }

    fn check(&self, act: impl FnOnce(&mut Session) -> Result<(), Violation>) {
        if let Err(violation) = self.with(act) {
            self.lock().fault.get_or_insert(violation);
            self.news.notify_one();
        }
    }

    /// Takes content of the request's stream, or its end. Returns the events.
    pub(in crate::webtransport) fn on_data(
        &self,
        data: Option<Bytes>,
    ) -> Result<Vec<Event>, Violation> {
        self.with(|session| {
            match data {
                Some(data) => session.on_data(data)?,
                None => session.on_fin()?,
            }
            // At most one of each.
            let events = std::iter::from_fn(|| session.poll_event());
            Ok(events.collect())
        })
    }

    /// Waits for something to send. The second is true for what is last.
    pub(in crate::webtransport) async fn output(&self) -> (Bytes, bool) {
        loop {
            let output = self.with(|session| (session.take_output(), session.is_closing()));
            if !output.0.is_empty() {
                return output;
            }
            self.output.notified().await;
        }
    }

    /// Shares new credit, until the peer breaks a rule.
    pub(in crate::webtransport) async fn watch(&self) -> Violation {
        loop {
            let fault = self.lock().fault.take();
            if let Some(fault) = fault {
                return fault;
            }
            if self.with(Session::take_credit) {
                self.share();
            }
            self.news.notified().await;
        }
    }

    /// Wakes everybody who waits for credit.
    pub(in crate::webtransport) fn share(&self) {
        let writers = std::mem::take(&mut self.lock().writers);
        writers.into_values().for_each(Waker::wake);
        self.credit.notify_waiters();
    }

    /// Wakes all waiting tasks: the transport tells them that the session is over.
    pub(super) fn end(&self) {
        self.lock().is_over = true;
        self.share();
    }

    /// Waits until the peer allows another stream.
    pub(in crate::webtransport) async fn place(&self, direction: Direction) -> Place<'_> {
        loop {
            let mut more = pin!(self.credit.notified());
            more.as_mut().enable();
            if self.with(|session| session.take_stream(direction)) {
                return Place {
                    account: self,
                    direction,
                    is_used: false,
                };
            }
            more.await;
        }
    }

    /// Counts a stream of this end, with this many bytes before its data; `None` without flow control.
    pub(in crate::webtransport) fn count(
        self: &Arc<Self>,
        connection: &Connection,
        stream: StreamId,
        header: u64,
    ) -> Option<Arc<Counter>> {
        let (counter, _) = self.tally(connection, stream, header, None)?;
        Some(counter)
    }

    /// Counts a stream of the peer, of which this many bytes of data were read; `None` without flow control.
    pub(super) fn count_of_peer(
        self: &Arc<Self>,
        connection: &Connection,
        stream: StreamId,
        read: usize,
    ) -> Option<Arc<Counter>> {
        let direction = stream.direction();
        let (counter, so_far) = self.tally(connection, stream, 0, Some(direction))?;
        self.check(|session| {
            session.on_stream(direction)?;
            let header = so_far.consumed.saturating_sub(read as u64);
            session.on_received(so_far.received.saturating_sub(header))
        });
        Some(counter)
    }

    fn tally(
        self: &Arc<Self>,
        connection: &Connection,
        stream: StreamId,
        header: u64,
        of_peer: Option<Direction>,
    ) -> Option<(Arc<Counter>, Tallied)> {
        if !self.lock().session.has_flow_control() {
            return None;
        }
        let counter = Arc::new(Counter {
            account: self.clone(),
            header,
            sent: Mutex::default(),
            of_peer,
        });
        let tally: Arc<dyn Tally> = counter.clone();
        let so_far = connection.tally_stream(stream, &tally);
        Some((counter, so_far.unwrap_or_default()))
    }

    /// Returns the bytes of memory that are held.
    pub(super) fn held(&self) -> usize {
        let inner = self.lock();
        inner.session.held() + inner.writers.len() * size_of::<(StreamId, Waker)>()
    }
}

impl Counter {
    /// Takes up to `most` bytes off those that the peer allows. Pending while there are none.
    pub(in crate::webtransport) fn poll_take(
        &self,
        stream: StreamId,
        most: usize,
        cx: &Context<'_>,
    ) -> Poll<usize> {
        let taken = self.account.with(|session| session.take_data(most as u64));
        if taken > 0 || most == 0 {
            return Poll::Ready(usize::try_from(taken).unwrap_or(most));
        }
        let mut inner = self.account.lock();
        if inner.is_over {
            // The write finds out.
            return Poll::Ready(most);
        }
        let replaced = inner.writers.insert(stream, cx.waker().clone());
        // Credit that came meanwhile was shared without this writer.
        let taken = inner.session.take_data(most as u64);
        drop(inner);
        drop(replaced);
        if taken > 0 {
            return Poll::Ready(usize::try_from(taken).unwrap_or(most));
        }
        Poll::Pending
    }

    /// Notes how many of the bytes that were taken were written.
    pub(in crate::webtransport) fn on_written(&self, taken: usize, written: usize) {
        let mut unused = taken.saturating_sub(written) as u64;
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        let before = sent.unsent();
        sent.written += written as u64;
        unused += sent.unsent() - before;
        drop(sent);
        self.account.with(|session| session.give_back_data(unused));
    }

    /// Forgets a writer that waits for credit.
    pub(in crate::webtransport) fn forget_writer(&self, stream: StreamId) {
        let waker = self.account.lock().writers.remove(&stream);
        drop(waker);
    }

    /// Notes that data was read that had come with the header, or that it is not needed.
    pub(in crate::webtransport) fn on_consumed(&self, bytes: usize) {
        self.account
            .with(|session| session.on_consumed(bytes as u64));
    }
}

impl Sent {
    /// Returns the bytes that were written and that the peer will never know of.
    fn unsent(&self) -> u64 {
        let unsent = |known| self.written.saturating_sub(known);
        self.known.map_or(0, unsent)
    }
}

impl Tally for Counter {
    fn on_received(&self, received: u64, consumed: u64) {
        self.account.check(|session| {
            let kept = session.on_received(received);
            session.on_consumed(consumed);
            kept
        });
    }

    fn on_sent(&self, final_size: u64) {
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        sent.known = Some(final_size.saturating_sub(self.header));
        let unsent = sent.unsent();
        drop(sent);
        self.account.with(|session| session.give_back_data(unsent));
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        if let Some(direction) = self.of_peer {
            self.account
                .with(|session| session.on_stream_over(direction));
        }
    }
}

impl Place<'_> {
    /// Notes that the stream was opened.
    pub(in crate::webtransport) fn take(mut self) {
        self.is_used = true;
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if !self.is_used {
            let direction = self.direction;
            self.account
                .with(|session| session.give_back_stream(direction));
        }
    }
}

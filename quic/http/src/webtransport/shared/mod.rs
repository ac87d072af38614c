//! State that a session, its streams and its connection share.

mod account;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use hybriq::{Connection, StreamId, stats::Census};
use hybriq_h3::{Code, Inbox, Violation, webtransport::Terms};
use tokio::sync::Notify;

use super::SessionError;
use crate::upgrade::TakesDatagrams;
pub(super) use account::{Account, Counter, Place};

/// A stream of the peer whose header was read, and the bytes behind it that were read as well.
pub(super) enum Arrived {
    Bidi(hybriq::SendStream, hybriq::RecvStream, Bytes),
    Uni(hybriq::RecvStream, Bytes),
}

impl Arrived {
    /// Returns the number of bytes behind the header that were read.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Bidi(_, _, head) | Self::Uni(_, head) => head.len(),
        }
    }

    fn id(&self) -> StreamId {
        match self {
            Self::Bidi(_, recv, _) | Self::Uni(recv, _) => recv.id(),
        }
    }

    /// Refuses the stream.
    pub(super) fn refuse(self, code: Code) {
        let mut recv = match self {
            Self::Bidi(mut send, recv, _) => {
                send.reset(code.0);
                recv
            }
            Self::Uni(recv, _) => recv,
        };
        recv.stop(code.0);
    }
}

/// A stream of the peer in its session, with its count if the session has flow control.
pub(super) struct Taken {
    pub(super) stream: Arrived,
    pub(super) counter: Option<Arc<Counter>>,
}

/// State of a session.
pub(super) struct Shared {
    /// Stream of the session's request.
    pub(super) id: StreamId,
    pub(super) connection: Connection,
    pub(super) account: Arc<Account>,
    state: Mutex<State>,
    bidi: Notify,
    uni: Notify,
    datagram: Notify,
    /// Told when the session drains, closes or ends.
    changed: Notify,
}

/// A sending end that was opened.
#[derive(Clone, Copy)]
pub(super) struct SendEnd {
    id: StreamId,
    /// Size of the header.
    header: u64,
}

impl SendEnd {
    pub(super) const fn new(id: StreamId, header: u64) -> Self {
        Self { id, header }
    }
}

/// A sending end.
#[derive(Clone, Copy)]
struct Sending {
    /// Size of the header.
    header: u64,
    /// True once the application has finished with it. The data may still be in flight.
    left: bool,
}

/// Number of sending ends from which on a session looks for those that the peer has.
const FEW: usize = 16;

struct State {
    bidi: VecDeque<Taken>,
    uni: VecDeque<Taken>,
    datagrams: Inbox<()>,
    /// Sending ends that are open or whose data is in flight.
    sending: BTreeMap<u64, Sending>,
    /// Number of them from which on those that the peer has are removed.
    most_sending: usize,
    receiving: BTreeSet<u64>,
    /// Age beyond which datagrams are not sent.
    max_age: Option<Duration>,
    draining: bool,
    end: Option<SessionError>,
}

impl State {
    /// Returns the state of a session whose waiting datagrams may cost up to `max_datagrams` bytes.
    fn new(max_datagrams: usize) -> Self {
        Self {
            bidi: VecDeque::new(),
            uni: VecDeque::new(),
            datagrams: Inbox::new(max_datagrams),
            sending: BTreeMap::new(),
            most_sending: FEW,
            receiving: BTreeSet::new(),
            max_age: None,
            draining: false,
            end: None,
        }
    }

    /// Forgets the sending ends that the application has left and of which the peer has everything.
    fn forget_delivered(&mut self, connection: &Connection) {
        let is_under_way = |id: u64| !connection.is_delivered(StreamId(id));
        self.sending
            .retain(|id, sending| !sending.left || is_under_way(*id));
        self.most_sending = FEW.max(2 * self.sending.len());
    }
}

impl TakesDatagrams for Shared {
    /// Drops the oldest if too many wait.
    fn on_datagram(&self, data: Bytes) {
        let mut state = self.lock();
        if state.end.is_some() {
            return;
        }
        state.datagrams.push((), data);
        drop(state);
        self.datagram.notify_one();
    }
}

impl Shared {
    pub(super) fn new(
        id: StreamId,
        connection: Connection,
        terms: Terms,
        max_datagrams: usize,
    ) -> Self {
        Self {
            id,
            connection,
            account: Arc::new(Account::new(terms)),
            state: Mutex::new(State::new(max_datagrams)),
            bidi: Notify::new(),
            uni: Notify::new(),
            datagram: Notify::new(),
            changed: Notify::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a stream of the peer.
    pub(super) fn on_stream(&self, stream: Arrived) {
        if self.end().is_some() {
            return stream.refuse(Code::WT_SESSION_GONE);
        }
        let (id, read) = (stream.id(), stream.len());
        let counter = self.account.count_of_peer(&self.connection, id, read);
        let mut state = self.lock();
        if state.end.is_some() {
            drop(state);
            return stream.refuse(Code::WT_SESSION_GONE);
        }
        let (queue, notify) = match stream {
            Arrived::Bidi(..) => (&mut state.bidi, &self.bidi),
            Arrived::Uni(..) => (&mut state.uni, &self.uni),
        };
        queue.push_back(Taken { stream, counter });
        drop(state);
        notify.notify_one();
    }

    pub(super) async fn bidi(&self) -> Result<Taken, SessionError> {
        self.wait(&self.bidi, |state| state.bidi.pop_front()).await
    }

    pub(super) async fn uni(&self) -> Result<Taken, SessionError> {
        self.wait(&self.uni, |state| state.uni.pop_front()).await
    }

    pub(super) async fn datagram(&self) -> Result<Bytes, SessionError> {
        let take = |state: &mut State| state.datagrams.pop();
        self.wait(&self.datagram, take).await
    }

    /// Returns the age beyond which datagrams are not sent.
    pub(super) fn max_age(&self) -> Option<Duration> {
        self.lock().max_age
    }

    pub(super) fn set_max_age(&self, age: Option<Duration>) {
        self.lock().max_age = age;
    }

    /// Waits until the peer wants the session to end soon, or it is over.
    pub(super) async fn draining(&self) {
        let draining = |state: &mut State| state.draining.then_some(());
        // The end of the session is the answer, too.
        let _ = self.wait(&self.changed, draining).await;
    }

    pub(super) async fn ended(&self) -> SessionError {
        match self.wait(&self.changed, |_| None::<()>).await {
            Err(end) => end,
            Ok(()) => SessionError::Aborted,
        }
    }

    /// Waits until there is something to take, or the session is over.
    async fn wait<T>(
        &self,
        notify: &Notify,
        mut take: impl FnMut(&mut State) -> Option<T>,
    ) -> Result<T, SessionError> {
        loop {
            let mut notified = pin!(notify.notified());
            notified.as_mut().enable();
            {
                let mut state = self.lock();
                if let Some(taken) = take(&mut state) {
                    drop(state);
                    // There may be more, and another task that waits for it.
                    notify.notify_one();
                    return Ok(taken);
                }
                if let Some(end) = &state.end {
                    return Err(end.clone());
                }
            }
            notified.await;
        }
    }

    /// Returns the end of the session, if it is over.
    pub(super) fn end(&self) -> Option<SessionError> {
        self.lock().end.clone()
    }

    /// Counts what is held for the session, table by table.
    pub(super) fn census(&self, census: &mut Census) {
        let mut state = self.lock();
        state.forget_delivered(&self.connection);
        let queued = state.bidi.len() + state.uni.len();
        let heads = state.bidi.iter().chain(&state.uni);
        let heads = heads.map(|taken| taken.stream.len());
        let bytes = queued * size_of::<Taken>() + heads.sum::<usize>();
        census.add("streams not taken", queued, bytes);
        let (datagrams, bytes) = state.datagrams.held();
        census.add("datagrams not read", datagrams, bytes);
        let open = state.sending.len() + state.receiving.len();
        census.add_of::<u64>("ends of streams of sessions", open);
        drop(state);
        let held = self.account.held();
        census.add("capsules and writers", usize::from(held > 0), held);
    }

    /// Counts the open ends of a stream among those that end with the session.
    ///
    /// # Errors
    /// The session is over.
    pub(super) fn track(
        &self,
        send: Option<SendEnd>,
        recv: Option<StreamId>,
    ) -> Result<(), SessionError> {
        let mut state = self.lock();
        if let Some(end) = &state.end {
            return Err(end.clone());
        }
        if state.sending.len() >= state.most_sending {
            state.forget_delivered(&self.connection);
        }
        let left = false;
        let send = send.map(|SendEnd { id, header }| (id.0, Sending { header, left }));
        state.sending.extend(send);
        state.receiving.extend(recv.map(|id| id.0));
        Ok(())
    }

    /// Notes that the application is through with a sending end. Its data, or its reset, may be in flight until
    /// the session ends.
    pub(super) fn leave_send(&self, id: StreamId) {
        if let Some(sending) = self.lock().sending.get_mut(&id.0) {
            sending.left = true;
        }
    }

    pub(super) fn forget_recv(&self, id: StreamId) {
        self.lock().receiving.remove(&id.0);
    }

    /// Notes that the peer wants the session to end soon.
    pub(super) fn on_drain(&self) {
        self.lock().draining = true;
        self.changed.notify_waiters();
    }

    /// Closes the session, unless it is over.
    pub(super) fn close(&self, code: u32, reason: &str) {
        let end = SessionError::Closed {
            code,
            reason: reason.to_owned(),
        };
        if self.finish(end) {
            self.account.with(|session| session.close(code, reason));
        }
    }

    /// Ends the session because the peer broke a rule.
    pub(super) fn abort(&self, violation: Violation) {
        self.finish(violation.into());
        let code = violation.code().0;
        self.connection.reset_stream(self.id, code, 0);
        self.connection.stop_stream(self.id, code);
    }

    /// Ends the session, with all its streams. Returns false if it was over already.
    pub(super) fn finish(&self, end: SessionError) -> bool {
        let mut state = self.lock();
        if state.end.is_some() {
            return false;
        }
        let ended = std::mem::replace(&mut *state, State::new(0));
        state.end = Some(end);
        drop(state);
        for (id, Sending { header, .. }) in ended.sending {
            self.connection
                .reset_stream(StreamId(id), Code::WT_SESSION_GONE.0, header);
        }
        for id in ended.receiving {
            self.connection
                .stop_stream(StreamId(id), Code::WT_SESSION_GONE.0);
        }
        for taken in ended.bidi.into_iter().chain(ended.uni) {
            taken.stream.refuse(Code::WT_SESSION_GONE);
        }
        for notify in [&self.bidi, &self.uni, &self.datagram, &self.changed] {
            notify.notify_waiters();
        }
        self.account.end();
        true
    }
}

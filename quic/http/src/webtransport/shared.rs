//! State that a session, its streams and its connection share.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    pin::pin,
    sync::{Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use hybriq::{Connection, StreamId, stats::Census};
use hybriq_h3::core::{
    Code,
    webtransport::{Capsule, Inbox},
};
use tokio::sync::Notify;

use super::SessionError;

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

/// State of a session.
pub(super) struct Shared {
    /// Stream of the session's request.
    pub(super) id: StreamId,
    pub(super) connection: Connection,
    state: Mutex<State>,
    bidi: Notify,
    uni: Notify,
    datagram: Notify,
    /// Told when the session drains, closes or ends.
    changed: Notify,
    /// Told when there is a capsule to send.
    capsules: Notify,
}

/// A sending end.
#[derive(Clone, Copy)]
struct Sending {
    /// Size of the header.
    header: u64,
    /// True once the application is through with it. The data may be under way.
    left: bool,
}

/// Number of sending ends from which on a session looks for those that the peer has.
const FEW: usize = 16;

struct State {
    bidi: VecDeque<Arrived>,
    uni: VecDeque<Arrived>,
    datagrams: Inbox<()>,
    /// Sending ends that are open or whose data is under way.
    sending: BTreeMap<u64, Sending>,
    /// Number of them from which on those that the peer has are removed.
    most_sending: usize,
    receiving: BTreeSet<u64>,
    draining: bool,
    /// True once the peer was asked to end the session soon.
    asked_to_drain: bool,
    capsules: VecDeque<Capsule>,
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
            draining: false,
            asked_to_drain: false,
            capsules: VecDeque::new(),
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

impl Shared {
    pub(super) fn new(id: StreamId, connection: Connection, max_datagrams: usize) -> Self {
        Self {
            id,
            connection,
            state: Mutex::new(State::new(max_datagrams)),
            bidi: Notify::new(),
            uni: Notify::new(),
            datagram: Notify::new(),
            changed: Notify::new(),
            capsules: Notify::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a stream of the peer.
    pub(super) fn on_stream(&self, arrived: Arrived) {
        let mut state = self.lock();
        if state.end.is_some() {
            drop(state);
            return arrived.refuse(Code::WT_SESSION_GONE);
        }
        let (queue, notify) = match arrived {
            Arrived::Bidi(..) => (&mut state.bidi, &self.bidi),
            Arrived::Uni(..) => (&mut state.uni, &self.uni),
        };
        queue.push_back(arrived);
        drop(state);
        notify.notify_one();
    }

    /// Takes a datagram of the peer. Drops the oldest if too many wait.
    pub(super) fn on_datagram(&self, data: Bytes) {
        let mut state = self.lock();
        if state.end.is_some() {
            return;
        }
        state.datagrams.push((), data);
        drop(state);
        self.datagram.notify_one();
    }

    pub(super) async fn bidi(&self) -> Result<Arrived, SessionError> {
        self.wait(&self.bidi, |state| state.bidi.pop_front()).await
    }

    pub(super) async fn uni(&self) -> Result<Arrived, SessionError> {
        self.wait(&self.uni, |state| state.uni.pop_front()).await
    }

    pub(super) async fn datagram(&self) -> Result<Bytes, SessionError> {
        let take = |state: &mut State| state.datagrams.pop();
        self.wait(&self.datagram, take).await
    }

    /// Returns the next capsule to send, also after the end of the session.
    pub(super) async fn capsule(&self) -> Capsule {
        loop {
            let next = self.lock().capsules.pop_front();
            if let Some(capsule) = next {
                return capsule;
            }
            self.capsules.notified().await;
        }
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
        let heads = state.bidi.iter().chain(&state.uni).map(Arrived::len);
        let bytes = queued * size_of::<Arrived>() + heads.sum::<usize>();
        census.add("streams not taken", queued, bytes);
        let (datagrams, bytes) = state.datagrams.held();
        census.add("datagrams not read", datagrams, bytes);
        let open = state.sending.len() + state.receiving.len();
        census.add_of::<u64>("ends of streams of sessions", open);
        census.add_of::<Capsule>("capsules", state.capsules.len());
    }

    /// Counts the open ends of a stream among those that end with the session.
    ///
    /// # Errors
    /// The session is over.
    pub(super) fn track(
        &self,
        send: Option<(StreamId, u64)>,
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
        let send = send.map(|(id, header)| (id.0, Sending { header, left }));
        state.sending.extend(send);
        state.receiving.extend(recv.map(|id| id.0));
        Ok(())
    }

    /// Notes that the application is through with a sending end. Its data, or its reset, may be under way until
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

    /// Asks the peer to end the session soon.
    pub(super) fn drain(&self) {
        let mut state = self.lock();
        if state.end.is_none() && !std::mem::replace(&mut state.asked_to_drain, true) {
            state.capsules.push_back(Capsule::Drain);
            drop(state);
            self.capsules.notify_one();
        }
    }

    /// Closes the session, unless it is over.
    pub(super) fn close(&self, code: u32, reason: String) {
        let end = SessionError::Closed {
            code,
            reason: reason.clone(),
        };
        if self.finish(end) {
            let close = Capsule::Close { code, reason };
            self.lock().capsules.push_back(close);
            self.capsules.notify_one();
        }
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
        for arrived in ended.bidi.into_iter().chain(ended.uni) {
            arrived.refuse(Code::WT_SESSION_GONE);
        }
        for notify in [&self.bidi, &self.uni, &self.datagram, &self.changed] {
            notify.notify_waiters();
        }
        true
    }
}

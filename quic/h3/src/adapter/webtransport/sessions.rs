//! The sessions of a connection.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use hybriq::{Connection, StreamId, stats::Census};
use tokio::sync::oneshot;

use super::{
    Arrived, Limits,
    code::{BUFFERED_STREAM_REJECTED, SESSION_GONE},
    inbox::Inbox,
    shared::Shared,
};
use crate::adapter::{Datagrams, budget::Budget};

/// Number of sessions that are remembered after their end, so that their streams are refused at once.
const REMEMBERED: usize = 64;

/// The sessions of a connection. [`Connection::webtransport`](crate::adapter::Connection::webtransport) returns
/// them. Clones share them.
#[derive(Clone)]
pub struct Sessions(Arc<Mutex<Table>>);

impl std::fmt::Debug for Sessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sessions").finish_non_exhaustive()
    }
}

/// The place of a session among those that [`Limits::sessions`] allows, from the arrival of its request.
///
/// Dropping it before the session has started cancels the reservation, and refuses the streams that waited
/// for the session.
#[must_use = "dropping it cancels the reservation"]
pub struct Reservation {
    sessions: Sessions,
    id: u64,
}

impl std::fmt::Debug for Reservation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reservation").finish_non_exhaustive()
    }
}

struct Table {
    limits: Limits,
    places: HashMap<u64, Place>,
    /// Streams whose session is not known.
    streams: VecDeque<(u64, Arrived)>,
    /// Datagrams whose session is not known.
    datagrams: Inbox<u64>,
    /// The last sessions that ended.
    gone: VecDeque<u64>,
    /// Number of tasks.
    tasks: usize,
    /// Ends the task that reads the datagrams when it is dropped. `None` while there is no session.
    reader: Option<oneshot::Sender<()>>,
}

/// A task of a session, or of all, until this is dropped.
pub(super) struct Task(Sessions);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.lock().tasks -= 1;
    }
}

/// A place of a session.
enum Place {
    /// Its request is not answered, or the session not started.
    Reserved,
    Open(Arc<Shared>),
}

impl Sessions {
    /// Makes the sessions of a connection whose streams are given to them.
    pub fn new(limits: Limits) -> Self {
        Self(Arc::new(Mutex::new(Table {
            limits,
            places: HashMap::new(),
            streams: VecDeque::new(),
            datagrams: Inbox::new(limits.waiting_datagrams),
            gone: VecDeque::new(),
            tasks: 0,
            reader: None,
        })))
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the limits.
    pub fn limits(&self) -> Limits {
        self.lock().limits
    }

    /// Returns true if there are fewer sessions, and requests for them, than [`Limits::sessions`] allows.
    pub fn has_room(&self) -> bool {
        self.lock().has_room()
    }

    /// Reserves a place for the session of a request; keep it until the session is started or the request is
    /// refused. Returns `None` if all [`Limits::sessions`] are taken: the streams of the session are then refused.
    pub fn reserve(&self, request: StreamId) -> Option<Reservation> {
        let id = request.0;
        let mut table = self.lock();
        if !table.has_room() {
            drop(table);
            self.refuse(request);
            return None;
        }
        table.places.insert(id, Place::Reserved);
        drop(table);
        let sessions = self.clone();
        Some(Reservation { sessions, id })
    }

    /// Counts what is held for the sessions, table by table. A connection whose sessions are over, with the
    /// streams of their requests, holds nothing but the numbers of the last 64, which [may
    /// grow](hybriq::stats::MAY_GROW).
    pub fn census(&self, census: &mut Census) {
        let table = self.lock();
        let mut open = Vec::new();
        for place in table.places.values() {
            if let Place::Open(session) = place {
                open.push(session.clone());
            }
        }
        let reserved = table.places.len() - open.len();
        census.add_of::<(u64, Place)>("requests for sessions", reserved);
        let size = size_of::<(u64, Place)>() + size_of::<Shared>();
        census.add("sessions", open.len(), open.len() * size);
        let heads = table.streams.iter().map(|(_, arrived)| arrived.len());
        let streams = table.streams.len();
        let bytes = streams * size_of::<(u64, Arrived)>() + heads.sum::<usize>();
        census.add("streams without session", streams, bytes);
        let (datagrams, bytes) = table.datagrams.held();
        census.add("datagrams without session", datagrams, bytes);
        census.add_of::<u64>("numbers of sessions that are over", table.gone.len());
        census.add("tasks of sessions", table.tasks, 0);
        drop(table);
        for session in open {
            session.census(census);
        }
    }

    /// Counts a task.
    pub(super) fn on_task(&self) -> Task {
        self.lock().tasks += 1;
        Task(self.clone())
    }

    /// Refuses the streams of a session whose request was refused.
    pub fn refuse(&self, request: StreamId) {
        self.forget(request.0, BUFFERED_STREAM_REJECTED);
    }

    /// Takes a bidirectional stream of the peer, behind the id of its session, and the data that came with that.
    pub fn on_bidi(
        &self,
        session: StreamId,
        send: hybriq::SendStream,
        recv: hybriq::RecvStream,
        data: Bytes,
    ) {
        self.on_stream(session.0, Arrived::Bidi(send, recv, data));
    }

    /// Takes a unidirectional stream of the peer, behind the id of its session, and the data that came with that.
    pub fn on_uni(&self, session: StreamId, recv: hybriq::RecvStream, data: Bytes) {
        self.on_stream(session.0, Arrived::Uni(recv, data));
    }

    /// Takes a stream of the peer.
    pub(crate) fn on_stream(&self, id: u64, arrived: Arrived) {
        let mut table = self.lock();
        if let Some(session) = table.session(id) {
            drop(table);
            return session.on_stream(arrived);
        }
        if table.gone.contains(&id) {
            drop(table);
            return arrived.refuse(SESSION_GONE);
        }
        table.streams.push_back((id, arrived));
        let oldest = (table.streams.len() > table.limits.waiting_streams)
            .then(|| table.streams.pop_front())
            .flatten();
        drop(table);
        if let Some((_, oldest)) = oldest {
            oldest.refuse(BUFFERED_STREAM_REJECTED);
        }
    }

    /// Takes a datagram of the peer.
    fn on_datagram(&self, id: u64, data: Bytes) {
        let mut table = self.lock();
        if let Some(session) = table.session(id) {
            drop(table);
            return session.on_datagram(data);
        }
        if !table.gone.contains(&id) {
            table.datagrams.push(id, data);
        }
    }

    /// Adds a session, and gives it what came before.
    pub(super) fn add(&self, session: &Arc<Shared>) {
        let id = session.id;
        let mut table = self.lock();
        table.places.insert(id, Place::Open(session.clone()));
        let (streams, datagrams) = table.take(id);
        let reader = table.reader.is_none().then(|| {
            let (reader, ended) = oneshot::channel();
            table.reader = Some(reader);
            ended
        });
        drop(table);
        for arrived in streams {
            session.on_stream(arrived);
        }
        for data in datagrams {
            session.on_datagram(data);
        }
        if let Some(ended) = reader {
            let (sessions, connection) = (self.clone(), session.connection.clone());
            session
                .connection
                .spawn(sessions.read_datagrams(connection, ended));
        }
    }

    /// Gives the datagrams of the connection to their sessions, until there are none.
    async fn read_datagrams(self, connection: Connection, mut ended: oneshot::Receiver<()>) {
        let _task = self.on_task();
        let datagrams = Datagrams::new(connection);
        let mut budget = Budget::new();
        loop {
            let received = tokio::select! {
                biased;
                _ = &mut ended => return,
                received = datagrams.recv() => received,
            };
            let Ok(Some((request, data))) = received else {
                return;
            };
            self.on_datagram(request.0, data);
            budget.take_step().await;
        }
    }

    /// Removes a session that is over.
    pub(super) fn remove(&self, id: u64) {
        self.forget(id, SESSION_GONE);
    }

    fn forget(&self, id: u64, code: u64) {
        let mut table = self.lock();
        table.places.remove(&id);
        table.gone.push_back(id);
        if table.gone.len() > REMEMBERED {
            table.gone.pop_front();
        }
        let (streams, _) = table.take(id);
        let is_open = |place: &Place| matches!(place, Place::Open(_));
        if !table.places.values().any(is_open) {
            table.reader = None;
        }
        drop(table);
        for arrived in streams {
            arrived.refuse(code);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let is_reserved = matches!(
            self.sessions.lock().places.get(&self.id),
            Some(Place::Reserved)
        );
        if is_reserved {
            self.sessions.forget(self.id, BUFFERED_STREAM_REJECTED);
        }
    }
}

impl Table {
    fn has_room(&self) -> bool {
        self.places.len() < self.limits.sessions
    }

    /// Returns a session that has started.
    fn session(&self, id: u64) -> Option<Arc<Shared>> {
        match self.places.get(&id) {
            Some(Place::Open(session)) => Some(session.clone()),
            Some(Place::Reserved) | None => None,
        }
    }

    /// Takes the streams and datagrams that wait for a session.
    fn take(&mut self, id: u64) -> (Vec<Arrived>, Vec<Bytes>) {
        let mut streams = Vec::new();
        for (other, arrived) in std::mem::take(&mut self.streams) {
            if other == id {
                streams.push(arrived);
            } else {
                self.streams.push_back((other, arrived));
            }
        }
        (streams, self.datagrams.take(id))
    }
}

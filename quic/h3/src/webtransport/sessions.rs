//! The sessions of a connection.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use h3::quic::StreamId;
use hybriq::Connection;

use super::{
    Arrived, Limits,
    code::{BUFFERED_STREAM_REJECTED, SESSION_GONE},
    shared::Shared,
};
use crate::Datagrams;

/// Number of sessions that are remembered after their end, so that their streams are refused at once.
const REMEMBERED: usize = 64;

/// The sessions of a connection. [`Connection::webtransport`](crate::Connection::webtransport) returns
/// them. Clones share them.
#[derive(Clone)]
pub struct Sessions(Arc<Mutex<Table>>);

struct Table {
    limits: Limits,
    open: HashMap<u64, Arc<Shared>>,
    /// Streams whose session is not known.
    streams: VecDeque<(u64, Arrived)>,
    /// Datagrams whose session is not known, and their bytes.
    datagrams: VecDeque<(u64, Bytes)>,
    waiting: usize,
    /// The last sessions that ended.
    gone: VecDeque<u64>,
    /// True once a task reads the datagrams.
    reading: bool,
}

impl Sessions {
    pub(crate) fn new(limits: Limits) -> Self {
        Self(Arc::new(Mutex::new(Table {
            limits,
            open: HashMap::new(),
            streams: VecDeque::new(),
            datagrams: VecDeque::new(),
            waiting: 0,
            gone: VecDeque::new(),
            reading: false,
        })))
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the limits.
    pub fn limits(&self) -> Limits {
        self.lock().limits
    }

    /// Returns true if there are fewer sessions than [`Limits::sessions`] allows.
    pub fn has_room(&self) -> bool {
        let table = self.lock();
        table.open.len() < table.limits.sessions
    }

    /// Refuses the streams of a session whose request was refused.
    pub fn refuse(&self, request: StreamId) {
        self.forget(request.into_inner(), BUFFERED_STREAM_REJECTED);
    }

    /// Takes a stream of the peer.
    pub(crate) fn on_stream(&self, id: u64, arrived: Arrived) {
        let mut table = self.lock();
        if let Some(session) = table.open.get(&id).cloned() {
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
        if let Some(session) = table.open.get(&id).cloned() {
            drop(table);
            return session.on_datagram(data);
        }
        if table.gone.contains(&id) {
            return;
        }
        table.waiting += data.len();
        table.datagrams.push_back((id, data));
        while table.waiting > table.limits.waiting_datagrams {
            let oldest = table.datagrams.pop_front();
            table.waiting -= oldest.map_or(0, |(_, oldest)| oldest.len());
        }
    }

    /// Adds a session, and gives it what came before.
    pub(super) fn add(&self, session: &Arc<Shared>) {
        let id = session.id;
        let mut table = self.lock();
        table.open.insert(id, session.clone());
        let (streams, datagrams) = table.take(id);
        let reading = std::mem::replace(&mut table.reading, true);
        drop(table);
        for arrived in streams {
            session.on_stream(arrived);
        }
        for data in datagrams {
            session.on_datagram(data);
        }
        if !reading {
            let (sessions, connection) = (self.clone(), session.connection.clone());
            session
                .connection
                .spawn(sessions.read_datagrams(connection));
        }
    }

    /// Gives the datagrams of the connection to their sessions.
    async fn read_datagrams(self, connection: Connection) {
        let datagrams = Datagrams::new(connection);
        while let Ok(Some((request, data))) = datagrams.recv().await {
            self.on_datagram(request.into_inner(), data);
        }
    }

    /// Removes a session that is over.
    pub(super) fn remove(&self, id: u64) {
        self.forget(id, SESSION_GONE);
    }

    fn forget(&self, id: u64, code: u64) {
        let mut table = self.lock();
        table.open.remove(&id);
        table.gone.push_back(id);
        if table.gone.len() > REMEMBERED {
            table.gone.pop_front();
        }
        let (streams, _) = table.take(id);
        drop(table);
        for arrived in streams {
            arrived.refuse(code);
        }
    }
}

impl Table {
    /// Takes the streams and datagrams that wait for a session.
    fn take(&mut self, id: u64) -> (Vec<Arrived>, Vec<Bytes>) {
        let (mut streams, mut datagrams) = (Vec::new(), Vec::new());
        for (other, arrived) in std::mem::take(&mut self.streams) {
            if other == id {
                streams.push(arrived);
            } else {
                self.streams.push_back((other, arrived));
            }
        }
        for (other, data) in std::mem::take(&mut self.datagrams) {
            if other == id {
                self.waiting -= data.len();
                datagrams.push(data);
            } else {
                self.datagrams.push_back((other, data));
            }
        }
        (streams, datagrams)
    }
}

//! The sessions of a connection.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use hybriq::{StreamId, stats::Census};
use hybriq_h3::{
    Code,
    webtransport::{Bounds, Terms, Waiting, Windows, announce},
};

use super::{
    Limits,
    shared::{Arrived, Shared},
};
use crate::{
    upgrade::Datagrams,
    versions::http3::{Setup, TakesStreams},
};

/// The sessions of a connection. Clones share them.
#[derive(Clone)]
pub(crate) struct Sessions(Arc<Mutex<Table>>);

/// The place of a session among those that [`Limits::sessions`] allows, from the arrival of its request.
///
/// Dropping it before the session has started cancels the reservation, and refuses the streams that waited
/// for the session.
#[must_use = "dropping it cancels the reservation"]
pub(crate) struct Reservation {
    sessions: Sessions,
    id: StreamId,
}

struct Table {
    limits: Limits,
    datagrams: Datagrams,
    places: HashMap<StreamId, Place>,
    /// Streams that arrived before their session.
    waiting: Waiting<Arrived>,
    /// Number of tasks.
    tasks: usize,
}

/// A task of a session, until this is dropped.
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

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").finish_non_exhaustive()
    }
}

impl TakesStreams for Sessions {
    fn on_bidi(
        &self,
        session: StreamId,
        send: hybriq::SendStream,
        recv: hybriq::RecvStream,
        data: Bytes,
    ) {
        self.on_stream(session, Arrived::Bidi(send, recv, data));
    }

    fn on_uni(&self, session: StreamId, recv: hybriq::RecvStream, data: Bytes) {
        self.on_stream(session, Arrived::Uni(recv, data));
    }

    fn header_time(&self) -> Duration {
        self.limits().header_time
    }
}

impl Sessions {
    /// Makes the sessions of a connection with these datagrams, and announces them in its settings.
    pub(crate) fn new(limits: Limits, datagrams: Datagrams, setup: &mut Setup) -> Self {
        let sessions = Self(Arc::new(Mutex::new(Table {
            limits,
            datagrams,
            places: HashMap::new(),
            waiting: Waiting::new(Bounds::new(
                limits.waiting_streams,
                limits.waiting_stream_bytes,
            )),
            tasks: 0,
        })));
        setup.extended_connect();
        let settings = &mut setup.config.settings;
        announce(settings, limits.sessions as u64, limits.windows());
        setup.streams = Some(Arc::new(sessions.clone()));
        sessions
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the limits.
    pub(super) fn limits(&self) -> Limits {
        self.lock().limits
    }

    /// Returns what the peer may use of each session.
    pub(crate) fn windows(&self) -> Windows {
        self.limits().windows()
    }

    /// Reserves a place for the session of a request; keep it until the session is started or the request is
    /// refused. Returns `None` if all [`Limits::sessions`] are taken: the streams of the session are then refused.
    pub(crate) fn reserve(&self, request: StreamId, terms: Terms) -> Option<Reservation> {
        let mut table = self.lock();
        // draft-ietf-webtrans-http3 §5.1.
        let most = if terms.allows_pooling() {
            table.limits.sessions
        } else {
            table.limits.sessions.min(1)
        };
        if table.places.len() >= most {
            drop(table);
            self.forget(request, Code::WT_BUFFERED_STREAM_REJECTED);
            return None;
        }
        table.places.insert(request, Place::Reserved);
        drop(table);
        Some(Reservation {
            sessions: self.clone(),
            id: request,
        })
    }

    /// Counts what is held for the sessions, table by table. A connection whose sessions are over, with the
    /// streams of their requests, holds nothing but the numbers of the last 64, which [may
    /// grow](hybriq::stats::MAY_GROW).
    pub(crate) fn census(&self, census: &mut Census) {
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
        let held = table.waiting.held();
        let (streams, bytes) = held.streams;
        census.add("streams without session", streams, bytes);
        census.add_of::<u64>("numbers of sessions that are over", held.gone);
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

    /// Takes a stream of the peer.
    fn on_stream(&self, id: StreamId, arrived: Arrived) {
        let mut table = self.lock();
        if let Some(session) = table.session(id) {
            drop(table);
            return session.on_stream(arrived);
        }
        if table.waiting.is_gone(id) {
            drop(table);
            return arrived.refuse(Code::WT_SESSION_GONE);
        }
        let read = arrived.len();
        let refused = table.waiting.push_stream(id, arrived, read);
        drop(table);
        for arrived in refused {
            arrived.refuse(Code::WT_BUFFERED_STREAM_REJECTED);
        }
    }

    /// Adds a session, and gives it the streams that arrived before.
    pub(super) fn add(&self, session: &Arc<Shared>) {
        let id = session.id;
        let mut table = self.lock();
        table.places.insert(id, Place::Open(session.clone()));
        let streams = table.waiting.take(id);
        let datagrams = table.datagrams.clone();
        drop(table);
        for arrived in streams {
            session.on_stream(arrived);
        }
        datagrams.add(&session.connection, id, session.clone());
    }

    /// Removes a session that is over.
    pub(super) fn remove(&self, id: StreamId) {
        self.forget(id, Code::WT_SESSION_GONE);
    }

    fn forget(&self, id: StreamId, code: Code) {
        let mut table = self.lock();
        table.places.remove(&id);
        let streams = table.waiting.on_gone(id);
        let datagrams = table.datagrams.clone();
        drop(table);
        datagrams.remove(id);
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
            self.sessions
                .forget(self.id, Code::WT_BUFFERED_STREAM_REJECTED);
        }
    }
}

impl Table {
    /// Returns a session that has started.
    fn session(&self, id: StreamId) -> Option<Arc<Shared>> {
        match self.places.get(&id) {
            Some(Place::Open(session)) => Some(session.clone()),
            Some(Place::Reserved) | None => None,
        }
    }
}

//! What a connection holds, including its handles and waiting tasks.

use std::{sync::atomic::Ordering, task::Waker};

use hybriq_proto::{owners::streams::Direction, stats::census::Census};

use super::{SendSide, SharedConnection, State, StreamId, WaitFor, moves::Move, watch::Watch};

impl SharedConnection {
    /// Returns what the connection holds, table by table.
    pub(crate) fn census(&self) -> Census {
        // A new field does not compile until somebody decides what it holds.
        let Self {
            slot: _,
            span: _,
            worker: _,
            dirty,
            holds_first_flight: _,
            handles,
            state,
        } = self;
        let mut census = super::lock(state).census();
        let waits = usize::from(dirty.load(Ordering::Acquire));
        census.add("connections that wait for their worker", waits, 0);
        let handles = handles.load(Ordering::Acquire);
        census.add("handles of the application", handles, 0);
        census
    }
}

/// Checks that every handle is gone, and with the handles all their entries in the tables.
#[cfg(debug_assertions)]
impl Drop for SharedConnection {
    fn drop(&mut self) {
        let state = super::lock(&self.state);
        // After 0-RTT was refused, a handle of an early stream no longer looks at the tables.
        if std::thread::panicking() || state.core.is_early_data_refused() {
            return;
        }
        let left = state.census();
        let left: Vec<_> = OF_HANDLES
            .into_iter()
            .filter(|name| left.entries(name) > 0)
            .collect();
        assert!(left.is_empty(), "handles left something behind: {left:?}");
    }
}

/// Tables whose entries belong to handles and to futures that borrow them.
#[cfg(debug_assertions)]
const OF_HANDLES: [&str; 12] = [
    SENDERS,
    WRITERS,
    READERS,
    WATCHERS,
    "tasks that open a bidirectional stream",
    "tasks that open a unidirectional stream",
    "tasks that accept a bidirectional stream",
    "tasks that accept a unidirectional stream",
    "tasks that receive a datagram",
    "tasks that send a datagram",
    "tasks that migrate",
    "tasks that wait for the end",
];

const SENDERS: &str = "senders with a handle";
const WRITERS: &str = "tasks that wait for a sender";
const READERS: &str = "readers that waited";
const WATCHERS: &str = "futures that watch a sender";

impl State {
    fn census(&self) -> Census {
        let Self {
            core,
            closed: _,
            local_address: _,
            close,
            leaving: _,
            moving,
            waiters,
            sends,
            recvs,
            watches,
            fates,
        } = self;
        let mut census = core.census();
        census.add("closes to send", usize::from(close.is_some()), 0);
        moving.census(&mut census);
        for (what, waiters) in WaitFor::ALL.into_iter().zip(waiters) {
            census.add(what.name(), waiters.len(), 0);
        }
        census.add_of::<(StreamId, SendSide)>(SENDERS, sends.len());
        let writers = sends.values().map(SendSide::wakers).sum();
        census.add_of::<Waker>(WRITERS, writers);
        census.add_of::<(StreamId, Option<Waker>)>(READERS, recvs.len());
        census.add_of::<(StreamId, Watch)>(WATCHERS, watches.futures());
        census.add("datagrams whose fate a future awaits", fates.len(), 0);
        census
    }
}

impl SendSide {
    fn wakers(&self) -> usize {
        let Self {
            writer,
            watcher,
            ended: _,
        } = self;
        usize::from(writer.is_some()) + usize::from(watcher.is_some())
    }
}

impl WaitFor {
    /// Returns the name of the table of tasks that wait for the event.
    const fn name(self) -> &'static str {
        match self {
            Self::Open(Direction::Bidi) => "tasks that open a bidirectional stream",
            Self::Open(Direction::Uni) => "tasks that open a unidirectional stream",
            Self::Accept(Direction::Bidi) => "tasks that accept a bidirectional stream",
            Self::Accept(Direction::Uni) => "tasks that accept a unidirectional stream",
            Self::Datagram => "tasks that receive a datagram",
            Self::DatagramRoom => "tasks that send a datagram",
            Self::Migration => "tasks that migrate",
            Self::End => "tasks that wait for the end",
        }
    }
}

impl Move {
    fn census(&self, census: &mut Census) {
        census.add("moves in progress", usize::from(self.socket().is_some()), 0);
    }
}

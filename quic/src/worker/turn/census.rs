//! What a worker holds.

use std::{sync::Arc, task::Waker, time::Instant};

use hybriq_proto::{endpoint::Slot, stats::census::Census};

use crate::{
    sync::timers::Timers,
    worker::{
        Chores, Connections, Inbox, Published, Walks, Worker,
        connection::{SharedConnection, table::Entry},
        shared::mailbox::{Command, Requests},
        sockets::Sockets,
    },
};

impl Worker {
    /// Returns what the worker and its connections hold, table by table.
    pub(in crate::worker) fn census(&self) -> Census {
        // A new field does not compile until somebody decides what it holds.
        let Self {
            index: _,
            settings: _,
            shared: _,
            inbox,
            sockets,
            buffers: _,
            batch,
            endpoint,
            connections,
            timers,
            now: _,
            queues,
            wakes,
            standing: _,
            succession,
            walks,
            stats: _,
            meter: _,
            chores,
            published,
            reports,
            _working,
        } = self;
        let mut census = endpoint.census();
        connections.census(&mut census);
        inbox.census(&mut census);
        sockets.census(&mut census);
        timers.census(&mut census);
        census.add("datagrams that wait for a socket", batch.len(), 0);
        let waiting = queues.touched.len() + queues.sending.len();
        census.add_of::<Slot>("connections that wait for their turn", waiting);
        census.add_of::<Waker>("tasks to wake", wakes.len());
        census.add("datagrams for earlier processes", succession.waiting(), 0);
        walks.census(&mut census);
        chores.census(&mut census);
        published.census(&mut census);
        census.add("clients that reports may end", reports.connecting, 0);
        census
    }
}

impl Connections {
    fn census(&self, census: &mut Census) {
        for entry in self.iter() {
            let Entry {
                connection,
                promise,
                deadline: _,
                sockets: _,
                touched: _,
                sending: _,
                told_end: _,
                life: _,
            } = entry;
            census.add("connections of the worker", 1, size_of::<Entry>());
            census.add(
                "tasks that wait for a handshake",
                usize::from(promise.is_some()),
                0,
            );
            census.extend(&connection.census());
        }
    }
}

impl Inbox {
    fn census(&self, census: &mut Census) {
        let Self {
            mailbox,
            taken,
            commands,
            starts,
            budget: _,
            dirty,
            dirty_budget: _,
            live,
        } = self;
        mailbox.census(census);
        taken.census(census);
        census.add_of::<Command>("commands of the application", commands.len());
        census.add_of::<Command>("handshakes to start", starts.len());
        census.add_of::<Arc<SharedConnection>>("connections that were touched", dirty.len());
        census.add("permits of connections", *live, 0);
    }
}

impl Requests {
    /// Counts messages that wait for a worker.
    pub(in crate::worker) fn census(&self, census: &mut Census) {
        let Self {
            dirty,
            commands,
            foreign,
            waker: _,
            ended: _,
        } = self;
        census.add_of::<Arc<SharedConnection>>("connections that were touched", dirty.len());
        census.add_of::<Command>("commands of the application", commands.len());
        let bytes = foreign.iter().map(|passed| passed.datagram.len()).sum();
        census.add("datagrams of other workers", foreign.len(), bytes);
    }
}

impl Sockets {
    fn census(&self, census: &mut Census) {
        census.add("sockets", self.count(), 0);
    }
}

impl Timers {
    fn census(&self, census: &mut Census) {
        census.add_of::<(Instant, Slot)>("timers of connections", self.len());
    }
}

impl Walks {
    fn census(&self, census: &mut Census) {
        let Self { closing, rebinding } = self;
        let walks = usize::from(closing.is_some()) + usize::from(rebinding.is_some());
        census.add("changes for all connections", walks, 0);
    }
}

impl Chores {
    fn census(&self, census: &mut Census) {
        let Self {
            clock_set: _,
            malloc_trim: _,
            unprepared,
        } = self;
        let chores = usize::from(unprepared.is_some());
        census.add("preparations for handshakes", chores, 0);
    }
}

impl Published {
    fn census(&self, census: &mut Census) {
        let Self {
            unfinished: _,
            ended,
        } = self;
        census.add("ends that were not told", *ended, 0);
    }
}

//! What all workers of an endpoint hold together.

use std::sync::atomic::Ordering;

use hybriq_proto::{endpoint::Incoming, stats::census::Census};
use tokio::sync::oneshot;

use super::{Activity, Arrivals, Command, Shared, lock};
use crate::sync::AtomicUsize;

impl Shared {
    /// Asks every worker what it holds, and adds what they share. Workers that have ended hold
    /// nothing.
    pub(crate) async fn census(&self) -> Census {
        let mut census = Census::default();
        for mailbox in &self.mailboxes {
            let (sender, answer) = oneshot::channel();
            if mailbox.push(Command::Census(sender)) {
                if let Ok(of_worker) = answer.await {
                    census.extend(&of_worker);
                }
            }
        }
        census.extend(&self.own_census());
        census
    }

    fn own_census(&self) -> Census {
        // A new field does not compile until somebody decides what it holds.
        let Self {
            mailboxes,
            addresses: _,
            closed: _,
            handles,
            turn: _,
            arrivals,
            activity,
            // Sum of the workers' counts, as of their last turns.
            unfinished: _,
            backlog: _,
            drain,
            succeeded: _,
            receives: _,
            deciding,
            undecided,
            closing: _,
            cut_off: _,
            failure: _,
            has_limits: _,
            working: _,
        } = self;
        let count = |number: &AtomicUsize| number.load(Ordering::Acquire);
        let mut census = Census::default().with("workers", mailboxes.len(), 0);
        census.add("handles of the endpoint", count(handles), 0);
        census.add("workers with clients to decide about", count(deciding), 0);
        census.add(
            "clients that were taken and not decided about",
            count(undecided),
            0,
        );
        lock(arrivals).census(&mut census);
        lock(activity).census(&mut census);
        census.add("tasks that wait for the drain", drain.waiting(), 0);
        census
    }
}

impl Activity {
    fn census(&self, census: &mut Census) {
        let Self { connections, idle } = self;
        census.add("permits of the endpoint", *connections, 0);
        census.add("tasks that wait until nothing is left", idle.len(), 0);
    }
}

impl Arrivals {
    fn census(&self, census: &mut Census) {
        let Self {
            waiting,
            unproven: _,
            accepting,
            open: _,
            admission: _,
        } = self;
        census.add_of::<(u8, Incoming)>("clients that wait for the application", waiting.len());
        census.add("tasks that accept a client", accepting.len(), 0);
    }
}

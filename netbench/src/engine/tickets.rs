//! The tickets that connections are resumed with.
//!
//! A ticket may be good for one connection, and a stack may keep only a few of a server. So each of
//! the connections that are under way at once asks for a server name of its own, such as
//! `t0.netbench.localhost`, and finds the ticket that the last one under that name left behind.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::try_join_all;
use tokio::time::{Instant, sleep, timeout};

use super::client::Client;
use super::making::Making;
use super::phase::Phase;
use super::plan::{Kind, with_ticket};
use crate::axes::Resumption;
use crate::drivers::Connection;
use crate::outcome::Failed;
use crate::scenario::ClientOp;

/// How long a ticket is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// The longest time between two looks for a ticket.
const LOOK: Duration = Duration::from_millis(5);

/// What a ticket may take beyond the time of a handshake.
const LONGER: Duration = Duration::from_millis(5);

/// As many servers as clients commonly remember.
const MOST_NAMES: u64 = 256;

/// Connections that are made for tickets alone, where fewer are under way at once.
const PRIMED: u64 = 64;

/// Tickets of one server that stacks commonly keep, less what a connection may add.
const MOST_SPARE: u64 = 6;

/// The names that have a ticket each and are free.
#[derive(Default)]
pub(super) struct Names {
    free: RefCell<BTreeMap<(String, usize), Vec<String>>>,
    is_primed: Cell<bool>,
}

impl Names {
    fn take(&self, base: &str, server: usize) -> Option<String> {
        let key = (base.to_owned(), server);
        self.free.borrow_mut().get_mut(&key)?.pop()
    }

    fn put(&self, base: &str, server: usize, name: String) {
        let key = (base.to_owned(), server);
        self.free.borrow_mut().entry(key).or_default().push(name);
    }
}

/// A name that nobody else uses at the same time. Dropped, it is free again.
pub(super) struct Name<'a> {
    back_to: Option<(&'a Names, String, usize)>,
    name: String,
}

impl Name<'_> {
    pub(super) fn as_str(&self) -> &str {
        &self.name
    }
}

impl Drop for Name<'_> {
    fn drop(&mut self) {
        if let Some((names, base, server)) = self.back_to.take() {
            names.put(&base, server, std::mem::take(&mut self.name));
        }
    }
}

/// Every kind of connection that operations make, to which server, and how many at once.
fn collect(ops: &[ClientOp], into: &mut Vec<(Kind, usize, u64)>) {
    for op in ops {
        match op {
            ClientOp::Connect(connect) => {
                let kind = Kind::of(&connect.ops, &connect.server_ops);
                let at_once = u64::from(connect.concurrency.max(1));
                let at_once = connect.connections.map_or(at_once, |all| all.min(at_once));
                into.push((kind, connect.server, at_once));
            }
            ClientOp::Pool(pool) => {
                let kind = Kind::of(&pool.ops, &[]);
                into.push((kind, pool.server, pool.connections.into()));
            }
            ClientOp::Scope(threads) => threads.iter().for_each(|ops| collect(ops, into)),
            ClientOp::Iterate(iterate) => collect(&iterate.ops, into),
            ClientOp::Sleep(_) | ClientOp::Park(_) | ClientOp::Unpark(_) => {}
        }
    }
}

impl Client {
    pub(super) fn resumes(&self) -> bool {
        self.spec.setup.cell.resumption != Resumption::Full
    }

    /// Whether scripts begin before the handshake is complete.
    pub(super) fn sends_early(&self) -> bool {
        self.spec.setup.cell.resumption == Resumption::ZeroRtt
    }

    /// Makes a connection under each name that is going to be used, for its ticket alone, unless
    /// that was done before. Says how many. What goes wrong here goes wrong again where it is
    /// counted.
    pub(super) async fn prime(&self, phase: &Phase, ops: &[ClientOp]) -> u64 {
        if !self.resumes() || self.names.is_primed.replace(true) {
            return 0;
        }
        let mut wanted = Vec::new();
        collect(ops, &mut wanted);
        let mut count = 0;
        for (kind, server, connections) in wanted {
            let Ok(making) = Making::new(self, phase, &kind, server, "") else {
                continue;
            };
            let names = connections.min(MOST_NAMES);
            // A stack that does not tell may close before the ticket has come: some are to spare.
            let spare = (PRIMED / names.max(1)).clamp(1, MOST_SPARE);
            for number in 0..names {
                let name = with_ticket(making.base_name(), number);
                // All at once, or each would use up the one before.
                let all = (0..spare).map(|_| self.fetch_ticket(&making, &name));
                let outcome = timeout(PATIENCE, try_join_all(all)).await;
                count += spare;
                if phase.is_stopping() || !matches!(outcome, Ok(Ok(_))) {
                    return count;
                }
                self.names.put(making.base_name(), server, name);
            }
        }
        count
    }

    async fn fetch_ticket(&self, making: &Making<'_>, name: &str) -> Result<(), Failed> {
        let began = Instant::now();
        let connection = making.connect(name).await?;
        connection.established().await?;
        // Not every stack tells when a ticket has come; it takes a round trip.
        sleep(LONGER + began.elapsed()).await;
        self.await_ticket(&*connection).await;
        connection.close(0);
        // Why it is over does not matter: the ticket is there, or it is not.
        let _ = connection.closed().await;
        Ok(())
    }

    /// A name to connect under, with a ticket where there are any.
    pub(super) fn name(&self, base: &str, server: usize) -> Name<'_> {
        let free = if self.resumes() {
            self.names.take(base, server)
        } else {
            None
        };
        Name {
            back_to: free
                .is_some()
                .then(|| (&self.names, base.to_owned(), server)),
            name: free.unwrap_or_else(|| base.to_owned()),
        }
    }

    /// Waits, before the connection is closed, for the ticket that the next one needs.
    pub(super) async fn await_ticket(&self, connection: &dyn Connection) {
        let end = Instant::now() + PATIENCE;
        let mut pause = Duration::from_micros(100);
        while !connection.has_ticket() && Instant::now() < end {
            sleep(pause).await;
            pause = (2 * pause).min(LOOK);
        }
    }
}

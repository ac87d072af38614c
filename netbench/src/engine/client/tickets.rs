//! Tickets for resumed connections.

use std::time::Duration;

use futures_util::future::try_join_all;
use tokio::time::{Instant, sleep, timeout};

use super::Client;
use super::making::{Making, PATIENCE, await_ticket};
use crate::engine::plan::{Kind, with_ticket};
use crate::engine::record::phase::Phase;
use crate::scenario::ClientOp;
use crate::system::outcome::Failed;

/// Time that a ticket may take beyond that of a handshake.
const LONGER: Duration = Duration::from_millis(5);

/// Number of servers that clients commonly remember.
const MOST_NAMES: u64 = 256;

/// Number of connections that are made only for tickets, if fewer are concurrent.
const PRIMED: u64 = 64;

/// Number of tickets that stacks commonly keep for a server, less those that a connection may add.
const MOST_SPARE: u64 = 6;

/// Collects every kind of connection that operations make, with its server and its concurrency.
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
            ClientOp::Hold(_) | ClientOp::Sleep(_) | ClientOp::Park(_) | ClientOp::Unpark(_) => {}
        }
    }
}

impl Client {
    /// Makes connections only for their tickets, under each name that is going to be used, unless
    /// that was done before. Returns their number. Failures are ignored: they repeat where
    /// connections are counted.
    pub(crate) async fn prime(&self, phase: &Phase, ops: &[ClientOp]) -> u64 {
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
            // A stack that does not tell may close before the ticket arrives, so there are some
            // spare ones.
            let spare = (PRIMED / names.max(1)).clamp(1, MOST_SPARE);
            for number in 0..names {
                let name = with_ticket(making.base_name(), number);
                // All at once; otherwise each would use up the ticket of the one before.
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
        // Not every stack reports the arrival of a ticket, which takes a round trip.
        sleep(LONGER + began.elapsed()).await;
        await_ticket(&*connection).await;
        connection.close(0);
        // The reason for its end does not matter: the ticket arrived, or it did not.
        let _ = connection.closed().await;
        Ok(())
    }
}

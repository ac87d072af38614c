//! Runs the operations of a client.

use futures_util::future::LocalBoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{StreamExt as _, TryStreamExt as _};
use tokio::time::Instant;

use super::Client;
use super::connecting::Connecting;
use super::making::Making;
use super::pooling::Pooling;
use crate::engine::plan::Kind;
use crate::engine::record::failing::InARow;
use crate::engine::record::phase::Phase;
use crate::engine::time::turns::Turns;
use crate::scenario::{ClientOp, Connect, Iterate, Pool};
use crate::system::outcome::Failed;

impl Client {
    /// Runs operations in sequence.
    pub(crate) fn ops<'a>(
        &'a self,
        ops: &'a [ClientOp],
        phase: &'a Phase,
    ) -> LocalBoxFuture<'a, Result<(), Failed>> {
        Box::pin(async move {
            for op in ops {
                if phase.is_stopping() {
                    break;
                }
                self.op(op, phase).await?;
            }
            Ok(())
        })
    }

    async fn op(&self, op: &ClientOp, phase: &Phase) -> Result<(), Failed> {
        match op {
            ClientOp::Connect(connect) => self.connect(connect, phase).await?,
            ClientOp::Pool(pool) => self.pool(pool, phase).await?,
            ClientOp::Sleep(time) => {
                phase.reaches(Instant::now() + *time).await;
            }
            // This step was done before the measurement.
            ClientOp::Hold(_) => {}
            ClientOp::Park(number) => tokio::select! {
                biased;
                () = phase.stopping() => {}
                () = phase.checkpoints.park(*number) => {}
            },
            ClientOp::Unpark(number) => phase.checkpoints.unpark(*number),
            ClientOp::Scope(threads) => {
                let mut running: FuturesUnordered<_> =
                    threads.iter().map(|ops| self.ops(ops, phase)).collect();
                while running.try_next().await?.is_some() {}
            }
            ClientOp::Iterate(iterate) => self.iterate(iterate, phase).await?,
        }
        Ok(())
    }

    async fn connect(&self, connect: &Connect, phase: &Phase) -> Result<(), Failed> {
        let wanted = Kind::of(&connect.ops, &connect.server_ops);
        let making = Making::new(self, phase, &wanted, connect.server, &connect.label)?;
        Connecting {
            making,
            connect,
            failures: InARow::new(connect.concurrency, connect.on_error),
        }
        .run()
        .await;
        Ok(())
    }

    async fn pool(&self, pool: &Pool, phase: &Phase) -> Result<(), Failed> {
        let wanted = Kind::of(&pool.ops, &[]);
        let making = Making::new(self, phase, &wanted, pool.server, &pool.label)?;
        Pooling {
            making,
            pool,
            failures: InARow::new(pool.connections, pool.on_error),
        }
        .run()
        .await;
        Ok(())
    }

    async fn iterate(&self, iterate: &Iterate<ClientOp>, phase: &Phase) -> Result<(), Failed> {
        let mut turns = Turns::of(iterate);
        let mut running = FuturesUnordered::new();
        while let Some(due) = turns.due() {
            if running.len() >= iterate.concurrency.max(1) as usize {
                running.try_next().await?;
                continue;
            }
            let begins = phase.reaches(due);
            tokio::pin!(begins);
            let begins = loop {
                tokio::select! {
                    biased;
                    begins = &mut begins => break begins,
                    Some(done) = running.next() => done?,
                }
            };
            if !begins {
                break;
            }
            turns.advance();
            running.push(self.ops(&iterate.ops, phase));
            // Operations that never wait must not starve others.
            tokio::task::yield_now().await;
        }
        while running.try_next().await?.is_some() {}
        Ok(())
    }

    /// Returns the number of connections that the scripts make; `None` if it is unknown.
    pub(crate) fn connections(&self) -> Option<u64> {
        let client = self.spec.scenario.clients.get(self.spec.client)?;
        connections(&client.ops)
    }
}

fn connections(ops: &[ClientOp]) -> Option<u64> {
    ops.iter().try_fold(0_u64, |sum, op| {
        let more = match op {
            ClientOp::Connect(connect) => connect.connections?,
            ClientOp::Pool(_) => return None,
            ClientOp::Scope(threads) => threads.iter().try_fold(0_u64, |sum, ops| {
                Some(sum.saturating_add(connections(ops)?))
            })?,
            ClientOp::Iterate(iterate) => match (iterate.times, iterate.time) {
                (Some(times), None) => connections(&iterate.ops)?.saturating_mul(times),
                _ => return None,
            },
            ClientOp::Hold(_) | ClientOp::Sleep(_) | ClientOp::Park(_) | ClientOp::Unpark(_) => 0,
        };
        Some(sum.saturating_add(more))
    })
}

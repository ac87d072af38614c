//! Runs the operations of a client.

use futures_util::TryStreamExt as _;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::time::Instant;

use super::arrivals::Arrivals;
use super::client::Client;
use super::connecting::{Connecting, InARow};
use super::phase::Phase;
use super::plan::Kind;
use crate::outcome::Failed;
use crate::scenario::{self, ClientOp, Connect, Iterate};

impl Client {
    /// Runs operations, one after the other.
    pub(super) fn ops<'a>(
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
            ClientOp::Pool(_) => return Err(Failed::other("no pools yet")),
            ClientOp::Sleep(time) => {
                phase.reaches(Instant::now() + *time).await;
            }
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
        let Some((kind, name)) = self.plan.kind(&wanted) else {
            return Err(Failed::other("a kind of connection that is not planned"));
        };
        self.server(connect.server)?;
        let connecting = Connecting {
            client: self,
            phase,
            connect,
            kind,
            name: &name,
            label: phase.recorder.label(&connect.label),
            failures: InARow::default(),
        };
        self.prime(&connecting).await;
        connecting.run().await;
        Ok(())
    }

    async fn iterate(&self, iterate: &Iterate<ClientOp>, phase: &Phase) -> Result<(), Failed> {
        let begin = Instant::now();
        let end = iterate.time.map(|time| begin + time);
        let mut arrivals = iterate
            .rate
            .map(|rate| Arrivals::new(begin, rate, scenario::Arrivals::Constant));
        let mut done = 0;
        while iterate.times != Some(done) {
            let due = match &mut arrivals {
                Some(arrivals) => {
                    let due = arrivals.due();
                    arrivals.advance();
                    due
                }
                None => Instant::now(),
            };
            if end.is_some_and(|end| due >= end) || !phase.reaches(due).await {
                break;
            }
            self.ops(&iterate.ops, phase).await?;
            done += 1;
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// How many connections the scripts make; `None`: nobody knows.
    pub(super) fn connections(&self) -> Option<u64> {
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
            ClientOp::Sleep(_) | ClientOp::Park(_) | ClientOp::Unpark(_) => 0,
        };
        Some(sum.saturating_add(more))
    })
}

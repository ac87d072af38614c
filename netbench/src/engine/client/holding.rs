//! Connections that are held, idle, during a measurement.

use std::rc::Rc;

use futures_util::future::LocalBoxFuture;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use tokio::time::{sleep, timeout};

use super::Client;
use super::making::Making;
use crate::drivers::Connection;
use crate::engine::plan::Kind;
use crate::engine::record::phase::Phase;
use crate::scenario::{ClientOp, Hold};
use crate::system::failure::Failure;
use crate::system::outcome::Failed;

impl Client {
    /// Opens the connections that the scripts hold, unless that was done before.
    pub(crate) async fn hold(&self) -> Result<(), Failure> {
        if !self.holds.replace(true) {
            self.hold_all(self.script()).await?;
        }
        Ok(())
    }

    fn hold_all<'a>(&'a self, ops: &'a [ClientOp]) -> LocalBoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            for op in ops {
                match op {
                    ClientOp::Hold(hold) => self.hold_these(hold).await?,
                    ClientOp::Scope(threads) => {
                        for ops in threads {
                            self.hold_all(ops).await?;
                        }
                    }
                    _ => {}
                }
            }
            Ok(())
        })
    }

    async fn hold_these(&self, hold: &Hold) -> Result<(), Failure> {
        let phase = Phase::new(None);
        let making = Making::new(self, &phase, &Kind::default(), hold.server, "")?;
        let connected = stream::iter(0..hold.connections)
            .map(|_| open(&making))
            .buffer_unordered(hold.concurrency.max(1) as usize)
            .try_for_each(|connection| {
                self.held.borrow_mut().push(connection);
                std::future::ready(Ok(()))
            });
        let Ok(connected) = timeout(hold.timeout, connected).await else {
            return Err(format!(
                "only {} of {} connections to hold were there after {:?}",
                self.held.borrow().len(),
                hold.connections,
                hold.timeout
            )
            .into());
        };
        connected.map_err(|failed| format!("a connection to hold failed: {failed}"))?;
        sleep(hold.settle).await;
        Ok(())
    }
}

async fn open(making: &Making<'_>) -> Result<Rc<dyn Connection>, Failed> {
    let connection = making.connect(making.base_name()).await?;
    connection.established().await?;
    Ok(connection)
}

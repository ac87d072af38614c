//! The tickets that connections are resumed with.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::client::Client;
use super::making::Making;
use crate::axes::Resumption;
use crate::drivers::Connection;
use crate::outcome::Failed;

/// How long a ticket is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// The longest time between two looks for a ticket.
const LOOK: Duration = Duration::from_millis(5);

/// What a ticket may take beyond the time of a handshake.
const LONGER: Duration = Duration::from_millis(5);

impl Client {
    pub(super) fn resumes(&self) -> bool {
        self.spec.setup.cell.resumption != Resumption::Full
    }

    /// Whether scripts begin before the handshake is complete.
    pub(super) fn sends_early(&self) -> bool {
        self.spec.setup.cell.resumption == Resumption::ZeroRtt
    }

    /// Makes connections for their tickets alone: one for each that will be under way at once,
    /// should a ticket be good for one connection. What goes wrong here goes wrong again where it
    /// is counted.
    pub(super) async fn prime(&self, making: &Making<'_>, connections: u64) {
        if !self.resumes() {
            return;
        }
        for _ in 0..connections {
            let outcome = timeout(PATIENCE, self.fetch_ticket(making)).await;
            if making.phase.is_stopping() || !matches!(outcome, Ok(Ok(()))) {
                return;
            }
        }
    }

    async fn fetch_ticket(&self, making: &Making<'_>) -> Result<(), Failed> {
        let began = Instant::now();
        let connection = making.connect().await?;
        connection.established().await?;
        // Not every stack tells when a ticket has come; it takes a round trip.
        sleep(LONGER + began.elapsed()).await;
        self.await_ticket(&*connection).await;
        connection.close(0);
        connection.closed().await
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

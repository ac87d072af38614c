//! Migration on request.

use std::{net::SocketAddr, task::Poll};

use hybriq_proto::wire::error::MigrateError;

use super::Connection;
use crate::worker::{State, WaitFor, wake};

impl Connection {
    /// Moves a client to another local address without losing data in flight (RFC 9000 §9). Returns
    /// the address of the new socket once the server answered there.
    ///
    /// The old path stays in use while the new one is validated, and on an error. The call waits
    /// until the handshake is confirmed and the server has supplied a connection id for the new
    /// path. A later call replaces an earlier one. Port 0 picks a free port; to change only the
    /// port, pass `0.0.0.0` or `[::]`.
    ///
    /// # Errors
    /// See [`MigrateError`].
    ///
    /// # Cancel safety
    /// The connection moves even when the future is dropped.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn run(connection: hybriq::Connection) -> Result<(), Box<dyn std::error::Error>> {
    /// let now_at = connection.migrate("192.0.2.17:0".parse()?).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn migrate(&self, local: SocketAddr) -> Result<SocketAddr, MigrateError> {
        let mut wakes = Vec::new();
        let request = self.handle.lock().begin_move(&mut wakes);
        wake(&mut wakes);
        if !self.handle.migrate(request, local) {
            return Err(MigrateError::Closed);
        }
        let outcome = |state: &mut State| match state.moving.outcome(request) {
            Some(outcome) => Poll::Ready(outcome),
            None if state.closed.is_some() => Poll::Ready(Err(MigrateError::Closed)),
            None => Poll::Pending,
        };
        self.handle.wait(WaitFor::Migration, outcome).await
    }
}

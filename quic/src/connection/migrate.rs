//! Migration on request.

use std::{net::SocketAddr, task::Poll};

use super::Connection;
use crate::worker::{State, WaitFor, wake};
use hybriq_proto::error::MigrateError;

impl Connection {
    /// Moves a client to another address of this machine, without losing data under way (RFC 9000
    /// §9). Returns the address of its new socket, once the server answered there.
    ///
    /// The new path is tried while the old one is still in use: on an error the connection stays
    /// where it was. The call waits until the handshake is confirmed and the server has supplied a
    /// connection id for the new path. A later call replaces an earlier one. Port 0 picks a free
    /// port; the address may be `0.0.0.0` or `[::]` to change the port only.
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

use std::{net::SocketAddr, task::Poll};

use super::Connection;
use crate::worker::{wait_until, wake};
use hybriq_proto::error::MigrateError;

impl Connection {
    /// Moves a client to another address of this machine, without loss of what is under way
    /// (RFC 9000 §9). Returns where its own new socket is bound to, once the server answered there.
    ///
    /// The new path is tried while the old one is still in use: on an error the connection stays
    /// where it was. Before the handshake is confirmed, and until the server gave a connection id to
    /// use on the new path, it waits. Of several wishes the last one counts. A port of 0 picks a free
    /// one; the address may be `0.0.0.0` or `[::]`, for a new port only.
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
        let wish = self.handle.lock().moving.begin(&mut wakes);
        wake(&mut wakes);
        if !self.handle.migrate(wish, local) {
            return Err(MigrateError::Closed);
        }
        wait_until(
            self.handle.state(),
            |state| &mut state.moving.waiters,
            |state| match state.moving.outcome(wish) {
                Some(outcome) => Poll::Ready(outcome),
                None if state.closed.is_some() => Poll::Ready(Err(MigrateError::Closed)),
                None => Poll::Pending,
            },
        )
        .await
    }
}

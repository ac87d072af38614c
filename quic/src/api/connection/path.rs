//! The path of a connection.

use std::{
    net::{Ipv6Addr, SocketAddr},
    task::Poll,
    time::{Duration, SystemTime},
};

use hybriq_proto::{
    remembered::saved_path::SavedPath, stats::PathStats, wire::error::MigrateError,
};

use super::Connection;
use crate::{
    sync::clock,
    worker::{State, WaitFor, wake},
};

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

    /// Returns what this connection measured on its path, for later connections to start from (see
    /// [`CarefulResume`](crate::memory::CarefulResume)). `None` if that is switched off, if data
    /// was sent for only a few round trips, or if the path carries too little to gain anything.
    #[expect(
        clippy::disallowed_methods,
        reason = "what outlives the process is dated by the wall clock"
    )]
    pub fn saved_path(&self) -> Option<SavedPath> {
        let known = self.handle.lock().core.known_path()?;
        Some(SavedPath::new(known, SystemTime::now()))
    }

    /// Returns the state of the path in use.
    pub fn path_stats(&self) -> PathStats {
        self.handle.lock().core.path_stats()
    }

    /// Returns the local address of the path in use. The IP address is the one that the peer's last
    /// datagram was sent to, or unspecified if the system does not report it.
    pub fn local_address(&self) -> SocketAddr {
        let unknown = (Ipv6Addr::UNSPECIFIED, 0).into();
        self.handle.lock().local_address.unwrap_or(unknown)
    }

    /// Returns the smoothed round-trip time.
    pub fn rtt(&self) -> Duration {
        self.stats().rtt
    }

    /// Changes the connection ids of both directions, so that an observer cannot link the packets
    /// before and after (RFC 9000 §9.5). A migration does this automatically.
    ///
    /// Returns false if the peer has not retired the ids of the last change or has supplied no new
    /// ones; the ids that can be changed are changed. Both take a round trip after the handshake
    /// and after each change.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn run(connection: hybriq::Connection) {
    /// // After a long sleep, possibly with another address:
    /// let is_new = connection.rotate_cids();
    /// # }
    /// ```
    pub fn rotate_cids(&self) -> bool {
        let rotated = self.handle.lock().core.rotate_cids(clock::now());
        self.handle.touch();
        rotated
    }
}

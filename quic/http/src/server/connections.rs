//! The number of connections that are served.

use tokio::sync::watch;

/// Counts connections that are served. Clones count the same ones.
#[derive(Clone)]
pub(super) struct Connections(watch::Sender<usize>);

/// A connection that is served, until it is dropped.
pub(super) struct Served(watch::Sender<usize>);

impl Default for Connections {
    fn default() -> Self {
        Self(watch::Sender::new(0))
    }
}

impl Connections {
    /// Counts a connection.
    pub(super) fn add(&self) -> Served {
        self.0.send_modify(|count| *count += 1);
        Served(self.0.clone())
    }

    /// Returns the number of connections.
    pub(super) fn count(&self) -> usize {
        *self.0.borrow()
    }

    /// Waits until there are none.
    pub(super) async fn ended(&self) {
        // The sender is alive, so this cannot fail.
        let _ = self.0.subscribe().wait_for(|count| *count == 0).await;
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

//! A client's memory of servers: one record for each server name, and the store of the records.

use std::{
    fmt,
    sync::Arc,
    time::{Instant, SystemTime},
};

use super::origin::{Origins, canonical};

mod encoding;
mod record;
#[cfg(test)]
mod tests;

pub use self::record::ServerRecord;

/// Name of a server: in lower case, without the dot of the root.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServerKey(Arc<str>);

impl ServerKey {
    /// Returns the key of a server with this name, however it is written.
    pub fn new(server_name: &str) -> Self {
        Self(canonical(server_name).into())
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A store of what a client remembers of servers.
///
/// The default, `ServerMemory`, can be written to a file. Implement this trait to keep the records
/// elsewhere. The methods are called while connections are driven: they must not block. The functions
/// that they are given do not use the store.
///
/// # Security
/// Whoever can read the store knows the servers that were visited, can resume their TLS sessions, and
/// is recognised by the tokens. Whoever can write to it can remove the downgrade alarm. Clients that
/// must not be linked need separate stores.
pub trait ServerStore: Send + Sync {
    /// Calls a function with the record of a server, or with an empty one.
    fn read(&self, server: &ServerKey, read: &mut dyn FnMut(&ServerRecord));

    /// Calls a function with the record of a server, or with an empty one, and stores the
    /// result, unless that is [empty](ServerRecord::is_empty). The change must be atomic: a token is then
    /// used only once, and two connections whose handshakes end at the same time both count.
    ///
    /// A full store must not replace a record that is [pinned](ServerRecord::is_pinned) at this time
    /// with a new one.
    fn change(
        &self,
        now: SystemTime,
        server: &ServerKey,
        change: &mut dyn FnMut(&mut ServerRecord),
    );
}

/// The bytes do not encode a memory of servers, or a record of one.
///
/// Exhaustive: it has no state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no memory of servers: the bytes were cut or changed, or another version wrote them; find out which \
     before you begin with an empty memory, which raises no downgrade alarm"
)]
pub struct InvalidServerMemory;

/// A point in time by both clocks.
///
/// Exhaustive: there are two clocks.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Epoch {
    /// By the monotonic clock.
    pub instant: Instant,
    /// Wall-clock time.
    pub time: SystemTime,
}

/// The store of a client, and its use. `ClientConfig` creates it.
#[doc(hidden)]
#[derive(Clone)]
pub struct Servers {
    store: Arc<dyn ServerStore>,
    origins: Origins,
    epoch: Epoch,
}

impl Servers {
    /// Creates a memory in a store. `epoch` relates the monotonic clock to the time of day.
    pub fn new(store: Arc<dyn ServerStore>, origins: Origins, epoch: Epoch) -> Self {
        Self {
            store,
            origins,
            epoch,
        }
    }

    pub(crate) const fn origins(&self) -> &Origins {
        &self.origins
    }

    /// Returns the time of day.
    pub(crate) fn time(&self, now: Instant) -> SystemTime {
        let Epoch { instant, time } = self.epoch;
        let later = time.checked_add(now.saturating_duration_since(instant));
        later.unwrap_or(time)
    }
}

impl fmt::Debug for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Servers")
            .field("origins", &self.origins)
            .finish_non_exhaustive()
    }
}

/// One server in a client's memory.
#[derive(Clone)]
pub(crate) struct Server {
    servers: Arc<Servers>,
    key: ServerKey,
}

impl Server {
    pub(crate) fn new(servers: &Arc<Servers>, server_name: &str) -> Self {
        Self {
            servers: servers.clone(),
            key: ServerKey::new(server_name),
        }
    }

    pub(crate) const fn key(&self) -> &ServerKey {
        &self.key
    }

    pub(crate) fn memory(&self) -> &Servers {
        &self.servers
    }

    /// Returns what `read` finds in the record.
    pub(crate) fn read<T: Default>(&self, read: impl Fn(&ServerRecord) -> T) -> T {
        let mut found = T::default();
        let store = &self.servers.store;
        store.read(&self.key, &mut |record| found = read(record));
        found
    }

    /// Changes the record, and returns what `change` does.
    pub(crate) fn change<T: Default>(
        &self,
        now: Instant,
        change: impl Fn(&mut ServerRecord) -> T,
    ) -> T {
        let mut result = T::default();
        let (store, time) = (&self.servers.store, self.servers.time(now));
        store.change(time, &self.key, &mut |record| result = change(record));
        result
    }
}

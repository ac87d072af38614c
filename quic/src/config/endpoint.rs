//! What an endpoint is configured with: its workers, where they run, and limits on new clients.

use std::{num::NonZero, thread};

/// Number of an endpoint's workers. Each has its own socket on the endpoint's address and
/// everything that its connections need, and works independently of the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Workers {
    /// This number, 1 to 128.
    Exactly(usize),
    /// One for each processor core that the process may use.
    PerCore,
}

impl Workers {
    /// Largest number of workers.
    pub(crate) const MOST: usize = 128;

    /// Returns the number on this machine.
    pub(crate) fn count(self) -> usize {
        match self {
            Self::Exactly(count) => count,
            Self::PerCore => {
                let cores = thread::available_parallelism().map_or(1, NonZero::get);
                cores.min(Self::MOST)
            }
        }
    }
}

impl From<usize> for Workers {
    fn from(count: usize) -> Self {
        Self::Exactly(count)
    }
}

/// Place where workers run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Placement {
    /// As tasks on the tokio runtime of the caller. The default.
    #[default]
    Runtime,
    /// Each on its own thread, with its own runtime. Tasks of
    /// [`Connection::spawn`](crate::Connection::spawn) run next to the worker, so that a connection
    /// never leaves its core.
    Threads,
    /// Like `Threads`, with each thread bound to a different core among those that the process may
    /// use. The first core depends on the process and on its other endpoints. Give processes on one
    /// machine their own cores (`taskset`, cpusets) if two must never share one. Linux and
    /// Android only; elsewhere like `Threads`.
    PinnedThreads,
}

/// Limits of an endpoint on new clients.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limits {
    /// Largest number of simultaneous connections.
    pub(crate) connections: Option<usize>,
    /// Largest number of clients that have not completed their handshake.
    pub(crate) handshakes: Option<usize>,
    /// Largest rate of new connections from each source network.
    pub(crate) per_network: Option<NetworkRate>,
    /// Size of a network.
    pub(crate) prefixes: Prefixes,
}

/// Lengths of the prefixes that the addresses of one network share, in bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prefixes {
    pub(crate) v4: u8,
    pub(crate) v6: u8,
}

impl Default for Prefixes {
    /// Returns the lengths that one customer typically has.
    fn default() -> Self {
        Self { v4: 24, v6: 56 }
    }
}

/// Rate of new connections from a network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NetworkRate {
    /// Connections per second.
    pub(crate) per_second: u32,
    /// Connections at once after a pause.
    pub(crate) burst: u32,
}

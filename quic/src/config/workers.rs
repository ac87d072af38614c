//! The number of an endpoint's workers, and where they run.

use std::{num::NonZero, thread};

/// Number of an endpoint's workers. Each has its own socket on the endpoint's address and
/// everything that its connections need, and works independently of the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// Each on a thread of its own with a runtime for that thread alone. Tasks of
    /// [`Connection::spawn`](crate::Connection::spawn) run next to the worker, so that a connection
    /// never leaves its core.
    Threads,
    /// Like `Threads`, with each thread bound to a different core among those that the process may
    /// use. The first core depends on the process and on its other endpoints. Give processes on one
    /// machine their own cores (`taskset`, cpusets) if two must never share one. Linux and
    /// Android only; elsewhere like `Threads`.
    PinnedThreads,
}

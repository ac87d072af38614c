//! Settings of a qlog.

use std::{
    fmt,
    io::{self, Write},
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    thread,
};

use hybriq_proto::events::Cid;
use hybriq_tls::Side;

use super::{
    Counters, Qlog, Shared,
    log::RESERVE,
    output::{Directory, Output},
    schema::{Addresses, Schema},
};
use crate::output::queue::Queue;

/// A connection that may be logged.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Candidate {
    /// Role of this end.
    pub side: Side,
    /// Address of the peer.
    pub peer: SocketAddr,
    /// The id that `hybriq::Connection::id` returns.
    pub id: Cid,
}

type Predicate = dyn Fn(&Candidate) -> bool + Send + Sync;

/// Rule for choosing connections.
pub(super) enum Sampling {
    /// The first connections out of each group of this size.
    Count { of: (u64, u64), seen: AtomicU64 },
    /// Connections for which the application says so.
    Asked(Box<Predicate>),
}

impl Sampling {
    pub(super) fn takes(&self, candidate: &Candidate) -> bool {
        match self {
            Self::Count {
                of: (some, all),
                seen,
            } => seen.fetch_add(1, Ordering::Relaxed) % all < *some,
            Self::Asked(ask) => ask(candidate),
        }
    }
}

impl fmt::Debug for Sampling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count {
                of: (some, all), ..
            } => write!(f, "{some} of {all}"),
            Self::Asked(_) => f.write_str("asked"),
        }
    }
}

enum Place {
    Directory(PathBuf),
    Stream(Box<dyn Write + Send>),
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(path) => path.fmt(f),
            Self::Stream(_) => f.write_str("stream"),
        }
    }
}

/// Builder of a [`Qlog`]. Start from [`Qlog::directory`] or [`Qlog::writer`].
#[derive(Debug)]
#[must_use]
pub struct QlogBuilder {
    place: Place,
    sampling: Sampling,
    schema: Schema,
    addresses: Addresses,
    max_log_bytes: u64,
    max_files: usize,
    max_connections: usize,
    queue_bytes: usize,
}

impl QlogBuilder {
    pub(super) fn directory(path: PathBuf) -> Self {
        Self::new(Place::Directory(path))
    }

    pub(super) fn stream(stream: Box<dyn Write + Send>) -> Self {
        Self::new(Place::Stream(stream))
    }

    fn new(place: Place) -> Self {
        Self {
            place,
            sampling: Sampling::Count {
                of: (1, 1),
                seen: AtomicU64::new(0),
            },
            schema: Schema::default(),
            addresses: Addresses::Written,
            max_log_bytes: 16 << 20,
            max_files: 1000,
            max_connections: 100,
            queue_bytes: 8 << 20,
        }
    }

    /// Logs some connections out of each group of `of`: `sample(1, 100)` logs the first of every
    /// hundred. Default: all.
    pub fn sample(mut self, connections: u64, of: u64) -> Self {
        self.sampling = Sampling::Count {
            of: (connections, of.max(1)),
            seen: AtomicU64::new(0),
        };
        self
    }

    /// Logs the connections for which a function returns true, instead of a share of all
    /// connections. The worker calls it once for each connection, and it must return quickly.
    /// Default: none.
    ///
    /// # Examples
    /// ```
    /// use hybriq::qlog::Qlog;
    ///
    /// let suspect = "203.0.113.7".parse::<std::net::IpAddr>().unwrap();
    /// let builder = Qlog::directory("/var/log/server").sample_if(move |candidate| {
    ///     candidate.peer.ip() == suspect
    /// });
    /// ```
    pub fn sample_if(mut self, takes: impl Fn(&Candidate) -> bool + Send + Sync + 'static) -> Self {
        self.sampling = Sampling::Asked(Box::new(takes));
        self
    }

    /// Sets the version of qlog. Default: [`Schema::V03`], which qvis opens.
    pub const fn schema(mut self, schema: Schema) -> Self {
        self.schema = schema;
        self
    }

    /// Leaves out IP addresses and ports. Default: they are written.
    pub const fn without_addresses(mut self) -> Self {
        self.addresses = Addresses::Omitted;
        self
    }

    /// Sets the largest size of one connection's log, at least 64 KiB. At this size, the log says
    /// how many events are missing and why the connection ended. Default: 16 MiB.
    pub const fn max_log_bytes(mut self, bytes: u64) -> Self {
        self.max_log_bytes = if bytes < 64 * 1024 { 64 * 1024 } else { bytes };
        self
    }

    /// Sets the largest number of files in the directory, including those of earlier processes. If
    /// there are more, the oldest complete file is removed. Default: 1000.
    pub const fn max_files(mut self, files: usize) -> Self {
        self.max_files = if files == 0 { 1 } else { files };
        self
    }

    /// Sets the largest number of connections that are logged at once; further connections are not
    /// logged. Each takes about 16 KiB of memory and a file descriptor. A directory never has more
    /// of them than files. Default: 100.
    pub const fn max_connections(mut self, connections: usize) -> Self {
        self.max_connections = connections;
        self
    }

    /// Sets how many bytes may wait to be written. Beyond that, events are dropped, so that a slow
    /// disk never holds up a connection; the log says how many. Default: 8 MiB.
    pub const fn queue_bytes(mut self, bytes: usize) -> Self {
        self.queue_bytes = bytes;
        self
    }

    /// Starts the writing thread.
    ///
    /// # Errors
    /// The directory cannot be created or read, or the system cannot start a thread.
    pub fn start(self) -> io::Result<Qlog> {
        let mut max_connections = self.max_connections;
        let (output, is_stream) = match self.place {
            Place::Directory(path) => {
                max_connections = max_connections.min(self.max_files);
                let directory = Directory::open(path, self.max_files)?;
                (Output::Directory(directory), false)
            }
            Place::Stream(stream) => (Output::Stream(stream), true),
        };
        let queue = Arc::new(Queue::new(self.queue_bytes));
        let counters = Arc::new(Counters::default());
        let (input, counted) = (queue.clone(), counters.clone());
        thread::Builder::new()
            .name("hybriq-qlog".to_owned())
            .spawn(move || output.run(&input, &counted))?;
        Ok(Qlog(Arc::new(Shared {
            queue,
            counters,
            sampling: self.sampling,
            schema: self.schema,
            addresses: self.addresses,
            max_bytes: self.max_log_bytes.max(2 * RESERVE),
            max_open: max_connections,
            open: AtomicUsize::new(0),
            next: AtomicU64::new(0),
            stream: is_stream.then(Default::default),
        })))
    }
}

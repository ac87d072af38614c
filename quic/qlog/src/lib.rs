//! Logs of connections for tools such as qvis: [`Qlog`].
//!
//! A log contains each packet with its frames, each loss, the actions of the congestion controller,
//! and the course of the handshake, with the key-exchange group and whether a HelloRetryRequest was
//! needed.
//!
//! ```no_run
//! use hybriq::{Endpoint, Identity, ServerConfig, qlog::Qlog};
//!
//! # fn run() -> Result<(), Box<dyn std::error::Error>> {
//! # let identity = Identity::from_pem_files("cert.pem", "key.pem")?;
//! // One connection of a hundred, in files of at most 16 MiB.
//! let qlog = Qlog::directory("/var/log/server/qlog").sample(1, 100).start()?;
//! let server = Endpoint::builder()
//!     .server(ServerConfig::new(identity).alpn(["echo"]))
//!     .qlog(&qlog)
//!     .bind("[::]:4433")?;
//! # Ok(())
//! # }
//! ```
//!
//! # Cost
//! A connection that is not in the sample costs nothing extra. For a connection that is, its worker
//! writes the records into a buffer, and a separate thread writes them to disk. The worker never
//! waits for that thread: when the thread falls behind, events are dropped, and the log and
//! [`QlogStats::events_dropped`] say how many.
//!
//! # Security
//! A log contains IP addresses, connection ids and the reasons for errors, but no application data
//! and never keys, tokens or stateless reset tokens. Files are readable only by their user and
//! group. [`QlogBuilder::without_addresses`] leaves addresses out. Logs take at most
//! [`max_files`](QlogBuilder::max_files) times [`max_log_bytes`](QlogBuilder::max_log_bytes) of
//! disk space.

mod builder;
mod clock;
mod json;
mod log;
mod output;
mod record;
mod schema;

#[cfg(test)]
mod tests;

use std::{
    io::Write,
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Instant,
};

use hybriq_proto::events::{Meta, Sampler, Subscriber};

use self::{builder::Sampling, log::Log, record::Recorder, schema::Addresses};
pub use self::{
    builder::{Candidate, QlogBuilder},
    schema::Schema,
};
use crate::output::queue::{Opening, Queue};

/// Writer of logs, for any number of endpoints. Clones write to the same place.
///
/// Pass it to `hybriq::EndpointBuilder::qlog`, or to
/// [`TransportConfig::sampler`](hybriq_proto::TransportConfig::sampler) to log only some of the
/// connections.
///
/// Dropping the last clone ends the writing thread, once the logs of all connections are written.
/// Call [`flush`](Self::flush) before the process ends.
#[derive(Clone, Debug)]
pub struct Qlog(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    queue: Arc<Queue>,
    counters: Arc<Counters>,
    sampling: Sampling,
    schema: Schema,
    addresses: Addresses,
    max_bytes: u64,
    max_open: usize,
    open: AtomicUsize,
    /// Number of the next log.
    next: AtomicU64,
    /// For a stream, the time of its first connection.
    stream: Option<OnceLock<Instant>>,
}

impl Qlog {
    /// Writes a file for each connection into a directory, which is created if it does not exist:
    /// `ID_client.sqlog` or `ID_server.sqlog`, where the id is `hybriq::Connection::id`, the
    /// destination connection id of the client's first packet. A client may use an id again: later
    /// files are named `ID_server_NUMBER.sqlog`, with a number that no other file of this writer
    /// has.
    pub fn directory(path: impl Into<PathBuf>) -> QlogBuilder {
        QlogBuilder::directory(path.into())
    }

    /// Writes the records of all connections to one stream, such as a pipe to a collector. Each
    /// record has the id of its connection as its `group_id`. A separate thread writes the stream,
    /// so writing may block.
    ///
    /// The records of one connection are in order. Those of several connections are interleaved
    /// piece by piece.
    pub fn writer(stream: impl Write + Send + 'static) -> QlogBuilder {
        QlogBuilder::stream(Box::new(stream))
    }

    /// Waits until all records of closed connections are written, and blocks the thread meanwhile.
    /// Some records of open connections may still be waiting in their buffers.
    pub fn flush(&self) {
        self.0.queue.wait_until_empty();
    }

    /// Returns the counters.
    pub fn stats(&self) -> QlogStats {
        self.0.counters.stats()
    }
}

impl Sampler for Qlog {
    fn sample(&self, meta: &Meta, peer: SocketAddr) -> Option<Arc<dyn Subscriber>> {
        let shared = &self.0;
        let candidate = Candidate {
            side: meta.side,
            peer,
            id: meta.original_dcid,
        };
        if !shared.sampling.takes(&candidate) {
            add(&shared.counters.not_sampled, 1);
            return None;
        }
        if shared.open.fetch_add(1, Ordering::Relaxed) >= shared.max_open {
            shared.open.fetch_sub(1, Ordering::Relaxed);
            add(&shared.counters.over_limit, 1);
            return None;
        }
        add(&shared.counters.connections, 1);
        let number = shared.next.fetch_add(1, Ordering::Relaxed);
        let (recorder, opening) = shared.begin(meta);
        let log = Log::new(shared.clone(), number, recorder, opening, meta.time);
        Some(Arc::new(log))
    }
}

impl Shared {
    /// Returns the recorder of a new connection. The first of a stream, and each in a directory,
    /// begins with a header.
    fn begin(&self, meta: &Meta) -> (Recorder, Option<Opening>) {
        let mut is_first = true;
        let epoch = self.stream.as_ref().map_or(meta.time, |first| {
            is_first = false;
            *first.get_or_init(|| {
                is_first = true;
                meta.time
            })
        });
        let mut recorder = Recorder::new(self.schema, self.addresses, epoch, meta.side);
        recorder.group = self.stream.as_ref().map(|_| meta.original_dcid);
        let opening = is_first.then(|| Opening {
            name: format!("{}_{}", meta.original_dcid, record::header::role(meta.side)),
            header: record::header::header(meta, self.schema, recorder.group),
        });
        (recorder, opening)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.queue.close();
    }
}

/// Counters of a [`Qlog`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct QlogStats {
    /// Connections logged.
    pub connections: u64,
    /// Connections that were not in the sample.
    pub not_sampled: u64,
    /// Connections in the sample that were not logged because too many were already being logged.
    pub over_limit: u64,
    /// Events recorded.
    pub events: u64,
    /// Events missing from the logs: the writer fell behind, a log reached its limit, or writing
    /// failed.
    pub events_dropped: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Files removed because there were too many.
    pub files_removed: u64,
    /// Failed writes, each of which ends its log.
    pub write_errors: u64,
}

#[derive(Debug, Default)]
struct Counters {
    connections: AtomicU64,
    not_sampled: AtomicU64,
    over_limit: AtomicU64,
    events: AtomicU64,
    events_dropped: AtomicU64,
    bytes: AtomicU64,
    files_removed: AtomicU64,
    write_errors: AtomicU64,
}

fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

impl Counters {
    fn stats(&self) -> QlogStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        QlogStats {
            connections: read(&self.connections),
            not_sampled: read(&self.not_sampled),
            over_limit: read(&self.over_limit),
            events: read(&self.events),
            events_dropped: read(&self.events_dropped),
            bytes: read(&self.bytes),
            files_removed: read(&self.files_removed),
            write_errors: read(&self.write_errors),
        }
    }
}

//! What a connection and its streams share.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

use hybriq::stats::Census;

use crate::adapter::{protocols::Protocols, settings::Arrival, transport::Transport};

/// State that a connection and its streams share.
pub(crate) struct Common {
    pub(crate) transport: Transport,
    /// Streams of extended CONNECT, if it is on.
    pub(crate) protocols: Option<Protocols>,
    /// The settings of the peer, if somebody waits for them.
    pub(crate) settings: Option<Arrival>,
    pub(crate) counts: Arc<Counts>,
}

/// What is held for a connection beside what the transport holds.
#[derive(Debug)]
pub(crate) struct Counts {
    /// Requests that `h3` has accepted, and whose fields have not come.
    requests: AtomicUsize,
    /// Streams with a frame that is not whole.
    holding: AtomicUsize,
    /// Bytes of these frames.
    held: AtomicUsize,
    /// Streams of the peer whose beginning does not tell yet what they are.
    unis: AtomicUsize,
    /// Code with which all new requests are refused, once they are.
    refusal: OnceLock<u64>,
    /// Requests that were refused so.
    refused: AtomicU64,
    /// Messages that were malformed behind their heads, and that nobody was told of.
    broken: AtomicU64,
    /// SETTINGS_MAX_FIELD_SECTION_SIZE of the peer.
    most_fields: AtomicU64,
}

impl Default for Counts {
    fn default() -> Self {
        Self {
            requests: AtomicUsize::new(0),
            holding: AtomicUsize::new(0),
            held: AtomicUsize::new(0),
            unis: AtomicUsize::new(0),
            refusal: OnceLock::new(),
            refused: AtomicU64::new(0),
            broken: AtomicU64::new(0),
            most_fields: AtomicU64::new(u64::MAX),
        }
    }
}

impl Common {
    pub(crate) fn new(transport: Transport) -> Self {
        Self {
            transport,
            protocols: None,
            settings: None,
            counts: Arc::default(),
        }
    }
}

impl Counts {
    /// Counts what is held, table by table.
    pub(crate) fn census(&self, census: &mut Census) {
        let of = |count: &AtomicUsize| count.load(Ordering::Relaxed);
        census.add("requests without fields", of(&self.requests), 0);
        census.add("unfinished frames", of(&self.holding), self.held());
        census.add("unidirectional streams without type", of(&self.unis), 0);
    }

    /// Returns the bytes of frames that are not whole.
    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Notes the number of unidirectional streams whose type is not known.
    pub(crate) fn set_unis(&self, count: usize) {
        self.unis.store(count, Ordering::Relaxed);
    }

    /// Counts a request that `h3` accepts.
    pub(crate) fn on_request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request whose fields came, or which is given up.
    pub(crate) fn on_request_over(&self) {
        self.requests.fetch_sub(1, Ordering::Relaxed);
    }

    /// Refuses all requests from now on.
    pub(crate) fn refuse_all(&self, code: u64) {
        let _ = self.refusal.set(code);
    }

    /// Counts a request, if it is to be refused, and returns the code for it.
    pub(crate) fn refuse(&self) -> Option<u64> {
        let code = *self.refusal.get()?;
        self.refused.fetch_add(1, Ordering::Relaxed);
        Some(code)
    }

    /// Returns the number of requests that were refused unseen.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Notes the largest size of a field section that the peer takes.
    pub(crate) fn set_most_fields(&self, bytes: u64) {
        self.most_fields.store(bytes, Ordering::Relaxed);
    }

    /// Returns the largest size of a field section that the peer takes.
    pub(crate) fn most_fields(&self) -> u64 {
        self.most_fields.load(Ordering::Relaxed)
    }

    /// Counts a message that is malformed behind its head.
    pub(crate) fn on_broken(&self) {
        self.broken.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of these since the last call.
    pub(crate) fn take_broken(&self) -> u64 {
        if self.broken.load(Ordering::Relaxed) == 0 {
            return 0;
        }
        self.broken.swap(0, Ordering::Relaxed)
    }

    /// Updates the count of the bytes that a stream holds, given their number before.
    pub(crate) fn on_held(&self, before: usize, now: usize) {
        if before == 0 {
            self.holding.fetch_add(1, Ordering::Relaxed);
        }
        if now == 0 {
            self.holding.fetch_sub(1, Ordering::Relaxed);
        }
        self.held.fetch_add(now, Ordering::Relaxed);
        self.held.fetch_sub(before, Ordering::Relaxed);
    }
}

//! What a connection holds for messages in progress.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use hybriq::stats::Census;

/// What is held for a connection besides what the transport holds.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Messages whose head has not arrived.
    headless: AtomicUsize,
    /// Messages with data that was not taken, or an incomplete field section.
    holding: AtomicUsize,
    /// Bytes of these.
    held: AtomicUsize,
    /// Streams of the peer whose first bytes do not tell yet what they are.
    unis: AtomicUsize,
    bidis: AtomicUsize,
    /// Requests that turned out to be malformed behind their heads.
    broken: AtomicU64,
}

/// A share of a count, until it is dropped.
#[derive(Debug)]
pub(super) struct Counted<'a>(&'a AtomicUsize);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn count(number: &AtomicUsize) -> Counted<'_> {
    number.fetch_add(1, Ordering::Relaxed);
    Counted(number)
}

impl Counts {
    /// Counts a unidirectional stream without a type.
    pub(super) fn opening_uni(&self) -> Counted<'_> {
        count(&self.unis)
    }

    /// Counts a bidirectional stream that may be a request, or belong to a session.
    pub(super) fn opening_bidi(&self) -> Counted<'_> {
        count(&self.bidis)
    }

    /// Counts a message without a head.
    pub(super) fn on_message(&self) {
        self.headless.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts it no more.
    pub(super) fn on_head(&self) {
        self.headless.fetch_sub(1, Ordering::Relaxed);
    }

    /// Replaces the bytes that a message was counted for.
    pub(super) fn on_held(&self, before: usize, now: usize) {
        match (before, now) {
            (0, 1..) => drop(self.holding.fetch_add(1, Ordering::Relaxed)),
            (1.., 0) => drop(self.holding.fetch_sub(1, Ordering::Relaxed)),
            _ => {}
        }
        if now > before {
            self.held.fetch_add(now - before, Ordering::Relaxed);
        } else if before > now {
            self.held.fetch_sub(before - now, Ordering::Relaxed);
        }
    }

    /// Counts a request that is malformed behind its head.
    pub(super) fn on_broken(&self) {
        self.broken.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of those since the last call.
    pub(super) fn take_broken(&self) -> u64 {
        match self.broken.load(Ordering::Relaxed) {
            0 => 0,
            _ => self.broken.swap(0, Ordering::Relaxed),
        }
    }

    /// Returns the bytes that are held.
    pub(super) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Counts what is held, table by table. All are 0 on a connection at rest.
    pub(super) fn census(&self, census: &mut Census) {
        let of = |number: &AtomicUsize| number.load(Ordering::Relaxed);
        census.add("requests without fields", of(&self.headless), 0);
        census.add("unfinished frames", of(&self.holding), self.held());
        census.add("unidirectional streams without type", of(&self.unis), 0);
        census.add("bidirectional streams without type", of(&self.bidis), 0);
    }
}

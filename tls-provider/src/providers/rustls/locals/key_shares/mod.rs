//! Key shares that a client makes ahead of time, while it is idle.
//!
//! rustls takes groups as `'static` objects and generates a key pair in the middle of
//! `ClientConnection::new`. A group of this module takes the pair that [`Shares::lend`] has just
//! set aside for this thread, and generates one if there is none.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ::rustls::crypto::{ActiveKeyExchange, CompletedKeyExchange, CryptoProvider, SupportedKxGroup};
use ::rustls::ffdhe_groups::FfdheGroup;
use ::rustls::{Error, NamedGroup, ProtocolVersion};

use crate::Group;
use crate::providers::rustls::crypto::groups;

#[cfg(test)]
mod tests;

/// Age from which a pair is no longer used: a copy of the process, such as a snapshot of its
/// machine, has the same pairs, and should not find them for long.
const MAX_AGE: Duration = Duration::from_secs(600);

/// Largest number of pairs of one client: 64 of the largest group are about 400 KB.
const MAX_SHARES: usize = 64;

/// A key pair that no ClientHello has used. AWS-LC wipes the private key when it is dropped.
struct Ready {
    pair: Box<dyn ActiveKeyExchange>,
    made: Instant,
    /// Process that made it: a fork must not use it as well.
    process: u32,
}

impl Ready {
    fn is_usable(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.made) < MAX_AGE && self.process == std::process::id()
    }
}

thread_local! {
    /// The pair for the ClientHello that this thread is creating.
    static LENT: Cell<Option<Ready>> = const { Cell::new(None) };
}

/// Unused key pairs for the first group of a client, oldest first.
pub(in crate::providers::rustls) struct Shares {
    group: &'static dyn SupportedKxGroup,
    size: usize,
    ready: Mutex<VecDeque<Ready>>,
}

impl Shares {
    /// Creates a pool for the first group of the crypto, which then takes pairs from it. `None` if
    /// the pool would be empty.
    pub(in crate::providers::rustls) fn over(
        crypto: &mut CryptoProvider,
        size: usize,
    ) -> Option<Self> {
        if size == 0 {
            return None;
        }
        let first = crypto.kx_groups.first_mut()?;
        let taking = MADE_AHEAD
            .iter()
            .find(|ahead| ahead.name() == first.name())?;
        *first = taking;
        Some(Self {
            group: taking.0,
            size: size.min(MAX_SHARES),
            ready: Mutex::default(),
        })
    }

    fn ready(&self) -> MutexGuard<'_, VecDeque<Ready>> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if there is room for another pair. Drops pairs that are too old.
    pub(in crate::providers::rustls) fn is_short(&self, now: Instant) -> bool {
        let mut ready = self.ready();
        ready.retain(|it| it.is_usable(now));
        ready.len() < self.size
    }

    /// Makes one pair, if there is room for it.
    pub(in crate::providers::rustls) fn make_one(&self, now: Instant) {
        if !self.is_short(now) {
            return;
        }
        // Not under the lock: a connection must not wait for this.
        let Ok(pair) = self.group.start() else { return };
        let mut ready = self.ready();
        if ready.len() < self.size {
            ready.push_back(Ready {
                pair,
                made: now,
                process: std::process::id(),
            });
        }
    }

    /// Creates a ClientHello with a pair from the pool, if there is one. A pair that it does not
    /// use, because the server asked for another group last time, is put back.
    pub(in crate::providers::rustls) fn lend<T>(
        &self,
        now: Instant,
        make: impl FnOnce() -> T,
    ) -> T {
        let pair = {
            let mut ready = self.ready();
            std::iter::from_fn(|| ready.pop_front()).find(|it| it.is_usable(now))
        };
        LENT.set(pair);
        let made = make();
        if let Some(unused) = LENT.take() {
            self.ready().push_front(unused);
        }
        made
    }
}

/// Returns the pair that this thread was lent, if it is for this group; otherwise generates one.
pub(in crate::providers::rustls) fn start(
    group: &'static dyn SupportedKxGroup,
) -> Result<Box<dyn ActiveKeyExchange>, Error> {
    match LENT.take() {
        Some(lent) if lent.pair.group() == group.name() => Ok(lent.pair),
        other => {
            LENT.set(other);
            group.start()
        }
    }
}

/// A group that takes key pairs made ahead of time.
#[derive(Debug)]
struct MadeAhead(&'static dyn SupportedKxGroup);

static MADE_AHEAD: LazyLock<Vec<MadeAhead>> = LazyLock::new(|| {
    let implemented = Group::ALL.into_iter().filter_map(groups::implementation);
    implemented.map(MadeAhead).collect()
});

impl SupportedKxGroup for MadeAhead {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        start(self.0)
    }

    fn start_and_complete(&self, peer: &[u8]) -> Result<CompletedKeyExchange, Error> {
        self.0.start_and_complete(peer)
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        self.0.ffdhe_group()
    }

    fn name(&self) -> NamedGroup {
        self.0.name()
    }

    fn fips(&self) -> bool {
        self.0.fips()
    }

    fn usable_for_version(&self, version: ProtocolVersion) -> bool {
        self.0.usable_for_version(version)
    }
}

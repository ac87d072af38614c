//! Flow control of a session (draft-ietf-webtrans-http3 §5).

use hybriq_proto::Direction;

use super::Capsule;
use crate::error::Violation;

/// Largest limit on a number of streams (draft-ietf-webtrans-http3 §5.6.2).
const MOST_STREAMS: u64 = 1 << 60;

/// What one end of a session allows the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Windows {
    /// Bidirectional streams that may be open at once.
    pub bidi: u64,
    /// Unidirectional streams that may be open at once.
    pub uni: u64,
    /// Bytes of data that may be in flight or unread, on all streams of the session together.
    pub data: u64,
}

impl Windows {
    /// Creates windows for this number of bidirectional streams, unidirectional streams, and bytes.
    pub const fn new(bidi: u64, uni: u64, data: u64) -> Self {
        Self { bidi, uni, data }
    }

    /// Returns true if this end declares flow control (draft-ietf-webtrans-http3 §5.1).
    pub const fn is_declared(&self) -> bool {
        self.bidi > 0 || self.uni > 0 || self.data > 0
    }
}

/// Both directions of a session's flow control.
#[derive(Debug)]
pub(super) struct Flow {
    pub(super) given: Limits<Given>,
    pub(super) got: Limits<Got>,
}

/// The three things that are limited.
#[derive(Debug)]
pub(super) struct Limits<T> {
    bidi: T,
    uni: T,
    pub(super) data: T,
}

/// Credit that this end gives. The limit is what was given back, and the window; it is told again once half of the
/// window was given back.
#[derive(Debug)]
pub(super) struct Given {
    window: u64,
    limit: u64,
    used: u64,
    returned: u64,
}

/// Credit that the peer gives.
#[derive(Debug)]
pub(super) struct Got {
    limit: u64,
    used: u64,
    /// A limit at which something waits, and which the peer was not told.
    blocked: Option<u64>,
    /// The last one that it was told.
    told: Option<u64>,
}

impl<T> Limits<T> {
    fn new(windows: Windows, make: impl Fn(u64) -> T) -> Self {
        Self {
            bidi: make(windows.bidi),
            uni: make(windows.uni),
            data: make(windows.data),
        }
    }

    pub(super) const fn streams(&mut self, direction: Direction) -> &mut T {
        match direction {
            Direction::Bidi => &mut self.bidi,
            Direction::Uni => &mut self.uni,
        }
    }
}

impl Flow {
    /// Starts with the windows of this end and those of the peer.
    pub(super) fn new(own: Windows, peer: Windows) -> Self {
        Self {
            given: Limits::new(own, Given::new),
            got: Limits::new(peer, Got::new),
        }
    }

    /// Returns true if there is something to write.
    pub(super) fn has_output(&self) -> bool {
        let Limits { bidi, uni, data } = &self.given;
        let is_due = [bidi, uni, data].iter().any(|given| given.is_due());
        let Limits { bidi, uni, data } = &self.got;
        is_due || [bidi, uni, data].iter().any(|got| got.blocked.is_some())
    }

    /// Appends the capsules that are due.
    pub(super) fn write(&mut self, out: &mut Vec<u8>) {
        let capsules = [
            self.given.data.take_due().map(Capsule::MaxData),
            self.given
                .bidi
                .take_due()
                .map(|most| max_streams(Direction::Bidi, most)),
            self.given
                .uni
                .take_due()
                .map(|most| max_streams(Direction::Uni, most)),
            self.got.data.take_blocked().map(Capsule::DataBlocked),
            self.got
                .bidi
                .take_blocked()
                .map(|most| Capsule::StreamsBlocked(Direction::Bidi, most)),
            self.got
                .uni
                .take_blocked()
                .map(|most| Capsule::StreamsBlocked(Direction::Uni, most)),
        ];
        for capsule in capsules.iter().flatten() {
            capsule.write(out);
        }
    }

    /// Takes a new limit of the peer. Returns true if it allows more.
    pub(super) fn on_max_streams(
        &mut self,
        direction: Direction,
        limit: u64,
    ) -> Result<bool, Violation> {
        if limit > MOST_STREAMS {
            return Err(Violation::SessionStreamsTooMany);
        }
        self.got.streams(direction).raise(limit)
    }
}

fn max_streams(direction: Direction, most: u64) -> Capsule {
    Capsule::MaxStreams(direction, most.min(MOST_STREAMS))
}

impl Given {
    const fn new(window: u64) -> Self {
        Self {
            window,
            limit: window,
            used: 0,
            returned: 0,
        }
    }

    /// Notes that the peer used some. Returns false if that is more than it has.
    pub(super) const fn take(&mut self, count: u64) -> bool {
        self.used = self.used.saturating_add(count);
        self.used <= self.limit
    }

    /// Notes that some is free again.
    pub(super) const fn give_back(&mut self, count: u64) {
        self.returned = self.returned.saturating_add(count);
    }

    const fn next(&self) -> u64 {
        self.returned.saturating_add(self.window)
    }

    const fn is_due(&self) -> bool {
        let more = self.next().saturating_sub(self.limit);
        more > 0 && more >= self.window.div_ceil(2)
    }

    fn take_due(&mut self) -> Option<u64> {
        self.is_due().then(|| {
            self.limit = self.next();
            self.limit
        })
    }
}

impl Got {
    const fn new(limit: u64) -> Self {
        Self {
            limit,
            used: 0,
            blocked: None,
            told: None,
        }
    }

    /// Takes up to this much. Takes nothing, and notes that something waits, if there is none.
    pub(super) fn take(&mut self, most: u64) -> u64 {
        let taken = most.min(self.limit.saturating_sub(self.used));
        self.used += taken;
        if taken == 0 && self.told != Some(self.limit) {
            self.blocked = Some(self.limit);
        }
        taken
    }

    /// Notes that some was not used after all.
    pub(super) const fn give_back(&mut self, count: u64) {
        self.used = self.used.saturating_sub(count);
    }

    /// Takes a new limit. Returns true if it allows more.
    pub(super) const fn raise(&mut self, limit: u64) -> Result<bool, Violation> {
        if limit < self.limit {
            return Err(Violation::SessionLimitReduced);
        }
        let is_more = limit > self.limit;
        self.limit = limit;
        if is_more {
            self.blocked = None;
        }
        Ok(is_more)
    }

    const fn take_blocked(&mut self) -> Option<u64> {
        let blocked = self.blocked.take();
        if blocked.is_some() {
            self.told = blocked;
        }
        blocked
    }
}

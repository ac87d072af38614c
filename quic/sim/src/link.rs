use std::{collections::VecDeque, time::Duration};

use hybriq_tls::Side;

use super::{Datagram, Hop, LinkReport, LinkStats, Node, Rng, node::Both};
use hybriq_proto::space::Ecn;

/// When a queue marks ECN-capable datagrams CE instead of letting them pass untouched. Others pass
/// until the queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marking {
    /// Never.
    Never,
    /// All that would wait longer than this: a step.
    Above(Duration),
    /// More of them the longer they would wait: none at `from`, all at `to` and beyond (as RED does,
    /// but by the queue of the moment).
    Ramp {
        /// The longest wait without marks.
        from: Duration,
        /// The wait from which on all are marked.
        to: Duration,
    },
}

impl Marking {
    /// Whether a datagram that waits so long is marked.
    pub(super) fn marks(self, wait: Duration, rng: &mut Rng) -> bool {
        match self {
            Self::Never => false,
            Self::Above(threshold) => wait > threshold,
            Self::Ramp { from, to } => {
                let (over, range) = (wait.saturating_sub(from), to.saturating_sub(from));
                u128::from(rng.below(1 << 32)) * range.as_nanos() < over.as_nanos() << 32
            }
        }
    }
}

/// A link of limited rate with a queue before it, each way.
///
/// The queue holds so many bytes, the datagram on the wire not counted; what does not fit is lost.
#[derive(Clone, Debug)]
pub struct Bandwidth {
    ways: Both<Way>,
    queue_bytes: u64,
    marking: Marking,
    stats: LinkStats,
}

/// One direction.
#[derive(Clone, Debug)]
struct Way {
    rates: Rates,
    /// When all that was taken has left.
    free_at: Duration,
    /// What was taken and has not begun to leave at `counted_at`: when it does, and its bytes.
    waiting: VecDeque<(Duration, u64)>,
    waiting_bytes: u64,
    /// Up to when the delay of the queue is in the statistics.
    counted_at: Duration,
}

impl Bandwidth {
    /// An idle link of constant rate.
    pub fn new(bits_per_second: u64, queue_bytes: u64) -> Self {
        Self {
            ways: Both::of(|| Way {
                rates: Rates::constant(bits_per_second),
                free_at: Duration::ZERO,
                waiting: VecDeque::new(),
                waiting_bytes: 0,
                counted_at: Duration::ZERO,
            }),
            queue_bytes,
            marking: Marking::Never,
            stats: LinkStats::new(),
        }
    }

    /// Changes the rate both ways to so many bits a second from those times on, in their order. At
    /// rate 0 everything waits, and is lost where no other rate follows.
    #[must_use]
    pub fn then(mut self, changes: impl IntoIterator<Item = (Duration, u64)>) -> Self {
        for (at, rate) in changes {
            for side in [Side::Client, Side::Server] {
                let rates = &mut self.ways.toward_mut(side).rates;
                rates.changes.push_back((at, rate));
            }
        }
        self
    }

    /// Marks ECN-capable datagrams.
    #[must_use]
    pub const fn marking(mut self, marking: Marking) -> Self {
        self.marking = marking;
        self
    }

    /// Counts into these statistics.
    #[must_use]
    pub fn stats(mut self, stats: &LinkStats) -> Self {
        self.stats = stats.clone();
        self
    }
}

impl Node for Bandwidth {
    fn on_datagram(&mut self, mut datagram: Datagram, hop: &mut Hop<'_>) {
        let way = self.ways.toward_mut(hop.toward);
        way.begin_until(hop.now);
        let (size, backlog) = (datagram.size(), way.free_at.saturating_sub(hop.now));
        let (waited, span) = (
            way.free_at.saturating_sub(way.counted_at),
            hop.now.saturating_sub(way.counted_at),
        );
        way.counted_at = hop.now;
        let has_room = backlog.is_zero() || way.waiting_bytes + size <= self.queue_bytes;
        let fits = has_room && way.take(hop.now + backlog, size);
        let marked = fits && datagram.ecn.is_some() && self.marking.marks(backlog, hop.rng);
        if fits && !backlog.is_zero() {
            way.waiting.push_back((hop.now + backlog, size));
            way.waiting_bytes += size;
        }
        let queued = way.waiting_bytes;
        let wait = way.free_at.saturating_sub(hop.now);
        self.stats.update(hop.toward, |report| {
            report.delay.on_drain(waited, span);
            report.most_queued = report.most_queued.max(queued);
            report.count(size, fits, marked);
        });
        if marked {
            datagram.ecn = Some(Ecn::Ce);
        }
        if fits {
            hop.forward_after(wait, datagram);
        }
    }
}

impl Way {
    /// Keeps the wire busy for a datagram, unless that would be for ever.
    fn take(&mut self, starts_at: Duration, size: u64) -> bool {
        let end = self.rates.end_of(starts_at, size);
        self.free_at = end.unwrap_or(self.free_at);
        end.is_some()
    }

    /// Lets those begin to leave whose time has come.
    fn begin_until(&mut self, now: Duration) {
        while let Some(&(at, size)) = self.waiting.front()
            && at <= now
        {
            self.waiting.pop_front();
            self.waiting_bytes -= size;
        }
    }
}

impl LinkReport {
    pub(super) const fn count(&mut self, size: u64, fits: bool, marked: bool) {
        if fits {
            self.datagrams += 1;
            self.bytes += size;
            self.marked += marked as u64;
        } else {
            self.dropped += 1;
        }
    }
}

/// A rate that changes over time.
#[derive(Clone, Debug)]
pub(super) struct Rates {
    bits_per_second: u64,
    /// Rates to come, earliest first.
    changes: VecDeque<(Duration, u64)>,
}

impl Rates {
    pub(super) const fn constant(bits_per_second: u64) -> Self {
        Self {
            bits_per_second,
            changes: VecDeque::new(),
        }
    }

    /// When bytes have left that begin to leave at `start`; `None`: never. Calls come in the order
    /// of their starts.
    pub(super) fn end_of(&mut self, start: Duration, bytes: u64) -> Option<Duration> {
        let mut at = start;
        // Nanobits, so that a piece of a datagram is exact at any rate.
        let mut left = u128::from(bytes) * 8 * 1_000_000_000;
        while let Some(&(change, rate)) = self.changes.front() {
            let before = change.saturating_sub(at).as_nanos() * u128::from(self.bits_per_second);
            if before >= left {
                break;
            }
            left -= before;
            at = at.max(change);
            self.bits_per_second = rate;
            self.changes.pop_front();
        }
        let nanos = left.checked_div(self.bits_per_second.into())?;
        Some(at + Duration::from_nanos(nanos as u64))
    }
}

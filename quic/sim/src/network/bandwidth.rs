//! Nodes with a limited rate: a bottleneck, and a whole link.

use std::time::Duration;

use hybriq_proto::owners::acks::Ecn;
use hybriq_tls::Side;

use super::{node::Both, stats::Verdict};
use crate::{
    Datagram, Hop, LinkReport, LinkStats, Node,
    link::{Direction, Fate, Line, Marking, Offer, Settings, flip},
};

/// A link with a limited rate and a queue in front of it, in each direction.
///
/// The queue holds a number of bytes, not counting the datagram on the wire; a datagram that does
/// not fit is lost.
#[derive(Clone, Debug)]
pub struct Bandwidth {
    ways: Both<Way>,
    stats: LinkStats,
}

/// One direction.
#[derive(Clone, Debug)]
struct Way {
    line: Line,
    /// Time up to which the queue's delay is included in the statistics.
    counted_at: Duration,
}

impl Bandwidth {
    /// Creates an idle link of constant rate.
    pub fn new(bits_per_second: u64, queue_bytes: u64) -> Self {
        Self {
            ways: Both::of(|| Way {
                line: Line::new(bits_per_second, queue_bytes),
                counted_at: Duration::ZERO,
            }),
            stats: LinkStats::new(),
        }
    }

    /// Changes the rate of both directions at these times, in order. At rate 0 everything waits,
    /// and is lost if no other rate follows.
    #[must_use]
    pub fn then(mut self, changes: impl IntoIterator<Item = (Duration, u64)>) -> Self {
        for (at, rate) in changes {
            for side in [Side::Client, Side::Server] {
                self.ways.toward_mut(side).line.change_rate(at, rate);
            }
        }
        self
    }

    /// Sets how ECN-capable datagrams are marked.
    #[must_use]
    pub fn marking(mut self, marking: Marking) -> Self {
        for side in [Side::Client, Side::Server] {
            let way = self.ways.toward_mut(side);
            way.line = way.line.clone().marking(marking);
        }
        self
    }

    /// Writes counters to these statistics.
    #[must_use]
    pub fn stats(mut self, stats: &LinkStats) -> Self {
        self.stats = stats.clone();
        self
    }
}

impl Node for Bandwidth {
    fn on_datagram(&mut self, mut datagram: Datagram, hop: &mut Hop<'_>) {
        let way = self.ways.toward_mut(hop.toward);
        let offer = Offer {
            now: hop.now,
            bytes: datagram.size(),
            ecn_capable: datagram.ecn.is_some(),
        };
        let drained = way.line.backlog(way.counted_at);
        let span = hop.now.saturating_sub(way.counted_at);
        way.counted_at = hop.now;
        let departure = way.line.enter(offer, hop.rng);
        let queued = way.line.waiting_bytes();
        let verdict = match departure {
            None => Verdict::Drop,
            Some(departure) if departure.marked => Verdict::Mark,
            Some(_) => Verdict::Pass,
        };
        self.stats.update(hop.toward, |report| {
            report.delay.on_drain(drained, span);
            report.most_queued = report.most_queued.max(queued);
            report.count(offer.bytes, verdict);
        });
        if let Some(departure) = departure {
            if departure.marked {
                datagram.ecn = Some(Ecn::Ce);
            }
            hop.forward_at(departure.at, datagram);
        }
    }
}

impl LinkReport {
    /// Counts a datagram of `size` bytes.
    pub(crate) const fn count(&mut self, size: u64, verdict: Verdict) {
        match verdict {
            Verdict::Drop => {
                self.dropped += 1;
                return;
            }
            Verdict::Mark => self.marked += 1,
            Verdict::Pass => {}
        }
        self.datagrams += 1;
        self.bytes += size;
    }
}

/// A link with all features of `netbench link`, independent in each direction.
#[derive(Clone, Debug)]
pub struct Link {
    ways: Both<Direction>,
}

impl Link {
    /// Creates an idle link. Its randomness comes from this seed, not from the network's.
    pub fn new(to_server: Settings, to_client: Settings, seed: u64) -> Self {
        let [up, down] = Direction::pair(to_server, to_client, seed);
        Self {
            ways: Both::new(down, up),
        }
    }
}

impl Node for Link {
    fn on_datagram(&mut self, mut datagram: Datagram, hop: &mut Hop<'_>) {
        let offer = Offer {
            now: hop.now,
            bytes: datagram.size(),
            ecn_capable: matches!(datagram.ecn, Some(Ecn::Ect0 | Ecn::Ect1)),
        };
        let decision = self.ways.toward_mut(hop.toward).offer(offer);
        let Fate::Passed(passage) = decision.fate else {
            return;
        };
        if passage.marked {
            datagram.ecn = Some(Ecn::Ce);
        }
        if let Some(bit) = passage.flip {
            flip(&mut datagram.payload, bit);
        }
        for copy in std::iter::repeat_n(datagram, passage.copies) {
            hop.forward_at(passage.due, copy);
        }
    }
}

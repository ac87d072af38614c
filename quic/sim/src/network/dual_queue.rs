//! A node with a dual queue: the coupled AQM of RFC 9332.

use std::{collections::VecDeque, time::Duration};

use hybriq_tls::Side;

use super::{node::Both, stats::Verdict};
use crate::{Datagram, Hop, LinkReport, LinkStats, Node, Rng, link::Rates};
use hybriq_proto::owners::acks::Ecn;

/// Target for the queue delay of classic traffic (RFC 9332 §A.1).
const TARGET: f64 = 0.015;

/// Interval at which the base probability is computed.
const UPDATE: Duration = Duration::from_millis(16);

/// Gains of the PI controller for round trips up to 100 ms, in Hz.
const ALPHA: f64 = 0.1 * 0.016 / (0.1 * 0.1);
const BETA: f64 = 0.3 / 0.1;

/// Coupling factor k: at equal rates, L4S traffic is marked this many times as often as classic
/// traffic.
const COUPLING: f64 = 2.0;

/// Coupled probability from which on L4S traffic is dropped like classic traffic, because marks do
/// not help.
const MOST_COUPLED: f64 = 1.0;

/// Delay beyond which the L queue marks everything.
const STEP: Duration = Duration::from_millis(1);

/// One in this many datagrams may be classic while both queues hold some.
const CLASSIC_SHARE: u8 = 16;

/// A link with the coupled dual-queue AQM for L4S, DualPI2 (RFC 9332 §A), each way.
///
/// ECT(1) and CE wait in the L queue, which marks by a step and by the coupled probability; the
/// rest waits in the C queue, which a PI2 AQM keeps at 15 ms by drops, or by marks for ECT(0). The
/// L queue goes first, except for one datagram in sixteen.
#[derive(Clone, Debug)]
pub struct DualQueue {
    ways: Both<Way>,
    queue_bytes: u64,
    stats: LinkStats,
}

#[derive(Clone, Debug)]
struct Way {
    rates: Rates,
    low_latency: Queue,
    classic: Queue,
    busy_until: Duration,
    /// Number of datagrams that left the L queue while a classic one waited.
    passed_over: u8,
    /// Probability p' before it is squared or coupled.
    base: f64,
    last_delay: f64,
    updated_at: Duration,
}

#[derive(Clone, Debug, Default)]
struct Queue {
    waiting: VecDeque<(Duration, Datagram)>,
    bytes: u64,
}

impl Queue {
    fn push(&mut self, now: Duration, datagram: Datagram) {
        self.bytes += datagram.size();
        self.waiting.push_back((now, datagram));
    }

    fn pop(&mut self) -> Option<(Duration, Datagram)> {
        let (at, datagram) = self.waiting.pop_front()?;
        self.bytes -= datagram.size();
        Some((at, datagram))
    }

    /// Returns the time that the first datagram has waited.
    fn delay(&self, now: Duration) -> Duration {
        self.waiting
            .front()
            .map_or(Duration::ZERO, |(at, _)| now.saturating_sub(*at))
    }
}

impl DualQueue {
    /// Creates an idle link; both queues share the bytes.
    pub fn new(bits_per_second: u64, queue_bytes: u64) -> Self {
        Self {
            ways: Both::of(|| Way::new(bits_per_second)),
            queue_bytes,
            stats: LinkStats::new(),
        }
    }

    /// Writes counters to these statistics.
    #[must_use]
    pub fn stats(mut self, stats: &LinkStats) -> Self {
        self.stats = stats.clone();
        self
    }
}

impl Node for DualQueue {
    fn on_datagram(&mut self, datagram: Datagram, hop: &mut Hop<'_>) {
        let way = self.ways.toward_mut(hop.toward);
        let queued = way.low_latency.bytes + way.classic.bytes;
        let fits = way.is_idle() || queued + datagram.size() <= self.queue_bytes;
        self.stats.update(hop.toward, |report| {
            if !fits {
                report.dropped += 1;
                return;
            }
            report.most_queued = report.most_queued.max(queued);
            way.update(hop.now);
            match datagram.ecn {
                Some(Ecn::Ect1 | Ecn::Ce) => way.low_latency.push(hop.now, datagram),
                Some(Ecn::Ect0) | None => way.classic.push(hop.now, datagram),
            }
            way.serve(hop, report);
        });
    }

    fn next_timeout(&self, toward: Side) -> Option<Duration> {
        let way = self.ways.toward(toward);
        (!way.is_idle()).then_some(way.busy_until)
    }

    fn on_timeout(&mut self, hop: &mut Hop<'_>) {
        let way = self.ways.toward_mut(hop.toward);
        self.stats.update(hop.toward, |report| {
            way.update(hop.now);
            way.serve(hop, report);
        });
    }
}

impl Way {
    fn new(bits_per_second: u64) -> Self {
        Self {
            rates: Rates::constant(bits_per_second),
            low_latency: Queue::default(),
            classic: Queue::default(),
            busy_until: Duration::ZERO,
            passed_over: 0,
            base: 0.0,
            last_delay: 0.0,
            updated_at: Duration::ZERO,
        }
    }

    fn is_idle(&self) -> bool {
        self.low_latency.waiting.is_empty() && self.classic.waiting.is_empty()
    }

    /// Puts the next datagram on the wire if it is free. Dropped datagrams do not occupy it.
    fn serve(&mut self, hop: &mut Hop<'_>, report: &mut LinkReport) {
        while self.busy_until <= hop.now {
            let Some(mut leaving) = self.next(hop.now) else {
                return;
            };
            let verdict = self.judge(&leaving, hop.rng);
            let size = leaving.datagram.size();
            report.count(size, verdict);
            if verdict == Verdict::Drop {
                continue;
            }
            if leaving.low_latency {
                report.low_latency_delay.on_datagram(leaving.delay);
            } else {
                report.delay.on_datagram(leaving.delay);
            }
            if verdict == Verdict::Mark {
                leaving.datagram.ecn = Some(Ecn::Ce);
            }
            let Some(until) = self.rates.end_of(hop.now, size) else {
                continue;
            };
            self.busy_until = until;
            hop.forward_at(until, leaving.datagram);
        }
    }

    fn next(&mut self, now: Duration) -> Option<Leaving> {
        let turn_of_classic = self.passed_over + 1 >= CLASSIC_SHARE;
        let low_latency = !self.low_latency.waiting.is_empty()
            && (self.classic.waiting.is_empty() || !turn_of_classic);
        self.passed_over = if low_latency && !self.classic.waiting.is_empty() {
            self.passed_over + 1
        } else {
            0
        };
        let queue = if low_latency {
            &mut self.low_latency
        } else {
            &mut self.classic
        };
        let (at, datagram) = queue.pop()?;
        Some(Leaving {
            low_latency,
            delay: now.saturating_sub(at),
            is_last: queue.waiting.is_empty(),
            datagram,
        })
    }

    /// Decides whether the datagram at the head of its queue leaves unmarked, is marked or is
    /// dropped (RFC 9332 §A.1, `dualpi2_dequeue`).
    fn judge(&self, leaving: &Leaving, rng: &mut Rng) -> Verdict {
        let classic = self.base * self.base;
        let coupled = self.base * COUPLING;
        if leaving.low_latency {
            if coupled >= MOST_COUPLED && draws(rng, classic) {
                return Verdict::Drop;
            }
            let over = leaving.delay > STEP && !leaving.is_last;
            if over || draws(rng, coupled) {
                return Verdict::Mark;
            }
            return Verdict::Pass;
        }
        match (draws(rng, classic), leaving.datagram.ecn) {
            (false, _) => Verdict::Pass,
            (true, Some(_)) if coupled < MOST_COUPLED => Verdict::Mark,
            (true, _) => Verdict::Drop,
        }
    }

    /// Updates the base probability (RFC 9332 §A.1, `dualpi2_update`).
    fn update(&mut self, now: Duration) {
        if now.saturating_sub(self.updated_at) > 1000 * UPDATE {
            // After a long idle time the probability starts again.
            (self.base, self.last_delay) = (0.0, 0.0);
            self.updated_at = now;
        }
        while self.updated_at + UPDATE <= now {
            self.updated_at += UPDATE;
            let at = self.updated_at;
            let delay = self.classic.delay(at).max(self.low_latency.delay(at));
            let delay = delay.as_secs_f64();
            let change = ALPHA * (delay - TARGET) + BETA * (delay - self.last_delay);
            self.base = (self.base + change).clamp(0.0, 1.0);
            self.last_delay = delay;
        }
    }
}

/// A datagram taken from the head of a queue.
struct Leaving {
    low_latency: bool,
    delay: Duration,
    is_last: bool,
    datagram: Datagram,
}

fn draws(rng: &mut Rng, probability: f64) -> bool {
    probability > 0.0 && (rng.below(1 << 32) as f64) < probability * (1_u64 << 32) as f64
}

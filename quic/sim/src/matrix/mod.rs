//! Scenario matrix of congestion control: bulk transfers over every combination of rate, round
//! trip, loss and buffer, with every controller, and the document of the results.

mod document;

use std::time::Duration;

use hybriq_tls::Side;

pub use self::document::{Row, document, row, title};
use super::{
    Bandwidth, Bursts, DualQueue, LinkStats, Loss, Network,
    flow::{FlowSetup, Flows},
    ms, one_in, per_mille,
};
use hybriq_proto::owners::congestion::Congestion;

/// Controllers of the matrix, in the order of its columns.
pub const CONTROLLERS: [(&str, Congestion); 4] = [
    ("NewReno", Congestion::NewReno),
    ("CUBIC", Congestion::Cubic),
    ("BBRv3", Congestion::Bbr),
    ("Prague", Congestion::Prague),
];

/// Rates in bits per second.
pub const RATES: [u64; 5] = [
    1_000_000,
    10_000_000,
    100_000_000,
    1_000_000_000,
    10_000_000_000,
];

/// Round trips without queueing.
pub const ROUND_TRIPS: [Duration; 4] = [ms(1), ms(30), ms(100), ms(300)];

/// Loss of data datagrams after the bottleneck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Lossy {
    /// None.
    Never,
    /// This many in a thousand, at random.
    PerMille(u32),
    /// One in a hundred at full rate, in bursts of ten on average.
    Bursts,
}

/// Losses of the matrix.
pub const LOSSES: [Lossy; 5] = [
    Lossy::Never,
    Lossy::PerMille(1),
    Lossy::PerMille(10),
    Lossy::PerMille(50),
    Lossy::Bursts,
];

/// Capacity of the queue in front of the bottleneck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Buffer {
    /// A tenth of the bandwidth-delay product, at least 5 datagrams.
    Shallow,
    /// The bandwidth-delay product, at least 10 datagrams.
    Bdp,
    /// Four times the bandwidth-delay product, at least 40 datagrams.
    Deep,
    /// The same size, with the dual-queue AQM of RFC 9332.
    Dual,
}

/// Buffers of the matrix.
pub const BUFFERS: [Buffer; 3] = [Buffer::Shallow, Buffer::Bdp, Buffer::Deep];

/// One path of the matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// Bits per second.
    pub rate: u64,
    /// Round trip without queueing.
    pub round_trip: Duration,
    /// Losses of the path.
    pub loss: Lossy,
    /// Queue of the path.
    pub buffer: Buffer,
}

/// Result of one controller on one path.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Outcome {
    /// Bytes of data that arrived, as a share of what the link carries in that time.
    pub goodput: f64,
    /// Bytes sent again, as a share of those sent.
    pub retransmitted: f64,
    /// Mean queue delay over time.
    pub mean_delay: Duration,
    /// 95th percentile of the queue delay over time.
    pub p95_delay: Duration,
}

/// Number of round trips in a run, its minimum duration, and the maximum number of datagrams that
/// the link carries in it.
const ROUNDS: u32 = 200;
const SHORTEST: Duration = Duration::from_secs(3);
const MOST_DATAGRAMS: u64 = 1_500_000;

/// Maximum duration of a burst, in datagrams at the link's rate.
const BURST: u64 = 30;

/// Divisor for the part at the start of a run that is not counted: a third.
const WARM_UP: u32 = 3;

impl Path {
    /// Returns every path of the matrix, and those behind an AQM.
    pub fn all() -> impl Iterator<Item = Self> {
        let queues = LOSSES
            .into_iter()
            .flat_map(|loss| BUFFERS.into_iter().map(move |buffer| (loss, buffer)))
            .chain([(Lossy::Never, Buffer::Dual)]);
        queues.flat_map(|(loss, buffer)| {
            RATES.into_iter().flat_map(move |rate| {
                ROUND_TRIPS.into_iter().map(move |round_trip| Self {
                    rate,
                    round_trip,
                    loss,
                    buffer,
                })
            })
        })
    }

    /// Returns the datagram size: jumbo frames from 1 Gbit/s on.
    pub const fn datagram_size(self) -> u16 {
        if self.rate >= 1_000_000_000 {
            8952
        } else {
            1200
        }
    }

    /// Returns the bandwidth-delay product in bytes.
    pub const fn bdp(self) -> u64 {
        (self.rate as u128 * self.round_trip.as_nanos() / 8_000_000_000) as u64
    }

    /// Returns the capacity of the queue in bytes.
    pub fn queue(self) -> u64 {
        let (bytes, datagrams) = match self.buffer {
            Buffer::Shallow => (self.bdp() / 10, 5),
            Buffer::Bdp => (self.bdp(), 10),
            Buffer::Deep | Buffer::Dual => (4 * self.bdp(), 40),
        };
        bytes.max(datagrams * u64::from(self.datagram_size()))
    }

    /// Returns the duration of a run.
    pub fn duration(self) -> Duration {
        let bits = MOST_DATAGRAMS * u64::from(self.datagram_size()) * 8;
        let longest = Duration::from_millis(bits / (self.rate / 1000));
        (self.round_trip * ROUNDS).max(SHORTEST).min(longest)
    }

    /// Returns the number of datagrams that the link carries during a run.
    pub fn datagrams(self) -> u64 {
        let bits = u128::from(self.rate) * self.duration().as_nanos() / 1_000_000_000;
        (bits / 8) as u64 / u64::from(self.datagram_size())
    }

    /// Returns the network, with counters in `stats`. All randomness comes from the seed.
    pub fn network(self, seed: u64, stats: &LinkStats) -> Network {
        let network = Network::new(seed);
        let network = if self.buffer == Buffer::Dual {
            network.node(DualQueue::new(self.rate, self.queue()).stats(stats))
        } else {
            network.node(Bandwidth::new(self.rate, self.queue()).stats(stats))
        };
        let network = network.delay(self.round_trip / 2);
        match self.loss {
            Lossy::Never => network,
            Lossy::PerMille(times) => network.toward(Side::Server, Loss(per_mille(times))),
            Lossy::Bursts => {
                let bits = BURST * u64::from(self.datagram_size()) * 8;
                let longest = Duration::from_nanos(bits * 1_000_000_000 / self.rate);
                let bursts = Bursts::new(one_in(1000), 10).longest(longest);
                network.toward(Side::Server, bursts)
            }
        }
    }

    /// Runs one controller.
    pub fn run(self, congestion: &Congestion) -> Outcome {
        let stats = LinkStats::new();
        let mut flows = Flows::new(self.network(1, &stats));
        let flow = flows.add(&FlowSetup {
            datagram_size: self.datagram_size(),
            ..FlowSetup::new(congestion.clone())
        });
        let warm_up = self.duration() / WARM_UP;
        flows.run_for(warm_up);
        let before = flows.report(flow);
        stats.clear();
        let span = self.duration().saturating_sub(warm_up);
        flows.run_for(span);
        let after = flows.report(flow);
        let capacity = self.rate as f64 / 8.0 * span.as_secs_f64();
        let sent = (after.sent - before.sent).max(1);
        let link = stats.toward(Side::Server);
        let delay = if link.low_latency_delay.weight() > link.delay.weight() {
            link.low_latency_delay
        } else {
            link.delay
        };
        Outcome {
            goodput: (after.delivered - before.delivered) as f64 / capacity,
            retransmitted: (after.retransmitted - before.retransmitted) as f64 / sent as f64,
            mean_delay: delay.mean(),
            p95_delay: delay.percentile(95),
        }
    }
}

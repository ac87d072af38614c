//! Bulk transfers without content. Loss detection, congestion control, pacing and the
//! acknowledgement policy are those of the core, over the same [`Network`] as a
//! [`World`](super::World); handshake, encryption, streams and flow control are left out. A million
//! packets take about a second.
//!
//! A flow sends chunks, one in each datagram. A lost chunk is sent again, before new ones.

mod receiver;
mod sender;

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    thread,
    time::{Duration, Instant},
};

use hybriq_tls::Side;

use self::{receiver::Receiver, sender::Sender};
use crate::{Datagram, Network, Rng, SERVER_ADDRESS, StandIn, ms, world::peer::Clock};
use hybriq_proto::{
    owners::{congestion::Congestion, recovery::Pacing},
    wire::udp::EcnState,
};

/// Maximum number of turns without time passing.
const TURNS_AT_ONCE: usize = 100_000;

/// Number of turns between two checks of every flow's accounting.
const AUDIT_EVERY: u64 = 4096;

/// Configuration of one flow.
#[derive(Clone, Debug)]
pub struct FlowSetup {
    /// Congestion controller of the flow.
    pub congestion: Congestion,
    /// Size of every datagram in bytes.
    pub datagram_size: u16,
    /// Initial estimate of the round-trip time.
    pub initial_rtt: Duration,
    /// Longest time by which the receiver may delay an acknowledgement.
    pub max_ack_delay: Duration,
    /// Time at which it begins.
    pub starts_at: Duration,
    /// Time after which it has nothing new to send.
    pub ends_at: Duration,
    /// Pacing of data that the window allows.
    pub pacing: Pacing,
    /// ECN state: whether datagrams start out marked as ECN capable.
    pub ecn: EcnState,
    /// Largest delay with which the sender wakes for a timer or a datagram, drawn again each time.
    pub late: Duration,
}

impl FlowSetup {
    /// Returns a flow that starts at once, never ends, and otherwise has a connection's defaults.
    pub const fn new(congestion: Congestion) -> Self {
        Self {
            congestion,
            datagram_size: 1200,
            initial_rtt: ms(100),
            max_ack_delay: ms(25),
            starts_at: Duration::ZERO,
            ends_at: Duration::MAX,
            pacing: Pacing::On,
            ecn: EcnState::Testing,
            late: Duration::ZERO,
        }
    }
}

/// Counters of a flow so far. Bytes are those of whole datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlowReport {
    /// Bytes sent.
    pub sent: u64,
    /// Bytes of chunks that arrived, each counted once.
    pub delivered: u64,
    /// Bytes that were declared lost and sent again.
    pub retransmitted: u64,
    /// Bytes of chunks that arrived a second time.
    pub repeated: u64,
    /// Probe timeouts.
    pub ptos: u64,
    /// Time at which something new last arrived.
    pub progress_at: Duration,
    /// Bytes that may be in flight.
    pub window: u64,
    /// Bytes in flight.
    pub bytes_in_flight: u64,
    /// Smoothed round-trip time.
    pub smoothed_rtt: Duration,
    /// Probe timeout without backoff.
    pub pto: Duration,
    /// Number of doublings since the last progress.
    pub backoff: u32,
    /// Number of items held in memory: packets in flight, chunks to send again, ranges received.
    pub held: usize,
}

/// Flows over one network, all from its client side to its server side, in virtual time.
///
/// The accounting of every flow is checked as it runs: bytes in flight are the sum of the packets
/// in flight, no timer lies in the past, and the flow can always continue. If a panicking thread
/// drops it, it prints its seed.
pub struct Flows {
    clock: Clock,
    network: Network,
    all: Vec<Flow>,
    turns: u64,
}

impl std::fmt::Debug for Flows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Flows").finish_non_exhaustive()
    }
}

struct Flow {
    address: SocketAddr,
    sender: Sender,
    receiver: Receiver,
    /// Time of the next turn: now, after something arrived.
    next_timeout: Option<Duration>,
    /// Datagrams that arrived while the sender slept, and the time at which it wakes.
    inbox: Vec<Datagram>,
    wakes_at: Option<Duration>,
    late: Duration,
    rng: Rng,
}

impl Flows {
    /// Creates a simulation without flows.
    #[expect(clippy::disallowed_methods, reason = "virtual time needs a base")]
    pub fn new(network: Network) -> Self {
        Self {
            clock: Clock {
                base: Instant::now(),
                now: Duration::ZERO,
            },
            network,
            all: Vec::new(),
            turns: 0,
        }
    }

    /// Adds a flow and returns its index.
    pub fn add(&mut self, setup: &FlowSetup) -> usize {
        let index = self.all.len();
        let seed = self.network.seed() ^ (index as u64) << 32;
        self.all.push(Flow {
            address: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), index as u16),
            sender: Sender::new(self.clock, setup, seed),
            receiver: Receiver::new(setup),
            next_timeout: Some(self.clock.now),
            inbox: Vec::new(),
            wakes_at: None,
            late: setup.late,
            rng: Rng::new(seed),
        });
        index
    }

    /// Returns the virtual time since the flows began.
    pub const fn now(&self) -> Duration {
        self.clock.now
    }

    /// Returns the counters of the flow with this index.
    ///
    /// # Panics
    /// Panics if there is no such flow.
    pub fn report(&self, index: usize) -> FlowReport {
        let Flow {
            sender, receiver, ..
        } = &self.all[index];
        let mut report = FlowReport::default();
        sender.report(&mut report);
        receiver.report(&mut report);
        report
    }

    /// Runs for this long.
    ///
    /// # Panics
    /// Panics if a rule is broken on the way.
    pub fn run_for(&mut self, span: Duration) {
        let end = self.clock.now + span;
        let mut at_once = 0;
        loop {
            self.turn();
            let Some(next) = self.next_timeout().filter(|&at| at <= end) else {
                break;
            };
            at_once = if next > self.clock.now {
                0
            } else {
                at_once + 1
            };
            assert!(at_once < TURNS_AT_ONCE, "time stands still");
            self.clock.now = self.clock.now.max(next);
        }
        self.clock.now = end;
    }

    /// Returns the number of datagrams on the wire.
    pub fn in_flight(&self) -> usize {
        self.network.in_flight()
    }

    /// Returns true if nothing is in flight and nothing will be.
    pub fn is_quiet(&self) -> bool {
        self.next_timeout().is_none()
    }

    fn next_timeout(&self) -> Option<Duration> {
        let flows = self.all.iter().filter_map(|flow| flow.next_timeout);
        flows.chain(self.network.next_timeout()).min()
    }

    /// Runs one instant: handles arrivals and timers, and sends.
    fn turn(&mut self) {
        while let Some((side, datagram)) = self.network.poll_delivery(self.clock.now) {
            let address = match side {
                Side::Server => datagram.source,
                Side::Client => datagram.destination,
            };
            let Some(flow) = self.all.get_mut(usize::from(address.port())) else {
                continue;
            };
            match side {
                Side::Server => flow.receiver.on_datagram(self.clock, &datagram),
                Side::Client => flow.inbox.push(datagram),
            }
            flow.next_timeout = Some(self.clock.now);
        }
        self.turns += 1;
        for flow in &mut self.all {
            if flow.next_timeout.is_none_or(|at| at > self.clock.now) {
                continue;
            }
            flow.turn(self.clock, &mut self.network);
            if self.turns % AUDIT_EVERY == 0 {
                flow.sender.audit();
            }
        }
    }
}

impl Flow {
    /// Handles arrivals and timers, and sends; a sender that oversleeps does nothing before it
    /// wakes.
    fn turn(&mut self, clock: Clock, network: &mut Network) {
        let now = clock.instant();
        let is_due =
            !self.inbox.is_empty() || self.sender.next_timeout().is_none_or(|at| at <= now);
        if is_due && self.wakes_at.is_none() {
            self.wakes_at = Some(clock.now + self.rng.up_to(self.late));
        }
        if self.wakes_at.is_some_and(|at| at <= clock.now) {
            self.wakes_at = None;
            for datagram in self.inbox.drain(..) {
                self.sender.on_datagram(now, &datagram);
            }
            self.sender.on_timeout(now);
            self.transmit_data(clock, network);
        }
        self.transmit_acks(clock, network);
        let sender = match self.wakes_at {
            Some(at) => Some(at),
            None => self.sender.next_timeout().map(|at| {
                assert!(at >= now, "a timer lies in the past");
                clock.since(at)
            }),
        };
        let receiver = self.receiver.next_timeout().map(|at| clock.since(at));
        self.next_timeout = sender.into_iter().chain(receiver).min();
    }

    fn transmit_data(&mut self, clock: Clock, network: &mut Network) {
        let now = clock.instant();
        while let Some((stand_in, ecn)) = self.sender.poll_transmit(now) {
            let datagram = Datagram {
                ecn,
                stand_in,
                ..Datagram::new(self.address, SERVER_ADDRESS, Vec::new())
            };
            network.send(clock.now, Side::Server, datagram);
        }
    }

    fn transmit_acks(&mut self, clock: Clock, network: &mut Network) {
        if let Some((payload, stand_in)) = self.receiver.poll_transmit(clock.instant()) {
            let datagram = Datagram {
                stand_in,
                ..Datagram::new(SERVER_ADDRESS, self.address, payload)
            };
            network.send(clock.now, Side::Client, datagram);
        }
    }
}

impl Drop for Flows {
    fn drop(&mut self) {
        if thread::panicking() {
            let seed = self.network.seed();
            eprintln!("seed {seed} at {:?}", self.clock.now);
            for index in 0..self.all.len() {
                eprintln!("flow {index}: {:?}", self.report(index));
            }
        }
    }
}

/// Labels of a data datagram: packet number, chunk, and the largest number of an ACK frame with a
/// request for an acknowledgement that reached the sender (`NOTHING` if none did).
type Label = [u64; 3];

/// Value that means no packet number.
const NOTHING: u64 = u64::MAX;

/// Bytes of a 1-RTT packet in addition to its frames: the header with an id of eight bytes, number
/// and tag, without UDP and lower layers.
const PACKET_OVERHEAD: u32 = 1 + 8 + 2 + 16;

/// Number of acknowledgements between two that themselves request an acknowledgement.
const PING_EVERY: u64 = 32;

const fn stand_in(bytes: u32, label: Label) -> StandIn {
    StandIn { bytes, label }
}

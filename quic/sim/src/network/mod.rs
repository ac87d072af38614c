//! The path between the clients and the server.

use std::time::Duration;

use hybriq_tls::Side;

pub(super) mod bandwidth;
pub(super) mod dual_queue;
pub(super) mod impair;
pub(super) mod node;
pub(super) mod recut;
pub(super) mod stats;
pub(super) mod timeline;

use crate::{
    Bandwidth, Blackout, Bursts, Chance, Corrupt, Datagram, Delay, DelayNth, DropIf, DropNth,
    Duplicate, Hop, Jitter, Link, Loss, Mtu, MtuDrop, Node, OrderedJitter, Overtake, Reorder, Rng,
    link::Settings,
};
use timeline::Timeline;

/// The path between the clients and the server: a list of nodes, starting at the clients. Datagrams
/// to the server pass them from first to last, datagrams from it from last to first.
///
/// Every setter appends a node that acts on both directions; [`Network::toward`] appends one that
/// acts on one direction.
pub struct Network {
    seed: u64,
    nodes: Vec<Placed>,
    in_flight: Timeline<InFlight>,
    /// Earliest timer of a node; `None` if no node has one.
    node_timeout: Option<Duration>,
    /// Datagrams between two nodes; empty between calls.
    on_the_way: Vec<(Duration, InFlight)>,
    out: Vec<(Duration, Datagram)>,
}

impl std::fmt::Debug for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Network").finish_non_exhaustive()
    }
}

struct Placed {
    node: Box<dyn Node>,
    rng: Rng,
    timeout: Option<Duration>,
}

impl Placed {
    fn next_timeout(&self) -> Option<Duration> {
        let [client, server] = SIDES.map(|side| self.node.next_timeout(side));
        client.into_iter().chain(server).min()
    }
}

const SIDES: [Side; 2] = [Side::Client, Side::Server];

struct InFlight {
    toward: Side,
    passed: usize,
    datagram: Datagram,
}

impl Network {
    /// Creates a perfect network, without losses or delays.
    pub const fn new(seed: u64) -> Self {
        Self {
            seed,
            nodes: Vec::new(),
            in_flight: Timeline::new(),
            node_timeout: None,
            on_the_way: Vec::new(),
            out: Vec::new(),
        }
    }

    /// Returns the seed.
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// Appends any node.
    #[must_use]
    pub fn node(mut self, node: impl Node + 'static) -> Self {
        let rng = Rng::nth(self.seed, self.nodes.len() as u64);
        self.nodes.push(Placed {
            node: Box::new(node),
            rng,
            timeout: None,
        });
        self
    }

    /// Appends a node that only datagrams towards `side` pass.
    #[must_use]
    pub fn toward(self, side: Side, node: impl Node + 'static) -> Self {
        self.node(Only { side, node })
    }

    /// Appends a node that delays every datagram by this time.
    #[must_use]
    pub fn delay(self, wait: Duration) -> Self {
        self.node(Delay(wait))
    }

    /// Appends a node that delays every datagram by up to this time.
    #[must_use]
    pub fn jitter(self, most: Duration) -> Self {
        self.node(Jitter(most))
    }

    /// Appends a node that loses some datagrams.
    #[must_use]
    pub fn loss(self, chance: Chance) -> Self {
        self.node(Loss(chance))
    }

    /// Appends a node that loses the datagrams at these places, counted from 0 over both
    /// directions.
    #[must_use]
    pub fn drop_nth(self, places: impl IntoIterator<Item = usize>) -> Self {
        self.node(DropNth::new(places))
    }

    /// Appends a node that loses the datagrams that the closure selects.
    #[must_use]
    pub fn drop_if(self, pick: impl FnMut(&Datagram, Side) -> bool + Send + 'static) -> Self {
        self.node(DropIf(pick))
    }

    /// Appends a node that delays some datagrams by `wait`.
    #[must_use]
    pub fn reorder(self, chance: Chance, wait: Duration) -> Self {
        self.node(Reorder(chance, wait))
    }

    /// Appends a node that delays the datagrams at these places by `wait`, counted from 0 over both
    /// directions.
    #[must_use]
    pub fn delay_nth(self, places: impl IntoIterator<Item = usize>, wait: Duration) -> Self {
        self.node(DelayNth::new(places, wait))
    }

    /// Appends a node that lets some datagrams be overtaken by up to `most` others.
    #[must_use]
    pub fn overtake(self, chance: Chance, most: u32) -> Self {
        self.node(Overtake::new(chance, most))
    }

    /// Appends a node that delays every datagram by up to this time, and keeps their order.
    #[must_use]
    pub fn ordered_jitter(self, most: Duration) -> Self {
        self.node(OrderedJitter::new(most))
    }

    /// Appends a node that loses bursts of `length` datagrams on average.
    #[must_use]
    pub fn bursts(self, begin: Chance, length: u32) -> Self {
        self.node(Bursts::new(begin, length))
    }

    /// Appends a node that loses everything in these intervals.
    #[must_use]
    pub fn blackout(self, spans: impl IntoIterator<Item = (Duration, Duration)>) -> Self {
        self.node(Blackout::new(spans))
    }

    /// Appends a node that delivers some datagrams again, `wait` later.
    #[must_use]
    pub fn duplicate(self, chance: Chance, wait: Duration) -> Self {
        self.node(Duplicate(chance, wait))
    }

    /// Appends a node that flips one bit of some datagrams.
    #[must_use]
    pub fn corrupt(self, chance: Chance) -> Self {
        self.node(Corrupt(chance))
    }

    /// Appends a node that loses datagrams with more UDP payload bytes than this.
    #[must_use]
    pub fn mtu(self, bytes: usize) -> Self {
        self.node(Mtu(bytes))
    }

    /// Appends a node that loses datagrams with more UDP payload bytes than this from then on.
    #[must_use]
    pub fn mtu_from(self, from: Duration, bytes: usize) -> Self {
        self.node(MtuDrop { from, bytes })
    }

    /// Appends a whole link with these conditions each way.
    #[must_use]
    pub fn link(self, conditions: &Settings) -> Self {
        let seed = self.seed ^ (self.nodes.len() as u64).rotate_right(8);
        self.node(Link::new(conditions.clone(), conditions.clone(), seed))
    }

    /// Appends a link with this rate in each direction and a queue in front of it.
    #[must_use]
    pub fn bandwidth(self, bits_per_second: u64, queue_bytes: u64) -> Self {
        self.node(Bandwidth::new(bits_per_second, queue_bytes))
    }

    /// Puts a datagram on the wire.
    pub fn send(&mut self, now: Duration, toward: Side, datagram: Datagram) {
        let flight = InFlight {
            toward,
            passed: 0,
            datagram,
        };
        self.on_the_way.push((now, flight));
        self.travel(now);
    }

    /// Returns the time of the next event on the network.
    pub fn next_timeout(&self) -> Option<Duration> {
        self.in_flight
            .next()
            .into_iter()
            .chain(self.node_timeout)
            .min()
    }

    /// Returns the next datagram that has arrived by `now`.
    pub fn poll_delivery(&mut self, now: Duration) -> Option<(Side, Datagram)> {
        loop {
            if let Some(at) = self.node_timeout.filter(|&at| at <= now) {
                if self.in_flight.next().is_none_or(|next| at < next) {
                    self.wake_nodes(at);
                    continue;
                }
            }
            let (at, flight) = self.in_flight.pop(now)?;
            if flight.passed >= self.nodes.len() {
                return Some((flight.toward, flight.datagram));
            }
            self.on_the_way.push((at, flight));
            self.travel(at);
        }
    }

    /// Calls the nodes whose timers are due, for each direction.
    fn wake_nodes(&mut self, now: Duration) {
        for index in 0..self.nodes.len() {
            for toward in SIDES {
                let Some(placed) = self.nodes.get_mut(index) else {
                    continue;
                };
                if placed.node.next_timeout(toward).is_none_or(|at| at > now) {
                    continue;
                }
                placed.node.on_timeout(&mut Hop {
                    now,
                    toward,
                    rng: &mut placed.rng,
                    out: &mut self.out,
                });
                placed.timeout = placed.next_timeout();
                let passed = self.passed(toward, index);
                self.follow(toward, passed);
            }
        }
        self.node_timeout = self.nodes.iter().filter_map(|placed| placed.timeout).min();
        self.travel(now);
    }

    /// Lets datagrams pass all nodes that they reach now, and wait for their time at the next node.
    fn travel(&mut self, now: Duration) {
        while let Some((at, flight)) = self.on_the_way.pop() {
            let index = self.position(&flight).filter(|_| at <= now);
            let Some(placed) = index.and_then(|index| self.nodes.get_mut(index)) else {
                let lane = 2 * flight.passed + usize::from(flight.toward.is_server());
                self.in_flight.push(lane, at, flight);
                continue;
            };
            let (toward, passed) = (flight.toward, flight.passed + 1);
            placed.node.on_datagram(
                flight.datagram,
                &mut Hop {
                    now: at,
                    toward,
                    rng: &mut placed.rng,
                    out: &mut self.out,
                },
            );
            let timeout = placed.next_timeout();
            if timeout != placed.timeout {
                placed.timeout = timeout;
                self.node_timeout = self.nodes.iter().filter_map(|placed| placed.timeout).min();
            }
            self.follow(toward, passed);
        }
    }

    /// Takes what a node released; the first is the next to travel.
    fn follow(&mut self, toward: Side, passed: usize) {
        for (at, datagram) in self.out.drain(..).rev() {
            let flight = InFlight {
                toward,
                passed,
                datagram,
            };
            self.on_the_way.push((at, flight));
        }
    }

    /// Returns the number of nodes that a datagram has passed after the one at `index`.
    fn passed(&self, toward: Side, index: usize) -> usize {
        if toward.is_server() {
            index + 1
        } else {
            self.nodes.len() - index
        }
    }

    /// Returns true if nothing is in flight.
    pub fn is_quiet(&self) -> bool {
        self.next_timeout().is_none()
    }

    /// Returns the number of datagrams between nodes, without those that wait inside a node.
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Returns the index of a datagram's next node; `None` at the end of the path.
    fn position(&self, flight: &InFlight) -> Option<usize> {
        let left = self.nodes.len().checked_sub(flight.passed + 1)?;
        Some(if flight.toward.is_server() {
            flight.passed
        } else {
            left
        })
    }
}

struct Only<N> {
    side: Side,
    node: N,
}

impl<N: Node> Node for Only<N> {
    fn on_datagram(&mut self, datagram: Datagram, hop: &mut Hop<'_>) {
        if hop.toward == self.side {
            self.node.on_datagram(datagram, hop);
        } else {
            hop.forward(datagram);
        }
    }

    fn next_timeout(&self, toward: Side) -> Option<Duration> {
        self.node
            .next_timeout(toward)
            .filter(|_| toward == self.side)
    }

    fn on_timeout(&mut self, hop: &mut Hop<'_>) {
        self.node.on_timeout(hop);
    }
}

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use hybriq_tls::Side;

use super::{
    Bandwidth, Chance, Corrupt, Datagram, Delay, DelayNth, DropIf, DropNth, Duplicate, Hop, Jitter,
    Loss, Mtu, Node, Reorder, Rng,
};

/// What lies between the clients and the server: a list of nodes, the clients at its start. What
/// travels to the server passes them from first to last, what travels back from last to first.
///
/// Every setter appends a node that acts on both directions; [`Network::toward`] appends one that
/// acts on one.
pub struct Network {
    seed: u64,
    nodes: Vec<Placed>,
    in_flight: BTreeMap<(Duration, u64), InFlight>,
    order: u64,
}

struct Placed {
    node: Box<dyn Node>,
    rng: Rng,
}

struct InFlight {
    toward: Side,
    passed: usize,
    datagram: Datagram,
}

impl Network {
    /// A perfect one: nothing is lost and nothing takes time.
    pub const fn new(seed: u64) -> Self {
        Self {
            seed,
            nodes: Vec::new(),
            in_flight: BTreeMap::new(),
            order: 0,
        }
    }

    /// The seed.
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
        });
        self
    }

    /// Appends a node that only what travels to `side` passes.
    #[must_use]
    pub fn toward(self, side: Side, node: impl Node + 'static) -> Self {
        self.node(Only { side, node })
    }

    /// Every datagram takes this long.
    #[must_use]
    pub fn delay(self, wait: Duration) -> Self {
        self.node(Delay(wait))
    }

    /// Every datagram takes up to this long.
    #[must_use]
    pub fn jitter(self, most: Duration) -> Self {
        self.node(Jitter(most))
    }

    /// Some datagrams are lost.
    #[must_use]
    pub fn loss(self, chance: Chance) -> Self {
        self.node(Loss(chance))
    }

    /// The datagrams with these places, counted from 0 over both directions, are lost.
    #[must_use]
    pub fn drop_nth(self, places: impl IntoIterator<Item = usize>) -> Self {
        self.node(DropNth::new(places))
    }

    /// The datagrams that the closure picks are lost.
    #[must_use]
    pub fn drop_if(self, pick: impl FnMut(&Datagram, Side) -> bool + Send + 'static) -> Self {
        self.node(DropIf(pick))
    }

    /// Some datagrams come late by `wait`.
    #[must_use]
    pub fn reorder(self, chance: Chance, wait: Duration) -> Self {
        self.node(Reorder(chance, wait))
    }

    /// The datagrams with these places, counted from 0 over both directions, come late by `wait`.
    #[must_use]
    pub fn delay_nth(self, places: impl IntoIterator<Item = usize>, wait: Duration) -> Self {
        self.node(DelayNth::new(places, wait))
    }

    /// Some datagrams come a second time, `wait` later.
    #[must_use]
    pub fn duplicate(self, chance: Chance, wait: Duration) -> Self {
        self.node(Duplicate(chance, wait))
    }

    /// Some datagrams have one bit flipped.
    #[must_use]
    pub fn corrupt(self, chance: Chance) -> Self {
        self.node(Corrupt(chance))
    }

    /// Datagrams of more than this many UDP payload bytes are lost.
    #[must_use]
    pub fn mtu(self, bytes: usize) -> Self {
        self.node(Mtu(bytes))
    }

    /// A link of this rate each way, with a queue before it.
    #[must_use]
    pub fn bandwidth(self, bits_per_second: u64, queue_bytes: u64) -> Self {
        self.node(Bandwidth::new(bits_per_second, queue_bytes))
    }

    /// Puts a datagram on the wire.
    pub fn send(&mut self, now: Duration, toward: Side, datagram: Datagram) {
        self.travel(
            now,
            InFlight {
                toward,
                passed: 0,
                datagram,
            },
        );
    }

    /// When something happens on it next.
    pub fn next_timeout(&self) -> Option<Duration> {
        self.in_flight.first_key_value().map(|(&(at, _), _)| at)
    }

    /// The next datagram that has reached its end by `now`.
    pub fn poll_delivery(&mut self, now: Duration) -> Option<(Side, Datagram)> {
        while self.next_timeout().is_some_and(|at| at <= now) {
            let ((at, _), flight) = self.in_flight.pop_first()?;
            if self.position(&flight).is_none() {
                return Some((flight.toward, flight.datagram));
            }
            self.travel(at, flight);
        }
        None
    }

    /// Lets a datagram pass all nodes that it comes to now, and waits for its time at the next.
    fn travel(&mut self, now: Duration, flight: InFlight) {
        let mut on_the_way = VecDeque::from([(now, flight)]);
        while let Some((at, flight)) = on_the_way.pop_front() {
            let node = self.position(&flight).filter(|_| at <= now);
            let Some(Placed { node, rng }) = node.and_then(|index| self.nodes.get_mut(index))
            else {
                self.in_flight.insert((at, self.order), flight);
                self.order += 1;
                continue;
            };
            let InFlight {
                toward,
                passed,
                datagram,
            } = flight;
            let mut out = Vec::new();
            node.on_datagram(
                datagram,
                &mut Hop {
                    now: at,
                    toward,
                    rng,
                    out: &mut out,
                },
            );
            let passed = passed + 1;
            on_the_way.extend(out.into_iter().map(|(at, datagram)| {
                (
                    at,
                    InFlight {
                        toward,
                        passed,
                        datagram,
                    },
                )
            }));
        }
    }

    /// Whether nothing is under way.
    pub fn is_quiet(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// Which node a datagram comes to next; `None` at its end.
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
}

//! Datagrams, and the nodes of the network that they pass: the trait, and the simple nodes.

use std::{net::SocketAddr, time::Duration};

use hybriq_proto::owners::acks::Ecn;
use hybriq_tls::Side;

use crate::{
    Chance, Rng,
    forge::{Header, packets},
    link::flip,
};

/// A UDP datagram in flight.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Datagram {
    /// Claimed source address.
    pub source: SocketAddr,
    /// Destination address.
    pub destination: SocketAddr,
    /// ECN codepoint; `None` is Not-ECT.
    pub ecn: Option<Ecn>,
    /// Payload.
    pub payload: Vec<u8>,
    /// Stand-in for bytes that are not written; empty for datagrams of the real core.
    pub stand_in: StandIn,
}

/// Bytes on the wire without content, for flow models that send a million datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StandIn {
    /// Bytes beyond the payload.
    pub bytes: u32,
    /// Numbers that the two ends exchange instead of bytes.
    pub label: [u64; 3],
}

impl Datagram {
    /// Creates a datagram that is not ECN capable.
    pub const fn new(source: SocketAddr, destination: SocketAddr, payload: Vec<u8>) -> Self {
        Self {
            source,
            destination,
            ecn: None,
            payload,
            stand_in: StandIn {
                bytes: 0,
                label: [0; 3],
            },
        }
    }

    /// Returns the number of UDP payload bytes, written or not.
    pub fn size(&self) -> u64 {
        self.payload.len() as u64 + u64::from(self.stand_in.bytes)
    }

    /// Returns its packets, as far as an observer without keys can tell.
    pub fn packets(&self) -> Vec<Header> {
        packets(&self.payload)
    }
}

/// A part of the path that every datagram passes.
pub trait Node: Send {
    /// Takes a datagram and forwards it to `hop`: now, later, changed, more than once, or never.
    fn on_datagram(&mut self, datagram: Datagram, hop: &mut Hop<'_>);

    /// Returns the time at which [`Node::on_timeout`] must be called for datagrams towards
    /// `toward`. Most nodes decide at once when to forward a datagram, and need no timer.
    fn next_timeout(&self, toward: Side) -> Option<Duration> {
        let _ = toward;
        None
    }

    /// Handles what is due for `hop.toward`, and updates the timer.
    fn on_timeout(&mut self, hop: &mut Hop<'_>) {
        let _ = hop;
    }
}

impl<N: Node + ?Sized> Node for Box<N> {
    fn on_datagram(&mut self, datagram: Datagram, hop: &mut Hop<'_>) {
        (**self).on_datagram(datagram, hop);
    }

    fn next_timeout(&self, toward: Side) -> Option<Duration> {
        (**self).next_timeout(toward)
    }

    fn on_timeout(&mut self, hop: &mut Hop<'_>) {
        (**self).on_timeout(hop);
    }
}

/// Context of a node when a datagram reaches it.
#[derive(Debug)]
pub struct Hop<'a> {
    /// Virtual time since the start of the world.
    pub now: Duration,
    /// Side to which the datagram travels.
    pub toward: Side,
    /// Random generator of the node.
    pub rng: &'a mut Rng,
    pub(crate) out: &'a mut Vec<(Duration, Datagram)>,
}

impl Hop<'_> {
    /// Forwards a datagram at once.
    pub fn forward(&mut self, datagram: Datagram) {
        self.forward_after(Duration::ZERO, datagram);
    }

    /// Forwards a datagram after a delay.
    pub fn forward_after(&mut self, wait: Duration, datagram: Datagram) {
        self.forward_at(self.now + wait, datagram);
    }

    /// Forwards a datagram at a time that is not in the past.
    pub fn forward_at(&mut self, at: Duration, datagram: Datagram) {
        self.out.push((at, datagram));
    }
}

/// Delays every datagram by this time.
#[derive(Clone, Copy, Debug)]
pub struct Delay(pub Duration);

impl Node for Delay {
    fn on_datagram(&mut self, datagram: Datagram, hop: &mut Hop<'_>) {
        hop.forward_after(self.0, datagram);
    }
}

/// Delays every datagram by up to this time. Datagrams sent close together may change their order.
#[derive(Clone, Copy, Debug)]
pub struct Jitter(pub Duration);

impl Node for Jitter {
    fn on_datagram(&mut self, datagram: Datagram, hop: &mut Hop<'_>) {
        let wait = hop.rng.up_to(self.0);
        hop.forward_after(wait, datagram);
    }
}

/// Loses some datagrams.
#[derive(Clone, Copy, Debug)]
pub struct Loss(pub Chance);

impl Node for Loss {
    fn on_datagram(&mut self, datagram: Datagram, hop: &mut Hop<'_>) {
        if !hop.rng.happens(self.0) {
            hop.forward(datagram);
        }
    }
}

/// Loses the datagrams at these places, counted from 0 in the order of arrival.
#[derive(Clone, Debug)]
pub struct DropNth {
    places: Vec<usize>,
    seen: usize,
}

impl DropNth {
    /// Creates a node that loses the datagrams at these places.
    pub fn new(places: impl IntoIterator<Item = usize>) -> Self {
        Self {
            places: places.into_iter().collect(),
            seen: 0,
        }
    }
}

impl Node for DropNth {
    fn on_datagram(&mut self, datagram: Datagram, hop: &mut Hop<'_>) {
        let place = self.seen;
        self.seen += 1;
        if !self.places.contains(&place) {
            hop.forward(datagram);
        }
    }
}

/// Delays the datagrams at these places, counted from 0.
#[derive(Clone, Debug)]
pub struct DelayNth {
    places: Vec<usize>,
    wait: Duration,
    seen: usize,
}

impl DelayNth {
    /// Creates a node that delays the datagrams at these places by `wait`.
    pub fn new(places: impl IntoIterator<Item = usize>, wait: Duration) -> Self {
        Self {
            places: places.into_iter().collect(),
            wait,
            seen: 0,
        }
    }
}

impl Node for DelayNth {
    fn on_datagram(&mut self, datagram: Datagram, hop: &mut Hop<'_>) {
        let place = self.seen;
        self.seen += 1;
        let wait = if self.places.contains(&place) {
            self.wait
        } else {
            Duration::ZERO
        };
        hop.forward_after(wait, datagram);
    }
}

/// Loses the datagrams that a closure selects.
pub struct DropIf<F>(pub F);

impl<F> std::fmt::Debug for DropIf<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DropIf").finish_non_exhaustive()
    }
}

impl<F: FnMut(&Datagram, Side) -> bool + Send> Node for DropIf<F> {
    fn on_datagram(&mut self, datagram: Datagram, hop: &mut Hop<'_>) {
        if !(self.0)(&datagram, hop.toward) {
            hop.forward(datagram);
        }
    }
}

/// Holds some datagrams back, so that later ones overtake them.
#[derive(Clone, Copy, Debug)]
pub struct Reorder(pub Chance, pub Duration);

impl Node for Reorder {
    fn on_datagram(&mut self, datagram: Datagram, hop: &mut Hop<'_>) {
        let wait = if hop.rng.happens(self.0) {
            self.1
        } else {
            Duration::ZERO
        };
        hop.forward_after(wait, datagram);
    }
}

/// Delivers some datagrams again, after a delay.
#[derive(Clone, Copy, Debug)]
pub struct Duplicate(pub Chance, pub Duration);

impl Node for Duplicate {
    fn on_datagram(&mut self, datagram: Datagram, hop: &mut Hop<'_>) {
        if hop.rng.happens(self.0) {
            hop.forward_after(self.1, datagram.clone());
        }
        hop.forward(datagram);
    }
}

/// Flips one bit of some datagrams.
#[derive(Clone, Copy, Debug)]
pub struct Corrupt(pub Chance);

impl Node for Corrupt {
    fn on_datagram(&mut self, mut datagram: Datagram, hop: &mut Hop<'_>) {
        if hop.rng.happens(self.0) {
            let bit = hop.rng.below(datagram.payload.len() as u64 * 8);
            flip(&mut datagram.payload, bit);
        }
        hop.forward(datagram);
    }
}

/// Loses datagrams with more UDP payload bytes than this.
#[derive(Clone, Copy, Debug)]
pub struct Mtu(pub usize);

impl Node for Mtu {
    fn on_datagram(&mut self, datagram: Datagram, hop: &mut Hop<'_>) {
        if datagram.size() <= self.0 as u64 {
            hop.forward(datagram);
        }
    }
}

/// Loses datagrams with more UDP payload bytes than `bytes` from a certain time on: a black hole
/// for sizes that passed before.
#[derive(Clone, Copy, Debug)]
pub struct MtuDrop {
    /// Time at which the losses begin.
    pub from: Duration,
    /// Maximum size that still passes.
    pub bytes: usize,
}

impl Node for MtuDrop {
    fn on_datagram(&mut self, datagram: Datagram, hop: &mut Hop<'_>) {
        if hop.now < self.from || datagram.size() <= self.bytes as u64 {
            hop.forward(datagram);
        }
    }
}

/// A value for each direction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Both<T> {
    to_client: T,
    to_server: T,
}

impl<T> Both<T> {
    pub(crate) const fn new(to_client: T, to_server: T) -> Self {
        Self {
            to_client,
            to_server,
        }
    }

    pub(crate) fn of(mut make: impl FnMut() -> T) -> Self {
        Self {
            to_client: make(),
            to_server: make(),
        }
    }

    pub(crate) fn map<U>(self, mut change: impl FnMut(T) -> U) -> Both<U> {
        Both {
            to_client: change(self.to_client),
            to_server: change(self.to_server),
        }
    }

    pub(crate) const fn toward(&self, side: Side) -> &T {
        match side {
            Side::Client => &self.to_client,
            Side::Server => &self.to_server,
        }
    }

    pub(crate) const fn toward_mut(&mut self, side: Side) -> &mut T {
        match side {
            Side::Client => &mut self.to_client,
            Side::Server => &mut self.to_server,
        }
    }
}

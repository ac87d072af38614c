//! Malicious nodes.

use std::{net::SocketAddr, time::Duration};

use crate::{Datagram, Hop, Node};

/// Holds one datagram until the next one has passed, so that the two change places.
///
/// At place 0 and towards the server, this swaps the halves of a ClientHello that spans two
/// datagrams. If no further datagram arrives, the held one is lost.
#[derive(Clone, Debug)]
pub struct Swap {
    place: usize,
    seen: usize,
    held: Option<Datagram>,
}

impl Swap {
    /// Swaps the datagram at `place` with the next one.
    pub const fn new(place: usize) -> Self {
        Self {
            place,
            seen: 0,
            held: None,
        }
    }
}

impl Node for Swap {
    fn on_datagram(&mut self, datagram: Datagram, hop: &mut Hop<'_>) {
        let place = self.seen;
        self.seen += 1;
        if place == self.place {
            self.held = Some(datagram);
            return;
        }
        hop.forward(datagram);
        if let Some(held) = self.held.take() {
            hop.forward(held);
        }
    }
}

/// Changes one datagram.
pub struct Alter<F> {
    place: usize,
    seen: usize,
    change: F,
}

impl<F> std::fmt::Debug for Alter<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Alter")
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

impl<F: FnMut(&mut Datagram) + Send> Alter<F> {
    /// Creates a node that changes the datagram at `place`.
    pub const fn new(place: usize, change: F) -> Self {
        Self {
            place,
            seen: 0,
            change,
        }
    }
}

impl<F: FnMut(&mut Datagram) + Send> Node for Alter<F> {
    fn on_datagram(&mut self, mut datagram: Datagram, hop: &mut Hop<'_>) {
        if self.seen == self.place {
            (self.change)(&mut datagram);
        }
        self.seen += 1;
        hop.forward(datagram);
    }
}

/// Cuts the tail of the datagram at `place`.
pub fn truncate(place: usize, to: usize) -> impl Node {
    Alter::new(place, move |datagram| datagram.payload.truncate(to))
}

/// Flips a bit of the datagram at `place`; bits are counted from the lowest bit of the first byte.
pub fn flip_bit(place: usize, bit: usize) -> impl Node {
    Alter::new(place, move |datagram| {
        if let Some(byte) = datagram.payload.get_mut(bit / 8) {
            *byte ^= 1 << (bit % 8);
        }
    })
}

/// Changes the source address of the datagram at `place`, like a spoofer or a rebinding NAT.
pub fn spoof(place: usize, source: SocketAddr) -> impl Node {
    Alter::new(place, move |datagram| datagram.source = source)
}

/// Sends a copy of one datagram later, from another address if one is given.
#[derive(Clone, Debug)]
pub struct Replay {
    place: usize,
    seen: usize,
    wait: Duration,
    source: Option<SocketAddr>,
}

impl Replay {
    /// Replays the datagram at `place` after `wait`.
    pub const fn new(place: usize, wait: Duration) -> Self {
        Self {
            place,
            seen: 0,
            wait,
            source: None,
        }
    }

    /// Sets the source address of the copy.
    #[must_use]
    pub const fn from(mut self, source: SocketAddr) -> Self {
        self.source = Some(source);
        self
    }
}

impl Node for Replay {
    fn on_datagram(&mut self, datagram: Datagram, hop: &mut Hop<'_>) {
        if self.seen == self.place {
            let mut copy = datagram.clone();
            copy.source = self.source.unwrap_or(copy.source);
            hop.forward_after(self.wait, copy);
        }
        self.seen += 1;
        hop.forward(datagram);
    }
}

/// Injects datagrams before every datagram that passes.
#[derive(Clone, Debug)]
pub struct Inject {
    most: usize,
    left: usize,
}

impl Inject {
    /// Injects `count` datagrams of up to `most` random bytes each.
    pub const fn new(count: usize, most: usize) -> Self {
        Self { most, left: count }
    }
}

impl Node for Inject {
    fn on_datagram(&mut self, datagram: Datagram, hop: &mut Hop<'_>) {
        if self.left > 0 {
            self.left -= 1;
            let len = hop.rng.below(self.most as u64 + 1) as usize;
            let mut payload = vec![0; len];
            hop.rng.fill(&mut payload);
            hop.forward(Datagram {
                payload,
                ..datagram.clone()
            });
        }
        hop.forward(datagram);
    }
}

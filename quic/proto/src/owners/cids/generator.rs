//! Generators of connection ids, and how ids steer packets to workers.

use std::{fmt, sync::Arc};

use super::ResetKey;

/// Generates the connection ids of an endpoint: determines their length, the information for load
/// balancers, and the worker that each belongs to.
///
/// [`RandomCids`] is the default, and [`QuicLb`](super::QuicLb) is for fleets behind a load
/// balancer; implement this trait for anything else.
///
/// # Security
/// Ids of one connection must not be recognizable as such (RFC 9000 §5.1): all bits not needed for
/// routing must be random. An id must not be generated again while it is in use; if it is, the
/// endpoint asks for another.
pub trait CidGenerator: fmt::Debug + Send + Sync {
    /// Returns the length of every id in bytes, 8 to 20.
    fn len(&self) -> usize;

    /// Returns true if ids are empty, which only `EndpointBuilder::zero_length_cids` sets up.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Generates an id of [`CidGenerator::len`] bytes for a worker. `cid` already contains random
    /// bytes.
    fn generate(&self, worker: u8, cid: &mut [u8]);

    /// Returns the worker for which an id was generated, if it can be read from the id. `cid` has
    /// [`CidGenerator::len`] bytes and may be forged.
    fn worker(&self, cid: &[u8]) -> Option<u8>;

    /// Returns the same generator with a key shared by all workers of the endpoint, with which ids
    /// can hide their worker. The default, `None`, uses no key.
    fn keyed(&self, key: &ResetKey) -> Option<Arc<dyn CidGenerator>> {
        let _ = key;
        None
    }

    /// Returns the function that finds the worker of an id, if it is as simple as [`Steering`], so
    /// that the operating system can pass datagrams to the right worker. The default is `None`:
    /// workers then pass datagrams on to each other if necessary.
    fn steering(&self) -> Option<Steering> {
        None
    }
}

/// Ids made of the worker's index, hidden from outsiders, and random bytes. The default, with 8
/// bytes in total.
///
/// Longer ids collide less often among many connections; shorter ones do not save enough to be
/// worth it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RandomCids {
    len: usize,
}

impl RandomCids {
    /// Creates a generator of ids with this many bytes, clamped to between 8 and 20.
    #[must_use]
    pub const fn of_len(bytes: usize) -> Self {
        let len = match bytes {
            ..8 => 8,
            20.. => 20,
            _ => bytes,
        };
        Self { len }
    }
}

impl Default for RandomCids {
    fn default() -> Self {
        Self::of_len(8)
    }
}

impl CidGenerator for RandomCids {
    fn len(&self) -> usize {
        self.len
    }

    fn generate(&self, worker: u8, cid: &mut [u8]) {
        if let Some(first) = cid.first_mut() {
            *first = worker;
        }
    }

    fn worker(&self, cid: &[u8]) -> Option<u8> {
        cid.first().copied()
    }

    fn keyed(&self, key: &ResetKey) -> Option<Arc<dyn CidGenerator>> {
        Some(Arc::new(Hidden {
            plain: *self,
            steering: Steering::new(key.words()),
        }))
    }
}

/// Ids whose first byte is the worker's index under a mask made of the other bytes: unmasked, the
/// index would link ids of one connection (RFC 9000 §5.1).
#[derive(Debug)]
struct Hidden {
    plain: RandomCids,
    steering: Steering,
}

impl CidGenerator for Hidden {
    fn len(&self) -> usize {
        self.plain.len
    }

    fn generate(&self, worker: u8, cid: &mut [u8]) {
        self.plain.generate(worker ^ self.steering.mask(cid), cid);
    }

    fn worker(&self, cid: &[u8]) -> Option<u8> {
        Some(self.plain.worker(cid)? ^ self.steering.mask(cid))
    }

    fn steering(&self) -> Option<Steering> {
        Some(self.steering)
    }
}

/// Empty ids: packets are distinguished by their source address.
///
/// Exhaustive: it has no state.
#[derive(Clone, Copy, Debug)]
pub struct ZeroLength;

impl CidGenerator for ZeroLength {
    fn len(&self) -> usize {
        0
    }

    fn generate(&self, _: u8, _: &mut [u8]) {}

    fn worker(&self, _: &[u8]) -> Option<u8> {
        None
    }
}

/// Function that finds the worker of a connection id: the first byte under a mask that depends on
/// the next four bytes and on a secret.
///
/// Linux computes it for each datagram before it chooses a socket (`SO_ATTACH_REUSEPORT_CBPF`). Its
/// instructions are those of a simple processor without cryptography, so the mask is a mix of
/// 32-bit words: it keeps observers from seeing at a glance which ids belong to one worker, and
/// breaking it reveals nothing more than that.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Steering {
    key: [u32; 2],
}

impl Steering {
    /// First factor of the mix.
    pub const FACTOR: u32 = 0x9e37_79b1;
    /// Distance of the first shift, in bits.
    pub const FIRST_SHIFT: u32 = 15;
    /// Distance of the second shift, in bits.
    pub const SECOND_SHIFT: u32 = 13;

    /// Creates the function from two secret words.
    pub const fn new(key: [u32; 2]) -> Self {
        Self {
            key: [key[0], key[1] | 1],
        }
    }

    /// Returns the secret words: one that the input is combined with, and the second factor of the
    /// mix.
    pub const fn key(&self) -> [u32; 2] {
        self.key
    }

    /// Returns the mask of the first byte. It is 0 for ids of fewer than 5 bytes, which are never
    /// ours.
    pub fn mask(&self, cid: &[u8]) -> u8 {
        let word = cid.split_first().and_then(|(_, rest)| rest.first_chunk());
        let Some(word) = word else { return 0 };
        let [start, factor] = self.key;
        let mut mix = (u32::from_be_bytes(*word) ^ start).wrapping_mul(Self::FACTOR);
        mix ^= mix >> Self::FIRST_SHIFT;
        mix = mix.wrapping_mul(factor);
        mix ^= mix >> Self::SECOND_SHIFT;
        (mix >> 24) as u8
    }
}

impl std::fmt::Debug for Steering {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Steering(..)")
    }
}

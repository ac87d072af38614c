//! Makers of connection ids.

use std::{fmt, sync::Arc};

use super::ResetKey;

/// Makes the connection ids of an endpoint: how long they are, what a load balancer reads from
/// them, and which of the endpoint's workers one belongs to.
///
/// [`RandomCids`] is the default and [`QuicLb`](super::QuicLb) what fleets behind a load balancer
/// use; this is for everything else.
///
/// # Security
/// Ids of one connection must not be recognizable as such (RFC 9000 §5.1): what is not needed for
/// routing is to be random. An id must not be made twice while the first is in use; the endpoint
/// asks again when that happens.
pub trait CidGenerator: fmt::Debug + Send + Sync {
    /// Bytes of every id, 8 to 20.
    fn len(&self) -> usize;

    /// Returns true if the ids have no bytes, which only
    /// `EndpointBuilder::zero_length_cids` makes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills an id of [`CidGenerator::len`] bytes for a worker. `cid` holds random bytes already.
    fn generate(&self, worker: u8, cid: &mut [u8]);

    /// Returns the worker an id was made for, as far as it tells. `cid` has [`CidGenerator::len`]
    /// bytes and may be forged.
    fn worker(&self, cid: &[u8]) -> Option<u8>;

    /// Returns the same generator with a key that all workers of the endpoint have, so that an id
    /// need not show everybody whom it is for. `None`, the default: it has no use for one.
    fn keyed(&self, key: &ResetKey) -> Option<Arc<dyn CidGenerator>> {
        let _ = key;
        None
    }
}

/// Ids of the worker's index, hidden from everybody else, and random bytes. The default, with 8
/// bytes in all.
///
/// Longer ids collide less often where there are many connections; shorter ones are not worth
/// their savings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RandomCids {
    len: usize,
}

impl RandomCids {
    /// Makes ids of so many bytes; a length beyond 8 to 20 is brought within.
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
        let key = key.clone();
        Some(Arc::new(Hidden { plain: *self, key }))
    }
}

/// The worker's index under a mask that follows from the other bytes: in the clear it would tell
/// ids of one connection from those of others (RFC 9000 §5.1).
#[derive(Debug)]
struct Hidden {
    plain: RandomCids,
    key: ResetKey,
}

impl Hidden {
    fn mask(&self, cid: &[u8]) -> u8 {
        self.key
            .mask(cid.split_first().map_or(&[], |(_, rest)| rest))
    }
}

impl CidGenerator for Hidden {
    fn len(&self) -> usize {
        self.plain.len
    }

    fn generate(&self, worker: u8, cid: &mut [u8]) {
        self.plain.generate(worker ^ self.mask(cid), cid);
    }

    fn worker(&self, cid: &[u8]) -> Option<u8> {
        Some(self.plain.worker(cid)? ^ self.mask(cid))
    }
}

/// No ids: packets are told apart by where they come from.
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

//! Connection ids and reset tokens of one worker.

use std::sync::Arc;

use crate::{
    config::TransportConfig,
    endpoint::{Endpoint, Generations, Place},
    owners::cids::{CidGenerator, Issued, RandomCids, ResetKey},
    wire::{ResetToken, limits, packet::Cid},
};

/// Number of attempts to draw an unused id before the generator counts as broken.
const DRAWS: usize = 64;

/// Issuer of a worker's connection ids and their reset tokens.
#[derive(Debug)]
pub(in crate::endpoint) struct Ids {
    worker: u8,
    /// Generation of this process.
    generation: u8,
    /// Number written into ids: that of the worker, counted across the workers of all generations.
    lane: u8,
    /// Generations of earlier processes that still have connections.
    earlier: Generations,
    /// Number of workers, if it is known.
    workers: Option<u8>,
    generator: Arc<dyn CidGenerator>,
    len: usize,
    reset_key: ResetKey,
    resets: StatelessReset,
}

/// Owner of a connection id that is not this worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::endpoint) enum Owner {
    /// Another worker of this process.
    Worker(u8),
    /// A worker of an earlier process.
    Earlier(Place),
}

/// Policy on stateless resets, for packets of unknown connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StatelessReset {
    /// Unknown packets are answered with a stateless reset.
    On,
    /// No resets are sent, and peers learn no token beyond those required.
    Off,
}

impl Ids {
    pub(in crate::endpoint) fn new(worker: u8, reset_key: ResetKey) -> Self {
        let generator = RandomCids::default();
        Self {
            worker,
            generation: 0,
            lane: worker,
            earlier: Generations::default(),
            workers: None,
            len: generator.len(),
            generator: Arc::new(generator),
            reset_key,
            resets: StatelessReset::On,
        }
    }

    /// Returns the length of every id in bytes.
    pub(in crate::endpoint) const fn len(&self) -> usize {
        self.len
    }

    /// Returns true if ids are empty, so that packets are distinguished by their source address.
    pub(in crate::endpoint) const fn is_zero_length(&self) -> bool {
        self.len == 0
    }

    /// Returns the other worker for which the id was made, if there is one.
    pub(in crate::endpoint) fn other_owner(&self, cid: &Cid) -> Option<Owner> {
        if cid.len() != self.len {
            return None;
        }
        let lane = self.generator.worker(cid.as_bytes())?;
        if lane == self.lane {
            return None;
        }
        let Some(workers) = self.workers else {
            return Some(Owner::Worker(lane));
        };
        let generation = lane.checked_div(workers)?;
        let worker = lane.checked_rem(workers)?;
        if generation == self.generation {
            return Some(Owner::Worker(worker));
        }
        let lives = self.earlier.contains(generation);
        lives.then_some(Owner::Earlier(Place { generation, worker }))
    }

    /// Returns true if packets may belong to earlier processes.
    pub(in crate::endpoint) const fn has_earlier(&self) -> bool {
        !self.earlier.is_empty()
    }

    fn set_lane(&mut self) {
        let before = self.generation.wrapping_mul(self.workers.unwrap_or(0));
        self.lane = before.wrapping_add(self.worker);
    }

    /// Returns true if the endpoint has more workers than this one.
    pub(in crate::endpoint) const fn has_others(&self) -> bool {
        matches!(self.workers, Some(2..))
    }

    /// Returns the reset token of this id, if the peer should know one.
    pub(in crate::endpoint) fn token(&self, cid: &Cid) -> Option<ResetToken> {
        self.has_token(cid).then(|| self.reset_key.token(cid))
    }

    /// Returns true if the peer should know the reset token of this id.
    pub(in crate::endpoint) fn has_token(&self, cid: &Cid) -> bool {
        self.resets == StatelessReset::On && !cid.is_empty()
    }
}

impl Endpoint {
    /// Sets the generator of connection ids. Must be called before there are any connections; ids
    /// have 8 to 20 bytes, or none.
    pub fn set_cid_generator(&mut self, generator: Arc<dyn CidGenerator>) {
        self.ids.len = generator.len().min(limits::MAX_CID_LEN);
        self.ids.generator = generator;
    }

    /// Sets the key of stateless reset tokens, which is random by default.
    pub fn set_reset_key(&mut self, key: ResetKey) {
        self.ids.reset_key = key;
    }

    /// Sets whether stateless resets are sent. On by default.
    pub fn set_stateless_reset(&mut self, resets: StatelessReset) {
        self.ids.resets = resets;
    }

    /// Sets the number of workers, which splits the number in an id into generation and worker.
    pub fn set_workers(&mut self, count: u8) {
        self.ids.workers = Some(count);
        self.ids.set_lane();
    }

    /// Sets the generation of this process, which is written into its connection ids together with
    /// the worker, and those of earlier processes that still have connections. All have the same
    /// number of workers; the generation must be below [`Generations::possible`] for that number.
    pub fn set_generation(&mut self, generation: u8, earlier: Generations) {
        self.ids.generation = generation;
        self.ids.earlier = earlier;
        self.ids.set_lane();
    }

    /// Forgets an earlier process that has ended: packets of its connections are answered with
    /// stateless resets from now on.
    pub fn forget_generation(&mut self, generation: u8) {
        self.ids.earlier.remove(generation);
        self.claims.forget(generation);
    }

    /// Draws an id that no connection uses.
    pub(in crate::endpoint) fn new_cid(&mut self) -> Cid {
        let mut bytes = [0; limits::MAX_CID_LEN];
        let bytes = bytes.split_at_mut(self.ids.len).0;
        for draw in 0..=DRAWS {
            self.random.fill(bytes);
            if draw < DRAWS {
                self.ids.generator.generate(self.ids.lane, bytes);
            }
            let cid = Cid::new(bytes).unwrap_or(Cid::EMPTY);
            if self.routing.find(&cid).is_none() {
                return cid;
            }
        }
        Cid::new(bytes).unwrap_or(Cid::EMPTY)
    }

    /// Issues the id for the server's preferred address, if it has one. It must have none if
    /// connection ids are empty (RFC 9000 §18.2).
    pub(in crate::endpoint) fn issue_preferred(
        &mut self,
        config: &TransportConfig,
    ) -> Option<Issued> {
        let wanted = config.has_preferred_address() && !self.ids.is_zero_length();
        wanted.then(|| self.issue())
    }

    /// Issues an id for the peer, with its token.
    pub(in crate::endpoint) fn issue(&mut self) -> Issued {
        let cid = self.new_cid();
        (cid, self.ids.reset_key.token(&cid))
    }
}

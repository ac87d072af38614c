//! Connection ids of one worker, and the tokens that go with them.

use std::sync::Arc;

use super::Endpoint;
use crate::config::TransportConfig;
use crate::wire::ResetToken;
use crate::{
    cids::{CidGenerator, Issued, RandomCids, ResetKey},
    limits,
    packet::Cid,
};

/// Draws of ids that are all in use before the generator counts as broken.
const DRAWS: usize = 64;

/// Maker of a worker's connection ids, and of the tokens that go with them.
#[derive(Debug)]
pub(super) struct Ids {
    worker: u8,
    /// Number of workers, if it is known.
    workers: Option<u8>,
    generator: Arc<dyn CidGenerator>,
    len: usize,
    reset_key: ResetKey,
    resets: StatelessReset,
}

/// Policy for packets of connections that this endpoint does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatelessReset {
    /// By a stateless reset.
    On,
    /// Not at all, and peers are told no token they need not be told.
    Off,
}

impl Ids {
    pub(super) fn new(worker: u8, reset_key: ResetKey) -> Self {
        let generator = RandomCids::default();
        Self {
            worker,
            workers: None,
            len: generator.len(),
            generator: Arc::new(generator),
            reset_key,
            resets: StatelessReset::On,
        }
    }

    /// Bytes of every id.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Returns true if ids have no bytes, so that packets are told apart by their source address.
    pub(super) const fn is_zero_length(&self) -> bool {
        self.len == 0
    }

    /// Returns the worker that the id was made for, if it is another that exists.
    pub(super) fn other_worker(&self, cid: &Cid) -> Option<u8> {
        if cid.len() != self.len {
            return None;
        }
        let worker = self.generator.worker(cid.as_bytes())?;
        let exists = self.workers.is_none_or(|workers| worker < workers);
        (worker != self.worker && exists).then_some(worker)
    }

    /// Returns the token by which the connection with this id can be ended, if the peer is to know
    /// one.
    pub(super) fn token(&self, cid: &Cid) -> Option<ResetToken> {
        let resets = self.resets == StatelessReset::On && !cid.is_empty();
        resets.then(|| self.reset_key.token(cid))
    }
}

impl Endpoint {
    /// Makes connection ids by another rule. To be called before there are any connections; ids of
    /// 8 to 20 bytes are possible, and none.
    pub fn set_cid_generator(&mut self, generator: Arc<dyn CidGenerator>) {
        self.ids.len = generator.len().min(limits::MAX_CID_LEN);
        self.ids.generator = generator;
    }

    /// Makes stateless reset tokens with another key, which is random otherwise.
    pub fn set_reset_key(&mut self, key: ResetKey) {
        self.ids.reset_key = key;
    }

    /// Sets whether stateless resets are sent. By default they are.
    pub fn set_stateless_reset(&mut self, resets: StatelessReset) {
        self.ids.resets = resets;
    }

    /// Learns how many workers there are: nothing is handed to those beyond.
    pub fn set_workers(&mut self, count: u8) {
        self.ids.workers = Some(count);
    }

    /// Draws an id that no connection has.
    pub(super) fn new_cid(&mut self) -> Cid {
        let mut bytes = [0; limits::MAX_CID_LEN];
        let bytes = bytes.split_at_mut(self.ids.len).0;
        for draw in 0..=DRAWS {
            self.random.fill(bytes);
            if draw < DRAWS {
                self.ids.generator.generate(self.ids.worker, bytes);
            }
            let cid = Cid::new(bytes).unwrap_or(Cid::EMPTY);
            if self.routing.find(&cid).is_none() {
                return cid;
            }
        }
        Cid::new(bytes).unwrap_or(Cid::EMPTY)
    }

    /// Makes the id that goes with the server's preferred address, if it has one. Without
    /// connection ids there must be none (RFC 9000 §18.2).
    pub(super) fn issue_preferred(&mut self, config: &TransportConfig) -> Option<Issued> {
        let wanted = config.has_preferred_address() && !self.ids.is_zero_length();
        wanted.then(|| self.issue())
    }

    /// Makes an id for the peer to use, and its token.
    pub(super) fn issue(&mut self) -> Issued {
        let cid = self.new_cid();
        (cid, self.ids.reset_key.token(&cid))
    }
}

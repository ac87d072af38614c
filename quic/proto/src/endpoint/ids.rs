//! Connection ids and reset tokens of one worker.

use std::sync::Arc;

use super::Endpoint;
use crate::config::TransportConfig;
use crate::wire::ResetToken;
use crate::{
    cids::{CidGenerator, Issued, RandomCids, ResetKey},
    limits,
    packet::Cid,
};

/// Attempts to draw an unused id before the generator counts as broken.
const DRAWS: usize = 64;

/// Issuer of a worker's connection ids and their reset tokens.
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

/// Policy on stateless resets, for packets of unknown connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatelessReset {
    /// Unknown packets are answered by a stateless reset.
    On,
    /// No resets are sent, and peers learn no token beyond those required.
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

    /// Returns the length of every id in bytes.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Returns true if ids are empty, so that packets are told apart by their source address.
    pub(super) const fn is_zero_length(&self) -> bool {
        self.len == 0
    }

    /// Returns the worker for which the id was made, if it is another existing one.
    pub(super) fn other_worker(&self, cid: &Cid) -> Option<u8> {
        if cid.len() != self.len {
            return None;
        }
        let worker = self.generator.worker(cid.as_bytes())?;
        let exists = self.workers.is_none_or(|workers| worker < workers);
        (worker != self.worker && exists).then_some(worker)
    }

    /// Returns true if the endpoint has more workers than this one.
    pub(super) const fn has_others(&self) -> bool {
        matches!(self.workers, Some(2..))
    }

    /// Returns the reset token of this id, if the peer should know one.
    pub(super) fn token(&self, cid: &Cid) -> Option<ResetToken> {
        let resets = self.resets == StatelessReset::On && !cid.is_empty();
        resets.then(|| self.reset_key.token(cid))
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

    /// Sets the number of workers: nothing is passed to others.
    pub fn set_workers(&mut self, count: u8) {
        self.ids.workers = Some(count);
    }

    /// Draws an id that no connection uses.
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

    /// Issues the id for the server's preferred address, if it has one. There must be none with
    /// empty connection ids (RFC 9000 §18.2).
    pub(super) fn issue_preferred(&mut self, config: &TransportConfig) -> Option<Issued> {
        let wanted = config.has_preferred_address() && !self.ids.is_zero_length();
        wanted.then(|| self.issue())
    }

    /// Issues an id for the peer, with its token.
    pub(super) fn issue(&mut self) -> Issued {
        let cid = self.new_cid();
        (cid, self.ids.reset_key.token(&cid))
    }
}

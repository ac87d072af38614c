//! What earlier processes, which serve the same address, have left.

use std::time::Duration;

use super::clock;
use crate::udp::Relays;
use hybriq_proto::endpoint::{Claim, Endpoint, Place};

/// What earlier processes, which serve the same address, have left.
#[derive(Debug, Default)]
pub(crate) struct Inheritance {
    /// Generation of this process.
    pub(crate) generation: u8,
    /// Relays to the workers of earlier processes.
    pub(crate) relays: Relays,
    /// Clients that are left to earlier processes.
    pub(crate) claims: Vec<Claimed>,
}

/// A client whose handshake an earlier process finishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claimed {
    pub(crate) claim: Claim,
    /// Worker that it is left to.
    pub(crate) place: Place,
    /// Time for which it is left.
    pub(crate) lifetime: Duration,
}

impl Inheritance {
    /// Tells the core of a worker which packets belong to earlier processes.
    pub(super) fn apply(&self, endpoint: &mut Endpoint) {
        endpoint.set_generation(self.generation, self.relays.generations());
        let now = clock::now();
        for claimed in &self.claims {
            endpoint.add_claim(claimed.claim, claimed.place, now + claimed.lifetime);
        }
    }
}

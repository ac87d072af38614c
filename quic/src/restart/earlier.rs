//! Workers and connection ids of earlier processes that serve the same address.

use std::time::Duration;

use hybriq_proto::endpoint::{Claim, Endpoint, Place};

use crate::{restart::relay::Relays, sync::clock};

/// Workers and connection ids of earlier processes that serve the same address.
#[derive(Debug, Default)]
pub(crate) struct Inheritance {
    /// Generation of this process.
    pub(crate) generation: u8,
    /// Relays to the workers of earlier processes.
    pub(crate) relays: Relays,
    /// Clients whose handshakes earlier processes finish.
    pub(crate) claims: Vec<Claimed>,
}

/// A client whose handshake an earlier process finishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claimed {
    pub(crate) claim: Claim,
    /// Worker that finishes the handshake.
    pub(crate) place: Place,
    /// Time for which that worker is responsible.
    pub(crate) lifetime: Duration,
}

impl Inheritance {
    /// Tells the core of a worker which packets belong to earlier processes.
    pub(crate) fn apply(&self, endpoint: &mut Endpoint) {
        endpoint.set_generation(self.generation, self.relays.generations());
        let now = clock::now();
        for claimed in &self.claims {
            endpoint.add_claim(claimed.claim, claimed.place, now + claimed.lifetime);
        }
    }
}

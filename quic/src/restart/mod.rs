//! Hot restart: an endpoint that goes from one process to the next. The successor receives on the same
//! sockets, and forwards the datagrams of connections that an earlier process still has.
//!
//! Imports point one way, so this room knows neither workers nor endpoints. What they do for it is in
//! `worker/life/succession.rs` (a worker), `worker/shared/hand_over.rs` (all workers of an endpoint) and
//! `endpoint/restart.rs` (the functions that applications call).

#[cfg(any(target_os = "linux", target_os = "android"))]
mod link;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod listener;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod records;

pub(super) mod backlog;
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) mod predecessor;
pub(super) mod relay;
pub(super) mod succession;
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) mod successor;

use std::time::Duration;

use hybriq_proto::endpoint::{Claim, Endpoint, Place};

use self::relay::Relays;
use crate::sync::clock;

/// Longest time that the other process may be silent.
#[cfg(any(target_os = "linux", target_os = "android"))]
const PATIENCE: Duration = Duration::from_secs(5);

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

//! Packet number spaces: their receive state and their encryption levels.

use std::time::Duration;

use hybriq_tls::Level;

use crate::{
    packet::{PerSpace, Space},
    space::Received,
};

/// Returns the empty receive state of each space, with `initial` for what arrived before the
/// connection existed.
pub(super) fn received(initial: Received, max_ack_delay: Duration) -> PerSpace<Received> {
    PerSpace {
        initial,
        handshake: Received::immediate(),
        data: Received::delayed(max_ack_delay),
    }
}

/// Returns the level of the CRYPTO frames in a space.
pub(super) const fn level(space: Space) -> Level {
    match space {
        Space::Initial => Level::Initial,
        Space::Handshake => Level::Handshake,
        Space::Data => Level::OneRtt,
    }
}

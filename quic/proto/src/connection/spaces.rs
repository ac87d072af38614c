use std::time::Duration;

use hybriq_tls::Level;

use crate::{
    packet::{PerSpace, Space},
    space::Received,
};

/// What came in before anything did; `initial` is what was received before the connection existed.
/// What went out is in the recovery.
pub(super) fn received(initial: Received, max_ack_delay: Duration) -> PerSpace<Received> {
    PerSpace {
        initial,
        handshake: Received::immediate(),
        data: Received::delayed(max_ack_delay),
    }
}

/// The level whose CRYPTO frames travel in a space.
pub(super) const fn level(space: Space) -> Level {
    match space {
        Space::Initial => Level::Initial,
        Space::Handshake => Level::Handshake,
        Space::Data => Level::OneRtt,
    }
}

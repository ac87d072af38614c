//! Packet number spaces: their receive state and their encryption levels.

use std::time::Duration;

pub(super) use crate::handshake::level;
use crate::{packet::PerSpace, space::Received};

/// Returns the empty receive state of each space, with `initial` for what arrived before the
/// connection existed.
pub(super) fn received(initial: Received, max_ack_delay: Duration) -> PerSpace<Received> {
    PerSpace {
        initial,
        handshake: Received::immediate(),
        data: Received::delayed(max_ack_delay),
    }
}

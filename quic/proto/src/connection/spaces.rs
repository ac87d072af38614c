use std::time::Duration;

pub(super) use crate::handshake::level;
use crate::{packet::PerSpace, space::Received};

/// What came in before anything did; `initial` is what was received before the connection existed.
/// What went out is in the recovery.
pub(super) fn received(initial: Received, max_ack_delay: Duration) -> PerSpace<Received> {
    PerSpace {
        initial,
        handshake: Received::immediate(),
        data: Received::delayed(max_ack_delay),
    }
}

//! Clocks, arrivals and turns: when something happens.

pub(super) mod arrivals;
pub(super) mod checkpoints;
pub(super) mod clock;
pub(super) mod turns;

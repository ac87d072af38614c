//! What others see of a connection: events, counters, and what it holds.

pub(super) mod census;
pub(super) mod observer;

//! The life of a connection: its state, its timers, its paths and its keys.

pub(super) mod key_update;
pub(super) mod paths;
pub(super) mod state;
pub(super) mod timers;

//! The control connection between agents: its address, its token, its lines.

pub(super) mod address;
pub(super) mod channel;
pub(super) mod lines;
pub(super) mod options;
pub(super) mod protocol;
pub(super) mod token;

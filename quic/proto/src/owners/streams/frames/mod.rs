//! Frames about streams: received, sent, and the schedule of those that are to be sent.

pub(super) mod incoming;
pub(super) mod outgoing;
pub(super) mod reset_at;
pub(super) mod schedule;

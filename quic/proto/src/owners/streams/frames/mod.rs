//! Frames about streams: received, sent, and the schedule of frames to send.

pub(super) mod incoming;
pub(super) mod outgoing;
pub(super) mod reset_at;
pub(super) mod schedule;

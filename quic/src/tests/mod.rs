//! Handles and workers under a scheduler (shuttle), which tries many orders of their steps.
//!
//! Everything above the protocol is the real thing: handles, workers, the locks between them, and
//! the TLS handshake. Only the sockets are ports of a network in memory, and time is virtual. A task
//! that is never woken shows as a deadlock, one that is woken for nothing again and again as too
//! many polls.
//!
//! # What they were seen to find
//! Each of these changes makes a test fail:
#![expect(
    clippy::unwrap_used,
    reason = "a scenario that cannot go on has failed"
)]

mod cancel;
mod drops;
mod ends;
mod full_socket;
mod wakes;
mod world;

//! Handles and workers under a scheduler (shuttle), which tries many orders of their steps.
//!
//! Everything above the protocol is real: handles, workers, the locks between them, and the TLS
//! handshake. Only the sockets are ports of a network in memory, and time is virtual. A task that
//! is never woken shows up as a deadlock, and a task that is woken again and again for nothing
//! shows up as too many polls.
//!
//! `HYBRIQ_SCHEDULES=10000 cargo test -p hybriq --lib tests::` runs each scenario in that many
//! orders, with each of two schedulers. A failure prints its seed.
//!
//! # Changes that the tests are known to detect
//! Each of these makes at least one test fail, almost always within the default number of orders:
//!
//! - one kind of event wakes nobody: data, credit, room, acknowledgement, new stream, permission to
//!   open, datagram, reset, end, outcome of a handshake, last connection gone, end of accepting;
//! - a message to the worker does not wake it, or the worker looks for messages first and stores
//!   its waker afterwards, under another lock;
//! - a reader or writer looks for data or room first and stores its waker afterwards;
//! - a connection is taken out of the worker's queue after it was processed instead of before;
//! - a connection is put into the queue before it was changed instead of after;
//! - a future that is dropped after its wake does not pass the wake on, or keeps its place;
//! - a handle that is not polled again takes a future's wake;
//! - a waker is dropped or called under a lock;
//! - a worker wakes itself for nothing, or spins while its socket is full.

#![expect(
    clippy::unwrap_used,
    reason = "a scenario that cannot go on has failed"
)]

mod broken_socket;
mod cancel;
mod drops;
mod ends;
mod full_socket;
mod tables;
mod wakes;
mod world;

//! Handles and workers under a scheduler (shuttle), which tries many orders of their steps.
//!
//! Everything above the protocol is the real thing: handles, workers, the locks between them, and
//! the TLS handshake. Only the sockets are ports of a network in memory, and time is virtual. A task
//! that is never woken shows as a deadlock, one that is woken for nothing again and again as too
//! many polls.
//!
//! `HYBRIQ_SCHEDULES=10000 cargo test -p hybriq --lib tests::` runs each scenario under that many
//! orders, by each of two schedulers. A failure prints its seed.
//!
//! # Changes that they were seen to find
//! Each of these makes at least one test fail, almost always within the default number of orders:
//!
//! - one kind of event wakes nobody: data, credit, room, acknowledgement, new stream, permission to
//!   open, datagram, reset, end, outcome of a handshake, last connection gone, end of accepting;
//! - a message to the worker does not wake it, or the worker looks for messages first and leaves its
//!   waker afterwards, under another lock;
//! - a reader or writer looks for data or room first and leaves its waker afterwards;
//! - a connection is taken out of the worker's queue after it was serviced instead of before;
//! - a connection is put into the queue before it was changed instead of after;
//! - a future that is dropped after its wake does not hand the wake on, or keeps its place;
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

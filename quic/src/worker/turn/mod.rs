//! One turn of a worker: requests, datagrams, timers and connections that were touched.

pub(super) mod census;
pub(super) mod inbox;
pub(super) mod input;
pub(super) mod malloc_trim;
pub(super) mod requests;

//! Endpoints over loopback: what an application sees of them.

#[path = "../endpoint_support/mod.rs"]
mod endpoint_support;

mod accept_with;
mod cancel;
mod census;
mod cids;
mod close;
mod configuration;
mod datagrams;
mod drops;
mod early;
mod echo;
mod endings;
mod errors;
mod errors_stay;
mod handles;
mod handshake_counts;
mod lifecycle;
mod post_quantum;
mod profiles;
mod refused_sends;
mod restarts;
mod retry;
mod seams;
mod secrets;
mod sockets;
mod stream_ends;
mod streams;
mod versions;
mod workers;

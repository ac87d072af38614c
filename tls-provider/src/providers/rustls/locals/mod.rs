//! What rustls can be told only through its callbacks: thread-locals, each set around one call.

pub(super) mod capture;
pub(super) mod chain;

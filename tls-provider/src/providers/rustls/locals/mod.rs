//! What rustls accepts only through its callbacks: thread-locals, each set for the duration of one
//! call.

pub(super) mod capture;
pub(super) mod key_shares;
pub(super) mod ticket_facts;

//! What a ticket goes back to, between the session that runs and the stores that rustls calls.
//!
//! The stores are part of configurations that many sessions share, and rustls calls them
//! synchronously inside `read_hs` and `new`. So a thread-local carries what they need to know, as it
//! does for secrets.

use std::cell::RefCell;
use std::sync::Arc;

use crate::Lineage;

/// What is written beside the tickets of the handshake that runs.
#[derive(Clone, Default)]
pub(super) struct Issue {
    pub(super) lineage: Option<Lineage>,
    /// Server: what 0-RTT data will rely on. Client: the application protocol.
    pub(super) context: Arc<[u8]>,
    /// What the tickets are bound to, and those that are used must be.
    pub(super) scope: Arc<[u8]>,
}

/// What was found beside the ticket that the handshake uses.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) lineage: Lineage,
    /// Client: the server's transport parameters.
    pub(super) params: Vec<u8>,
    /// Client: the application protocol, if there was one.
    pub(super) alpn: Arc<[u8]>,
}

#[derive(Default)]
struct Chain {
    issue: Issue,
    found: Option<Found>,
}

thread_local! {
    static CHAIN: RefCell<Chain> = RefCell::default();
}

/// Before a call into rustls: forgets what other sessions left on this thread.
pub(super) fn begin(issue: Issue) {
    CHAIN.set(Chain { issue, found: None });
}

/// After the call: the last ticket that was good, which is the one rustls uses, if it uses any.
pub(super) fn take_found() -> Option<Found> {
    CHAIN.with_borrow_mut(|chain| chain.found.take())
}

/// For the stores: what a new ticket goes back to.
pub(super) fn issue() -> Issue {
    CHAIN.with_borrow(|chain| chain.issue.clone())
}

/// For the stores: a ticket was good.
pub(super) fn found(found: Found) {
    CHAIN.with_borrow_mut(|chain| chain.found = Some(found));
}

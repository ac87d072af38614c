//! Facts that pass between a running session and the ticket stores that rustls calls.
//!
//! The stores belong to configurations that many sessions share, and rustls calls them
//! synchronously inside `read_hs` and `new`. A thread-local carries the facts, as it does for
//! secrets.

use std::{
    cell::{Cell, RefCell},
    sync::Arc,
};

use crate::{Lineage, values::group::FirstShares};

/// Facts to store with the tickets of the running handshake.
#[derive(Clone, Default)]
pub(in crate::providers::rustls) struct Issue {
    pub(in crate::providers::rustls) lineage: Option<Lineage>,
    /// Server: limits that 0-RTT data will rely on. Client: the application protocol.
    pub(in crate::providers::rustls) context: Arc<[u8]>,
    /// Context that tickets are bound to, both those issued and those used.
    pub(in crate::providers::rustls) scope: Arc<[u8]>,
    /// Client: only sessions of this lineage are resumed, if one is set.
    pub(in crate::providers::rustls) resumes: Option<Lineage>,
    /// Client: shares of the first flight.
    pub(in crate::providers::rustls) shares: FirstShares,
}

/// Facts stored with the ticket that the handshake uses.
#[derive(Debug)]
pub(in crate::providers::rustls) struct Found {
    pub(in crate::providers::rustls) lineage: Lineage,
    /// Client: the server's transport parameters.
    pub(in crate::providers::rustls) params: Vec<u8>,
    /// Client: the application protocol, if there was one.
    pub(in crate::providers::rustls) alpn: Arc<[u8]>,
}

#[derive(Default)]
struct Facts {
    issue: Issue,
    found: Option<Found>,
    /// Number of the client's tickets that were looked at.
    looked_at: u32,
}

/// Largest number of a client's tickets that a server looks at in one call. Clients offer one or
/// two; a ClientHello has room for hundreds, and each costs a decryption before anything is known
/// about the client. s2n-tls looks at three.
pub(in crate::providers::rustls) const TICKETS: u32 = 4;

thread_local! {
    static FACTS: RefCell<Facts> = RefCell::default();
    static IDENTITY: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Sets the identity that the transport chose for the running handshake, for the duration of a call
/// to rustls.
pub(in crate::providers::rustls) fn choose_identity(position: Option<usize>) {
    IDENTITY.set(position);
}

/// Returns the identity that the transport chose. Called by the certificate resolver.
pub(in crate::providers::rustls) fn chosen_identity() -> Option<usize> {
    IDENTITY.get()
}

/// Prepares a call into rustls: forgets what other sessions left on this thread.
pub(in crate::providers::rustls) fn begin(issue: Issue) {
    FACTS.set(Facts {
        issue,
        found: None,
        looked_at: 0,
    });
}

/// Returns the last valid ticket seen in the call. rustls uses this one, if it uses any.
pub(in crate::providers::rustls) fn take_found() -> Option<Found> {
    FACTS.with_borrow_mut(|facts| facts.found.take())
}

/// Returns true if a server may look at one more ticket of the client. Called by the stores.
pub(in crate::providers::rustls) fn may_look() -> bool {
    FACTS.with_borrow_mut(|facts| {
        facts.looked_at = facts.looked_at.saturating_add(1);
        facts.looked_at <= TICKETS
    })
}

/// Returns the facts to store with a new ticket. Called by the stores.
pub(in crate::providers::rustls) fn issue() -> Issue {
    FACTS.with_borrow(|facts| facts.issue.clone())
}

/// Returns the shares of the first flight.
pub(in crate::providers::rustls) fn shares() -> FirstShares {
    FACTS.with_borrow(|facts| facts.issue.shares)
}

/// Notes a valid ticket. Called by the stores.
pub(in crate::providers::rustls) fn found(found: Found) {
    FACTS.with_borrow_mut(|facts| facts.found = Some(found));
}

//! What the handshake of a connection holds.

use super::Handshake;
use crate::stats::census::Census;

impl Handshake {
    /// Counts every table. A new field does not compile until somebody decides what it holds.
    pub(crate) fn census(&self, census: &mut Census) {
        let Self {
            side: _,
            session,
            streams,
            exporter: _,
            keys,
            terms: _,
            complete: _,
            params_seen: _,
            done_owed,
            early_data: _,
            peer_certificates,
            tickets,
            repetitions: _,
        } = self;
        census.add("TLS sessions", usize::from(session.is_some()), 0);
        streams.census(census);
        keys.census(census);
        let certificates = peer_certificates.iter().map(|one| one.len()).sum();
        census.add(
            "certificates of the peer",
            peer_certificates.len(),
            certificates,
        );
        let owed = usize::from(!tickets.is_empty()) + usize::from(*done_owed);
        census.add(
            "last messages of the handshake to send",
            owed,
            tickets.len(),
        );
    }
}

//! What the paths of a connection hold.

use super::{Path, PathEvent, Paths};
use crate::stats::census::Census;

impl<S> Paths<S> {
    /// Counts every table. A new field does not compile until somebody decides what it holds.
    pub(crate) fn census(&self, census: &mut Census) {
        let Self {
            side: _,
            active,
            others: _,
            elsewhere: _,
            first: _,
            owes_ping,
            paced_until: _,
            challenges: _,
            events,
            outside_window: _,
            mtu_range: _,
            mtu_counts: _,
        } = self;
        for path in std::iter::once(active).chain(self.others()) {
            path.census(census);
        }
        census.add("answers to moves of the peer", usize::from(*owes_ping), 0);
        census.add_of::<PathEvent>("events of paths", events.len());
    }
}

impl<S> Path<S> {
    fn census(&self, census: &mut Census) {
        let Self {
            peer: _,
            local: _,
            credit: _,
            mtu: _,
            responses,
            validation,
            reached_by: _,
            peer_cid: _,
            state: _,
            saved,
        } = self;
        census.add("paths", 1, size_of::<Self>());
        census.add_of::<[u8; 8]>("answers to path challenges", responses.len());
        census.add("path challenges", validation.challenges(), 0);
        census.add_of::<S>("states of paths not in use", usize::from(saved.is_some()));
    }
}

//! Connections that the application has let go of, while streams that it finished are still on their
//! way.

use std::{
    task::Waker,
    time::{Duration, Instant},
};

use bytes::Bytes;

use super::State;

/// Longest time that a connection lives on for the sake of finished streams. A peer that takes no
/// data would otherwise keep a connection that nobody sees.
const LONGEST: Duration = Duration::from_secs(30);

/// State of a connection towards the application's handles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Leaving {
    /// The connection has handles, or is closed.
    #[default]
    No,
    /// The last handle was dropped, which the worker has not seen yet.
    Asked,
    /// Finished streams have this long to arrive.
    Until(Instant),
}

impl State {
    /// Notes the drop of the last handle. Returns false if nothing is on its way, so that the
    /// connection can be closed at once.
    pub(crate) fn leave(&mut self) -> bool {
        let stays = self.closed.is_none() && self.core.streams().is_delivering();
        if stays && self.leaving == Leaving::No {
            self.leaving = Leaving::Asked;
        }
        stays
    }

    /// Closes a connection without handles once the finished streams have arrived, or their time is
    /// over.
    pub(crate) fn go_on_leaving(&mut self, now: Instant, wakes: &mut Vec<Waker>) {
        let until = match self.leaving {
            Leaving::No => return,
            Leaving::Asked => now + LONGEST,
            Leaving::Until(until) => until,
        };
        if now < until && self.core.streams().is_delivering() {
            self.leaving = Leaving::Until(until);
        } else {
            self.leaving = Leaving::No;
            self.close(0, Bytes::new(), wakes);
        }
    }

    /// Returns the time of the connection's next timer.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        let next = self.core.next_timeout();
        match self.leaving {
            Leaving::Until(until) => Some(next.map_or(until, |next| next.min(until))),
            Leaving::No | Leaving::Asked => next,
        }
    }
}

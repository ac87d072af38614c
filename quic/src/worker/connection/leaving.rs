//! Connections that the application has dropped while their finished streams are still in flight.

use std::{
    task::Waker,
    time::{Duration, Instant},
};

use bytes::Bytes;

use super::State;

/// Time in which the peer must take [`PROGRESS`] bytes of finished streams, or everything that is
/// left. Otherwise a peer that takes no data would keep alive a connection that nobody sees.
const PATIENCE: Duration = Duration::from_secs(30);

/// Bytes that count as progress: a peer that takes a few bytes from time to time must not keep a
/// connection for hours.
const PROGRESS: u64 = 16 << 10;

/// Whether the application still has handles of the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Leaving {
    /// The connection has handles, or is closed.
    #[default]
    No,
    /// The last handle was dropped, but the worker has not noticed yet.
    Asked,
    /// At this time, fewer than this many bytes must be left; otherwise the connection is closed.
    Until(Instant, u64),
}

impl Leaving {
    /// Returns the state with these bytes of finished streams left; `None` if all have arrived.
    /// [`Leaving::No`] means that the connection must be closed.
    fn go_on(self, now: Instant, left: Option<u64>) -> Self {
        let Some(left) = left else {
            return Self::No;
        };
        match self {
            Self::Until(until, goal) if left > goal => {
                if now < until {
                    self
                } else {
                    Self::No
                }
            }
            _ => Self::Until(now + PATIENCE, left.saturating_sub(PROGRESS)),
        }
    }
}

impl State {
    /// Notes that the last handle was dropped. Returns the code to close the connection with at
    /// once if nothing is in flight.
    pub(crate) fn leave(&mut self) -> Option<u64> {
        let stays = self.closed.is_none() && self.core.streams().is_delivering();
        if !stays {
            return Some(self.core.application_codes().of_no_error());
        }
        if self.leaving == Leaving::No {
            self.leaving = Leaving::Asked;
        }
        None
    }

    /// Closes a connection without handles once the finished streams have arrived, or the peer has
    /// stopped taking them.
    pub(crate) fn go_on_leaving(&mut self, now: Instant, wakes: &mut Vec<Waker>) {
        if self.leaving == Leaving::No {
            return;
        }
        let streams = self.core.streams();
        let left = streams.is_delivering().then(|| streams.undelivered_bytes());
        self.leaving = self.leaving.go_on(now, left);
        if self.leaving == Leaving::No {
            let code = self.core.application_codes().of_no_error();
            self.close(code, Bytes::new(), wakes);
        }
    }

    /// Returns the time of the connection's next timer.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        let next = self.core.next_timeout();
        match self.leaving {
            Leaving::Until(until, _) => Some(next.map_or(until, |next| next.min(until))),
            Leaving::No | Leaving::Asked => next,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::disallowed_methods, reason = "a base for virtual time")]
    fn now() -> Instant {
        Instant::now()
    }

    /// Returns how many seconds a peer that takes this many bytes per second can keep a connection
    /// that has a megabyte to deliver.
    fn kept(each_second: u64) -> u64 {
        let start = now();
        let (mut leaving, mut left) = (Leaving::Asked, Some(1_000_000));
        for second in 0.. {
            leaving = leaving.go_on(start + Duration::from_secs(second), left);
            if leaving == Leaving::No {
                return second;
            }
            left = left.and_then(|left: u64| left.checked_sub(each_second));
        }
        unreachable!()
    }

    #[test]
    fn a_peer_that_goes_on_taking_gets_everything() {
        assert_eq!(kept(2_000_000), 1, "all arrived");
        assert_eq!(kept(10_000), 101, "all arrived");
        assert_eq!(kept(1_000), 1_001, "all arrived");
    }

    #[test]
    fn a_peer_that_takes_nothing_or_hardly_anything_is_left() {
        assert_eq!(kept(0), 30);
        assert_eq!(kept(100), 30, "3 kB in 30 s");
    }

    #[test]
    fn the_last_bytes_must_all_be_taken() {
        let start = now();
        let end = start + Duration::from_secs(30);
        let leaving = Leaving::Asked.go_on(start, Some(5));
        assert_eq!(leaving.go_on(start, Some(1)), leaving);
        assert_eq!(leaving.go_on(end, Some(1)), Leaving::No);
        assert_eq!(leaving.go_on(start, None), Leaving::No);
    }
}

//! Sockets that cannot be received from.

use std::time::{Duration, Instant};

/// Number of consecutive errors before a socket rests: the system also reports routers' answers to
/// our datagrams as errors, once each.
const AT_ONCE: u32 = 3;

/// First pause of a socket after errors. It doubles with each further error.
const FIRST_REST: Duration = Duration::from_millis(1);
const LONGEST_REST: Duration = Duration::from_secs(1);

/// Time with only errors after which a socket is given up.
const LASTING: Duration = Duration::from_secs(10);

/// Consecutive errors of a socket while receiving.
#[derive(Debug, Default)]
pub(super) struct Trouble {
    since: Option<Instant>,
    errors: u32,
    rests_until: Option<Instant>,
    is_told: bool,
}

/// How to react to an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::worker) enum Advice {
    /// Receive again at once.
    GoOn,
    /// Receive again later. True the first time.
    Rest(bool),
    /// Give up the socket. Returned once.
    GiveUp,
}

impl Trouble {
    /// Notes that the socket worked without an error.
    #[inline]
    pub(super) fn on_well(&mut self) {
        if self.since.is_some() {
            *self = Self::default();
        }
    }

    pub(super) fn on_error(&mut self, now: Instant) -> Advice {
        let since = *self.since.get_or_insert(now);
        self.errors = self.errors.saturating_add(1);
        let Some(doublings) = self.errors.checked_sub(AT_ONCE + 1) else {
            return Advice::GoOn;
        };
        let rest = FIRST_REST.saturating_mul(1 << doublings.min(16));
        self.rests_until = now.checked_add(rest.min(LONGEST_REST));
        let lasts = now.saturating_duration_since(since) >= LASTING;
        if lasts && !self.is_told {
            self.is_told = true;
            return Advice::GiveUp;
        }
        Advice::Rest(doublings == 0)
    }

    /// Returns the time at which the socket may be received from again, if it rests.
    pub(super) const fn rests_until(&self) -> Option<Instant> {
        self.rests_until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_with_errors_rests_longer_and_longer_and_is_given_up_once() {
        let (mut trouble, start) = (Trouble::default(), Instant::now());
        let mut now = start;
        for _ in 0..AT_ONCE {
            assert_eq!(trouble.on_error(now), Advice::GoOn);
            assert_eq!(trouble.rests_until(), None);
        }
        assert_eq!(trouble.on_error(now), Advice::Rest(true));
        let mut errors = 0;
        let advice = loop {
            now = trouble.rests_until().unwrap();
            errors += 1;
            match trouble.on_error(now) {
                Advice::Rest(false) => {}
                other => break other,
            }
        };
        assert_eq!(advice, Advice::GiveUp);
        assert!(now - start >= LASTING && errors < 25, "{errors}");
        assert_eq!(trouble.on_error(now), Advice::Rest(false));
    }

    #[test]
    fn a_socket_that_recovers_begins_anew() {
        let (mut trouble, now) = (Trouble::default(), Instant::now());
        for _ in 0..10 {
            trouble.on_error(now);
        }
        trouble.on_well();
        assert_eq!(trouble.rests_until(), None);
        assert_eq!(trouble.on_error(now + LASTING), Advice::GoOn);
    }
}

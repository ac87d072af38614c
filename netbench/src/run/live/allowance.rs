//! The time that a run may take.

use std::time::{Duration, Instant};

/// Time of a run, and the part that turns have used. A turn measures each cell once.
pub(crate) struct Allowance {
    limit: Option<Duration>,
    began: Instant,
    turn_began: Option<Instant>,
    longest_turn: Duration,
}

impl Allowance {
    pub(crate) fn new(limit: Option<Duration>, now: Instant) -> Self {
        Self {
            limit,
            began: now,
            turn_began: None,
            longest_turn: Duration::ZERO,
        }
    }

    /// Begins another turn if one as long as the longest so far still fits. The first always does.
    pub(crate) fn begins_turn(&mut self, now: Instant) -> bool {
        let lasted = self.turn_began.map(|began| now - began);
        self.longest_turn = self.longest_turn.max(lasted.unwrap_or_default());
        let fits = |limit| now - self.began + self.longest_turn <= limit;
        let begins = lasted.is_none() || self.limit.is_none_or(fits);
        self.turn_began = Some(now);
        begins
    }

    /// Returns true if twice the whole time is over, so that even this turn must stop.
    pub(crate) fn is_overdrawn(&self, now: Instant) -> bool {
        self.limit.is_some_and(|limit| now - self.began > 2 * limit)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::Allowance;

    #[test]
    fn a_turn_that_does_not_fit_is_not_begun() {
        let (start, second) = (Instant::now(), Duration::from_secs(1));
        let mut allowance = Allowance::new(Some(10 * second), start);
        assert!(allowance.begins_turn(start));
        assert!(allowance.begins_turn(start + 4 * second));
        assert!(!allowance.begins_turn(start + 7 * second));
        assert!(!allowance.is_overdrawn(start + 20 * second));
        assert!(allowance.is_overdrawn(start + 21 * second));
    }

    #[test]
    fn the_first_turn_and_one_without_a_limit_always_begin() {
        let (start, hour) = (Instant::now(), Duration::from_hours(1));
        assert!(Allowance::new(Some(Duration::ZERO), start).begins_turn(start + hour));
        let mut free = Allowance::new(None, start);
        assert!((0..5).all(|turn| free.begins_turn(start + turn * hour)));
        assert!(!free.is_overdrawn(start + 9 * hour));
    }
}

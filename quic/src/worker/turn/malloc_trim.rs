//! Memory that is returned to the system after many connections ended.
//!
//! The tables of an endpoint shrink as connections end, but glibc's allocator keeps the pages:
//! after a flood of clients the process would stay as large as it was at its peak.

use std::time::{Duration, Instant};

/// Number of connections below which trimming is not worth the effort.
const LEAST: usize = 256;

/// Time to wait for the other connections of a flood to end.
const DELAY: Duration = Duration::from_secs(5);

/// Shortest time between two trims.
const INTERVAL: Duration = Duration::from_secs(30);

/// Decides when memory is returned: once half of the connections of a peak are gone.
#[derive(Debug, Default)]
pub(in crate::worker) struct MallocTrim {
    /// Largest number of connections since the last trim.
    peak: usize,
    last: Option<Instant>,
    due: Option<Instant>,
}

impl MallocTrim {
    /// Updates the number of connections. Returns true if memory must be returned now.
    pub(in crate::worker) fn is_due(&mut self, now: Instant, connections: usize) -> bool {
        self.peak = self.peak.max(connections);
        if self.due.is_some_and(|at| at <= now) {
            *self = Self {
                peak: connections,
                last: Some(now),
                due: None,
            };
            return true;
        }
        if self.due.is_none() && self.peak >= LEAST && connections <= self.peak / 2 {
            let earliest = self.last.map_or(now, |last| last + INTERVAL);
            self.due = Some(earliest.max(now + DELAY));
        }
        false
    }

    /// Returns the time at which [`MallocTrim::is_due`] must be called.
    pub(in crate::worker) const fn next_timeout(&self) -> Option<Instant> {
        self.due
    }
}

/// Returns free memory to the system, on its own thread so that no task waits for it.
pub(in crate::worker) fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    drop(tokio::task::spawn_blocking(|| {
        #[expect(unsafe_code, reason = "the allocator has no safe interface for it")]
        // SAFETY: the function has no preconditions, and may be called from any thread.
        let _ = unsafe { libc::malloc_trim(0) };
    }));
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::{DELAY, INTERVAL, LEAST, MallocTrim};

    #[expect(clippy::disallowed_methods, reason = "a base for virtual time")]
    fn now() -> Instant {
        Instant::now()
    }

    #[test]
    fn memory_is_given_back_once_half_of_a_flood_is_gone() {
        let (mut trim, now) = (MallocTrim::default(), now());
        assert!(!trim.is_due(now, 1000) && !trim.is_due(now, 600));
        assert_eq!(trim.next_timeout(), None, "most are still there");
        assert!(!trim.is_due(now, 500));
        assert_eq!(trim.next_timeout(), Some(now + DELAY));
        assert!(trim.is_due(now + DELAY, 10));
        assert_eq!(trim.next_timeout(), None);
        // A second flood follows immediately.
        assert!(!trim.is_due(now + DELAY, 1000) && !trim.is_due(now + DELAY, 0));
        assert_eq!(trim.next_timeout(), Some(now + DELAY + INTERVAL));
    }

    #[test]
    fn a_few_connections_are_not_worth_it() {
        let (mut trim, now) = (MallocTrim::default(), now());
        assert!(!trim.is_due(now, LEAST - 1) && !trim.is_due(now, 0));
        assert_eq!(trim.next_timeout(), None);
    }
}

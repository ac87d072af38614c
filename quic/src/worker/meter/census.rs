//! Memory of all connections of a worker, added up in small steps.

use std::time::{Duration, Instant};

use hybriq_proto::stats::{MemoryHeld, Metric};

use super::report::Common;

pub(super) const MEMORY: Metric = Metric::new(
    "hybriq_memory_bytes",
    "Memory that connections use, by what uses it; an estimate from the last seconds.",
);

/// Average number of connections measured per second.
const PACE: u64 = 4096;

/// Time between two steps.
const STEP: Duration = Duration::from_millis(1);

/// Memory of all connections of a worker.
///
/// A census takes one step for each connection, so with many connections it comes to each one
/// rarely: its share of the time stays the same. It follows only on changes: an idle worker sleeps.
#[derive(Debug, Default)]
pub(super) struct Census {
    /// Time of the next step; `None` while no census is wanted.
    due: Option<Instant>,
    /// Slot to continue with.
    from: usize,
    sum: MemoryHeld,
    /// Earliest time of the next census.
    earliest: Option<Instant>,
    last: MemoryHeld,
    published: MemoryHeld,
}

impl Census {
    /// Asks for a census, which begins at once if the last one is old enough.
    pub(super) fn ask(&mut self, now: Instant, connections: u64) {
        if self.due.is_some() {
            return;
        }
        let pause = Duration::from_secs(1 + connections / PACE);
        self.due = Some(self.earliest.map_or(now, |at| at.max(now)));
        self.earliest = self.due.map(|due| due + pause);
    }

    /// Takes a step, if one is due.
    pub(super) fn go_on(
        &mut self,
        now: Instant,
        held: impl Fn(usize) -> (MemoryHeld, Option<usize>),
    ) {
        if self.due.is_none_or(|at| at > now) {
            return;
        }
        let (step, next) = held(self.from);
        self.sum += step;
        self.from = next.unwrap_or_default();
        self.due = next.map(|_| now + STEP);
        if next.is_none() {
            self.last = std::mem::take(&mut self.sum);
        }
    }

    /// Returns true if the result is not published yet.
    pub(super) fn is_new(&self) -> bool {
        self.last != self.published
    }

    pub(super) fn publish(&mut self, common: &Common) {
        for ((of, now), (_, before)) in self.last.by_label().zip(self.published.by_label()) {
            let gauge = common.gauge(MEMORY.name, &[("of", of.into())]);
            gauge.increment(now as f64 - before as f64);
        }
        self.published = self.last;
    }

    /// Publishes that no memory is in use.
    pub(super) fn end(&mut self, common: &Common) {
        self.last = MemoryHeld::default();
        self.publish(common);
    }

    pub(super) const fn next_timeout(&self) -> Option<Instant> {
        self.due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the memory of 600 connections of 10 bytes each, 256 connections per step.
    fn held(from: usize) -> (MemoryHeld, Option<usize>) {
        let end = 600.min(from + 256);
        let mut held = MemoryHeld::default();
        held.connection = 10 * (end - from) as u64;
        (held, (end < 600).then_some(end))
    }

    #[test]
    fn a_census_takes_steps_and_comes_only_when_asked() {
        let (mut census, start) = (Census::default(), Instant::now());
        census.go_on(start, held);
        assert!(!census.is_new(), "nobody asked");
        census.ask(start, 600);
        for step in 0..3 {
            let now = start + step * STEP;
            assert_eq!(census.next_timeout(), Some(now));
            census.go_on(now, held);
            assert_eq!(census.is_new(), step == 2, "step {step}");
        }
        assert_eq!(census.last.connection, 6000);
        assert_eq!(census.next_timeout(), None);
        census.ask(start + 3 * STEP, 600);
        assert_eq!(census.next_timeout(), Some(start + Duration::from_secs(1)));
    }

    #[test]
    fn many_connections_are_asked_seldom() {
        let (mut census, start) = (Census::default(), Instant::now());
        census.ask(start, 100 * PACE);
        census.go_on(start, |_| (MemoryHeld::default(), None));
        census.ask(start, 100 * PACE);
        assert_eq!(
            census.next_timeout(),
            Some(start + Duration::from_secs(101))
        );
    }
}

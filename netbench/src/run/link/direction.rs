//! One direction of the link: decides with the model of `hybriq-sim`, and counts.

use std::time::Duration;

use hybriq_sim::link::{self, Decision, Departure, Fate, Offer, Passage};

use super::tally::{Loss, Tally, micros};

/// One direction of a link, and its counters.
pub(super) struct Direction {
    model: link::Direction,
    now: Duration,
    first: Option<Duration>,
    /// Time at which the line has sent its last datagram.
    line_free: Duration,
    line_bytes: u64,
    line_datagrams: u64,
    waited: Duration,
    lateness: Duration,
    released: u64,
    tally: Tally,
}

impl Direction {
    pub(super) fn new(model: link::Direction) -> Self {
        Self {
            model,
            now: Duration::ZERO,
            first: None,
            line_free: Duration::ZERO,
            line_bytes: 0,
            line_datagrams: 0,
            waited: Duration::ZERO,
            lateness: Duration::ZERO,
            released: 0,
            tally: Tally::default(),
        }
    }

    /// Decides about the next datagram; `None` loses it.
    pub(super) fn offer(&mut self, offer: Offer) -> Option<Passage> {
        // Two sockets may be read out of order.
        self.now = self.now.max(offer.now);
        self.first.get_or_insert(self.now);
        self.tally.datagrams_in += 1;
        self.tally.bytes_in += offer.bytes;
        let Decision { departure, fate } = self.model.offer(offer);
        if let Some(departure) = departure {
            self.on_departure(offer.bytes, departure);
        }
        match fate {
            Fate::Lost(loss) => {
                self.tally.lost.add(loss.into());
                None
            }
            Fate::Passed(passage) => {
                self.tally.duplicated += u64::from(passage.copies > 1);
                self.tally.corrupted += u64::from(passage.flip.is_some());
                self.tally.marked += u64::from(passage.marked);
                self.tally.reordered += u64::from(passage.held_back);
                Some(passage)
            }
        }
    }

    fn on_departure(&mut self, bytes: u64, departure: Departure) {
        self.line_free = departure.at;
        self.line_bytes += bytes;
        self.line_datagrams += 1;
        self.waited += departure.waited;
        let waited = micros(departure.waited);
        self.tally.max_queue_delay_us = self.tally.max_queue_delay_us.max(waited);
    }

    /// Counts a datagram for which there was no memory.
    pub(super) fn refuse(&mut self, bytes: u64) {
        self.tally.datagrams_in += 1;
        self.tally.bytes_in += bytes;
        self.tally.lost.add(Loss::Memory);
    }

    /// Counts a datagram that left this long after it was due.
    pub(super) fn on_released(&mut self, bytes: u64, late: Duration) {
        self.tally.datagrams_out += 1;
        self.tally.bytes_out += bytes;
        self.released += 1;
        self.lateness += late;
        self.tally.max_late_us = self.tally.max_late_us.max(micros(late));
    }

    /// Counts datagrams that the system did not send after their release.
    pub(super) fn on_unsent(&mut self, datagrams: u64, bytes: u64) {
        self.tally.datagrams_out -= datagrams;
        self.tally.bytes_out -= bytes;
        self.tally.unsent += datagrams;
    }

    /// Counts datagrams that the system dropped before they could be read.
    pub(super) fn on_unseen(&mut self, datagrams: u64) {
        self.tally.unseen += datagrams;
    }

    pub(super) fn tally(&self) -> Tally {
        let first = self.first.unwrap_or_default();
        let busy = self.line_free.max(self.now).saturating_sub(first);
        let tally = &self.tally;
        let carried = tally.datagrams_in - tally.lost.sum() + tally.duplicated;
        Tally {
            held: carried - tally.datagrams_out - tally.unsent,
            rate_mbit: self.line_bytes as f64 * 8.0 / micros(busy).max(1.0),
            mean_queue_delay_us: micros(self.waited) / self.line_datagrams.max(1) as f64,
            mean_late_us: micros(self.lateness) / self.released.max(1) as f64,
            ..self.tally
        }
    }
}

impl From<link::Loss> for Loss {
    fn from(loss: link::Loss) -> Self {
        match loss {
            link::Loss::Size => Self::Size,
            link::Loss::Queue => Self::Queue,
            link::Loss::Blackout => Self::Blackout,
            link::Loss::Burst => Self::Burst,
            link::Loss::Random => Self::Random,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hybriq_sim::link::{self, Blackouts, GilbertElliott, Line, Marking, Offer, Settings};
    use hybriq_sim::{Chance, ms};

    use super::Direction;
    use crate::run::link::tally::Tally;

    fn run(settings: Settings, count: u32, gap: Duration) -> (u64, Tally) {
        let mut direction = Direction::new(link::Direction::new(settings, 1));
        let passed = (0..count).filter_map(|n| {
            direction.offer(Offer {
                now: gap * n,
                bytes: 1250,
                ecn_capable: true,
            })
        });
        let passed = passed.count() as u64;
        (passed, direction.tally())
    }

    /// Returns a line of 10 Mbit/s, on which a datagram of 1250 bytes takes 1 ms.
    fn line(queue: u64) -> Line {
        Line::new(10_000_000, queue)
    }

    #[test]
    fn the_rate_and_the_longest_wait_are_those_of_the_line() {
        let settings = Settings {
            delay: ms(5),
            line: Some(line(u64::MAX / 2)),
            ..Settings::default()
        };
        let (passed, tally) = run(settings, 1000, Duration::from_micros(1));
        assert_eq!(passed, 1000);
        assert!((9.99..=10.0).contains(&tally.rate_mbit), "{tally:?}");
        let longest = tally.max_queue_delay_us;
        assert!((longest - 998_001.0).abs() < 1.0, "{tally:?}");
    }

    #[test]
    fn a_line_that_rested_let_nothing_wait() {
        let settings = Settings {
            line: Some(line(15_000)),
            ..Settings::default()
        };
        let (_, tally) = run(settings, 10, ms(7));
        assert_eq!(tally.max_queue_delay_us.to_bits(), 0.0_f64.to_bits());
    }

    #[test]
    fn every_datagram_is_accounted_for() {
        let settings = Settings {
            line: Some(line(20_000).marking(Marking::Above(ms(1)))),
            mtu: Some(1250),
            loss: Chance::share(0.01),
            bursts: Some(GilbertElliott::new(
                Chance::share(0.003),
                Chance::share(0.25),
            )),
            duplicate: Chance::share(0.01),
            corrupt: Chance::share(0.01),
            blackouts: Blackouts::new([(ms(500), ms(600))]),
            ..Settings::default()
        };
        let (passed, tally) = run(settings, 20_000, Duration::from_micros(700));
        assert_eq!(tally.datagrams_in, passed + tally.lost.sum());
        assert_eq!(tally.held, passed + tally.duplicated);
        for count in [
            tally.lost.queue,
            tally.lost.random,
            tally.lost.burst,
            tally.lost.blackout,
            tally.duplicated,
            tally.corrupted,
            tally.marked,
        ] {
            assert!(count > 0, "{tally:?}");
        }
        let settings = Settings {
            mtu: Some(1249),
            ..Settings::default()
        };
        assert_eq!(run(settings, 3, ms(1)).1.lost.size, 3);
    }

    #[test]
    fn every_change_is_counted_once() {
        let settings = Settings {
            line: Some(line(20_000).marking(Marking::Above(ms(1)))),
            duplicate: Chance::share(0.03),
            corrupt: Chance::share(0.05),
            ..Settings::default()
        };
        let mut direction = Direction::new(link::Direction::new(settings, 1));
        let passed: Vec<_> = (0..5000_u32)
            .filter_map(|n| {
                direction.offer(Offer {
                    now: Duration::from_micros(900) * n,
                    bytes: 1250,
                    ecn_capable: true,
                })
            })
            .collect();
        let tally = direction.tally();
        let count =
            |is: fn(&link::Passage) -> bool| passed.iter().filter(|it| is(it)).count() as u64;
        assert_eq!(tally.duplicated, count(|it| it.copies > 1));
        assert_eq!(tally.corrupted, count(|it| it.flip.is_some()));
        assert_eq!(tally.marked, count(|it| it.marked));
        assert_eq!(tally.reordered, count(|it| it.held_back));
        assert!(tally.duplicated > 0 && tally.corrupted > 0 && tally.marked > 0);
    }

    #[test]
    fn a_blackout_is_counted_as_one() {
        let settings = Settings {
            blackouts: Blackouts::new([(ms(10), ms(15)), (ms(20), ms(21))]),
            ..Settings::default()
        };
        let (passed, tally) = run(settings, 30, ms(1));
        assert_eq!((passed, tally.lost.blackout, tally.lost.sum()), (24, 6, 6));
    }
}

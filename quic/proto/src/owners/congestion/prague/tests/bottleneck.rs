//! A sender behind a queue that marks packets.

use std::collections::VecDeque;

use super::*;

/// One packet, from when it is sent to its acknowledgement.
struct Packet {
    sent: Instant,
    acked: Instant,
    marked: bool,
}

/// Policy on marking.
#[derive(Clone, Copy)]
enum Mark {
    /// Marks packets that wait for longer than a millisecond.
    Step,
    /// Marks one packet in this many.
    OneIn(u64),
}

struct Bottleneck {
    mark: Mark,
    base_rtt: Duration,
    /// Time that a packet occupies the link.
    serialization: Duration,
    free_at: Instant,
    under_way: VecDeque<Packet>,
    sent: u64,
    delivered: u64,
    marks: u64,
    longest_wait: Duration,
    smoothed: Duration,
}

impl Bottleneck {
    fn new(now: Instant, megabits: u64, base_rtt: Duration, mark: Mark) -> Self {
        Self {
            mark,
            sent: 0,
            base_rtt,
            serialization: Duration::from_nanos(SIZE * 8 * 1000 / megabits),
            free_at: now,
            under_way: VecDeque::new(),
            delivered: 0,
            marks: 0,
            longest_wait: Duration::ZERO,
            smoothed: base_rtt,
        }
    }

    fn send(&mut self, now: Instant) {
        let wait = self.free_at.saturating_duration_since(now);
        self.free_at = self.free_at.max(now) + self.serialization;
        self.longest_wait = self.longest_wait.max(wait);
        self.sent += 1;
        self.under_way.push_back(Packet {
            sent: now,
            acked: self.free_at + self.base_rtt,
            marked: match self.mark {
                Mark::Step => wait > ms(1),
                Mark::OneIn(count) => self.sent.is_multiple_of(count),
            },
        });
    }

    fn acknowledge(&mut self, packet: &Packet, prague: &mut Prague) {
        let now = packet.acked;
        self.smoothed = self.smoothed * 7 / 8 + (now - packet.sent) / 8;
        self.delivered += 1;
        let marks = u64::from(packet.marked);
        self.marks += marks;
        if packet.marked {
            marked(prague, now, packet.sent, 1);
        }
        let mut acked = testing::acked(packet.sent, SIZE, Usage::Full);
        acked.now = now;
        acked.marks = marks;
        acked.rtt.smoothed = self.smoothed;
        prague.on_acked(&acked);
    }

    /// Sends until `until`, as the window and the pacing rate allow.
    fn run(&mut self, prague: &mut Prague, mut now: Instant, until: Instant) {
        let mut next_send = now;
        while now < until {
            let acked = self.under_way.front().map(|packet| packet.acked);
            let room = (self.under_way.len() as u64 + 1) * SIZE <= prague.window();
            if room && acked.is_none_or(|acked| next_send <= acked) {
                now = now.max(next_send);
                self.send(now);
                let rate = prague.pacing_rate().unwrap_or_else(|| {
                    2 * prague.window() * 1000 / self.smoothed.as_millis() as u64
                });
                next_send = now + Duration::from_nanos(SIZE * 1_000_000_000 / rate.max(1));
            } else if let Some(packet) = self.under_way.pop_front() {
                now = now.max(packet.acked);
                self.acknowledge(&packet, prague);
            }
        }
    }
}

#[test]
fn the_queue_stays_short_and_the_link_busy() {
    for (megabits, base_rtt) in [(10, 20), (10, 100), (100, 5), (100, 30), (100, 100)] {
        let start = Instant::now();
        let mut prague = prague(start);
        let mut link = Bottleneck::new(start, megabits, ms(base_rtt), Mark::Step);
        let warm = start + ms(20_000);
        link.run(&mut prague, start, warm);
        let delivered = link.delivered;
        link.longest_wait = Duration::ZERO;
        link.run(&mut prague, warm, warm + ms(10_000));
        let capacity = 10.0 / link.serialization.as_secs_f64();
        let utilisation = (link.delivered - delivered) as f64 / capacity;
        let case = format!("{megabits} Mbit/s, {base_rtt} ms: {utilisation:.3}");
        assert!(utilisation > 0.95, "{case}");
        assert!(link.longest_wait < ms(5), "{case}: {:?}", link.longest_wait);
        let alpha = prague.alpha().unwrap();
        assert!(alpha < 0.5, "{case}, alpha {alpha}");
    }
}

#[test]
fn about_two_packets_are_marked_per_round_trip() {
    for count in [10, 50, 200] {
        let start = Instant::now();
        let mut prague = prague(start);
        let mut link = Bottleneck::new(start, 10_000, ms(30), Mark::OneIn(count));
        let mut now = start + ms(20_000);
        link.run(&mut prague, start, now);
        let mut windows = 0.0;
        for _ in 0..1000 {
            link.run(&mut prague, now, now + ms(10));
            now += ms(10);
            windows += prague.window_bytes() / SIZE as f64;
        }
        let marks = windows / 1000.0 / count as f64;
        assert!((1.2..=2.4).contains(&marks), "1 in {count}: {marks:.2}");
        let alpha = prague.alpha().unwrap() * count as f64;
        assert!((0.8..=1.2).contains(&alpha), "1 in {count}: {alpha:.2}");
    }
}

//! Robustness: a flow survives all events in any order.

use proptest::prelude::*;

use super::*;
use crate::{
    owners::congestion::{
        RoundTrip, Usage,
        delivery::{self, Delivery, Sampling, Snapshot},
    },
    wire::packet::PacketNumber,
};

/// Event on a flow.
#[derive(Clone, Copy, Debug)]
enum Event {
    Wait(u64),
    Send(u16),
    Ack(u16),
    Lose(u16),
    Persist,
    Mark,
    Spurious,
    AppLimited,
    Resume(u64),
    DatagramSize(u16),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (0_u64..10_000_000).prop_map(Event::Wait),
        2 => (0_u64..12_000_000_000).prop_map(Event::Wait),
        8 => (1_u16..2_000).prop_map(Event::Send),
        8 => (1_u16..2_000).prop_map(Event::Ack),
        2 => (1_u16..200).prop_map(Event::Lose),
        1 => Just(Event::Persist),
        1 => Just(Event::Mark),
        1 => Just(Event::Spurious),
        1 => Just(Event::AppLimited),
        1 => any::<u64>().prop_map(Event::Resume),
        1 => prop::sample::select(vec![0, 1, 1200, 1500, 9000, u16::MAX]).prop_map(Event::DatagramSize),
    ]
}

/// A flow with the records that recovery keeps of it; packets are as large as requested.
struct Books {
    bbr: Bbr,
    now: Instant,
    size: u64,
    delivery: Delivery,
    packets: std::collections::VecDeque<(u64, LostPacket)>,
    next: u64,
    in_flight: u64,
    min_rtt: Duration,
}

impl Books {
    fn new(size: u64, seed: u64) -> Self {
        let now = Instant::now();
        let start = Start {
            now,
            datagram_size: 1200,
            initial_rtt: ms(seed % 3 * 100),
            seed,
        };
        Self {
            bbr: Bbr::new(&start),
            now,
            size,
            delivery: Delivery::new(now),
            packets: std::collections::VecDeque::new(),
            next: 0,
            in_flight: 0,
            min_rtt: Duration::MAX,
        }
    }

    fn apply(&mut self, event: Event) {
        match event {
            Event::Wait(nanos) => self.now += Duration::from_nanos(nanos),
            Event::Send(count) => (0..count).for_each(|_| self.send()),
            Event::Ack(count) => self.ack(count.into()),
            Event::Lose(count) => self.lose(count.into(), Severity::Congestion),
            Event::Persist => self.lose(usize::MAX, Severity::PersistentCongestion),
            Event::Mark => self.bbr.on_marked(&Marked {
                now: self.now,
                marks: 1,
                newest_sent: self.now,
                bytes_in_flight: self.in_flight,
            }),
            Event::Spurious => self.bbr.on_spurious(&Spurious {
                now: self.now,
                bytes_in_flight: self.in_flight,
            }),
            Event::AppLimited => self.delivery.on_app_limited(self.in_flight),
            Event::Resume(window) => self.bbr.on_resume(&Resume {
                now: self.now,
                window,
                slow_start_threshold: None,
            }),
            Event::DatagramSize(bytes) => self.bbr.on_datagram_size(bytes),
        }
    }

    fn send(&mut self) {
        let app_limited = self.delivery.is_app_limited();
        let snapshot: Snapshot = self.delivery.on_sent(self.now, self.in_flight, self.size);
        self.in_flight += self.size;
        let packet = LostPacket {
            bytes: self.size,
            time_sent: self.now,
            snapshot,
        };
        self.packets.push_back((self.next, packet));
        self.next += 1;
        self.bbr.on_sent(&Sent {
            now: self.now,
            bytes: self.size,
            bytes_in_flight: self.in_flight,
            app_limited,
        });
    }

    fn ack(&mut self, count: usize) {
        let prior_in_flight = self.in_flight;
        let mut sampling = Sampling::default();
        let count = count.min(self.packets.len());
        let mut newest = None;
        for (pn, packet) in self.packets.drain(..count) {
            let acked = delivery::Acked {
                pn: PacketNumber::saturating(pn),
                time_sent: packet.time_sent,
                bytes: packet.bytes,
                snapshot: packet.snapshot,
            };
            self.delivery.on_acked(self.now, &mut sampling, acked);
            self.in_flight -= packet.bytes;
            newest = Some(packet.time_sent);
        }
        let Some(newest_sent) = newest else {
            return;
        };
        let rtt = self.now - newest_sent;
        self.min_rtt = self.min_rtt.min(rtt);
        let rate = self.delivery.finish(&sampling, self.min_rtt).unwrap();
        self.bbr.on_acked(&Acked {
            now: self.now,
            bytes: prior_in_flight - self.in_flight,
            packets: count as u64,
            bytes_lost: 0,
            newest_sent,
            prior_in_flight,
            bytes_in_flight: self.in_flight,
            usage: Usage::Full,
            rtt: RoundTrip {
                sample: Some(rtt),
                smoothed: rtt,
                min: self.min_rtt,
            },
            rate,
            delivered: self.delivery.delivered(),
            marks: 0,
        });
    }

    fn lose(&mut self, count: usize, severity: Severity) {
        let prior_in_flight = self.in_flight;
        let count = count.min(self.packets.len());
        let packets: Vec<_> = self.packets.drain(..count).map(|(_, lost)| lost).collect();
        let Some(newest) = packets.last() else {
            return;
        };
        let bytes = packets.iter().map(|packet| packet.bytes).sum();
        self.in_flight -= bytes;
        self.delivery.on_lost(bytes);
        self.bbr.on_lost(&Lost {
            now: self.now,
            packets: &packets,
            bytes,
            newest_sent: newest.time_sent,
            prior_in_flight,
            bytes_in_flight: self.in_flight,
            delivered: self.delivery.delivered(),
            lost: self.delivery.lost(),
            severity,
        });
    }

    fn check(&self) {
        let bbr = &self.bbr;
        assert!(bbr.window() >= 4 * bbr.datagram_size);
        assert!(bbr.pacing_rate().is_some_and(|rate| rate > 0));
        assert!(bbr.model.bw <= bbr.model.max_bw.get());
        assert!(bbr.model.min_rtt.is_none_or(|min| min >= self.min_rtt));
        assert!(bbr.full_pipe.reached || !bbr.state.is_probe_bw());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_order_of_events_leaves_a_window_and_a_rate(
        size in prop::sample::select(vec![1_u64, 40, 1200, 65_535, 1 << 40]),
        seed in any::<u64>(),
        events in prop::collection::vec(event(), 1..200),
    ) {
        let mut books = Books::new(size, seed);
        for event in events {
            books.apply(event);
            books.check();
        }
    }
}

/// 100 Gbit/s over ten seconds: nothing overflows, and the window is at least the bandwidth-delay
/// product.
#[test]
fn a_path_of_a_hundred_gigabit_over_ten_seconds_is_not_too_large() {
    let mut books = Books::new(1 << 24, 1);
    for _ in 0..40 {
        while books.in_flight < books.bbr.window() && books.packets.len() < 7_450 {
            books.send();
        }
        books.now += secs(10);
        let count = books.packets.len();
        for _ in 0..count.div_ceil(100) {
            books.ack(100);
            books.now += ms(1);
        }
        books.check();
    }
    let holds = 100_000_000_000 / 8 * 10;
    assert!(books.bbr.window() >= holds / 2, "{}", books.bbr.window());
}

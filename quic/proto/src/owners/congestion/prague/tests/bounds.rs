use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Event {
    Acked { packets: u64, marks: u64, rtt: u64 },
    Lost { age: u64, persistent: bool },
    Marked { age: u64, marks: u64 },
    DatagramSize(u16),
    Resume(u64),
    Pass(u64),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => (1..200_u64, 0..400_u64, 0..2_000_000_u64)
            .prop_map(|(packets, marks, rtt)| Event::Acked { packets, marks, rtt }),
        2 => (0..500_u64, prop::bool::weighted(0.1))
            .prop_map(|(age, persistent)| Event::Lost { age, persistent }),
        3 => (0..500_u64, 0..u64::MAX).prop_map(|(age, marks)| Event::Marked { age, marks }),
        1 => (1200..9000_u16).prop_map(Event::DatagramSize),
        1 => any::<u32>().prop_map(|window| Event::Resume(window.into())),
        4 => (0..1000_u64).prop_map(Event::Pass),
    ]
}

proptest! {
    #[test]
    fn the_window_and_the_average_stay_within_bounds(
        events in prop::collection::vec(event(), 1..300),
    ) {
        let start = Instant::now();
        let mut prague = prague(start);
        let mut now = start + ms(1000);
        let (mut size, mut most) = (1200_u64, prague.window());
        for event in events {
            let ago = |age| now.checked_sub(ms(age)).unwrap();
            match event {
                Event::Acked { packets, marks, rtt } => {
                    let mut acked = testing::acked(ago(100), packets * SIZE, Usage::Full);
                    acked.now = now;
                    acked.packets = packets;
                    acked.marks = marks;
                    acked.rtt.smoothed = Duration::from_micros(rtt);
                    prague.on_acked(&acked);
                    most += packets * SIZE + size;
                }
                Event::Lost { age, persistent } => {
                    let severity = if persistent {
                        Severity::PersistentCongestion
                    } else {
                        Severity::Congestion
                    };
                    lost(&mut prague, now, ago(age), severity);
                }
                Event::Marked { age, marks: count } => {
                    let before = prague.settled_window() as u64;
                    let in_recovery = prague.window();
                    marked(&mut prague, now, ago(age), count);
                    prop_assert!(prague.window() <= before.max(in_recovery));
                    let least = (before / 2).min(in_recovery);
                    prop_assert!(prague.window() >= least.saturating_sub(1));
                }
                Event::DatagramSize(bytes) => {
                    size = bytes.into();
                    prague.on_datagram_size(bytes);
                    most = most.max(2 * size);
                }
                Event::Resume(window) => {
                    prague.on_resume(&Resume { now, window, slow_start_threshold: Some(window) });
                    most = most.max(window) + 2 * size;
                }
                Event::Pass(millis) => now += ms(millis),
            }
            prop_assert!(prague.window() >= 2 * size, "{} < 2 * {size}", prague.window());
            prop_assert!(prague.window() <= most, "{} > {most}", prague.window());
            let alpha = prague.alpha().unwrap_or(0.0);
            prop_assert!((0.0..=1.0).contains(&alpha), "{alpha}");
        }
    }
}

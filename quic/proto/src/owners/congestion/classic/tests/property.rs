use proptest::{collection::vec, prelude::*};

use super::*;
use crate::owners::congestion::{Congestion, LostPacket, Snapshot, Start};

/// Event on a flow with real packets.
#[derive(Clone, Copy, Debug)]
enum Step {
    Fill,
    Send,
    Pass(u64),
    Rtt(u64),
    Ack(usize, usize),
    Lose(usize),
    Persist(usize),
    Mark,
    Spurious,
    Usage(bool),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Fill),
        1 => Just(Step::Send),
        4 => (0..200_000_u64).prop_map(Step::Pass),
        1 => any::<u64>().prop_map(|micros| Step::Pass(micros >> 20)),
        1 => (0..500_000_u64).prop_map(Step::Rtt),
        8 => (0..3_usize, 1..40_usize).prop_map(|(lost, acked)| Step::Ack(lost, acked)),
        8 => (1..40_usize).prop_map(|acked| Step::Ack(0, acked)),
        1 => (1..40_usize).prop_map(Step::Lose),
        1 => (1..40_usize).prop_map(Step::Persist),
        1 => Just(Step::Mark),
        1 => Just(Step::Spurious),
        1 => any::<bool>().prop_map(Step::Usage),
    ]
}

impl<A: Avoidance> Flow<Classic<A>> {
    fn step(&mut self, step: Step) {
        match step {
            Step::Fill => {
                // The windows of a test must not grow without end.
                for _ in 0..500 {
                    if self.bytes_in_flight + SIZE <= self.window() {
                        self.send();
                    }
                }
            }
            Step::Send => self.send(),
            Step::Pass(micros) => self.now += Duration::from_micros(micros),
            Step::Rtt(micros) => self.rtt = Duration::from_micros(micros),
            Step::Ack(lost, acked) => self.lose_and_ack(lost, acked),
            Step::Lose(count) => self.lose(count, Severity::Congestion),
            Step::Persist(count) => self.lose(count, Severity::PersistentCongestion),
            Step::Mark => self.mark(),
            Step::Spurious => self.spurious(),
            Step::Usage(true) => self.usage = Usage::Full,
            Step::Usage(false) => self.usage = Usage::Underused,
        }
    }
}

/// The window is never so small that nothing can be sent, and never larger than the initial window
/// plus what has arrived since and what is in flight.
fn windows_stay_within_bounds<A: Avoidance>(steps: &[Step]) -> Result<(), TestCaseError> {
    let mut flow = Flow::new(Classic::<A>::new(1200));
    let mut most_in_flight = 0;
    for &step in steps {
        flow.step(step);
        most_in_flight = flow.bytes_in_flight.max(most_in_flight);
        prop_assert!(flow.window() >= 2 * SIZE);
        prop_assert!(flow.window() <= 10 * SIZE + flow.delivered + most_in_flight);
        let threshold = flow.controller.slow_start_threshold();
        prop_assert!(threshold.is_none_or(|threshold| threshold >= 2 * SIZE));
        match flow.controller.phase() {
            Phase::SlowStart => prop_assert!(threshold.is_none_or(|end| flow.window() < end)),
            Phase::Recovery => prop_assert!(threshold.is_some()),
            Phase::Avoidance => prop_assert!(threshold.is_some_and(|end| flow.window() >= end)),
        }
    }
    Ok(())
}

/// A number of any size.
fn number() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0..64_u32).prop_map(|(bits, shift)| bits >> shift)
}

/// Any event, possible or not: its kind, its time (seconds), and numbers for it.
fn anything() -> impl Strategy<Value = (u8, u32, Vec<u64>)> {
    (0..7_u8, any::<u32>(), vec(number(), 8))
}

fn feed(controller: &mut dyn Controller, start: Instant, event: &(u8, u32, Vec<u64>)) {
    let (kind, seconds, numbers) = event;
    let now = start + Duration::from_secs(u64::from(*seconds));
    let newest_sent = start + Duration::from_secs(numbers[0] >> 32);
    match kind {
        0 => controller.on_sent(&Sent {
            now,
            bytes: numbers[0],
            bytes_in_flight: numbers[1],
            app_limited: numbers[2] % 2 == 0,
        }),
        1 | 2 => {
            let usage = [Usage::Full, Usage::Underused][usize::from(numbers[1] % 8 == 0)];
            let mut acked = testing::acked(newest_sent, numbers[2], usage);
            acked.now = now;
            acked.bytes_lost = numbers[3] % 2 * numbers[3];
            acked.prior_in_flight = numbers[4];
            acked.bytes_in_flight = numbers[5];
            acked.delivered = numbers[6];
            acked.rate.prior_delivered = numbers[7];
            acked.rtt.smoothed = Duration::from_nanos(numbers[3]);
            acked.rtt.sample = Some(Duration::from_nanos(numbers[4]));
            controller.on_acked(&acked);
        }
        3 => {
            let packet = LostPacket {
                bytes: numbers[1],
                time_sent: newest_sent,
                snapshot: Snapshot {
                    delivered: numbers[2],
                    delivered_at: now,
                    first_sent_at: now,
                    lost: numbers[3],
                    in_flight: numbers[4],
                    app_limited: false,
                },
            };
            let severity = [Severity::Congestion, Severity::PersistentCongestion]
                [usize::from(numbers[7] % 4 == 0)];
            controller.on_lost(&Lost {
                now,
                packets: &[packet],
                bytes: numbers[1],
                newest_sent,
                prior_in_flight: numbers[5],
                bytes_in_flight: numbers[6],
                delivered: numbers[2],
                lost: numbers[3],
                severity,
            });
        }
        4 => controller.on_marked(&Marked {
            now,
            marks: numbers[1],
            newest_sent,
            bytes_in_flight: numbers[2],
        }),
        5 => controller.on_spurious(&Spurious {
            now,
            bytes_in_flight: numbers[1],
        }),
        _ => controller.on_resume(&Resume {
            now,
            window: numbers[0],
            slow_start_threshold: Some(numbers[1]).filter(|_| numbers[2] % 2 == 0),
        }),
    }
}

proptest! {
    #[test]
    fn windows_of_new_reno_stay_within_bounds(steps in vec(step(), 0..300)) {
        windows_stay_within_bounds::<crate::owners::congestion::Additive>(&steps)?;
    }

    #[test]
    fn windows_of_cubic_stay_within_bounds(steps in vec(step(), 0..300)) {
        windows_stay_within_bounds::<crate::owners::congestion::Curve>(&steps)?;
    }

    #[test]
    fn nothing_makes_a_controller_overflow(
        datagram_size in any::<u16>(),
        events in vec(anything(), 0..100),
    ) {
        let now = Instant::now();
        let start = Start {
            now,
            datagram_size,
            initial_rtt: Duration::from_millis(333),
            seed: 0,
        };
        for congestion in [Congestion::NewReno, Congestion::Cubic] {
            let mut controller = congestion.start(&start);
            for event in &events {
                feed(&mut *controller, now, event);
                prop_assert!(controller.window() >= 2 * u64::from(datagram_size));
            }
        }
    }
}

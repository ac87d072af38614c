use proptest::prelude::*;

use super::*;
use crate::testing::pn;

#[derive(Clone, Debug)]
enum Step {
    Send {
        space: Space,
        kind: Kind,
        size: u16,
    },
    Ack {
        space: Space,
        from: u64,
        len: u64,
        gap: u64,
    },
    Pass(u64),
    Timeout,
    Skip(Space),
    Abandon,
    Confirm,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Eliciting,
    Padding,
    AckOnly,
}

fn step() -> impl Strategy<Value = Step> {
    let space = || prop::sample::select(&Space::ALL[..]);
    let kind = prop_oneof![
        6 => Just(Kind::Eliciting),
        1 => Just(Kind::Padding),
        2 => Just(Kind::AckOnly),
    ];
    prop_oneof![
        8 => (space(), kind, 1..1500u16)
            .prop_map(|(space, kind, size)| Step::Send { space, kind, size }),
        5 => (space(), 0..40u64, 0..20u64, 1..5u64)
            .prop_map(|(space, from, len, gap)| Step::Ack { space, from, len, gap }),
        3 => (0..400u64).prop_map(Step::Pass),
        3 => Just(Step::Timeout),
        1 => space().prop_map(Step::Skip),
        1 => Just(Step::Abandon),
        1 => Just(Step::Confirm),
    ]
}

/// Packets that should still be outstanding: number, in flight or not, bytes.
#[derive(Default)]
struct Model {
    next: [u64; 3],
    outstanding: [std::collections::BTreeMap<u64, u64>; 3],
}

impl Model {
    /// Removes the packets that the outcome returned from their space.
    fn forget_returned(
        &mut self,
        world: &mut World,
        space: Option<Space>,
    ) -> Result<(), TestCaseError> {
        let outcome = std::mem::take(&mut world.outcome);
        for settled in outcome.acked.iter().chain(&outcome.lost) {
            let tagged = settled.packet.record;
            let home = Space::ALL[(tagged % 3) as usize];
            prop_assert_eq!(tagged / 3, settled.pn.get());
            prop_assert!(space.is_none_or(|space| space == home));
            let bytes = self.outstanding[home as usize].remove(&(tagged / 3));
            prop_assert_eq!(
                bytes,
                Some(settled.packet.bytes_in_flight()),
                "handed back twice"
            );
        }
        Ok(())
    }
}

proptest! {
    /// Bytes in flight are exact, every record is returned once, and a timer that was handled is
    /// not in the past, whatever is sent, acknowledged and lost, in any order.
    #[test]
    fn nothing_is_lost_by_the_books(
        steps in prop::collection::vec(step(), 1..300),
        is_client in any::<bool>(),
    ) {
        let mut world = World::new(if is_client { Side::Client } else { Side::Server });
        let mut model = Model::default();
        for step in steps {
            match step {
                Step::Send { space, kind, size } => {
                    let pn = model.next[space as usize];
                    model.next[space as usize] += 1;
                    world.send_packet(space, pn, |packet| {
                        packet.size = size;
                        packet.ack_eliciting = matches!(kind, Kind::Eliciting);
                        packet.in_flight = !matches!(kind, Kind::AckOnly);
                        packet.record = pn * 3 + space as u64;
                    });
                    let bytes = if matches!(kind, Kind::AckOnly) { 0 } else { size.into() };
                    model.outstanding[space as usize].insert(pn, bytes);
                }
                Step::Ack { space, from, len, gap } => {
                    let next = model.next[space as usize];
                    let Some(largest) = next.checked_sub(from + 1) else { continue };
                    let first = largest.saturating_sub(len);
                    let second = first.saturating_sub(gap + 1);
                    let ranges = [first..=largest, second.saturating_sub(len)..=second];
                    // Numbers are sometimes skipped: that ACK is refused and changes nothing.
                    let before = world.recovery.bytes_in_flight();
                    if world.try_ack(space, ranges, ms(len)).is_err() {
                        prop_assert!(world.outcome.acked.is_empty());
                        prop_assert_eq!(world.recovery.bytes_in_flight(), before);
                    }
                    model.forget_returned(&mut world, Some(space))?;
                }
                Step::Pass(time) => world.pass(ms(time)),
                Step::Timeout => {
                    let mut fired = 0;
                    while world.timeout().is_some() {
                        fired += 1;
                        prop_assert!(fired < 20, "the timer does not come to rest");
                    }
                    let next = world.recovery.next_timeout(&world.context);
                    prop_assert!(next.is_none_or(|at| at > world.now));
                    model.forget_returned(&mut world, None)?;
                }
                Step::Skip(space) => {
                    world.recovery.on_number_skipped(space, pn(model.next[space as usize]));
                    model.next[space as usize] += 1;
                }
                Step::Abandon => {
                    world.recovery.abandon_space(Space::Data, &mut world.outcome);
                    model.forget_returned(&mut world, Some(Space::Data))?;
                    prop_assert!(model.outstanding[Space::Data as usize].values().all(|b| *b == 0));
                    model.outstanding[Space::Data as usize].clear();
                }
                Step::Confirm => world.context.handshake = Progress::Confirmed,
            }
            let expected: u64 = model.outstanding.iter().flat_map(|space| space.values()).sum();
            prop_assert_eq!(world.recovery.bytes_in_flight(), expected);
        }
        for space in Space::ALL {
            let held = model.outstanding[space as usize].len();
            let mine = world.recovery.outstanding(space).count();
            prop_assert!(mine <= held && held - mine <= held.saturating_sub(64));
        }
    }
}

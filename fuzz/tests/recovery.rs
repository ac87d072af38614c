//! Loss detection with every controller, whatever is sent, acknowledged, marked and lost: bytes in
//! flight are the sum of outstanding packets, every record comes back exactly once, and timers are
//! neither missing nor endless.
#![expect(clippy::unwrap_used, reason = "a target that cannot go on has failed")]

use std::{
    collections::BTreeMap,
    ops::RangeInclusive,
    time::{Duration, Instant},
};

use hybriq::{
    stats::EcnState,
    tls::Side,
    transport::{
        Congestion,
        congestion::{Ecn, Start},
    },
};
use hybriq_proto::{
    owners::recovery::{
        Ack, Amplification, Config, Context, Held, Outcome, Pacing, Progress, Recovery, SentPacket,
    },
    wire::{
        frame::EcnCounts,
        packet::{PacketNumber, Space},
    },
};

const SIZE: u16 = 1200;

/// Packets of one space that are neither acknowledged nor lost.
#[derive(Default)]
struct OfSpace {
    /// Bytes in flight of each packet, and true if it is ack-eliciting.
    packets: BTreeMap<u64, (u64, bool)>,
    /// Numbers used so far, without skipped ones.
    used: Vec<u64>,
    counts: EcnCounts,
    discarded: bool,
}

struct World {
    now: Instant,
    recovery: Recovery<(Space, u64)>,
    context: Context,
    outcome: Outcome<(Space, u64)>,
    held: [OfSpace; 3],
    marked: u64,
}

impl World {
    fn new(choice: u8) -> Self {
        let now = Instant::now();
        let all = [
            Congestion::NewReno,
            Congestion::Cubic,
            Congestion::Bbr,
            Congestion::Prague,
        ];
        let controller = all[usize::from(choice) % all.len()].start(&Start {
            now,
            datagram_size: SIZE,
            initial_rtt: Duration::from_millis(100),
            seed: choice.into(),
        });
        let config = Config {
            side: [Side::Client, Side::Server][usize::from(choice / 4) % 2],
            initial_rtt: Duration::from_millis(100),
            datagram_size: SIZE,
            controller,
            skip_seed: Some(choice.into()),
            ecn: EcnState::Testing,
            pacing: Pacing::On,
        };
        Self {
            now,
            recovery: Recovery::new(now, config),
            context: Context {
                handshake: Progress::InitialOnly,
                peer_max_ack_delay: Duration::from_millis(25),
                amplification: Amplification::Open,
            },
            outcome: Outcome::default(),
            held: Default::default(),
            marked: 0,
        }
    }

    fn step(&mut self, op: u8, a: u8, b: u8) {
        let space = Space::ALL[usize::from(a) % 3];
        match op % 16 {
            0..=4 => {
                for _ in 0..=b % 32 {
                    self.send(space, a / 3);
                }
            }
            5..=8 => self.ack(space, a, b),
            9 => self.now += Duration::from_micros(u64::from(a) * u64::from(b)),
            10 => self.now += Duration::from_millis(u64::from(a) * u64::from(b) * 8),
            11 | 12 => self.time_out(),
            13 => self.lie(space, b),
            14 => self.change(a, b),
            _ => self.recovery.on_app_limited(),
        }
        self.forget_returned();
        self.check();
    }

    /// Sends a packet: most are ack-eliciting, some only have padding or an ACK.
    fn send(&mut self, space: Space, kind: u8) {
        let held = &mut self.held[space as usize];
        if held.discarded || held.packets.len() > 5000 {
            return;
        }
        let (ack_eliciting, in_flight, size) = match kind % 8 {
            0 => (false, false, 40),
            1 => (false, true, 77),
            small => (true, true, SIZE - u16::from(small)),
        };
        let pn = self.recovery.next_number(space);
        let ecn = self.recovery.ecn_mark();
        self.marked += u64::from(ecn.is_some());
        let packet = SentPacket {
            time_sent: self.now,
            size,
            ack_eliciting,
            in_flight,
            largest_acked: None,
            ecn,
            snapshot: None,
            held: Held::of(usize::from(kind)),
            record: (space, pn.get()),
        };
        let bytes = u64::from(size) * u64::from(in_flight);
        held.packets.insert(pn.get(), (bytes, ack_eliciting));
        held.used.push(pn.get());
        match ecn {
            Some(Ecn::Ect0) => held.counts.ect0 += 1,
            Some(Ecn::Ect1) => held.counts.ect1 += 1,
            _ => {}
        }
        self.recovery.on_packet_sent(space, pn, packet);
    }

    /// Acknowledges used numbers: up to three ranges counted back from one of the last.
    fn ack(&mut self, space: Space, a: u8, b: u8) {
        let held = &mut self.held[space as usize];
        let mut ranges: Vec<RangeInclusive<u64>> = Vec::new();
        let skip = usize::from(a / 3) % 16;
        for (place, pn) in held.used.iter().rev().skip(skip).take(b.into()).enumerate() {
            let hole = place > 0 && (place * usize::from(b)) % 7 == 3;
            match ranges.last_mut() {
                _ if hole => {}
                Some(last) if *last.start() == pn + 1 => *last = *pn..=*last.end(),
                _ => ranges.push(*pn..=*pn),
            }
        }
        let Some(largest) = ranges.first().map(|range| *range.end()) else {
            return;
        };
        // Counts as if all had arrived, some with CE; sometimes nonsense, sometimes none.
        let ce = u64::from(b % 3).min(held.counts.ect0);
        let ecn = match a % 8 {
            0 => None,
            1 => Some(EcnCounts {
                ect0: u64::from(b) << (a / 5),
                ect1: u64::from(a),
                ce: u64::from(b),
            }),
            _ => Some(EcnCounts {
                ect0: held.counts.ect0 - ce,
                ect1: held.counts.ect1,
                ce,
            }),
        };
        let ack = Ack {
            space,
            largest: PacketNumber::saturating(largest),
            delay: Duration::from_micros(u64::from(a) << (b % 40)),
            ranges: ranges.into_iter().map(numbers),
            ecn,
        };
        self.recovery
            .on_ack(self.now, ack, &self.context, &mut self.outcome)
            .unwrap();
    }

    /// Acknowledges numbers that were never sent or were skipped: an error that changes nothing.
    fn lie(&mut self, space: Space, b: u8) {
        let next = self.recovery.next_number(space).get();
        let used = &self.held[space as usize].used;
        let skipped = (0..next).rev().find(|pn| used.binary_search(pn).is_err());
        let pn = skipped
            .filter(|_| b.is_multiple_of(2))
            .unwrap_or(next + u64::from(b));
        let largest = pn.max(next.saturating_sub(1));
        let ack = Ack {
            space,
            largest: PacketNumber::saturating(largest),
            delay: Duration::MAX,
            ranges: [numbers(pn..=largest)].into_iter(),
            ecn: None,
        };
        let before = self.recovery.window();
        self.recovery
            .on_ack(self.now, ack, &self.context, &mut self.outcome)
            .unwrap_err();
        assert!(self.outcome.acked.is_empty() && self.outcome.lost.is_empty());
        assert_eq!(self.recovery.window(), before);
    }

    fn time_out(&mut self) {
        for calls in 0.. {
            assert!(calls < 8, "the timer does not come to rest");
            let (now, outcome) = (self.now, &mut self.outcome);
            if self
                .recovery
                .on_timeout(now, &self.context, outcome)
                .is_none()
            {
                break;
            }
        }
        let next = self.recovery.next_timeout(&self.context);
        assert!(next.is_none_or(|at| at > self.now), "a timer in the past");
    }

    fn change(&mut self, a: u8, b: u8) {
        match b % 8 {
            0 => self.context.handshake = Progress::Keys,
            1 => self.context.handshake = Progress::Confirmed,
            2 => self.context.amplification = Amplification::Blocked,
            3 => self.context.amplification = Amplification::Open,
            4 if self.held[2].used.len() > 50 => {
                let space = Space::ALL[usize::from(a) % 2];
                self.recovery.discard_space(space);
                let held = &mut self.held[space as usize];
                held.discarded = true;
                held.packets.clear();
            }
            5 => self.abandon(Space::Data),
            6 => self.recovery.reset_ecn(),
            _ => self.recovery.on_datagram_size(SIZE + u16::from(a)),
        }
    }

    /// Abandons a space: all packets come back, except perhaps those not in flight.
    fn abandon(&mut self, space: Space) {
        self.recovery.abandon_space(space, &mut self.outcome);
        self.forget_returned();
        let held = &mut self.held[space as usize].packets;
        assert!(held.values().all(|(bytes, _)| *bytes == 0));
        held.clear();
    }

    /// Removes the returned packets from the model.
    fn forget_returned(&mut self) {
        let outcome = std::mem::take(&mut self.outcome);
        for settled in outcome.acked.iter().chain(&outcome.lost) {
            let (space, pn) = settled.packet.record;
            assert_eq!(pn, settled.pn.get());
            let held = self.held[space as usize].packets.remove(&pn);
            let (bytes, _) = held.expect("a record comes back once");
            assert_eq!(bytes, settled.packet.bytes_in_flight());
        }
    }

    fn check(&self) {
        let packets = || self.held.iter().flat_map(|held| held.packets.values());
        let in_flight: u64 = packets().map(|(bytes, _)| bytes).sum();
        assert_eq!(self.recovery.bytes_in_flight(), in_flight);
        let window = self.recovery.window();
        assert!((u64::from(SIZE)..1 << 40).contains(&window), "{window}");
        assert!(self.recovery.pacing_rate() != Some(0));
        assert!(self.recovery.ecn_echoed().ce <= self.marked);
        assert!(self.recovery.spurious_losses() <= self.recovery.packets_lost());
        let (packets, wait) = (
            self.recovery.packet_threshold(),
            self.recovery.time_threshold(),
        );
        assert!((3..=1024).contains(&packets));
        assert!(wait <= 2 * self.recovery.rtt().larger().max(Duration::from_millis(1)));

        let confirmed = self.context.handshake == Progress::Confirmed;
        let timed = Space::ALL.iter().any(|&space| {
            let eliciting = |(_, eliciting): &(u64, bool)| *eliciting;
            (space != Space::Data || confirmed)
                && self.held[space as usize].packets.values().any(eliciting)
        });
        let blocked = self.context.amplification == Amplification::Blocked;
        let timer = self.recovery.next_timeout(&self.context);
        assert!(
            !timed || blocked || timer.is_some(),
            "nothing would wake it"
        );
    }
}

#[test]
fn recovery() {
    bolero::check!()
        .with_iterations(5_000)
        .with_type::<(u8, Vec<(u8, u8, u8)>)>()
        .for_each(|(choice, steps)| {
            let mut world = World::new(*choice);
            for (op, a, b) in steps {
                world.step(*op, *a, *b);
            }
            for space in Space::ALL {
                world.abandon(space);
            }
            world.check();
        });
}

fn numbers(range: RangeInclusive<u64>) -> RangeInclusive<PacketNumber> {
    PacketNumber::saturating(*range.start())..=PacketNumber::saturating(*range.end())
}

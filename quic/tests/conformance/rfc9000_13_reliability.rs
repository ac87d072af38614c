//! RFC 9000 §12.3, §12.4 and §13: numbers, frames and acknowledgements.

use std::collections::{BTreeMap, BTreeSet};

use hybriq::tls::Side;
use hybriq_proto::wire::packet::Space;
use hybriq_sim::{Forge, Network, ms, one_in};

use crate::{
    duo::{Duo, Verdict, verdict_on},
    wiretap::{Seen, exchange},
};

/// Proves: rfc9000 12.3 packet-numbers-rise
#[test]
fn no_number_is_used_twice() {
    let mut last = BTreeMap::new();
    for packet in exchange(Network::new(1).loss(one_in(10))) {
        if packet.sent {
            let space = (packet.side.is_server(), packet.kind as usize);
            let before = last.insert(space, packet.number);
            assert!(before < Some(packet.number), "{before:?} {packet:?}");
        }
    }
    assert!(last.len() >= 5, "{last:?}");
}

/// Proves: rfc9000 13.2.6 acks-stay-in-their-space
/// Proves: rfc9000 13.1 acknowledged-after-processing
#[test]
fn only_what_came_in_a_space_is_acknowledged_there() {
    let mut received: BTreeSet<(bool, usize, u64)> = BTreeSet::new();
    let mut acks = 0;
    for packet in exchange(Network::new(2).loss(one_in(10)).corrupt(one_in(10))) {
        let space = packet.kind as usize;
        if !packet.sent {
            received.insert((packet.side.is_server(), space, packet.number.get()));
            continue;
        }
        for frame in &packet.frames {
            let Seen::Ack(ranges) = frame else { continue };
            for number in ranges
                .iter()
                .flat_map(|range| range.start().get()..=range.end().get())
            {
                let known = received.contains(&(packet.side.is_server(), space, number));
                // A server's first packets came before there was a connection to tell of them.
                let first = packet.side == Side::Server && space == 0;
                assert!(known || first, "{number} of {packet:?}");
                acks += 1;
            }
        }
    }
    assert!(acks > 100);
}

/// Proves: rfc9000 12.4 unknown-frames-close
#[test]
fn every_type_that_nobody_knows() {
    for ty in [0x20_u8, 0x21, 0x2f, 0x32, 0x3f] {
        let verdict = verdict_on(Side::Client, &[ty, 0, 0]);
        let told = Verdict {
            code: 0x07,
            frame: ty.into(),
        };
        assert_eq!(verdict, Some(told));
    }
}

/// Proves: rfc9000 12.4 frame-types-are-shortest
#[test]
fn a_type_in_more_bytes_than_it_takes() {
    let verdict = verdict_on(Side::Client, &[0x40, 0x01]);
    assert_eq!(verdict.map(|it| it.code), Some(0x0a));
}

/// Proves: rfc9000 12.3 duplicates-are-dropped
#[test]
fn a_packet_that_comes_twice() {
    let mut duo = Duo::new();
    let packet =
        duo.connection(Side::Client)
            .forge(Space::Data, |_| (), 0, |out| assert!(out.ping()));
    duo.put(Side::Client, packet.clone());
    let before = duo.world.accepted(0).stats();
    duo.put(Side::Client, packet);
    duo.world.run_for(ms(100));
    let after = duo.world.accepted(0).stats();
    assert_eq!(after.packets_received, before.packets_received);
    assert_eq!(after.packets_dropped, before.packets_dropped + 1);
    assert_eq!(after.acks_sent, before.acks_sent);
}

/// Proves: rfc9000 19.3 ack-of-unsent-closes
#[test]
fn an_ack_of_a_packet_that_was_never_sent() {
    for from in [Side::Client, Side::Server] {
        // Largest 16383, of which it alone.
        let frame = [0x02, 0x7f, 0xff, 0, 0, 0];
        let told = Verdict {
            code: 0x0a,
            frame: 0x02,
        };
        assert_eq!(verdict_on(from, &frame), Some(told));
    }
}

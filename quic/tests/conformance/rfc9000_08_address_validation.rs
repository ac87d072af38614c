//! RFC 9000 §8.1: before the client's address is known to be its own.

use hybriq::tls::Side;
use hybriq_proto::wire::packet::{PacketNumber, Space};
use hybriq_sim::{Forge, PacketKind, ms};

use crate::stalled::{give, heard_initials_only, heard_nothing, ping};

/// Proves: rfc9000 8.1 client-probes-against-deadlock
#[test]
fn a_client_without_handshake_keys_probes_with_full_initials() {
    let mut stalled = heard_nothing();
    let address = stalled.client_host(0).address;
    let initials = stalled.trace().initials(Side::Client, address);
    let mut numbers: Vec<_> = initials.iter().map(|(_, initial)| initial.number).collect();
    numbers.sort_unstable();
    numbers.reverse();
    let server = stalled.accepted_connection(0);
    let ack = server.forge(
        Space::Initial,
        |_| (),
        0,
        |out| {
            let ranges = numbers.iter().map(|number| *number..=*number);
            let ranges = merged(ranges);
            assert!(out.ack(0, ranges.into_iter(), None).is_some());
        },
    );
    give(&mut stalled, Side::Client, ack);
    let before = stalled.trace().sent(Side::Server).count();
    stalled.run_for(ms(3000));
    let probes: Vec<_> = stalled.trace().sent(Side::Server).skip(before).collect();
    assert!(!probes.is_empty());
    for probe in probes {
        assert!(
            probe.has(PacketKind::Initial) && probe.size >= 1200,
            "{probe}"
        );
    }
}

fn merged(
    ranges: impl Iterator<Item = std::ops::RangeInclusive<PacketNumber>>,
) -> Vec<std::ops::RangeInclusive<PacketNumber>> {
    let mut merged: Vec<std::ops::RangeInclusive<PacketNumber>> = Vec::new();
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.end().next() >= *last.start() => {
                *last = *range.start()..=*last.end();
            }
            _ => merged.push(range),
        }
    }
    merged
}

/// Proves: rfc9000 8.1 client-probes-against-deadlock
#[test]
fn a_client_with_handshake_keys_probes_with_handshake_packets() {
    let mut stalled = heard_initials_only();
    stalled.run_for(ms(500));
    let probed = |at| {
        let mut sent = stalled.trace().sent(Side::Server);
        sent.any(move |record| record.at > at && record.has(PacketKind::Handshake))
    };
    assert!(probed(ms(21)));
}

/// Proves: rfc9000 8 three-times-what-came
#[test]
fn initials_alone_buy_three_times_their_bytes() {
    let mut stalled = heard_nothing();
    let spent = |world: &hybriq_sim::World, toward| -> usize {
        world.trace().sent(toward).map(|record| record.size).sum()
    };
    // Nothing but Initials, and few of them: the limit holds whatever the probe timer says.
    let client = stalled.client_connection(0);
    let initial = client.forge(Space::Initial, |_| (), 1200, ping);
    give(&mut stalled, Side::Server, initial.clone());
    stalled.run_for(ms(20_000));
    let came = spent(&stalled, Side::Server) + initial.len();
    assert!(spent(&stalled, Side::Client) <= 3 * came);
}

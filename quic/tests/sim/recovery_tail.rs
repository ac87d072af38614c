//! Losses at the end of a transfer, which no later packet reveals (RFC 9002 §6.2).

use std::time::Duration;

use hybriq::tls::Side;
use hybriq_sim::{Ask, DropNth, Network, Progress, World, ms};

use crate::support::{LIMIT, RTT, pair, plain, world};

const BYTES: usize = 40_000;

fn transfer(network: Network) -> World {
    let (client, server) = pair();
    let ask = Ask::streams(1, BYTES).keep_open();
    let mut world = world(network, &client, &server, ask);
    assert!(world.run_until(LIMIT, |world| world.client(0).progress() == Progress::Done));
    world
}

/// The places of the datagrams with the client's data, on a path that loses none.
fn data_places(world: &World) -> Vec<usize> {
    let sent = world.trace().sent(Side::Server).enumerate();
    sent.filter(|(_, record)| record.size > 100 && record.payload.is_empty())
        .map(|(place, _)| place)
        .collect()
}

/// Returns the delay of the answer when the last `count` datagrams of data are lost.
fn repaired_after(count: usize) -> Duration {
    let whole = transfer(plain(1));
    let places = data_places(&whole);
    let tail = places[places.len() - count..].to_vec();
    let world = transfer(plain(1).toward(Side::Server, DropNth::new(tail)));
    assert_eq!(world.client(0).stats().ptos, 1);
    let done = |world: &World| world.client(0).done_at.unwrap();
    done(&world).saturating_sub(done(&whole))
}

/// srtt + 4 × rttvar + max_ack_delay, with a variance that falls by a quarter with each sample from
/// half a round trip on.
const PTO: Duration = ms(100 + 200 + 25);

#[test]
fn a_lost_tail_is_repaired_in_a_probe_timeout() {
    let one = repaired_after(1);
    assert!(one >= RTT && one < PTO, "{one:?}");
}

/// Proves: rfc9002 6.2.4 probes-elicit-acks
#[test]
fn the_two_probes_carry_different_data() {
    let (one, two) = (repaired_after(1), repaired_after(2));
    assert!(two < one + ms(10), "{two:?} against {one:?}");
}

/// The acknowledgement of the probes shows the rest to be lost; PRR lets two leave for two that
/// arrived, then four (RFC 9937).
#[test]
fn what_two_probes_cannot_carry_follows_in_two_round_trips() {
    let (one, six) = (repaired_after(1), repaired_after(6));
    assert!(six < one + 2 * RTT + ms(30), "{six:?} against {one:?}");
}

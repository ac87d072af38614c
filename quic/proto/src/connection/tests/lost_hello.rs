//! Tests of a server whose ServerHello is lost.

use std::time::Duration;

use super::{client_address, forged::pair, server_address};
use crate::{frame::Owner as _, packet::Space};

const ROUND_TRIP: Duration = Duration::from_millis(100);

/// Clients that keep no packets for which they lack keys have dropped the Handshake packets: these need not wait
/// for a timeout of their own, which a late acknowledgement makes long.
#[test]
fn the_handshake_flight_leaves_again_with_what_is_lost_of_a_server_hello() {
    let mut pair = pair();
    for mut datagram in pair.client.transmit(pair.now) {
        pair.server
            .receive(pair.now, client_address(), &mut datagram);
    }
    let mut flight = pair.server.transmit(pair.now);
    assert!(flight.len() > 1, "the ServerHello spans two datagrams");
    let later = pair.now + ROUND_TRIP;
    for datagram in &mut flight[1..] {
        pair.client.receive(later, server_address(), datagram);
    }
    for mut datagram in pair.client.transmit(later) {
        pair.server.receive(later, client_address(), &mut datagram);
    }
    let server = pair.server.connection();
    assert!(!server.handshake.wants_to_send(Space::Handshake));
    let lost = server.next_timeout().unwrap();
    assert!(lost < later + ROUND_TRIP, "no probe timeout");
    server.on_timeout(lost);
    assert!(server.handshake.wants_to_send(Space::Initial));
    assert!(server.handshake.wants_to_send(Space::Handshake));
}

//! The header of each packet is read once, by the endpoint or by the connection.

use super::{Pair, client_address, forged::pair, server_address};
use crate::wire::packet::{READS, decode};

/// Number of packets in a datagram.
fn count(datagram: &[u8]) -> usize {
    let mut datagram = datagram.to_vec();
    let mut rest = &mut datagram[..];
    let mut packets = 0;
    while !rest.is_empty() {
        rest = decode(rest, 8).expect("a packet").1;
        packets += 1;
    }
    packets
}

/// Number of headers that are read meanwhile.
fn reads(act: impl FnOnce()) -> usize {
    READS.set(0);
    act();
    READS.get()
}

fn to_server(pair: &mut Pair, datagram: &[u8]) {
    let mut datagram = datagram.to_vec();
    let packets = count(&datagram);
    let reads = reads(|| {
        pair.server
            .receive(pair.now, client_address(), &mut datagram);
    });
    assert_eq!(reads, packets);
}

fn to_client(pair: &mut Pair, datagram: &[u8]) -> usize {
    let mut datagram = datagram.to_vec();
    let packets = count(&datagram);
    let reads = reads(|| {
        pair.client
            .receive(pair.now, server_address(), &mut datagram);
    });
    assert_eq!(reads, packets);
    packets
}

#[test]
fn the_header_of_each_packet_is_read_once() {
    let mut pair = pair();
    let mut most = 0;
    for _ in 0..10 {
        for datagram in pair.client.transmit(pair.now) {
            to_server(&mut pair, &datagram);
        }
        for datagram in pair.server.transmit(pair.now) {
            most = most.max(to_client(&mut pair, &datagram));
        }
    }
    assert!(pair.client.connection().handshake().is_some());
    assert!(most > 1, "some packets were coalesced");
}

#[test]
fn the_header_of_a_packet_that_waits_for_keys_is_read_once() {
    let mut pair = pair();
    for datagram in pair.client.transmit(pair.now) {
        to_server(&mut pair, &datagram);
    }
    let flight = pair.server.transmit(pair.now);
    to_client(&mut pair, &flight[1]);
    assert_ne!(pair.client.connection().opening.kept_packets(), 0);
    to_client(&mut pair, &flight[0]);
    assert_eq!(pair.client.connection().opening.kept_packets(), 0);
}

//! Tests of growing datagrams, packet by packet.

use std::time::Duration;

use super::{Pair, forged::pair};
use crate::owners::{path::Mtu, streams::Direction};

/// Returns a pair with a complete handshake, and a server that fills datagrams.
fn filling() -> Pair {
    let mut pair = pair();
    pair.run();
    pair.now += Duration::from_millis(100);
    let server = pair.server.connection();
    let id = server.streams().open(Direction::Uni).unwrap();
    server.streams().write(id, &vec![7; 100_000]).unwrap();
    pair
}

/// Proves: rfc8899 3 probes-are-rare
#[test]
fn a_probe_is_a_datagram_of_its_own() {
    let mut pair = filling();
    let (now, server) = (pair.now, pair.server.connection());
    let mut out = vec![0; 65_000];
    let mut trains = Vec::new();
    while let Some(train) = server.poll_transmit(now, &mut out, 50) {
        trains.push((train.size, train.segment_size));
    }
    let probes = trains.iter().filter(|train| **train == (1452, None));
    assert_eq!(probes.count(), 1, "{trains:?}");
    assert_eq!(server.stats().mtu_probes_sent, 1);
    let others = trains.iter().filter(|train| **train != (1452, None));
    for (size, segment) in others {
        assert!(size.is_multiple_of(1200) || segment.unwrap_or(*size) <= 1200);
    }
}

/// Proves: rfc9000 18.2 max-udp-payload-size-of-the-peer-is-kept
#[test]
fn the_peer_gets_no_datagram_larger_than_it_takes() {
    let mut pair = pair();
    while pair.client.connection().agreed.params.is_none() {
        assert!(pair.step());
    }
    let client = pair.client.connection();
    client.agreed.params.as_mut().unwrap().max_udp_payload_size = 1300;
    pair.run();
    pair.now += Duration::from_millis(100);
    let client = pair.client.connection();
    let id = client.streams().open(Direction::Uni).unwrap();
    client.streams().write(id, &vec![7; 100_000]).unwrap();
    pair.run();
    let client = pair.client.connection();
    assert_eq!(client.path_stats().datagram_size, 1300);
    client.start_mtu(1200);
    assert_eq!(client.path_stats().datagram_size, 1200);
    assert_eq!(client.paths.active().mtu().probe(pair.now), None);
}

/// The second of two packets after a probe timeout shows whether small datagrams still pass.
#[test]
fn the_last_packet_of_a_probe_timeout_has_1200_bytes_at_most() {
    let mut pair = filling();
    let server = pair.server.connection();
    *server.paths.active_mut().mtu_mut() = Mtu::new(1452);
    let size = server.paths.active().datagram_size();
    server.recovery.on_datagram_size(size);
    let mut out = vec![0; 65_000];
    while server.poll_transmit(pair.now, &mut out, 50).is_some() {}
    // The window is full, or pacing allows nothing more, and nothing arrives.
    let mut now = pair.now;
    let mut sizes = Vec::new();
    while server.stats().ptos == 0 {
        now = server.next_timeout().unwrap();
        server.on_timeout(now);
        if server.stats().ptos == 0 {
            while server.poll_transmit(now, &mut out, 50).is_some() {}
        }
    }
    while let Some(train) = server.poll_transmit(now, &mut out, 50) {
        let segment = train.segment_size.unwrap_or(train.size);
        sizes.extend(out[..train.size].chunks(segment).map(<[u8]>::len));
    }
    assert!(sizes[0] > 1400 && sizes[1] <= 1200, "{sizes:?}");
    assert_eq!(sizes.len(), 2);
}

#[test]
fn a_buffer_that_holds_no_probe_ends_the_search_for_it() {
    let mut pair = filling();
    let (now, server) = (pair.now, pair.server.connection());
    let mut out = vec![0; 1300];
    let mut largest = 0;
    while let Some(train) = server.poll_transmit(now, &mut out, 50) {
        largest = largest.max(train.size);
    }
    assert_eq!((largest, server.stats().mtu_probes_sent), (1300, 1));
}

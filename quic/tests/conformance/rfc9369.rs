//! RFC 9369: version 2 on the wire.

use std::time::Duration;

use hybriq::{TransportConfig, tls::Side, transport::Version};
use hybriq_sim::{Ask, Network, Record, World, ms, open_initials};

use crate::duo::{client, server};

/// Returns a finished exchange in which both ends speak version 2 alone.
fn exchange() -> World {
    let only = || TransportConfig::new().versions([Version::V2]);
    let mut world = World::new(Network::new(1).delay(ms(10)), server(only()));
    world.connect(&client(only()), Ask::one_byte());
    world.run(Duration::from_secs(120));
    assert!(world.client(0).done_at.is_some());
    world
}

/// The first byte of each long header, and the version behind it.
fn long_headers(record: &Record) -> impl Iterator<Item = (u8, [u8; 4])> {
    let starts = record.packets.iter().map(|packet| packet.range.start);
    let starts = starts.filter_map(|start| record.payload.get(start..start + 5));
    let long = starts.filter(|bytes| bytes[0] & 0x80 != 0);
    long.map(|bytes| (bytes[0], bytes[1..].try_into().unwrap()))
}

/// Proves: rfc9369 3.1 version-number
/// Proves: rfc9369 3.2 packet-types-differ
#[test]
fn long_headers_have_the_number_and_the_types_of_version_2() {
    let world = exchange();
    for toward in [Side::Client, Side::Server] {
        let mut types = Vec::new();
        for (first, version) in world.trace().sent(toward).flat_map(long_headers) {
            assert_eq!(version, [0x6b, 0x33, 0x43, 0xcf]);
            types.push((first >> 4) & 3);
        }
        // Initial is 1 and Handshake is 3; nothing else came.
        assert!(types.contains(&1) && types.contains(&3));
        assert!(types.iter().all(|it| [1, 3].contains(it)));
    }
}

/// Proves: rfc9369 3.3.1 salt-differs
#[test]
fn initials_open_with_the_keys_of_version_2_and_no_others() {
    let world = exchange();
    let first = world.trace().sent(Side::Server).next().unwrap();
    let dcid = first.packets[0].dcid;
    assert!(!open_initials(&first.payload, &dcid, Side::Client).is_empty());
    let mut as_version_1 = first.payload.clone();
    as_version_1[0] ^= 0x10;
    as_version_1[1..5].copy_from_slice(&[0, 0, 0, 1]);
    assert!(open_initials(&as_version_1, &dcid, Side::Client).is_empty());
}

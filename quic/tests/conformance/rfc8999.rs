//! RFC 8999: what holds for every version.

use hybriq::{ConnectionError, TransportConfig, tls::Side};
use hybriq_sim::{Datagram, Idle, Network, SERVER_ADDRESS, World, ms};

use crate::{
    duo::{client, server},
    invariants::{Long, UNKNOWN, answers, long},
};

/// Proves: rfc8999 5.1 long-headers-of-any-version
/// Proves: rfc8999 5.3 ids-of-other-versions
/// Proves: rfc8999 6 version-negotiation-format
/// Proves: rfc9000 17.2.1 version-negotiation-echoes-ids
#[test]
fn ids_of_any_length_come_back_swapped() {
    for [dcid_len, scid_len] in [
        [0, 0],
        [0, 255],
        [7, 1],
        [8, 20],
        [20, 8],
        [21, 0],
        [255, 255],
    ] {
        let (dcid, scid) = (vec![1; dcid_len], vec![2; scid_len]);
        for first in [0x80, 0xc0, 0xff] {
            let mut packet = long(UNKNOWN, &dcid, &scid, 1200);
            packet[0] = first;
            let [answer] = &answers(packet)[..] else {
                panic!("{dcid_len} and {scid_len} bytes are not answered once")
            };
            let answer = Long::read(answer);
            assert_eq!(
                (answer.version, &answer.dcid, &answer.scid),
                (0, &scid, &dcid)
            );
            let (versions, []) = answer.rest.as_chunks::<4>() else {
                panic!("half a version")
            };
            assert!(versions.contains(&[0, 0, 0, 1]));
            assert!(!versions.contains(&UNKNOWN.to_be_bytes()));
        }
    }
}

/// Returns the end of a client whose first flight got this answer and no other.
fn answered(
    change: impl FnOnce(&mut Vec<u8>, &mut Vec<u8>, &mut Vec<u8>),
) -> Option<ConnectionError> {
    let network = Network::new(1).drop_if(|_, toward| toward.is_server());
    let mut world = World::new(network, server(TransportConfig::new()));
    world.connect(&client(TransportConfig::new()), Idle);
    world.run_for(ms(0));
    let first = world.trace().sent(Side::Server).next().unwrap();
    let said = Long::read(&first.payload);
    let (mut dcid, mut scid) = (said.scid, said.dcid);
    let mut versions = UNKNOWN.to_be_bytes().to_vec();
    change(&mut dcid, &mut scid, &mut versions);
    let mut answer = long(0, &dcid, &scid, 0);
    answer.extend(versions);
    let to = world.client_host(0).address;
    world.inject(Side::Client, Datagram::new(SERVER_ADDRESS, to, answer));
    world.run_for(ms(1000));
    world.client(0).close_reason().cloned()
}

/// Proves: rfc8999 6 version-negotiation-format
/// Proves: rfc9000 6.2 client-gives-up-on-version-negotiation
/// Proves: rfc9000 6.2 version-negotiation-with-our-version-is-ignored
#[test]
fn version_negotiation_that_is_none_is_ignored() {
    let mismatch = Some(ConnectionError::VersionMismatch);
    assert_eq!(answered(|_, _, _| ()), mismatch);
    assert_eq!(answered(|_, _, list| list.extend([1, 2, 3, 4])), mismatch);
    assert_eq!(answered(|dcid, _, _| dcid[0] ^= 1), None);
    assert_eq!(answered(|dcid, _, _| dcid.clear()), None);
    assert_eq!(answered(|dcid, _, _| dcid.resize(255, 0)), None);
    assert_eq!(answered(|_, scid, _| scid[0] ^= 1), None);
    assert_eq!(answered(|_, scid, _| scid.push(0)), None);
    assert_eq!(answered(|_, _, list| list.clear()), None, "no version");
    assert_eq!(
        answered(|_, _, list| list.extend([1, 2])),
        None,
        "half a version"
    );
    assert_eq!(
        answered(|_, _, list| list.extend([0, 0, 0, 1])),
        None,
        "ours"
    );
}

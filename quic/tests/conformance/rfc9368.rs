//! RFC 9368: versions that are negotiated.

use std::time::Duration;

use hybriq::{TransportConfig, tls::Side, transport::Version};
use hybriq_sim::{Ask, Network, World, ms};

use crate::{
    duo::{client, server},
    forger::{client_hello, close_code, replaced},
};

const TRANSPORT_PARAMETER_ERROR: u64 = 0x08;
const VERSION_NEGOTIATION_ERROR: u64 = 0x11;

/// The version information of a client: its parameter's id and length, Chosen Version, and the
/// versions available.
fn version_information(hello: &[u8]) -> (Vec<u8>, Vec<[u8; 4]>) {
    let chosen = [0x11, 0x10, 0, 0, 0, 1];
    let place = hello.windows(6).position(|bytes| bytes == chosen).unwrap();
    let value = &hello[place + 2..place + 18];
    let versions = value.chunks(4).map(|it| it.try_into().unwrap()).collect();
    (hello[place..place + 18].to_vec(), versions)
}

/// Proves: rfc9368 3 client-lists-its-chosen-version
#[test]
fn a_client_names_its_version_and_those_it_would_take() {
    let (hello, scid) = client_hello();
    let (_, versions) = version_information(&hello);
    let [chosen, available @ ..] = &versions[..] else {
        panic!("nothing")
    };
    assert!(available.contains(chosen));
    assert!(available.contains(&Version::V2.number().to_be_bytes()));
    assert_eq!(close_code(&hello, scid), None, "and is answered");
}

/// Proves: rfc9368 3 malformed-version-information-closes
/// Proves: rfc9368 4 unlisted-chosen-version-closes
#[test]
fn version_information_that_does_not_parse_closes() {
    let (hello, scid) = client_hello();
    let (info, versions) = version_information(&hello);
    let mut cases = Vec::new();
    // A Chosen Version of zero, an available one of zero, and none available that was chosen.
    for place in 0..versions.len() {
        let mut changed = info.clone();
        changed[2 + 4 * place..6 + 4 * place].fill(0);
        cases.push(changed);
    }
    let mut changed = info.clone();
    changed[2..6].copy_from_slice(&[0x5a, 1, 2, 3]);
    cases.push(changed);
    // Fifteen bytes are no versions; the last is a parameter that is cut short.
    let mut changed = info.clone();
    changed[1] = 0x0f;
    cases.push(changed);
    for changed in cases {
        let hello = replaced(&hello, &info, &changed);
        let code = close_code(&hello, scid);
        assert_eq!(code, Some(TRANSPORT_PARAMETER_ERROR), "{changed:x?}");
    }
}

/// Proves: rfc9368 4 server-checks-chosen-version
#[test]
fn a_chosen_version_that_is_not_the_one_on_the_wire_closes() {
    let (hello, scid) = client_hello();
    let (info, _) = version_information(&hello);
    let mut changed = info.clone();
    changed[2..6].copy_from_slice(&Version::V2.number().to_be_bytes());
    let hello = replaced(&hello, &info, &changed);
    assert_eq!(close_code(&hello, scid), Some(VERSION_NEGOTIATION_ERROR));
}

/// Proves: rfc9368 3 unknown-versions-are-ignored
#[test]
fn unknown_versions_among_the_available_ones_change_nothing() {
    let (hello, scid) = client_hello();
    let (info, versions) = version_information(&hello);
    let mut changed = info.clone();
    let reserved = versions
        .iter()
        .position(|it| it.iter().all(|byte| byte & 0x0f == 0x0a))
        .expect("one that is reserved");
    changed[2 + 4 * reserved..6 + 4 * reserved].copy_from_slice(&[0xde, 0xad, 0xbe, 0xef]);
    let hello = replaced(&hello, &info, &changed);
    assert_eq!(close_code(&hello, scid), None);
}

/// Proves: rfc9368 2.3 server-chooses-from-the-offer
#[test]
fn a_server_answers_in_a_version_that_the_client_offered() {
    for offered in Version::ALL {
        let network = Network::new(1).delay(ms(10));
        let mut world = World::new(network, server(TransportConfig::new()));
        let one = TransportConfig::new().versions([offered]);
        world.connect(&client(one), Ask::one_byte());
        world.run(Duration::from_secs(120));
        assert!(world.client(0).done_at.is_some());
        let sent = world.trace().sent(Side::Client);
        for packet in sent.flat_map(|record| &record.packets) {
            assert!(packet.version == 0 || packet.version == offered.number());
        }
    }
}

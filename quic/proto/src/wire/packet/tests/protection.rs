use hybriq_tls::Suite;

use super::{SUITES, keys, secret};
use crate::{
    testing::pn,
    wire::packet::{
        Cid, Decoded, Header, KeyPhase, OpenError, PacketBuilder, SealError, SpinValue,
        Undecryptable, Version, confidentiality_limit, decode, integrity_limit, next_packet_key,
    },
};

/// One PING in a 1-RTT packet.
fn packet(suite: Suite) -> Vec<u8> {
    let header = Header::Short {
        dcid: Cid::from([7; 8]),
        spin: SpinValue::Zero,
        key_phase: KeyPhase::Zero,
    };
    let mut buffer = vec![0; 100];
    let mut packet = PacketBuilder::begin(&mut buffer, &header, pn(5), None).expect("room");
    assert!(packet.frames().ping());
    let len = packet.finish(1, &keys(suite));
    buffer.truncate(len);
    buffer
}

fn open(packet: &mut [u8], suite: Suite) -> Result<Vec<u8>, OpenError> {
    let (Decoded::Protected(packet), _) = decode(packet, 8).expect("a packet") else {
        panic!("not protected")
    };
    let keys = keys(suite);
    let packet = packet.unprotect(&keys.header, None).expect("a sample");
    packet.open(&keys.packet).map(|payload| payload.to_vec())
}

#[test]
fn every_suite_opens_what_it_sealed() {
    for suite in SUITES {
        assert_eq!(
            open(&mut packet(suite), suite),
            Ok(vec![1, 0, 0]),
            "{suite}"
        );
    }
}

#[test]
fn a_flipped_bit_anywhere_is_found() {
    for suite in SUITES {
        let packet = packet(suite);
        for bit in 0..packet.len() * 8 {
            let mut packet = packet.clone();
            packet[bit / 8] ^= 1 << (bit % 8);
            if packet[0] & 0xc0 != 0x40 {
                continue;
            }
            assert_eq!(
                open(&mut packet, suite),
                Err(OpenError::Undecryptable),
                "bit {bit}"
            );
        }
    }
}

#[test]
fn another_key_opens_nothing() {
    let [first, .., last] = SUITES;
    assert_eq!(
        open(&mut packet(first), last),
        Err(OpenError::Undecryptable)
    );
}

#[test]
fn less_than_a_tag_is_undecryptable() {
    for suite in SUITES {
        for len in 0..16 {
            assert_eq!(
                keys(suite).packet.open(pn(0), &[], &mut [0; 16][..len]),
                Err(Undecryptable)
            );
        }
    }
}

#[test]
fn a_key_update_changes_the_packet_key_each_time() {
    for suite in SUITES {
        let mut secret = secret(suite);
        let mut sealed = Vec::new();
        for generation in 0..4 {
            let key = if generation == 0 {
                keys(suite).packet
            } else {
                next_packet_key(Version::V1, &mut secret)
            };
            assert_eq!(key.suite(), suite);
            let (mut payload, mut tag) = ([1; 20], [0; 16]);
            assert_eq!(
                key.seal(pn(0), &[], &mut payload, &mut tag),
                Ok::<_, SealError>(())
            );
            assert!(!sealed.contains(&tag), "{suite} generation {generation}");
            sealed.push(tag);
        }
    }
}

#[test]
fn the_limits_are_those_of_rfc_9001_6_6() {
    let limits = SUITES.map(|suite| (confidentiality_limit(suite), integrity_limit(suite)));
    assert_eq!(
        limits,
        [(1 << 23, 1 << 52), (1 << 23, 1 << 52), (1 << 62, 1 << 36)]
    );
}

#[test]
fn keys_do_not_show_in_debug_output() {
    let shown = format!("{:?} {:?}", keys(SUITES[0]), secret(SUITES[0]));
    assert!(
        !shown.contains("66") && !shown.contains("42") && !shown.contains('['),
        "{shown}"
    );
}

#[test]
fn five_bits_of_a_short_header_and_four_of_a_long_one_are_hidden() {
    for suite in SUITES {
        let key = keys(suite).header;
        let mut hidden = [0; 2];
        for sample in 0..100 {
            let sample = [sample; 16];
            for (before, hidden) in [0x40, 0xc0].into_iter().zip(&mut hidden) {
                let (mut first, mut pn) = (before, [0; 4]);
                key.protect(&mut first, &mut pn, &sample);
                assert_eq!(pn, key.mask(&sample)[1..]);
                *hidden |= first ^ before;
            }
        }
        assert_eq!(hidden, [0x1f, 0x0f], "{suite}");
    }
}

use hybriq_tls::Suite;
use proptest::{collection::vec, prelude::*};

use super::keys;
use crate::{
    testing::pn,
    wire::packet::{
        Cid, Decoded, DropReason, Header, Kind, PacketBuilder, Packets, SpinValue, Version,
        VersionNegotiation, Versions, decode,
    },
};

/// A version 1 long header up to the connection ids.
fn long(first: u8, dcid: &[u8], scid: &[u8]) -> Vec<u8> {
    let lens = [dcid.len() as u8, scid.len() as u8];
    [&[first, 0, 0, 0, 1, lens[0]][..], dcid, &lens[1..], scid].concat()
}

fn reason(datagram: &[u8]) -> DropReason {
    let mut datagram = datagram.to_vec();
    decode(&mut datagram, 8).expect_err("a datagram to drop")
}

#[test]
fn coalesced_packets_come_one_after_the_other() {
    let (dcid, scid) = (Cid::from([1; 8]), Cid::from([2; 8]));
    let header = |kind| Header::Long {
        kind,
        version: Version::V1,
        dcid,
        scid,
        token: b"token",
    };
    let keys = keys(Suite::Aes128GcmSha256);
    let mut datagram = vec![0; 1200];
    let mut at = 0;
    for kind in [Kind::Initial, Kind::ZeroRtt, Kind::Handshake] {
        let mut packet =
            PacketBuilder::begin(&mut datagram[at..], &header(kind), pn(0), None).expect("room");
        assert!(packet.frames().ping());
        at += packet.finish(1, &keys);
    }
    let short = Header::Short {
        dcid,
        spin: SpinValue::One,
        key_phase: crate::wire::packet::KeyPhase::One,
    };
    let packet = PacketBuilder::begin(&mut datagram[at..], &short, pn(0), None).expect("room");
    at += packet.finish_padded(0, 100, &keys);
    datagram.truncate(at);

    let mut rest = &mut datagram[..];
    for kind in [Kind::Initial, Kind::ZeroRtt, Kind::Handshake, Kind::OneRtt] {
        let (Decoded::Protected(packet), behind) = decode(rest, 8).expect("a packet") else {
            panic!("not protected")
        };
        assert_eq!((packet.kind, packet.dcid), (kind, dcid));
        assert_eq!(
            packet.token(),
            if kind == Kind::Initial {
                &b"token"[..]
            } else {
                b""
            }
        );
        let long = kind != Kind::OneRtt;
        assert_eq!(packet.scid, if long { scid } else { Cid::EMPTY });
        assert_eq!(packet.version, long.then_some(Version::V1));
        rest = behind;
    }
    assert!(rest.is_empty());
}

#[test]
fn a_packet_may_be_followed_by_garbage() {
    let mut datagram = long(0xc0, b"dcid", b"scid");
    datagram.extend([0, 5]);
    datagram.extend([0xaa; 5]);
    datagram.extend(b"garbage");
    let (Decoded::Protected(packet), rest) = decode(&mut datagram, 8).expect("a packet") else {
        panic!("not protected")
    };
    assert_eq!(packet.bytes.len(), 1 + 4 + 1 + 4 + 1 + 4 + 1 + 1 + 5);
    assert_eq!(rest, b"garbage");
    let header_key = keys(Suite::Aes128GcmSha256).header;
    assert_eq!(
        packet.unprotect(&header_key, None).err(),
        Some(DropReason::NoSample)
    );
}

#[test]
fn a_cut_header_is_dropped() {
    let mut datagram = long(0xc0, &[1; 20], &[2; 20]);
    datagram.extend([3, 1, 2, 3, 0x40, 30]);
    datagram.extend([0; 30]);
    for cut in 0..datagram.len() {
        assert_eq!(reason(&datagram[..cut]), DropReason::Truncated, "at {cut}");
    }
    assert!(decode(&mut datagram, 8).is_ok());
    assert_eq!(reason(&[0x40; 8]), DropReason::Truncated);
}

#[test]
fn lengths_beyond_any_datagram_are_dropped() {
    for field in [[0xff; 8], [0xbf, 0xff, 0xff, 0xff, 0, 0, 0, 0]] {
        let mut token = long(0xc0, b"dcid", b"scid");
        token.extend(field);
        assert_eq!(reason(&token), DropReason::Truncated);
        let mut payload = long(0xe0, b"dcid", b"scid");
        payload.extend(field);
        assert_eq!(reason(&payload), DropReason::Truncated);
    }
}

#[test]
fn a_packet_without_the_quic_bit_is_read_and_says_so() {
    // Length 20, after a token length in an Initial.
    for first in [0x80, 0x90, 0xa0, 0x00] {
        let mut datagram = match first {
            0x00 => vec![0; 40],
            0x80 => [&long(first, b"d", b"s")[..], &[0, 20], &[0; 40]].concat(),
            _ => [&long(first, b"d", b"s")[..], &[20], &[0; 40]].concat(),
        };
        for set in [false, true] {
            datagram[0] = datagram[0] & !0x40 | if set { 0x40 } else { 0 };
            match decode(&mut datagram, 8) {
                Ok((Decoded::Protected(packet), _)) => assert_eq!(packet.has_quic_bit(), set),
                other => panic!("{first:#x}: {other:?}"),
            }
        }
    }
    // A Retry arrives before anything was negotiated.
    let retry = [&long(0xb0, b"d", b"s")[..], &[0; 40]].concat();
    assert_eq!(reason(&retry), DropReason::FixedBit);
}

/// Proves: rfc9000 17.2 long-ids-are-dropped
#[test]
fn a_version_1_connection_id_has_at_most_20_bytes() {
    for (dcid, scid) in [(&[1; 21][..], &[][..]), (&[], &[1; 21])] {
        for first in [0xc0, 0xf0] {
            let datagram = [&long(first, dcid, scid)[..], &[0; 40]].concat();
            assert_eq!(reason(&datagram), DropReason::CidTooLong);
        }
    }
}

#[test]
fn a_retry_without_a_token_is_dropped() {
    let datagram = [&long(0xf0, b"d", b"s")[..], &[0; 16]].concat();
    assert_eq!(reason(&datagram), DropReason::EmptyRetryToken);
    assert_eq!(
        reason(&datagram[..datagram.len() - 1]),
        DropReason::Truncated
    );
}

/// Proves: rfc8999 5.1 long-headers-of-any-version
#[test]
fn an_unknown_version_is_read_as_far_as_all_versions_agree() {
    let (dcid, scid) = ([1; 255], [2; 255]);
    for first in [0x80, 0xff] {
        let mut datagram = long(first, &dcid, &scid);
        datagram[1..5].copy_from_slice(&[0x1a, 0x2a, 0x3a, 0x4a]);
        datagram.extend([9; 700]);
        let packets = Packets::read(&mut datagram, 8).expect("connection ids");
        assert_eq!(packets.ids_of_unknown_version(), Some([&dcid[..], &scid]));
        assert_eq!(packets.dcid(), None, "longer than ours can be");
        let (
            Decoded::UnknownVersion {
                version: 0x1a2a_3a4a,
                dcid: d,
                scid: s,
            },
            rest,
        ) = decode(&mut datagram, 8).expect("a packet")
        else {
            panic!("no unknown version")
        };
        assert_eq!((d, s), (&dcid[..], &scid[..]));
        assert!(rest.is_empty());
    }
}

/// Proves: rfc8999 6 version-negotiation-format
/// Proves: rfc9000 17.2.1 version-negotiation-echoes-ids
#[test]
fn a_version_negotiation_packet_answers_with_the_ids_swapped() {
    let (dcid, scid) = ([1; 255], [2; 3]);
    let mut buffer = [0; 1200];
    for random in [0, 0x1234_5678, u32::MAX] {
        let answer = VersionNegotiation::answer(&dcid, &scid);
        let len = answer
            .encode(Versions::DEFAULT, random, &mut buffer)
            .expect("room");
        assert_eq!(
            answer.encode(Versions::DEFAULT, random, &mut buffer[..len - 1]),
            None
        );
        let len = answer
            .encode(Versions::DEFAULT, random, &mut buffer)
            .map_or(0, |again| again.min(len));
        let (Decoded::VersionNegotiation(packet), rest) =
            decode(&mut buffer[..len], 8).expect("a packet")
        else {
            panic!("no Version Negotiation")
        };
        assert!(rest.is_empty());
        assert_eq!((packet.dcid, packet.scid), (&scid[..], &dcid[..]));
        let versions: Vec<u32> = packet.versions().collect();
        assert_eq!(versions[1..], [0x6b33_43cf, 1]);
        assert_eq!(
            versions[0] & 0x0f0f_0f0f,
            0x0a0a_0a0a,
            "a version that is reserved"
        );
    }
    assert_eq!(
        VersionNegotiation::answer(&[0; 256], &[]).encode(Versions::DEFAULT, 0, &mut buffer),
        None
    );
}

#[test]
fn routing_needs_nothing_but_the_connection_id() {
    let mut short = [&[0x40][..], &[7; 8], &[0; 30]].concat();
    let packets = Packets::read(&mut short, 8).expect("a connection id");
    assert_eq!(packets.dcid(), Some(Cid::from([7; 8])));
    assert_eq!(packets.kind(), Some(Kind::OneRtt));
    let mut initial = long(0xc0, b"dcid", b"scid");
    let packets = Packets::read(&mut initial, 8).expect("connection ids");
    assert_eq!(packets.dcid(), Cid::new(b"dcid"));
    assert_eq!(packets.kind(), None, "no length");
    let cut = initial.len() - 1;
    assert!(Packets::read(&mut initial[..cut], 8).is_err());
    assert!(Packets::read(&mut [], 8).is_err());
}

proptest! {
    /// Proves: security 1 arbitrary-bytes-are-errors-or-frames
    #[test]
    fn arbitrary_datagrams_are_split_or_dropped(
        form in prop_oneof![Just(vec![]), Just(vec![0xc0, 0, 0, 0, 1]), Just(vec![0xf0, 0, 0, 0, 1])],
        tail in vec(any::<u8>(), 0..1500),
        cid_len in 0_usize..=20,
    ) {
        let mut datagram = [form, tail].concat();
        let keys = keys(Suite::Aes128GcmSha256);
        let mut rest = &mut datagram[..];
        loop {
            let before = rest.len();
            let Ok((packet, behind)) = decode(rest, cid_len) else { break };
            prop_assert!(behind.len() < before);
            if let Decoded::Protected(packet) = packet
                && let Ok(packet) = packet.unprotect(&keys.header, None)
            {
                prop_assert!(packet.open(&keys.packet).is_err());
            }
            rest = behind;
        }
    }
}

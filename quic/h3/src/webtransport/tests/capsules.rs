//! Capsules, however they arrive.

use bytes::Bytes;

use hybriq_proto::Direction;

use crate::error::Violation;
use crate::webtransport::{Capsule, Decoder, LONGEST_REASON};

/// Reads bytes that arrive in these parts.
fn read<'a>(
    parts: impl IntoIterator<Item = &'a [u8]>,
) -> Result<(Vec<Capsule>, Decoder), Violation> {
    let (mut decoder, mut capsules) = (Decoder::default(), Vec::new());
    for part in parts {
        let mut data = Bytes::copy_from_slice(part);
        while let Some(capsule) = decoder.next(&mut data)? {
            capsules.push(capsule);
        }
        assert!(data.is_empty());
        assert!(decoder.held() <= 4 + LONGEST_REASON);
    }
    Ok((capsules, decoder))
}

fn written(capsules: &[Capsule]) -> Vec<u8> {
    let mut out = Vec::new();
    for capsule in capsules {
        capsule.write(&mut out);
    }
    out
}

fn close(code: u32, reason: &str) -> Capsule {
    let reason = reason.to_owned();
    Capsule::Close { code, reason }
}

#[test]
fn capsules_are_written_and_read() {
    let capsules = [Capsule::Drain, close(0x0102_0304, "bye")];
    let expected = [
        &[0x80, 0, 0x78, 0xae, 0][..],
        &[0x68, 0x43, 7, 1, 2, 3, 4, b'b', b'y', b'e'],
    ];
    let bytes = written(&capsules);
    assert_eq!(bytes, expected.concat());
    let (read, decoder) = read([&bytes[..]]).unwrap();
    assert_eq!(read, capsules);
    assert!(decoder.is_between());
}

/// The types of draft 15 (§9.6), and the limits behind them.
#[test]
fn limits_are_written_and_read() {
    for (kind, capsule) in [
        (0x3d, Capsule::MaxData(7)),
        (0x3f, Capsule::MaxStreams(Direction::Bidi, 7)),
        (0x40, Capsule::MaxStreams(Direction::Uni, 7)),
        (0x41, Capsule::DataBlocked(7)),
        (0x43, Capsule::StreamsBlocked(Direction::Bidi, 7)),
        (0x44, Capsule::StreamsBlocked(Direction::Uni, 7)),
    ] {
        let bytes = [0x99, 0x0b, 0x4d, kind, 1, 7];
        assert_eq!(written(std::slice::from_ref(&capsule)), bytes);
        assert_eq!(read([&bytes[..]]).unwrap().0, [capsule]);
    }
    for kind in [0x3e, 0x42] {
        let bytes = [0x99, 0x0b, 0x4d, kind, 2, 0, 7];
        assert_eq!(read([&bytes[..]]).unwrap().0, [Capsule::OfStream]);
    }
}

#[test]
fn long_reasons_are_cut_between_characters() {
    let Capsule::Close { reason, .. } = Capsule::close(0, &"ä".repeat(600)) else {
        panic!("another capsule");
    };
    assert_eq!(reason, "ä".repeat(512));
    let Capsule::Close { reason, .. } = Capsule::close(0, &["x", &"ä".repeat(600)].concat())
    else {
        panic!("another capsule");
    };
    assert_eq!(reason.len(), 1023);
}

/// Capsules of unknown types, with and without content, among others.
#[test]
fn capsules_are_the_same_however_they_are_cut() {
    let capsules = [
        Capsule::Drain,
        close(7, "enough"),
        Capsule::MaxData(1 << 40),
        Capsule::MaxStreams(Direction::Uni, 100),
        close(0, ""),
    ];
    let mut bytes = vec![0x17, 0, 0x17, 0x41, 0x2c];
    bytes.resize(bytes.len() + 300, 0xff);
    bytes.extend(written(&capsules));
    for cut in 0..=bytes.len() {
        let (one, other) = bytes.split_at(cut);
        let (read, decoder) = read([one, other]).unwrap();
        assert_eq!(read, capsules, "cut at {cut}");
        assert!(decoder.is_between() && decoder.held() == 0);
    }
    assert_eq!(read(bytes.chunks(1)).unwrap().0, capsules);
}

#[test]
fn the_end_of_a_capsule_is_known() {
    let bytes = [&[0x17, 1, 0][..], &written(&[close(7, "x")])].concat();
    for cut in 0..bytes.len() {
        let (_, decoder) = read([&bytes[..cut]]).unwrap();
        assert_eq!(decoder.is_between(), cut == 0 || cut == 3, "cut at {cut}");
    }
}

/// The longest reason fits; what is longer is refused by its length alone.
#[test]
fn contents_are_bounded() {
    let longest = close(1, &"x".repeat(LONGEST_REASON));
    let bytes = written(std::slice::from_ref(&longest));
    assert_eq!(read(bytes.chunks(1)).unwrap().0, [longest]);
    for head in [
        &[0x68, 0x43, 0x44, 5][..],
        &[0x68, 0x43, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
        &[0x80, 0, 0x78, 0xae, 1],
    ] {
        assert_eq!(
            read([head]).unwrap_err(),
            Violation::CapsuleLength,
            "{head:x?}"
        );
    }
    // An integer that is cut, one with something behind it, and none.
    for content in [&[1, 0x40][..], &[2, 0, 0], &[0]] {
        let capsule = [&[0x99, 0x0b, 0x4d, 0x3d][..], content].concat();
        assert_eq!(read([&capsule[..]]).unwrap_err(), Violation::CapsuleLength);
    }
    // Too short for a code.
    let short = [0x68, 0x43, 3, 0, 0, 0];
    assert_eq!(read([&short[..]]).unwrap_err(), Violation::CapsuleLength);
}

/// A capsule of an unknown type may be as long as it likes, and is never held.
#[test]
fn endless_capsules_hold_nothing() {
    let (mut decoder, part) = (Decoder::default(), Bytes::from(vec![0; 1 << 16]));
    let head = [0x17, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
    let mut data = Bytes::copy_from_slice(&head);
    assert_eq!(decoder.next(&mut data), Ok(None));
    for _ in 0..100 {
        assert_eq!(decoder.next(&mut part.clone()), Ok(None));
        assert_eq!(decoder.held(), 0);
    }
}

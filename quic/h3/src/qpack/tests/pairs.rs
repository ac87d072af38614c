//! An encoder and a decoder that are far from each other: streams come late, in pieces, or not at all.

use super::super::{Decoded, Decoder, Encoder, FieldRef, line::LastDate, primitives::put_integer};

/// A stream whose entries came is not blocked any more, before anybody asks for it (RFC 9204 §2.1.2).
#[test]
fn a_stream_whose_entries_came_makes_room_for_another() {
    let mut decoder = Decoder::new(220, 1, 10_000);
    let decode = |decoder: &mut Decoder, stream, section: &[u8]| {
        decoder.decode(stream, section, |_| ()).unwrap()
    };
    // One entry, and two.
    let (one, two) = (b"\x02\x80\x10", b"\x03\x80\x10");
    assert_eq!(decode(&mut decoder, 0, one), Decoded::Blocked);
    let insert = b"\x3f\xbd\x01\xc0\x0fwww.example.com";
    decoder.on_encoder_stream(insert).unwrap();
    assert_eq!(decoder.blocked_streams(), 0);
    assert_eq!(decode(&mut decoder, 4, two), Decoded::Blocked);
    assert_eq!(decoder.blocked_streams(), 1);
    assert_eq!(decode(&mut decoder, 0, one), Decoded::Whole);
    assert_eq!(decoder.next_unblocked(), None);
}

/// Streams are named once their own entry is there, whatever waits beside them, and count as memory until then.
#[test]
fn streams_wait_for_their_own_entries() {
    let mut decoder = Decoder::new(4096, 100, 10_000);
    let mut alone = Decoder::new(4096, 100, 10_000);
    for decoder in [&mut decoder, &mut alone] {
        decoder.on_encoder_stream(b"\x3f\xe1\x1f").unwrap();
    }
    // Later streams wait for earlier entries.
    for (stream, required) in (0..100).zip((1..=100).rev()) {
        let section = [required + 1, 0, 0x80];
        let decoded = decoder.decode(stream, &section, |_| ());
        assert_eq!(decoded, Ok(Decoded::Blocked));
    }
    assert!(decoder.memory() >= alone.memory() + 100 * 16);
    for decoder in [&mut decoder, &mut alone] {
        decoder.cancel(49);
    }
    for stream in (0..100).rev() {
        for decoder in [&mut decoder, &mut alone] {
            decoder.on_encoder_stream(b"\x41a\x01b").unwrap();
        }
        let next = (stream != 49).then_some(stream);
        assert_eq!(
            (decoder.next_unblocked(), decoder.next_unblocked()),
            (next, None)
        );
        let later = stream - u64::from(stream > 49);
        assert_eq!(decoder.blocked_streams() as u64, later);
    }
    assert_eq!(decoder.memory(), alone.memory());
}

/// RFC 9204 Appendix B.
#[test]
fn examples_of_the_rfc() {
    let mut decoder = Decoder::new(220, 100, 10_000);
    let decode = |decoder: &mut Decoder, stream, section: &[u8]| {
        let mut fields = Vec::new();
        let outcome = decoder.decode(stream, section, |field| {
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            fields.push((text(&field.name), text(&field.value)));
        });
        (outcome.unwrap(), fields)
    };
    let list = |fields: &[(&str, &str)]| -> Vec<(String, String)> {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        fields.iter().map(own).collect()
    };
    // B.1
    let section = b"\x00\x00\x51\x0b/index.html";
    let expected = list(&[(":path", "/index.html")]);
    assert_eq!(decode(&mut decoder, 0, section), (Decoded::Whole, expected));
    // B.2
    let section = b"\x03\x81\x10\x11";
    assert_eq!(decode(&mut decoder, 4, section), (Decoded::Blocked, vec![]));
    let instructions = b"\x3f\xbd\x01\xc0\x0fwww.example.com\xc1\x0c/sample/path";
    decoder.on_encoder_stream(instructions).unwrap();
    assert_eq!(decoder.next_unblocked(), Some(4));
    let both = list(&[(":authority", "www.example.com"), (":path", "/sample/path")]);
    assert_eq!(decode(&mut decoder, 4, section), (Decoded::Whole, both));
    let mut answer = Vec::new();
    decoder.take_instructions(&mut answer);
    assert_eq!(answer, [0x84]);
    // B.3
    decoder
        .on_encoder_stream(b"\x4acustom-key\x0ccustom-value")
        .unwrap();
    answer.clear();
    decoder.take_instructions(&mut answer);
    assert_eq!(answer, [0x01]);
    // B.4
    decoder.on_encoder_stream(b"\x02").unwrap();
    let section = b"\x05\x00\x80\xc1\x81";
    let expected = list(&[
        (":authority", "www.example.com"),
        (":path", "/"),
        ("custom-key", "custom-value"),
    ]);
    assert_eq!(decode(&mut decoder, 8, section), (Decoded::Whole, expected));
    answer.clear();
    decoder.take_instructions(&mut answer);
    assert_eq!(answer, [0x88]);
    decoder.cancel(8);
    answer.clear();
    decoder.take_instructions(&mut answer);
    assert_eq!(answer, [0x48]);
    // B.5
    decoder.on_encoder_stream(b"\x81\x0dcustom-value2").unwrap();
    assert_eq!(decoder.inserted(), 5);
}

/// Random numbers (SplitMix64).
struct Rng(u64);

impl Rng {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb) % most.max(1)
    }
}

type List = Vec<(Vec<u8>, Vec<u8>, bool)>;

fn list(rng: &mut Rng) -> List {
    let field = |rng: &mut Rng| {
        let name = format!("name-{}", rng.below(12));
        let long = usize::from(rng.below(20) == 0) * 300;
        let value = format!("value of it {} {}", rng.below(9), "x".repeat(long));
        let name = if rng.below(4) == 0 {
            ":path".to_owned()
        } else {
            name
        };
        (name.into_bytes(), value.into_bytes(), rng.below(10) == 0)
    };
    (0..rng.below(12)).map(|_| field(rng)).collect()
}

/// Plays an encoder and a decoder whose streams are late in any way.
fn play(seed: u64) -> u64 {
    let mut rng = Rng(seed);
    let capacity = [0, 64, 200, 1000, 4096][rng.below(5) as usize];
    let blocked = [0, 1, 3, 100][rng.below(4) as usize];
    let mut encoder = Encoder::new();
    let mut decoder = Decoder::new(capacity, blocked, u64::MAX);
    encoder.set_peer(capacity as u64, blocked as u64, 4096);
    // What is on its way, each in order.
    let (mut to_decoder, mut to_encoder) = (Vec::<u8>::new(), Vec::<u8>::new());
    let mut sections = Vec::<(u64, Vec<u8>, List)>::new();
    let mut waiting = Vec::<(u64, Vec<u8>, List)>::new();
    let mut used = 0;
    for turn in 0..400_u64 {
        match rng.below(6) {
            0 | 1 => {
                let (list, stream) = (list(&mut rng), turn * 4);
                let fields = list.iter().map(|(name, value, sensitive)| FieldRef {
                    name,
                    value,
                    sensitive: *sensitive,
                });
                let mut section = Vec::new();
                encoder.encode(stream, fields, &mut section, &mut to_decoder);
                used += u64::from(section[0] != 0);
                sections.push((stream, section, list));
            }
            2 => {
                let some = rng.below(to_decoder.len() as u64 + 1) as usize;
                let piece: Vec<u8> = to_decoder.drain(..some).collect();
                decoder.on_encoder_stream(&piece).unwrap();
            }
            3 if !sections.is_empty() => {
                let which = rng.below(sections.len() as u64) as usize;
                waiting.push(sections.swap_remove(which));
                let (stream, section, list) = waiting.last().unwrap();
                if receive(&mut decoder, *stream, section, list) {
                    waiting.pop();
                }
            }
            4 if !waiting.is_empty() && rng.below(4) == 0 => {
                let which = rng.below(waiting.len() as u64) as usize;
                decoder.cancel(waiting.swap_remove(which).0);
            }
            _ => {
                decoder.take_instructions(&mut to_encoder);
                let some = rng.below(to_encoder.len() as u64 + 1) as usize;
                let piece: Vec<u8> = to_encoder.drain(..some).collect();
                encoder.on_decoder_stream(&piece).unwrap();
            }
        }
        while let Some(stream) = decoder.next_unblocked() {
            let place = waiting.iter().position(|(of, ..)| *of == stream).unwrap();
            let (stream, section, list) = waiting.swap_remove(place);
            assert!(receive(&mut decoder, stream, &section, &list));
        }
        assert!(decoder.blocked_streams() <= blocked);
    }
    decoder.on_encoder_stream(&to_decoder).unwrap();
    sections.append(&mut waiting);
    for (stream, section, list) in sections {
        assert!(receive(&mut decoder, stream, &section, &list));
    }
    used
}

/// Decodes a section. Returns false if it is blocked.
fn receive(decoder: &mut Decoder, stream: u64, section: &[u8], list: &List) -> bool {
    let mut decoded = List::new();
    let outcome = decoder.decode(stream, section, |field| {
        decoded.push((
            field.name.to_vec(),
            field.value.to_vec(),
            field.never_indexed,
        ));
    });
    match outcome.unwrap() {
        Decoded::Blocked => false,
        Decoded::Whole => {
            assert_eq!(&decoded, list);
            true
        }
        Decoded::TooLarge => unreachable!("there is no limit"),
    }
}

#[test]
fn late_streams_change_nothing() {
    let used: u64 = (0..300).map(play).sum();
    assert!(used > 5000, "{used} sections referred to the table");
}

#[test]
fn sensitive_values_are_in_no_table() {
    let mut encoder = Encoder::new();
    encoder.set_peer(4096, 100, 4096);
    let secret = FieldRef {
        name: b"x-secret",
        value: b"do not keep this",
        sensitive: true,
    };
    let mut decoder = Decoder::new(4096, 100, 10_000);
    for stream in 0..5 {
        let (mut section, mut instructions) = (Vec::new(), Vec::new());
        encoder.encode(
            stream,
            [secret].into_iter(),
            &mut section,
            &mut instructions,
        );
        decoder.on_encoder_stream(&instructions).unwrap();
        let mut fields = Vec::new();
        decoder
            .decode(stream, &section, |field| fields.push(field))
            .unwrap();
        assert!(fields[0].never_indexed && fields[0].value == secret.value);
    }
    assert!(encoder.inserted() <= 1, "the name alone");
}

/// A peer that acknowledges nothing costs no more with every section; one that catches up gets the table again.
#[test]
fn sections_without_acknowledgement_are_bounded() {
    let mut encoder = Encoder::new();
    encoder.set_peer(4096, 1_000_000, 4096);
    let field = FieldRef {
        name: b"x-name",
        value: b"the same value again",
        sensitive: false,
    };
    let (mut answers, mut instructions) = (Vec::new(), Vec::new());
    let mut referring = |encoder: &mut Encoder, streams: std::ops::Range<u64>| {
        let encode = |stream: &u64| {
            let mut section = Vec::new();
            encoder.encode(
                *stream,
                [field].into_iter(),
                &mut section,
                &mut instructions,
            );
            section[0] != 0
        };
        streams.filter(encode).collect::<Vec<_>>()
    };
    let sent = referring(&mut encoder, 0..2000);
    assert_eq!(sent.len(), 128);
    for stream in sent {
        put_integer(&mut answers, 0x80, 7, stream);
    }
    encoder.on_decoder_stream(&answers).unwrap();
    assert_eq!(referring(&mut encoder, 2000..2010).len(), 10);
}

/// A stream that was cancelled before its section was encoded pins no entry.
#[test]
fn sections_of_cancelled_streams_refer_to_nothing() {
    let mut encoder = Encoder::new();
    encoder.set_peer(4096, 100, 4096);
    let field = FieldRef {
        name: b"x-name",
        value: b"a value",
        sensitive: false,
    };
    let refers = |encoder: &mut Encoder, stream| {
        let (mut section, mut instructions) = (Vec::new(), Vec::new());
        let fields = [field].into_iter();
        encoder.encode(stream, fields, &mut section, &mut instructions);
        section[0] != 0
    };
    assert!(refers(&mut encoder, 0));
    encoder.on_decoder_stream(&[0x80, 0x44]).unwrap();
    assert!(!refers(&mut encoder, 4) && refers(&mut encoder, 8));
}

#[test]
fn an_empty_date_is_a_value() {
    let mut date = LastDate::default();
    let mut section = Vec::new();
    for value in ["", "", "x", ""] {
        date.put(&mut section, value.as_bytes());
    }
    assert_eq!(section, [0, 0, 1, b'x', 0]);
}

#[test]
fn limits_are_kept() {
    let mut decoder = Decoder::new(100, 1, 80);
    let too_much = decoder.on_encoder_stream(&[0x3f, 0x46]);
    assert!(too_much.is_err(), "a capacity of 101 bytes");
    let mut decoder = Decoder::new(100, 1, 80);
    decoder.on_encoder_stream(&[0x3f, 0x45]).unwrap();
    let long = [&[0xc0, 69][..], &[7; 69]].concat();
    assert!(
        decoder.on_encoder_stream(&long).is_err(),
        "59 bytes fit beside the name"
    );
    let mut decoder = Decoder::new(100, 1, 80);
    let blocked = [0x02, 0x00, 0x80];
    assert_eq!(decoder.decode(0, &blocked, drop), Ok(Decoded::Blocked));
    assert!(
        decoder.decode(4, &blocked, drop).is_err(),
        "one stream may be blocked"
    );
    decoder.cancel(0);
    assert_eq!(decoder.decode(4, &blocked, drop), Ok(Decoded::Blocked));
    // Two fields of 43 and 42 bytes.
    let mut count = 0;
    let outcome = decoder.decode(8, &[0, 0, 0xd1, 0xd7], |_| count += 1);
    assert_eq!((outcome, count), (Ok(Decoded::TooLarge), 1));
}

#[test]
fn acknowledgements_of_nothing_are_errors() {
    let mut encoder = Encoder::new();
    encoder.set_peer(4096, 100, 4096);
    assert!(
        encoder.on_decoder_stream(&[0x84]).is_err(),
        "no such section"
    );
    assert!(
        Encoder::new().on_decoder_stream(&[0x01]).is_err(),
        "no such entry"
    );
    assert!(
        Encoder::new().on_decoder_stream(&[0x00]).is_err(),
        "an increment of 0"
    );
    assert!(
        Encoder::new().on_decoder_stream(&[0x44]).is_ok(),
        "a stream without references"
    );
}

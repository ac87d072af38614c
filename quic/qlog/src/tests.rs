//! Records of frames, numbers, texts and dates.

#[path = "../../tests/qlog/cddl.rs"]
mod cddl;

use std::time::Duration;

use cddl::Rules;
use hybriq_proto::wire::{error::Code, frame::FrameReader};
use serde_json::{Value, json};

use super::{Counters, clock::WallClock, json::Object, output::Directory, schema::Schema};
use crate::{
    output::queue::{Opening, Piece},
    record::frames::{self, NumberKey},
};

fn written(fill: impl FnOnce(&mut Object<'_>)) -> Value {
    let mut out = Vec::new();
    Object::write(&mut out, fill);
    let text = String::from_utf8(out).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Returns the frames of a payload as they are logged, and the number of those left out.
fn logged(payload: &[u8], schema: Schema) -> (Vec<Value>, usize) {
    let mut omitted = 0;
    let value = written(|object| {
        object.list("frames", |list| {
            omitted = frames::write(list, FrameReader::new(payload), schema, 3);
        });
    });
    (value["frames"].as_array().unwrap().clone(), omitted)
}

fn rules(schema: Schema) -> Rules {
    let ours = include_str!("../../tests/qlog/hybriq.cddl");
    if schema == Schema::Draft13 {
        let theirs = include_str!("../../tests/qlog/draft13.cddl");
        return Rules::read(&[theirs, ours]);
    }
    let theirs = include_str!("../../tests/qlog/v03.cddl");
    let mut rules = Rules::read(&[
        theirs,
        ours,
        include_str!("../../tests/qlog/hybriq_v03.cddl"),
    ]);
    rules.forget_open("$QuicFrame");
    rules
}

/// One frame of each type, as encoded on the wire (RFC 9000 §19).
fn wire() -> Vec<(&'static str, Vec<u8>)> {
    let new_connection_id = [&[0x18, 5, 2, 4, 1, 2, 3, 4][..], &[0xaa; 16]].concat();
    let challenge = |ty: u8| [&[ty][..], &[9; 8]].concat();
    vec![
        ("ping", vec![1]),
        // Acknowledges 10, and 3 to 5; the delay is 2 << 3 us.
        ("ack", vec![2, 10, 2, 1, 0, 3, 2]),
        ("ack", vec![3, 10, 2, 0, 0, 7, 8, 9]),
        ("reset_stream", vec![4, 4, 7, 50]),
        ("stop_sending", vec![5, 4, 7]),
        ("crypto", vec![6, 3, 2, 0, 0]),
        ("new_token", vec![7, 3, 1, 2, 3]),
        ("stream", vec![0x0f, 4, 20, 3, 1, 2, 3]),
        ("max_data", vec![0x10, 60]),
        ("max_stream_data", vec![0x11, 4, 60]),
        ("max_streams", vec![0x12, 60]),
        ("max_streams", vec![0x13, 60]),
        ("data_blocked", vec![0x14, 60]),
        ("stream_data_blocked", vec![0x15, 4, 60]),
        ("streams_blocked", vec![0x16, 60]),
        ("streams_blocked", vec![0x17, 60]),
        ("new_connection_id", new_connection_id),
        ("retire_connection_id", vec![0x19, 5]),
        ("path_challenge", challenge(0x1a)),
        ("path_response", challenge(0x1b)),
        ("connection_close", vec![0x1c, 0x0a, 0x06, 2, b'n', b'o']),
        // CRYPTO_ERROR 0x128, and a code without a name.
        ("connection_close", vec![0x1c, 0x41, 0x28, 0, 0]),
        ("connection_close", vec![0x1c, 0x3f, 0, 0]),
        ("connection_close", vec![0x1d, 9, 0]),
        ("handshake_done", vec![0x1e]),
        ("immediate_ack", vec![0x1f]),
        ("reset_stream_at", vec![0x24, 4, 7, 50, 20]),
        ("ack_frequency", vec![0x40, 0xaf, 1, 2, 3, 4]),
        ("datagram", vec![0x31, 2, 1, 2]),
        ("padding", vec![0; 5]),
    ]
}

#[test]
fn every_frame_is_logged_as_the_drafts_say() {
    for schema in [Schema::V03, Schema::Draft13] {
        let rules = rules(schema);
        let all: Vec<u8> = wire().into_iter().flat_map(|(_, bytes)| bytes).collect();
        let (frames, omitted) = logged(&all, schema);
        assert_eq!((frames.len(), omitted), (wire().len(), 0));
        for (frame, (name, bytes)) in frames.iter().zip(wire()) {
            assert_eq!(frame["frame_type"], name);
            rules
                .check("$QuicFrame", frame)
                .unwrap_or_else(|error| panic!("{schema:?} {error} in {frame}"));
            if schema == Schema::Draft13 {
                assert_eq!(frame["raw"]["length"], bytes.len(), "{frame}");
            }
        }
    }
}

#[test]
fn the_checker_finds_what_is_wrong() {
    let rules = rules(Schema::V03);
    let right =
        json!({ "frame_type": "max_streams", "stream_type": "bidirectional", "maximum": 4 });
    assert_eq!(rules.check("$QuicFrame", &right), Ok(()));
    let changes = [
        ("maximum", json!(-1)),
        ("maximum", Value::Null),
        ("stream_type", json!("both")),
        ("frame_type", json!("max_stream")),
        ("stream_id", json!(4)),
    ];
    for (key, value) in changes {
        let mut wrong = right.clone();
        wrong[key] = value;
        assert!(rules.check("$QuicFrame", &wrong).is_err(), "{wrong}");
    }
    assert!(rules.check("hexstring", &json!("0aF")).is_err());
    assert!(rules.check("uint16", &json!(65536)).is_err());
    assert!(rules.check("AckRange", &json!([1, 2, 3])).is_err());
}

#[test]
fn frames_tell_their_fields() {
    let frame = |bytes: &[u8], schema| logged(bytes, schema).0.remove(0);
    let v03 = |bytes: &[u8]| frame(bytes, Schema::V03);
    let ack = v03(&[2, 10, 2, 1, 0, 3, 2]);
    assert_eq!(ack["acked_ranges"], json!([[10, 10], [3, 5]]));
    assert_eq!(ack["ack_delay"], json!(0.016));
    let stream = v03(&[0x0f, 4, 20, 3, 1, 2, 3]);
    let expected = json!({
        "frame_type": "stream", "stream_id": 4, "offset": 20, "length": 3, "fin": true
    });
    assert_eq!(stream, expected);
    let alert = [0x1c, 0x41, 0x28, 0, 0];
    assert_eq!(v03(&alert)["error_code"], 0x128);
    let close = frame(&alert, Schema::Draft13);
    assert_eq!(close["error"], "crypto_error_0x128");
    let close = frame(&[0x1c, 0x3f, 0, 0], Schema::Draft13);
    assert_eq!(
        (&close["error"], &close["error_code"]),
        (&json!("unknown"), &json!(0x3f))
    );
}

#[test]
fn a_packet_of_many_frames_tells_how_many_are_left_out() {
    let (frames, omitted) = logged(&[1; 1000], Schema::V03);
    assert_eq!((frames.len(), omitted), (64, 936));
}

#[test]
fn numbers_that_javascript_rounds_are_texts() {
    let value = written(|object| {
        object.uint("exact", (1 << 53) - 1);
        object.uint("rounded", u64::MAX);
        object.ms("whole", Duration::from_secs(2));
        object.ms("fraction", Duration::from_nanos(2_005_999));
    });
    let expected = json!({
        "exact": 9_007_199_254_740_991_u64,
        "rounded": "18446744073709551615",
        "whole": 2000,
        "fraction": 2.005,
    });
    assert_eq!(value, expected);
}

#[test]
fn texts_of_a_peer_cannot_end_a_record() {
    let hostile = "\"}\u{1e}\n\\ \u{0}\u{7f} é \u{2028}";
    let mut out = Vec::new();
    Object::write(&mut out, |object| object.text("reason", hostile));
    assert!(!out.contains(&0x1e) && !out.contains(&b'\n'));
    let value: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(value["reason"], hostile);
    assert!(frames::shortened(&[b'x'; 9000]).len() < 600);
}

#[test]
fn codes_without_a_name_are_numbers() {
    let value = |schema| {
        written(|object| {
            frames::write_code(object, "error", Code(0x4242), NumberKey::of(schema));
        })
    };
    assert_eq!(value(Schema::V03), json!({ "error": 0x4242 }));
    let expected = json!({ "error": "unknown", "error_code": 0x4242 });
    assert_eq!(value(Schema::Draft13), expected);
}

#[test]
fn dates_are_those_of_the_calendar() {
    let shown = |seconds, millis| {
        let at = Duration::from_secs(seconds) + Duration::from_millis(millis);
        WallClock::at(at).to_string()
    };
    assert_eq!(shown(0, 0), "1970-01-01T00:00:00.000Z");
    assert_eq!(shown(951_782_400, 7), "2000-02-29T00:00:00.007Z");
    assert_eq!(shown(1_709_251_199, 999), "2024-02-29T23:59:59.999Z");
    assert_eq!(shown(4_107_542_400, 0), "2100-03-01T00:00:00.000Z");
}

/// A client chooses the id in the name of its log, and may use the same one for all its
/// connections, even after the server was restarted.
#[test]
fn a_client_that_repeats_its_connection_id_suppresses_no_log() {
    let path = std::env::temp_dir().join(format!("hybriq-qlog-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    let counters = Counters::default();
    for start in 0..2 {
        let mut directory = Directory::open(path.clone(), 1000).unwrap();
        for log in 0..250 {
            let piece = Piece {
                log,
                opening: Some(Opening {
                    name: "0011223344556677_server".to_owned(),
                    header: Vec::new(),
                }),
                records: format!("{start} {log}").into_bytes(),
                events: 1,
                is_last: true,
            };
            directory.write(&piece, &counters).unwrap();
        }
    }
    let files = std::fs::read_dir(&path).unwrap();
    let mut records: Vec<_> = files
        .map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap())
        .collect();
    records.sort();
    records.dedup();
    assert_eq!(records.len(), 500);
    std::fs::remove_dir_all(&path).unwrap();
}

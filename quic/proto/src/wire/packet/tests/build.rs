use hybriq_tls::Suite;
use proptest::{collection::vec, prelude::*};

use super::keys;
use crate::{
    owners::streams::StreamId,
    testing::pn,
    wire::{
        Reader,
        frame::{Frame, MaxData, Stream, StreamHeader},
        packet::{
            Cid, Decoded, Header, KeyPhase, Kind, OpenError, PacketBuilder, PacketNumber,
            SpinValue, Version, decode,
        },
    },
};

/// The end of a stream that begins in the same frame.
const FIRST: StreamHeader = StreamHeader {
    id: StreamId(0),
    offset: 0,
    fin: true,
};

const SUITE: Suite = Suite::Aes128GcmSha256;

fn long(kind: Kind, token: &[u8]) -> Header<'_> {
    let (dcid, scid) = (Cid::from([1; 8]), Cid::from([2; 8]));
    Header::Long {
        kind,
        version: Version::V1,
        dcid,
        scid,
        token,
    }
}

fn short(key_phase: KeyPhase) -> Header<'static> {
    Header::Short {
        dcid: Cid::from([1; 8]),
        spin: SpinValue::Zero,
        key_phase,
    }
}

/// Opens the only packet of a datagram: its number, key phase and payload.
fn open(datagram: &mut [u8], largest: Option<u64>) -> Result<(u64, KeyPhase, Vec<u8>), OpenError> {
    let (Decoded::Protected(packet), rest) = decode(datagram, 8).expect("a packet") else {
        panic!("not protected")
    };
    assert!(rest.is_empty());
    let packet = packet
        .unprotect(&keys(SUITE).header, largest.map(pn))
        .expect("a sample");
    let (pn, key_phase) = (packet.pn, packet.key_phase);
    let payload = packet.open(&keys(SUITE).packet)?;
    Ok((pn.get(), key_phase, payload.to_vec()))
}

#[test]
fn the_shortest_packet_has_a_sample() {
    for header in [short(KeyPhase::Zero), long(Kind::Handshake, b"")] {
        for pn in [0, 300, 70_000, 1 << 40] {
            let mut buffer = [0xee; 100];
            let mut packet =
                PacketBuilder::begin(&mut buffer, &header, PacketNumber::saturating(pn), None)
                    .expect("room");
            assert!(packet.frames().ping());
            let len = packet.finish(1, &keys(SUITE));
            let (_, _, payload) = open(&mut buffer[..len], pn.checked_sub(1)).expect("opens");
            assert_eq!(payload[0], 1);
            assert!(
                payload[1..].iter().all(|byte| *byte == 0),
                "padded with PADDING"
            );
        }
    }
}

#[test]
fn a_packet_is_padded_to_the_size_asked_for_or_its_buffer() {
    for (space, pad_to, expected) in [
        (1500, 1200, 1200),
        (1500, 0, 62),
        (1100, 1200, 1100),
        (1200, 1200, 1200),
    ] {
        let mut buffer = vec![0xee; space];
        let header = long(Kind::Initial, b"token");
        let mut packet = PacketBuilder::begin(&mut buffer, &header, pn(0), None).expect("room");
        let mut frames = packet.frames();
        assert!(frames.write(&MaxData { max: 1 << 40 }));
        frames.pad(5);
        let frames_len = frames.len();
        assert_eq!(packet.overhead() + frames_len, 62);
        let len = packet.finish_padded(frames_len, pad_to, &keys(SUITE));
        assert_eq!(len, expected);
        assert!(
            buffer[len..].iter().all(|byte| *byte == 0xee),
            "nothing behind is touched"
        );
        let (_, _, payload) = open(&mut buffer[..len], None).expect("opens");
        let mut reader = Reader::new(&payload);
        assert_eq!(
            Frame::decode(&mut reader),
            Ok(Frame::MaxData(MaxData { max: 1 << 40 }))
        );
        assert_eq!(
            Frame::decode(&mut reader),
            Ok(Frame::Padding(payload.len() - 9))
        );
    }
}

#[test]
fn frames_can_fill_the_packet_to_the_last_byte() {
    for header in [short(KeyPhase::One), long(Kind::Initial, b"token")] {
        let mut buffer = [0; 1200];
        let mut packet =
            PacketBuilder::begin(&mut buffer, &header, pn(9), Some(pn(8))).expect("room");
        let overhead = packet.overhead();
        let mut frames = packet.frames();
        assert_eq!(frames.len() + frames.remaining() + overhead, 1200);
        let written = frames.stream(FIRST, 5000, |bytes| bytes.fill(b'x'));
        let frames_len = frames.len();
        assert_eq!(packet.finish(frames_len, &keys(SUITE)), 1200);
        let (pn, _, payload) = open(&mut buffer, Some(8)).expect("opens");
        assert_eq!(pn, 9);
        let data = vec![b'x'; written.expect("room")];
        let expected = Stream {
            id: StreamId(0),
            offset: 0,
            fin: false,
            data: &data,
        };
        assert_eq!(
            Frame::decode(&mut Reader::new(&payload)),
            Ok(Frame::Stream(expected))
        );
    }
}

#[test]
fn a_long_packet_stays_within_its_two_byte_length() {
    let mut buffer = vec![0; 60_000];
    let header = long(Kind::Handshake, b"");
    let packet = PacketBuilder::begin(&mut buffer, &header, pn(0), None).expect("room");
    let len = packet.finish_padded(0, 60_000, &keys(SUITE));
    assert!((16_300..=16_410).contains(&len), "{len}");
    assert!(open(&mut buffer[..len], None).is_ok());
}

#[test]
fn there_is_no_packet_without_room_for_one() {
    for header in [short(KeyPhase::Zero), long(Kind::Initial, &[7; 100])] {
        let mut buffer = [0; 200];
        let fits = |space: &usize| {
            PacketBuilder::begin(&mut buffer[..*space], &header, pn(0), None).is_some()
        };
        let least = (0..200).find(fits).expect("200 bytes are enough");
        let mut packet =
            PacketBuilder::begin(&mut buffer[..least], &header, pn(0), None).expect("room");
        assert_eq!(packet.frames().remaining(), 4);
        let len = packet.finish(0, &keys(SUITE));
        assert!(len <= least && open(&mut buffer[..len], None).is_ok());
    }
}

/// Proves: rfc9000 17.2 reserved-bits-close
#[test]
fn reserved_bits_are_a_fault_only_in_an_authentic_packet() {
    let keys = keys(SUITE);
    for (bits, header) in [
        (&[0x08, 0x10, 0x18][..], short(KeyPhase::Zero)),
        (&[0x04, 0x08, 0x0c], long(Kind::Handshake, b"")),
    ] {
        for bit in bits {
            let mut buffer = vec![0; 60];
            let packet = PacketBuilder::begin(&mut buffer, &header, pn(0), None).expect("room");
            let header_len = packet.overhead() - 16;
            buffer[0] |= bit;
            if buffer[0] & 0x80 != 0 {
                let length = (60 - header_len + 1) as u8;
                buffer[header_len - 3..header_len - 1].copy_from_slice(&[0x40, length]);
            }
            let (head, behind) = buffer.split_at_mut(header_len);
            let (payload, tag) = behind.split_last_chunk_mut().expect("a tag");
            keys.packet.seal(pn(0), head, payload, tag).expect("sealed");
            let sample = *buffer[header_len + 3..].first_chunk().expect("a sample");
            let (first, rest) = buffer.split_first_mut().expect("a header");
            keys.header
                .protect(first, &mut rest[header_len - 2..header_len - 1], &sample);

            assert_eq!(
                open(&mut buffer.clone(), None),
                Err(OpenError::ReservedBits)
            );
            buffer[59] ^= 1;
            assert_eq!(open(&mut buffer, None), Err(OpenError::Undecryptable));
        }
    }
}

proptest! {
    #[test]
    fn packets_survive_the_wire(
        kind in prop::sample::select(&Kind::ALL[..]),
        token in vec(any::<u8>(), 0..100),
        acked in 0..1_u64 << 61,
        ahead in 1_u64..1 << 31,
        shift in 0_u32..31,
        one: bool,
        payload in vec(any::<u8>(), 0..1000),
    ) {
        let key_phase = if one { KeyPhase::One } else { KeyPhase::Zero };
        let header = if kind == Kind::OneRtt { short(key_phase) } else { long(kind, &token) };
        let number = pn(acked + (ahead >> shift).max(1));
        let mut buffer = vec![0xee; 1300];
        let mut packet =
            PacketBuilder::begin(&mut buffer, &header, number, Some(pn(acked))).expect("room");
        prop_assert_eq!(packet.pn(), number);
        let written = packet.frames().stream(FIRST, payload.len(), |bytes| {
            bytes.copy_from_slice(&payload);
        });
        prop_assert_eq!(written, Some(payload.len()));
        let frames_len = 1 + 1 + if payload.len() < 64 { 1 } else { 2 } + payload.len();
        let len = packet.finish(frames_len, &keys(SUITE));
        let (read_pn, read_phase, read) = open(&mut buffer[..len], Some(acked)).expect("opens");
        prop_assert_eq!(read_pn, number.get());
        if kind == Kind::OneRtt {
            prop_assert_eq!(read_phase, key_phase);
        }
        let expected = Stream { id: StreamId(0), offset: 0, fin: true, data: &payload };
        prop_assert_eq!(Frame::decode(&mut Reader::new(&read)), Ok(Frame::Stream(expected)));
    }
}

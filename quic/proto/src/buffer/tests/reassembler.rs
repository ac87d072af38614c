use proptest::prelude::*;

use crate::{
    buffer::{Exceeded, Reassembler},
    wire::limits,
};

/// The byte of the test stream at an offset.
fn byte(offset: u64) -> u8 {
    (offset ^ offset >> 8 ^ offset >> 16) as u8
}

fn bytes(offset: u64, len: usize) -> Vec<u8> {
    (offset..).take(len).map(byte).collect()
}

fn unbounded() -> Reassembler {
    Reassembler::new(u64::MAX, usize::MAX)
}

fn read(data: &mut Reassembler, len: usize) -> Vec<u8> {
    let mut buffer = vec![0; len];
    let len = data.read(&mut buffer);
    buffer.truncate(len);
    buffer
}

/// Proves: rfc9000 2.2 data-is-delivered-in-order
#[test]
fn pieces_that_arrive_back_to_front_are_read_in_order() {
    let mut data = unbounded();
    for offset in (0..100).rev() {
        assert_eq!(data.readable(), 0);
        data.insert(offset * 10, &bytes(offset * 10, 10)).unwrap();
    }
    assert_eq!(data.readable(), 1000);
    assert_eq!(read(&mut data, 2000), bytes(0, 1000));
    assert_eq!((data.consumed(), data.pieces()), (1000, 0));
}

#[test]
fn bytes_that_were_read_are_not_read_again() {
    let mut data = unbounded();
    data.insert(0, &bytes(0, 100)).unwrap();
    assert_eq!(read(&mut data, 60), bytes(0, 60));
    data.insert(0, &bytes(0, 100)).unwrap();
    data.insert(50, &bytes(50, 70)).unwrap();
    assert_eq!(read(&mut data, 200), bytes(60, 60));
}

#[test]
fn a_piece_over_several_gaps_fills_them_all() {
    let mut data = unbounded();
    for offset in [20, 40, 60] {
        data.insert(offset, &bytes(offset, 5)).unwrap();
    }
    data.insert(10, &bytes(10, 80)).unwrap();
    assert_eq!((data.readable(), data.pieces()), (0, 1));
    data.insert(0, &bytes(0, 10)).unwrap();
    assert_eq!(read(&mut data, 200), bytes(0, 90));
}

#[test]
fn more_gaps_than_allowed_are_refused_and_filled_ones_are_not() {
    let mut data = Reassembler::new(u64::MAX, limits::CRYPTO_PIECES);
    for piece in 0..limits::CRYPTO_PIECES as u64 {
        data.insert(10 + piece * 10, &[0]).unwrap();
    }
    assert_eq!(data.insert(5, &[0]), Err(Exceeded::Pieces));
    assert_eq!(data.pieces(), limits::CRYPTO_PIECES);
    data.insert(11, &[0; 9]).unwrap();
    data.insert(0, &[0; 3]).unwrap();
    data.insert(5, &[0]).unwrap();
}

#[test]
fn bytes_beyond_the_bound_are_refused_until_others_were_read() {
    let mut data = Reassembler::new(100, 10);
    assert_eq!(data.insert(90, &[0; 11]), Err(Exceeded::Bytes));
    data.insert(0, &[0; 100]).unwrap();
    assert_eq!(data.insert(100, &[0]), Err(Exceeded::Bytes));
    read(&mut data, 10);
    data.insert(100, &[0; 10]).unwrap();
}

#[test]
fn an_offset_at_the_end_of_all_numbers_does_no_harm() {
    let mut data = unbounded();
    data.insert(u64::MAX - 1, &[0]).unwrap();
    assert_eq!(
        Reassembler::new(1 << 62, 10).insert(u64::MAX, &[0; 10]),
        Err(Exceeded::Bytes)
    );
}

#[test]
fn a_stream_of_one_byte_takes_little_memory() {
    let mut data = unbounded();
    data.insert(0, &[0]).unwrap();
    assert!(data.capacity() <= 64, "{}", data.capacity());
}

#[test]
fn a_reader_that_keeps_up_uses_one_chunk() {
    let mut data = unbounded();
    for packet in 0..10_000 {
        data.insert(packet * 1100, &[0; 1100]).unwrap();
        assert_eq!(read(&mut data, 4096).len(), 1100);
    }
    assert!(data.capacity() <= 4096, "{}", data.capacity());
}

/// Proves: security 2 pieces-cost-memory-in-proportion
#[test]
fn memory_stays_in_proportion_to_the_bytes_in_any_order() {
    let orders: [fn(u64) -> u64; 4] = [
        |step| step,
        |step| 20_000 - step,
        // Every other byte first, then those between.
        |step| step * 2 % 20_001,
        // Pairs in the wrong order.
        |step| step ^ 1,
    ];
    for (number, order) in orders.into_iter().enumerate() {
        let mut data = unbounded();
        data.insert(0, &vec![0; 40_000]).unwrap();
        read(&mut data, 40_000);
        for step in 0..20_000 {
            data.insert(40_000 + order(step), &[0]).unwrap();
        }
        // The bytes, at most the same again for growth, and one chunk to grow into.
        assert!(
            data.capacity() <= 2 * 20_000 + 64 * 1024,
            "order {number}: {}",
            data.capacity()
        );
    }
}

#[test]
fn chunks_share_memory_with_the_reassembler() {
    let mut data = unbounded();
    data.insert(0, &bytes(0, 1000)).unwrap();
    data.insert(1000, &bytes(1000, 1000)).unwrap();
    let mut all = Vec::new();
    while let Some(chunk) = data.read_chunk(300) {
        assert!(chunk.len() <= 300);
        all.extend_from_slice(&chunk);
    }
    assert_eq!(all, bytes(0, 2000));
    data.insert(2000, &bytes(2000, 10)).unwrap();
    assert_eq!(
        read(&mut data, 100),
        bytes(2000, 10),
        "data goes on behind what was taken out"
    );
}

#[derive(Clone, Debug)]
enum Step {
    Insert(u64, usize),
    Read(usize),
    Chunk(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0u64..3000, 0usize..400).prop_map(|(offset, len)| Step::Insert(offset, len)),
        2 => (0u64..8000, 0usize..4000).prop_map(|(offset, len)| Step::Insert(offset, len)),
        1 => (0usize..2000).prop_map(Step::Read),
        1 => (1usize..2000).prop_map(Step::Chunk),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn a_reassembler_yields_every_byte_once_and_in_order(
        steps in prop::collection::vec(step(), 0..80),
    ) {
        let mut data = unbounded();
        let mut held = vec![false; 12_288];
        let mut consumed = 0;
        for step in steps {
            match step {
                Step::Insert(offset, len) => {
                    data.insert(offset, &bytes(offset, len)).unwrap();
                    held[offset as usize..offset as usize + len].fill(true);
                }
                Step::Read(len) => {
                    let out = read(&mut data, len);
                    prop_assert_eq!(&out, &bytes(consumed as u64, out.len()));
                    prop_assert!(out.len() == len || data.readable() == 0);
                    consumed += out.len();
                }
                Step::Chunk(max) => {
                    let out = data.read_chunk(max).unwrap_or_default();
                    prop_assert_eq!(&out[..], &bytes(consumed as u64, out.len())[..]);
                    prop_assert!(out.len() <= max);
                    consumed += out.len();
                }
            }
            prop_assert_eq!(data.consumed(), consumed as u64);
            let readable = held[consumed..].iter().take_while(|held| **held).count();
            prop_assert_eq!(data.readable(), readable);
            let behind = &held[consumed + readable..];
            let runs = behind.windows(2).filter(|pair| !pair[0] && pair[1]).count();
            prop_assert_eq!(data.pieces(), runs);
        }
    }
}

/// Frames without data, of streams or of the handshake, take no space, wherever they lie.
#[test]
fn empty_pieces_hold_nothing() {
    for unordered in [false, true] {
        let mut data = Reassembler::new(u64::MAX, 2);
        if unordered {
            assert_eq!(data.read_unordered(1, u64::MAX), None);
        }
        for offset in (0..20_000).step_by(2) {
            assert_eq!(data.insert(offset, &[]), Ok(()));
        }
        assert_eq!((data.pieces(), data.readable()), (0, 0));
        assert!(data.ahead.is_empty());
    }
}

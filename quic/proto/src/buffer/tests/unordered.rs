//! Unordered reads of a reassembler, against a model.

use proptest::prelude::*;

use crate::buffer::{Exceeded, Reassembler};

const SIZE: usize = 4096;

fn bytes(offset: u64, len: usize) -> Vec<u8> {
    (offset..)
        .take(len)
        .map(|at| (at * 7 % 251) as u8)
        .collect()
}

/// Reads everything, and marks it; no byte may be read twice.
fn drain(data: &mut Reassembler, max: usize, count: usize, read: &mut [bool]) {
    for _ in 0..count {
        let Some((offset, chunk)) = data.read_unordered(max, u64::MAX) else {
            return;
        };
        assert!(!chunk.is_empty() && chunk.len() <= max);
        assert_eq!(chunk[..], bytes(offset, chunk.len())[..]);
        for byte in &mut read[offset as usize..offset as usize + chunk.len()] {
            assert!(!*byte, "byte read twice, near {offset}");
            *byte = true;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn unordered_reads_yield_every_byte_once(
        before in prop::collection::vec((0usize..3000, 0usize..400), 0..10),
        ordered in 0usize..500,
        steps in prop::collection::vec((0usize..3000, 0usize..600, 1usize..900, 0usize..4), 0..80),
    ) {
        let mut data = Reassembler::new(u64::MAX, usize::MAX);
        let (mut held, mut read) = (vec![false; SIZE], vec![false; SIZE]);
        for (offset, len) in before {
            data.insert(offset as u64, &bytes(offset as u64, len)).unwrap();
            held[offset..offset + len].fill(true);
        }
        let first = data.read_chunk(ordered).unwrap_or_default();
        read[..first.len()].fill(true);
        drain(&mut data, 1, 1, &mut read);
        for (offset, len, max, count) in steps {
            data.insert(offset as u64, &bytes(offset as u64, len)).unwrap();
            held[offset..offset + len].fill(true);
            drain(&mut data, max, count, &mut read);
            let unread = held.iter().zip(&read).filter(|(held, read)| **held && !**read).count();
            prop_assert_eq!(data.readable(), unread);
            let end = held.iter().take_while(|held| **held).count();
            prop_assert_eq!(data.contiguous_end(), end as u64);
            let until = read.iter().take_while(|read| **read).count() as u64;
            prop_assert!(data.is_read_until(until) && !data.is_read_until(until + 1));
            let edges = |set: &[bool]| {
                usize::from(set[0]) + set.windows(2).filter(|pair| !pair[0] && pair[1]).count()
            };
            let unread: Vec<_> = held.iter().zip(&read).map(|(held, read)| *held && !*read).collect();
            prop_assert_eq!(data.unordered_pieces(), (edges(&unread), edges(&held)));
        }
        drain(&mut data, usize::MAX, usize::MAX, &mut read);
        prop_assert_eq!(read, held);
        prop_assert_eq!(data.readable(), 0);
    }
}

/// Inserts every second byte until one is refused.
fn gaps_until_refused(data: &mut Reassembler, drained: bool) -> u64 {
    let mut offset = 0;
    loop {
        offset += 2;
        if let Err(error) = data.insert(offset, &[1]) {
            assert_eq!(error, Exceeded::Pieces);
            return offset / 2 - 1;
        }
        while drained && data.read_unordered(10, u64::MAX).is_some() {}
    }
}

#[test]
fn separate_ranges_are_bounded_whether_they_are_read_or_not() {
    for drained in [false, true] {
        let mut data = Reassembler::new(u64::MAX, 10);
        assert_eq!(data.read_unordered(1, u64::MAX), None);
        assert_eq!(gaps_until_refused(&mut data, drained), 11);
        // Data that closes a gap is still accepted.
        assert_eq!(data.insert(0, &[1; 5]), Ok(()));
        assert_eq!(data.contiguous_end(), 5);
    }
}

#[test]
fn separate_pieces_are_bounded_within_one_range() {
    let mut data = Reassembler::new(u64::MAX, 10);
    assert_eq!(data.read_unordered(1, u64::MAX), None);
    gaps_until_refused(&mut data, true);
    assert_eq!(data.insert(0, &[1; 24]), Err(Exceeded::Pieces), "12 gaps");
    assert_eq!(data.readable(), 0, "nothing of it is held");
    assert_eq!(data.insert(0, &[1; 23]), Ok(()));
    assert_eq!(data.unordered_pieces(), (11, 1));
    assert_eq!(data.insert(30, &[1]), Err(Exceeded::Pieces));
    assert_eq!(data.readable(), 23 - 11);
}

#[test]
fn nothing_is_read_beyond_the_given_end() {
    let mut data = Reassembler::new(u64::MAX, 10);
    data.insert(3, &[1; 7]).unwrap();
    let chunk = data
        .read_unordered(100, 5)
        .map(|(at, chunk)| (at, chunk.len()));
    assert_eq!(chunk, Some((3, 2)));
    assert_eq!(data.read_unordered(100, 5), None);
    assert!(!data.is_read_until(5));
    data.insert(0, &[1; 3]).unwrap();
    let chunk = data
        .read_unordered(100, 5)
        .map(|(at, chunk)| (at, chunk.len()));
    assert_eq!(chunk, Some((0, 3)));
    assert!(data.is_read_until(5) && !data.is_read_until(6));
}

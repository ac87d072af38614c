use bytes::Bytes;
use proptest::prelude::*;

use crate::buffer::SendBuffer;

fn byte(offset: u64) -> u8 {
    (offset ^ offset >> 8) as u8
}

fn bytes(offset: u64, len: usize) -> Vec<u8> {
    (offset..).take(len).map(byte).collect()
}

fn filled(buffer: &mut SendBuffer, offset: u64, len: usize) -> Vec<u8> {
    let mut target = vec![0; len];
    buffer.fill(offset, &mut target);
    target
}

#[test]
fn small_writes_share_a_chunk() {
    let mut buffer = SendBuffer::new();
    for offset in 0..1000 {
        buffer.write(&[byte(offset)]);
    }
    assert!(buffer.chunks() <= 5, "{}", buffer.chunks());
    assert_eq!(filled(&mut buffer, 0, 1000), bytes(0, 1000));
}

#[test]
fn a_large_chunk_is_not_copied() {
    let mut buffer = SendBuffer::new();
    let data = Bytes::from(bytes(0, 100_000));
    buffer.push(data.clone());
    assert!(!data.is_unique(), "the buffer holds the same memory");
    buffer.on_sent(0..100_000);
    buffer.on_acked(0..100_000);
    assert!(data.is_unique(), "it is dropped once acknowledged");
}

#[test]
fn acknowledged_chunks_are_freed_in_any_order() {
    let mut buffer = SendBuffer::new();
    for _ in 0..10 {
        buffer.push(Bytes::from(vec![0; 1000]));
    }
    buffer.on_sent(0..10_000);
    for start in (0..10).rev().map(|chunk| chunk * 1000) {
        assert_eq!(buffer.chunks(), 10);
        assert_eq!(buffer.held(), 10_000);
        buffer.on_acked(start..start + 1000);
    }
    assert_eq!((buffer.chunks(), buffer.held()), (0, 0));
    assert!(buffer.is_acked());
}

#[test]
fn what_was_lost_is_pending_before_what_is_new() {
    let mut buffer = SendBuffer::new();
    buffer.write(&[0; 1000]);
    buffer.on_sent(0..600);
    buffer.on_lost(100..300);
    assert_eq!(buffer.pending(), Some(100..300));
    buffer.on_sent(100..300);
    assert_eq!(buffer.pending(), Some(600..1000));
    buffer.on_sent(600..1000);
    assert_eq!(buffer.pending(), None);
}

#[test]
fn what_the_peer_has_is_not_sent_again() {
    let mut buffer = SendBuffer::new();
    buffer.write(&[0; 1000]);
    buffer.on_sent(0..1000);
    buffer.on_acked(200..300);
    buffer.on_lost(100..400);
    assert_eq!(buffer.lost(), Some(100..200));
    buffer.on_acked(0..250);
    assert_eq!(buffer.lost(), Some(300..400));
    buffer.on_lost(0..250);
    assert_eq!(buffer.lost(), Some(300..400));
}

#[test]
fn a_probe_sends_the_whole_flight_again() {
    let mut buffer = SendBuffer::new();
    buffer.write(&[0; 1000]);
    buffer.on_sent(0..800);
    buffer.on_acked(0..100);
    buffer.on_acked(300..400);
    buffer.retransmit_all();
    assert_eq!(buffer.pending(), Some(100..300));
    buffer.on_sent(100..300);
    assert_eq!(buffer.pending(), Some(400..800));
}

#[derive(Clone, Debug)]
enum Step {
    Write(usize),
    Push(usize),
    /// Sends up to this many pending bytes.
    Send(u64),
    /// Acknowledges one of the packets in flight.
    Ack(usize),
    Lose(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => (0usize..300).prop_map(Step::Write),
        1 => (0usize..3000).prop_map(Step::Push),
        4 => (1u64..500).prop_map(Step::Send),
        2 => any::<usize>().prop_map(Step::Ack),
        1 => any::<usize>().prop_map(Step::Lose),
    ]
}

#[test]
fn small_memory_is_used_again_by_the_buffer_and_by_another() {
    let mut buffer = SendBuffer::new();
    for _ in 0..3 {
        for start in [0, 9] {
            buffer.write(b"some data");
            assert_eq!(buffer.pending(), Some(start..start + 9));
            let mut filled = [0; 9];
            buffer.fill(start, &mut filled);
            assert_eq!(&filled, b"some data");
            buffer.on_sent(start..start + 9);
            assert_eq!((buffer.chunks(), buffer.held()), (1, 9));
            buffer.on_acked(start..start + 9);
            assert_eq!((buffer.chunks(), buffer.held()), (1, 0));
        }
        let memory = buffer.take_memory().expect("small memory");
        buffer = SendBuffer::new();
        buffer.reuse(memory);
    }
    buffer.write(&[7; 1000]);
    buffer.on_sent(0..1000);
    buffer.on_acked(0..1000);
    assert_eq!(buffer.chunks(), 0, "much memory is freed at once");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn a_send_buffer_sends_exactly_what_is_not_acknowledged(
        steps in prop::collection::vec(step(), 0..100),
    ) {
        let mut buffer = SendBuffer::new();
        let mut end = 0;
        let mut prefix = 0;
        let mut flying = Vec::new();
        let mut acked = vec![false; 300_000];
        for step in steps {
            match step {
                Step::Write(len) => {
                    buffer.write(&bytes(end, len));
                    end += len as u64;
                }
                Step::Push(len) => {
                    buffer.push(bytes(end, len).into());
                    end += len as u64;
                }
                Step::Send(max) => {
                    let Some(range) = buffer.pending() else { continue };
                    let range = range.start..range.end.min(range.start + max);
                    let len = (range.end - range.start) as usize;
                    prop_assert_eq!(filled(&mut buffer, range.start, len), bytes(range.start, len));
                    prop_assert!(acked[range.start as usize..range.end as usize].iter().all(|it| !it));
                    buffer.on_sent(range.clone());
                    flying.push(range);
                }
                Step::Ack(which) if !flying.is_empty() => {
                    let range = flying.swap_remove(which % flying.len());
                    acked[range.start as usize..range.end as usize].fill(true);
                    buffer.on_acked(range);
                }
                Step::Lose(which) if !flying.is_empty() => {
                    buffer.on_lost(flying.swap_remove(which % flying.len()));
                }
                Step::Ack(_) | Step::Lose(_) => {}
            }
            prefix += acked[prefix..].iter().take_while(|it| **it).count();
            prop_assert_eq!(buffer.held(), end - prefix as u64);
        }
        // Whatever happened, in the end everything can be sent and acknowledged.
        for range in flying {
            buffer.on_lost(range);
        }
        while let Some(range) = buffer.pending() {
            buffer.on_sent(range.clone());
            buffer.on_acked(range);
        }
        prop_assert!(buffer.is_acked());
        prop_assert!(buffer.chunks() <= 1);
        buffer.release_memory();
        prop_assert_eq!(buffer.chunks(), 0);
    }
}

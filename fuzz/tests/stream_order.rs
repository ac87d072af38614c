//! Streams of any priority, written, moved, lost and reset in any order: every byte arrives once
//! and in order, and no packet skips a more urgent stream.
#![expect(clippy::unwrap_used, reason = "a target that cannot go on has failed")]

mod streams;

use streams::{Pair, STREAMS};

#[test]
fn stream_order() {
    bolero::check!()
        .with_iterations(500)
        .with_type::<Vec<(u8, u8, u16)>>()
        .for_each(|steps| {
            let mut pair = Pair::new();
            for &(what, stream, amount) in steps {
                let stream = usize::from(stream) % STREAMS;
                match what % 8 {
                    0..=2 => pair.write(stream, usize::from(amount) % 20_000),
                    3 => pair.prioritise(stream, amount),
                    4 if amount % 8 == 0 => pair.reset(stream),
                    4 => pair.read(stream, usize::from(amount)),
                    5 => pair.lose(usize::from(amount)),
                    _ => pair.send(usize::from(amount)),
                }
            }
            pair.finish();
        });
}

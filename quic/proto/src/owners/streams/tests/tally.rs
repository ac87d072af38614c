//! Bytes that are counted for the application.

use std::sync::{Arc, Mutex};

use super::{Direction, frames, packets, pair, receive};
use crate::owners::streams::{ClosedStream, Streams, Tallied, Tally};

#[derive(Debug, Default)]
struct Counts {
    received: u64,
    consumed: u64,
    sent: Option<u64>,
}

#[derive(Debug, Default)]
struct Counter(Mutex<Counts>);

impl Tally for Counter {
    fn on_received(&self, received: u64, consumed: u64) {
        let mut counts = self.0.lock().unwrap();
        counts.received += received;
        counts.consumed += consumed;
    }

    fn on_sent(&self, final_size: u64) {
        let mut counts = self.0.lock().unwrap();
        assert_eq!(counts.sent.replace(final_size), None);
    }
}

impl Counter {
    fn counts(&self) -> (u64, u64, Option<u64>) {
        let counts = self.0.lock().unwrap();
        (counts.received, counts.consumed, counts.sent)
    }
}

/// Delivers everything, in both directions, with acknowledgements.
fn exchange(one: &mut Streams, other: &mut Streams) {
    for _ in 0..4 {
        for (payload, sent) in packets(one) {
            for frame in frames(&payload) {
                receive(other, &frame).unwrap();
            }
            crate::wire::frame::Owner::on_acked(one, &sent);
        }
        for (payload, sent) in packets(other) {
            for frame in frames(&payload) {
                receive(one, &frame).unwrap();
            }
            crate::wire::frame::Owner::on_acked(other, &sent);
        }
    }
}

#[test]
fn bytes_of_a_stream_are_counted_until_its_end() {
    let (mut client, mut server) = pair();
    let id = client.open(Direction::Uni).unwrap();
    client.write(id, &[7; 10]).unwrap();
    exchange(&mut client, &mut server);
    server.accept(Direction::Uni).unwrap();
    server.read(id, &mut [0; 4]).unwrap();

    let (there, here) = (Arc::<Counter>::default(), Arc::<Counter>::default());
    let begun = server.tally(id, &(there.clone() as _)).unwrap();
    let before = Tallied {
        received: 10,
        consumed: 4,
    };
    assert_eq!(begun, before);
    assert_eq!(
        client.tally(id, &(here.clone() as _)),
        Ok(Tallied::default())
    );
    client.write(id, &[7; 5]).unwrap();
    exchange(&mut client, &mut server);
    assert_eq!(there.counts(), (5, 0, None));
    server.read(id, &mut [0; 8]).unwrap();
    assert_eq!(there.counts(), (5, 8, None));
    // What is not read is dropped, and what comes later as well.
    server.stop(id, 0).unwrap();
    assert_eq!(there.counts(), (5, 11, None));
    client.write(id, &[7; 100]).unwrap();
    exchange(&mut client, &mut server);
    let (received, consumed, _) = there.counts();
    assert_eq!(received + 10, consumed + 4);
    client.forget_send(id, 0);
    exchange(&mut client, &mut server);
    // Both ends agree on the final size.
    assert_eq!(here.counts().2, Some(there.counts().0 + 10));
    assert_eq!(
        (Arc::strong_count(&there), Arc::strong_count(&here)),
        (1, 1)
    );
    assert_eq!(server.tally(id, &(there as _)), Err(ClosedStream));
}

/// Data that was not sent before a reset is not in the final size.
#[test]
fn a_reset_stream_has_the_size_that_was_sent() {
    let (mut client, mut server) = pair();
    let id = client.open(Direction::Uni).unwrap();
    let counter = Arc::<Counter>::default();
    client.tally(id, &(counter.clone() as _)).unwrap();
    client.write(id, &[7; 10]).unwrap();
    exchange(&mut client, &mut server);
    client.write(id, &[7; 500]).unwrap();
    client.reset_at(id, 1, 4).unwrap();
    exchange(&mut client, &mut server);
    assert_eq!(counter.counts().2, Some(10));
}

//! Forwarded datagrams that an earlier process has no room for yet.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use hybriq_proto::endpoint::Place;

use crate::restart::relay::{Letter, Relays, Unsent};

/// Largest number of bytes in the backlog.
const BYTES: usize = 4 << 20;

/// Bytes that a message counts for, in addition to its datagrams.
const OVERHEAD: usize = 256;

/// Time after which datagrams are dropped: clients have sent the data again by then.
const LIFETIME: Duration = Duration::from_millis(250);

/// Interval at which they are sent again.
const INTERVAL: Duration = Duration::from_millis(1);

/// Forwarded datagrams that an earlier process has no room for yet. Without this backlog, surviving
/// a burst would depend on how much the system queues for a local socket.
#[derive(Default)]
pub(crate) struct Held {
    messages: VecDeque<Message>,
    bytes: usize,
}

struct Message {
    to: Place,
    letter: Letter,
    datagrams: Box<[u8]>,
    since: Instant,
}

impl Message {
    /// Returns the bytes that the message counts for.
    const fn cost(&self) -> usize {
        self.datagrams.len() + OVERHEAD
    }

    /// Returns the number of datagrams.
    fn count(&self) -> u64 {
        self.datagrams.len().div_ceil(self.letter.stride.into()) as u64
    }
}

/// Numbers of datagrams that no longer wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flushed {
    pub(crate) sent: u64,
    pub(crate) dropped: u64,
}

impl Held {
    /// Returns true if none wait.
    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Returns the number of messages that wait.
    pub(crate) fn len(&self) -> usize {
        self.messages.len()
    }

    /// Returns true if datagrams for a worker are waiting, so that later ones must wait behind
    /// them.
    pub(crate) fn has(&self, to: Place) -> bool {
        self.messages.iter().any(|message| message.to == to)
    }

    /// Adds datagrams. Returns false if there is no room.
    pub(crate) fn push(
        &mut self,
        now: Instant,
        to: Place,
        letter: Letter,
        datagrams: &[u8],
    ) -> bool {
        let message = Message {
            to,
            letter,
            datagrams: datagrams.into(),
            since: now,
        };
        if self.bytes + message.cost() > BYTES {
            return false;
        }
        self.bytes += message.cost();
        self.messages.push_back(message);
        true
    }

    /// Sends as much as there is room for now, in order, and drops what is too old.
    pub(crate) fn flush(&mut self, now: Instant, relays: &Relays) -> Flushed {
        let mut flushed = Flushed::default();
        let mut full: Vec<Place> = Vec::new();
        for message in std::mem::take(&mut self.messages) {
            let sent = if full.contains(&message.to) {
                Err(Unsent::Full)
            } else {
                relays.send(message.to, message.letter, &message.datagrams)
            };
            let age = now.saturating_duration_since(message.since);
            if sent == Err(Unsent::Full) {
                full.push(message.to);
                if age < LIFETIME {
                    self.messages.push_back(message);
                    continue;
                }
            }
            self.bytes -= message.cost();
            match sent {
                Ok(()) => flushed.sent += message.count(),
                Err(_) => flushed.dropped += message.count(),
            }
        }
        flushed
    }

    /// Returns the time at which they should be sent again.
    pub(crate) fn next_timeout(&self, now: Instant) -> Option<Instant> {
        (!self.is_empty()).then(|| now + INTERVAL)
    }
}

#[cfg(all(test, any(target_os = "linux", target_os = "android")))]
mod tests {
    use std::time::Instant;

    use hybriq_proto::endpoint::{Arrival, Local, Place};

    use super::{BYTES, Flushed, Held, LIFETIME};
    use crate::restart::relay::{Inlet, Letter, Reason, Relays, pair};

    const SIZE: u16 = 1200;

    fn letter() -> Letter {
        Letter {
            arrival: Arrival {
                peer: ([192, 0, 2, 1], 1).into(),
                local: Local::default(),
                ecn: None,
            },
            reason: Reason::Id,
            stride: SIZE,
        }
    }

    fn to(generation: u8) -> Place {
        Place {
            generation,
            worker: 0,
        }
    }

    fn sent(sent: u64) -> Flushed {
        Flushed { sent, dropped: 0 }
    }

    /// A full relay delays only its own datagrams.
    #[tokio::test]
    async fn what_there_is_no_room_for_waits_in_order() {
        let now = Instant::now();
        let mut relays = Relays::default();
        let (into, slow) = pair().expect("a relay");
        relays.add(0, vec![into]);
        let (into, quick) = pair().expect("a relay");
        relays.add(1, vec![into]);
        let (mut slow, _quick) = (
            Inlet::register(slow).expect("a runtime"),
            Inlet::register(quick).expect("a runtime"),
        );
        let datagrams = |number: u8| [number; 2 * SIZE as usize];
        while relays.send(to(0), letter(), &datagrams(0)).is_ok() {}

        let mut held = Held::default();
        assert!(held.push(now, to(0), letter(), &datagrams(1)));
        assert!(held.push(now, to(1), letter(), &datagrams(2)));
        assert!(held.push(now, to(0), letter(), &datagrams(3)));
        assert!(held.has(to(0)) && held.next_timeout(now).is_some());
        assert_eq!(held.flush(now, &relays), sent(2), "the quick one");
        assert!(!held.has(to(1)));

        let mut memory = slow.take_memory();
        std::future::poll_fn(|cx| slow.poll_readable(cx)).await;
        let mut read = || {
            let message = slow.receive(&mut memory).ok().flatten();
            message.map(|(_, datagrams)| datagrams[0])
        };
        while read().is_some() {}
        assert_eq!(held.flush(now, &relays), sent(4));
        assert!(held.is_empty() && held.bytes == 0 && held.next_timeout(now).is_none());
        std::future::poll_fn(|cx| slow.poll_readable(cx)).await;
        let mut read = || {
            let message = slow.receive(&mut memory).ok().flatten();
            message.map(|(_, datagrams)| datagrams[0])
        };
        assert_eq!([read(), read(), read()], [Some(1), Some(3), None]);
    }

    #[test]
    fn what_waits_is_bounded_in_bytes_and_in_time() {
        let now = Instant::now();
        let mut relays = Relays::default();
        let (into, _stopped) = pair().expect("a relay");
        relays.add(0, vec![into]);
        while relays.send(to(0), letter(), &[0; SIZE as usize]).is_ok() {}
        let mut held = Held::default();
        let mut count = 0;
        while held.push(now, to(0), letter(), &[0; SIZE as usize]) {
            count += 1;
        }
        assert!(held.bytes <= BYTES && held.bytes > BYTES - 2 * usize::from(SIZE));
        assert_eq!(held.flush(now, &relays), sent(0));
        let late = held.flush(now + LIFETIME, &relays);
        let dropped = Flushed {
            sent: 0,
            dropped: count,
        };
        assert_eq!((late, held.bytes), (dropped, 0));
    }
}

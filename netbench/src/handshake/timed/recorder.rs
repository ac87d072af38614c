//! Recorder for the operations inside a handshake, in a thread-local: TLS libraries call crypto
//! synchronously and pass no context.
//!
//! ```text
//!   Session::drive ─► rustls ─► timed crypto ─► aws-lc-rs
//!        ▲                          │ marks, operations
//!        └─ start(what) … take() ─ recorder (this thread)
//! ```

use std::cell::RefCell;
use std::time::{Duration, Instant};

/// Operations that rustls requests from its crypto provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    EcdhKeyGeneration,
    EcdhAgreement,
    KemKeyGeneration,
    KemEncapsulation,
    KemDecapsulation,
    Signing,
    HandshakeVerification,
    ChainVerification,
    KeyDerivation,
    TranscriptHash,
    Randomness,
}

impl Operation {
    /// All operations, in the order of tables.
    pub(crate) const ALL: [Self; 11] = [
        Self::EcdhKeyGeneration,
        Self::EcdhAgreement,
        Self::KemKeyGeneration,
        Self::KemEncapsulation,
        Self::KemDecapsulation,
        Self::Signing,
        Self::HandshakeVerification,
        Self::ChainVerification,
        Self::KeyDerivation,
        Self::TranscriptHash,
        Self::Randomness,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::EcdhKeyGeneration => "ECDH key generation",
            Self::EcdhAgreement => "ECDH agreement",
            Self::KemKeyGeneration => "KEM key generation",
            Self::KemEncapsulation => "KEM encapsulation",
            Self::KemDecapsulation => "KEM decapsulation",
            Self::Signing => "sign",
            Self::HandshakeVerification => "verify CertificateVerify",
            Self::ChainVerification => "verify chain",
            Self::KeyDerivation => "HKDF",
            Self::TranscriptHash => "transcript hash",
            Self::Randomness => "random numbers",
        }
    }
}

/// Count and total time of an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) count: u32,
    pub(crate) time: Duration,
}

/// Tallies of all operations, in the order of [`Operation::ALL`].
pub(crate) type Tallies = [Tally; Operation::ALL.len()];

/// A moment between two messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A whole handshake message of this type was added to the transcript (RFC 8446 §4).
    Hashed(u8),
    /// A key was derived.
    Derived,
}

/// Events to record. Recording all at once would add the cost of some to the times of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watch {
    Nothing,
    Messages,
    Operations,
}

/// All notes since [`start`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Notes {
    pub(crate) events: Vec<(Instant, Event)>,
    pub(crate) operations: Tallies,
}

struct Recorder {
    watch: Watch,
    notes: Notes,
}

thread_local! {
    static RECORDER: RefCell<Recorder> = RefCell::new(Recorder {
        watch: Watch::Nothing,
        notes: Notes::default(),
    });
}

/// Starts to take notes on this thread, and forgets earlier ones.
pub(crate) fn start(watch: Watch) {
    RECORDER.with_borrow_mut(|recorder| {
        recorder.watch = watch;
        recorder.notes.events.clear();
        recorder.notes.operations = Tallies::default();
    });
}

/// Stops to take notes and returns them.
pub(crate) fn take() -> Notes {
    RECORDER.with_borrow_mut(|recorder| {
        recorder.watch = Watch::Nothing;
        std::mem::take(&mut recorder.notes)
    })
}

/// Runs an operation, and times it if operations are watched.
pub(crate) fn timed<T>(operation: Operation, work: impl FnOnce() -> T) -> T {
    let watch = RECORDER.with_borrow(|recorder| recorder.watch);
    if watch != Watch::Operations {
        let result = work();
        if operation == Operation::KeyDerivation {
            note(Event::Derived);
        }
        return result;
    }
    let started = Instant::now();
    let result = work();
    let time = started.elapsed();
    RECORDER.with_borrow_mut(|recorder| {
        let tallies = Operation::ALL.iter().zip(&mut recorder.notes.operations);
        for (_, tally) in tallies.filter(|(of, _)| **of == operation) {
            tally.count += 1;
            tally.time += time;
        }
    });
    result
}

/// Notes an event if messages are watched.
pub(crate) fn note(event: Event) {
    RECORDER.with_borrow_mut(|recorder| {
        if recorder.watch == Watch::Messages {
            recorder.notes.events.push((Instant::now(), event));
        }
    });
}

/// Returns the time that timing adds to an operation, measured with an empty one.
pub(crate) fn cost_of_timing() -> Duration {
    const TIMES: u32 = 10_000;
    start(Watch::Operations);
    for _ in 0..TIMES {
        timed(Operation::Randomness, || ());
    }
    take()
        .operations
        .iter()
        .map(|tally| tally.time)
        .sum::<Duration>()
        / TIMES
}

#[cfg(test)]
mod tests {
    use super::{Event, Operation, Watch, note, start, take, timed};

    #[test]
    fn only_what_is_watched_is_noted() {
        let work = || {
            timed(Operation::Signing, || ());
            timed(Operation::KeyDerivation, || ());
            note(Event::Hashed(1));
            take()
        };
        start(Watch::Nothing);
        let nothing = work();
        assert!(nothing.events.is_empty() && nothing.operations.iter().all(|it| it.count == 0));
        start(Watch::Messages);
        let events: Vec<_> = work().events.into_iter().map(|(_, event)| event).collect();
        assert_eq!(events, [Event::Derived, Event::Hashed(1)]);
        start(Watch::Operations);
        let operations = work();
        assert!(operations.events.is_empty());
        assert_eq!(
            operations.operations.iter().map(|it| it.count).sum::<u32>(),
            2
        );
    }
}

//! The CRYPTO streams of all encryption levels, and clients that repeat their ClientHello.

use bytes::BytesMut;
use hybriq_tls::{Level, PerLevel};

use super::stream::CryptoStream;
use crate::stats::census::Census;

/// The CRYPTO streams of all encryption levels. Those of the handshake take memory only while they
/// are in use; an absent stream equals one that never carried anything.
#[derive(Default)]
pub(in crate::owners::handshake) struct Flights {
    initial: Option<Box<CryptoStream>>,
    handshake: Option<Box<CryptoStream>>,
    one_rtt: CryptoStream,
}

impl Flights {
    /// Returns the stream of a level, if it is in use.
    #[inline]
    pub(in crate::owners::handshake) fn get(&self, level: Level) -> Option<&CryptoStream> {
        match level {
            Level::Initial => self.initial.as_deref(),
            Level::Handshake => self.handshake.as_deref(),
            Level::ZeroRtt | Level::OneRtt => Some(&self.one_rtt),
        }
    }

    /// Returns the stream of a level, if it is in use.
    #[inline]
    pub(in crate::owners::handshake) fn get_mut(
        &mut self,
        level: Level,
    ) -> Option<&mut CryptoStream> {
        match level {
            Level::Initial => self.initial.as_deref_mut(),
            Level::Handshake => self.handshake.as_deref_mut(),
            Level::ZeroRtt | Level::OneRtt => Some(&mut self.one_rtt),
        }
    }

    /// Returns the stream of a level, which is in use from now on.
    pub(in crate::owners::handshake) fn begin(&mut self, level: Level) -> &mut CryptoStream {
        match level {
            Level::Initial => self.initial.get_or_insert_default(),
            Level::Handshake => self.handshake.get_or_insert_default(),
            Level::ZeroRtt | Level::OneRtt => &mut self.one_rtt,
        }
    }

    /// Drops what a level holds.
    pub(in crate::owners::handshake) fn discard(&mut self, level: Level) {
        match level {
            Level::Initial => self.initial = None,
            Level::Handshake => self.handshake = None,
            Level::ZeroRtt | Level::OneRtt => self.one_rtt = CryptoStream::default(),
        }
    }

    /// Drops everything but the stream of the Handshake level.
    pub(in crate::owners::handshake) fn keep_handshake(&mut self) {
        self.discard(Level::Initial);
        self.discard(Level::OneRtt);
    }

    pub(in crate::owners::handshake) fn has_input(&self) -> bool {
        self.in_use().any(CryptoStream::has_input)
    }

    fn in_use(&self) -> impl Iterator<Item = &CryptoStream> {
        let early = [&self.initial, &self.handshake].into_iter();
        let early = early.filter_map(Option::as_deref);
        early.chain([&self.one_rtt])
    }

    /// Takes the contiguous data of all levels that TLS has not consumed.
    pub(in crate::owners::handshake) fn take_input(&mut self) -> PerLevel<BytesMut> {
        let mut input = PerLevel::default();
        for level in [Level::Initial, Level::Handshake, Level::OneRtt] {
            if let Some(stream) = self.get_mut(level) {
                input[level] = stream.take_input();
            }
        }
        input
    }

    /// Puts the bytes that TLS did not consume back to the front.
    pub(in crate::owners::handshake) fn put_back(&mut self, mut input: PerLevel<BytesMut>) {
        for level in [Level::Initial, Level::Handshake, Level::OneRtt] {
            if let Some(stream) = self.get_mut(level) {
                stream.put_back(std::mem::take(&mut input[level]));
            }
        }
    }

    /// Counts the handshake messages that are held.
    pub(in crate::owners::handshake) fn census(&self, census: &mut Census) {
        let Self {
            initial,
            handshake,
            one_rtt,
        } = self;
        for stream in [initial, handshake].into_iter().flatten() {
            stream.census(census);
        }
        one_rtt.census(census);
    }

    /// Releases memory that is not used now.
    pub(in crate::owners::handshake) fn release_memory(&mut self) {
        for level in [Level::Initial, Level::Handshake, Level::OneRtt] {
            if let Some(stream) = self.get_mut(level) {
                stream.release_memory();
            }
        }
    }

    /// Queues the unacknowledged flights of the handshake again.
    pub(in crate::owners::handshake) fn send_again(&mut self) {
        let streams = [&mut self.initial, &mut self.handshake];
        for stream in streams.into_iter().flatten() {
            stream.send_again();
        }
    }
}

/// Number of times per connection that a server repeats its flight because the client repeats its
/// own.
const ANSWERS: u8 = 3;

/// A client's repetitions of its ClientHello: the client may be missing the server's flight, which
/// may be sent again before its timeout, for a limited number of times (RFC 9002 §6.2.3).
pub(crate) struct Repetitions {
    came: bool,
    answers: u8,
}

impl Default for Repetitions {
    fn default() -> Self {
        Self {
            came: false,
            answers: ANSWERS,
        }
    }
}

impl Repetitions {
    /// Notes whether a frame is a repetition.
    pub(in crate::owners::handshake) fn note(&mut self, repeated: bool) {
        self.came |= repeated;
    }

    /// Returns true if a repetition arrived since the last call, and may be answered.
    pub(crate) fn take(&mut self) -> bool {
        std::mem::take(&mut self.came) && self.answers > 0
    }

    /// Notes that the flight is sent again.
    pub(crate) fn on_answered(&mut self) {
        self.answers -= 1;
    }
}

//! Clients that repeat their ClientHello.

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

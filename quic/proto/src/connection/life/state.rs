//! The life cycle of a connection.

use std::time::Instant;

use crate::events::ConnectionState;

/// The life of a connection (RFC 9000 §10).
///
/// ```text
///              TLS complete     HANDSHAKE_DONE (client), complete (server)
/// Handshaking ─────────► Complete ─────────► Confirmed
///      │                    │                   │
///      ├────────────────────┴───────────────────┤
///      │ we close                               │ the peer closes
///      ▼                                        ▼
///   Closing                                  Draining
///      │ 3 PTO, or the peer's close or reset    │ 3 PTO
///      ▼                                        ▼
///   Drained ◄───────────────────────────────────┘   (also: idle timeout)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::connection) struct State(Inner);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Inner {
    Handshaking,
    Complete,
    Confirmed,
    Closing { until: Instant },
    Draining { until: Instant },
    Drained,
}

impl State {
    pub(in crate::connection) const fn new() -> Self {
        Self(Inner::Handshaking)
    }

    pub(in crate::connection) const fn is_handshaking(self) -> bool {
        matches!(self.0, Inner::Handshaking)
    }

    pub(in crate::connection) const fn is_confirmed(self) -> bool {
        matches!(self.0, Inner::Confirmed)
    }

    /// Returns the state that a subscriber sees.
    pub(in crate::connection) const fn observed(self) -> ConnectionState {
        match self.0 {
            Inner::Handshaking => ConnectionState::Handshaking,
            Inner::Complete => ConnectionState::Complete,
            Inner::Confirmed => ConnectionState::Confirmed,
            Inner::Closing { .. } => ConnectionState::Closing,
            Inner::Draining { .. } => ConnectionState::Draining,
            Inner::Drained => ConnectionState::Closed,
        }
    }

    /// Returns true until either end closes the connection.
    pub(in crate::connection) const fn is_open(self) -> bool {
        matches!(
            self.0,
            Inner::Handshaking | Inner::Complete | Inner::Confirmed
        )
    }

    pub(in crate::connection) const fn is_closed(self) -> bool {
        !self.is_open()
    }

    pub(in crate::connection) const fn is_closing(self) -> bool {
        matches!(self.0, Inner::Closing { .. })
    }

    pub(in crate::connection) const fn is_drained(self) -> bool {
        matches!(self.0, Inner::Drained)
    }

    /// Returns the time at which the closing or draining period ends.
    pub(in crate::connection) const fn ends(self) -> Option<Instant> {
        match self.0 {
            Inner::Closing { until } | Inner::Draining { until } => Some(until),
            _ => None,
        }
    }

    pub(in crate::connection) const fn on_complete(&mut self) {
        if self.is_handshaking() {
            self.0 = Inner::Complete;
        }
    }

    pub(in crate::connection) const fn on_confirmed(&mut self) {
        if matches!(self.0, Inner::Complete) {
            self.0 = Inner::Confirmed;
        }
    }

    pub(in crate::connection) const fn on_local_close(&mut self, until: Instant) {
        if self.is_open() {
            self.0 = Inner::Closing { until };
        }
    }

    /// Handles the peer's close: nothing more may be sent (RFC 9000 §10.2.2).
    pub(in crate::connection) const fn on_peer_close(&mut self, until: Instant) {
        match self.0 {
            Inner::Closing { until } => self.0 = Inner::Draining { until },
            Inner::Draining { .. } | Inner::Drained => {}
            _ => self.0 = Inner::Draining { until },
        }
    }

    pub(in crate::connection) const fn on_end(&mut self) {
        self.0 = Inner::Drained;
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::State;

    fn at(ms: u64) -> Instant {
        #[expect(clippy::disallowed_methods, reason = "a base for virtual time")]
        let base = Instant::now();
        base + Duration::from_millis(ms)
    }

    #[test]
    fn the_handshake_is_completed_before_it_is_confirmed() {
        let mut state = State::new();
        state.on_confirmed();
        assert!(state.is_handshaking());
        state.on_complete();
        assert!(!state.is_handshaking() && !state.is_confirmed());
        state.on_confirmed();
        assert!(state.is_confirmed());
        state.on_complete();
        assert!(state.is_confirmed());
    }

    #[test]
    fn a_close_of_the_peer_ends_our_sending_but_not_before_our_time() {
        let (first, second) = (at(10), at(20));
        let mut state = State::new();
        state.on_local_close(first);
        assert!(state.is_closing());
        state.on_local_close(second);
        assert_eq!(
            state.ends(),
            Some(first),
            "closing twice does not prolong it"
        );
        state.on_peer_close(second);
        assert!(!state.is_closing() && state.is_closed());
        assert_eq!(state.ends(), Some(first));
        state.on_end();
        assert!(state.is_drained());
        state.on_peer_close(second);
        state.on_local_close(second);
        assert!(state.is_drained(), "nothing revives a drained connection");
    }
}

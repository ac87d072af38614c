//! States of one path and their transitions.

pub(super) mod validation;

use std::time::Instant;

use super::Expanded;

/// State of a path. The diagram is in the documentation of [`super`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum State {
    /// The peer sent from there, and is being challenged.
    Heard,
    /// The path was validated and is no longer needed.
    Left {
        /// Time at which the path is forgotten.
        until: Instant,
    },
    /// The path is to be used once the peer answers on it.
    Candidate,
    /// The path in use.
    Active,
    /// The last validated path, used again if the one in use fails (RFC 9000 §9.3.2).
    Fallback,
}

/// Event on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The peer answered a challenge. A path that is not needed is kept until this time.
    Answered(Expanded, Instant),
    /// The peer answered no challenge in time.
    Unanswered,
    /// The connection wants to move to it.
    Wanted,
    /// The connection wants to move elsewhere, or to stay.
    Superseded,
    /// The connection moved to it.
    Taken,
    /// The connection moved from it to a validated path.
    LeftForValidated {
        /// Time until which packets in flight on it are awaited.
        until: Instant,
    },
    /// The connection moved from it to a path that is not validated yet.
    LeftForUnvalidated,
    /// The path in use was validated.
    ActiveValidated {
        /// Time until which packets in flight on others are awaited.
        until: Instant,
    },
    /// Another path, validated later, replaced it as the fallback.
    Replaced {
        /// Time until which packets in flight on it are awaited.
        until: Instant,
    },
    /// Time passed.
    Tick(Instant),
}

impl State {
    /// Returns the state after an event; `None` if the path is forgotten.
    #[must_use]
    pub fn after(self, event: Event) -> Option<Self> {
        match (self, event) {
            (Self::Heard, Event::Answered(_, until))
            | (Self::Active, Event::LeftForValidated { until })
            | (Self::Fallback, Event::ActiveValidated { until } | Event::Replaced { until }) => {
                Some(Self::Left { until })
            }
            (Self::Candidate, Event::Answered(Expanded::Full, _)) | (_, Event::Taken) => {
                Some(Self::Active)
            }
            (Self::Active, Event::LeftForUnvalidated) => Some(Self::Fallback),
            (Self::Active, Event::Wanted) => Some(Self::Active),
            (_, Event::Wanted) => Some(Self::Candidate),
            (Self::Heard | Self::Candidate, Event::Unanswered)
            | (Self::Candidate, Event::Superseded) => None,
            (Self::Left { until }, Event::Tick(now)) if until <= now => None,
            _ => Some(self),
        }
    }

    /// Returns the time at which the path is forgotten, if that is known.
    #[must_use]
    pub const fn kept_until(self) -> Option<Instant> {
        match self {
            Self::Left { until } => Some(until),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;

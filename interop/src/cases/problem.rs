//! The ways in which a case fails.

use std::{fmt, io, time::Duration};

use crate::Failure;

/// Timeout, far longer than any case needs, which turns a hang into a failure.
pub(super) const PATIENCE: Duration = Duration::from_mins(1);

/// Reason why a case failed.
#[derive(Debug)]
pub enum Problem {
    /// One of the two does not support the case.
    NotApplicable(&'static str),
    /// The implementation failed.
    Failure(&'static str, Failure),
    /// The outcome is not the promised one.
    Unexpected(String),
    /// Nothing happened for a minute.
    TimedOut,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotApplicable(reason) => write!(f, "not possible: {reason}"),
            Self::Failure(end, failure) => write!(f, "the {end} failed: {failure}"),
            Self::Unexpected(what) => f.write_str(what),
            Self::TimedOut => write!(f, "nothing within {} s", PATIENCE.as_secs()),
        }
    }
}

impl std::error::Error for Problem {}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        Self::Unexpected(format!("the harness failed: {error}"))
    }
}

pub(super) fn failed(end: &'static str) -> impl Fn(Failure) -> Problem {
    move |failure| Problem::Failure(end, failure)
}

pub(super) fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), Problem> {
    if holds {
        Ok(())
    } else {
        unexpected(otherwise())
    }
}

pub(super) fn unexpected<T>(what: String) -> Result<T, Problem> {
    Err(Problem::Unexpected(what))
}

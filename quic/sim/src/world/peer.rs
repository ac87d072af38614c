//! One end of a connection in a world.

use std::time::{Duration, Instant};

use hybriq_proto::{
    connection::{Connection, Event, PathChange},
    events::agreement::Handshake,
    stats::ConnectionStats,
    wire::error::ConnectionError,
};
use hybriq_tls::Side;

use crate::{App, Progress};

/// Virtual time: the age of the world, and the instant at which it began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    pub(crate) base: Instant,
    pub(crate) now: Duration,
}

impl Clock {
    pub(crate) fn instant(self) -> Instant {
        self.base + self.now
    }

    pub(crate) fn since(self, instant: Instant) -> Duration {
        instant.saturating_duration_since(self.base)
    }
}

/// One end of a connection, with its history.
pub struct Peer {
    /// Side of this end.
    pub side: Side,
    /// The connection, until it is drained.
    pub connection: Option<Connection>,
    /// Time at which it began, counted from the start of the world.
    pub began_at: Duration,
    /// Time at which TLS was complete.
    pub complete_at: Option<Duration>,
    /// Time at which the handshake was confirmed.
    pub confirmed_at: Option<Duration>,
    /// Time at which the application was done.
    pub done_at: Option<Duration>,
    /// Time and reason of the end for the application.
    pub closed: Option<(Duration, ConnectionError)>,
    /// Time at which its slot was freed.
    pub drained_at: Option<Duration>,
    /// Outcome of the handshake.
    pub handshake: Option<Handshake>,
    /// Paths to which it moved, with their times.
    pub moves: Vec<(Duration, PathChange)>,
    /// Paths that failed, with their times.
    pub failed_paths: Vec<(Duration, PathChange)>,
    app: Box<dyn App>,
    pub(super) last_stats: ConnectionStats,
}

impl std::fmt::Debug for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Peer").finish_non_exhaustive()
    }
}

impl Peer {
    pub(super) fn new(now: Duration, connection: Connection, app: Box<dyn App>) -> Self {
        Self {
            side: connection.side(),
            connection: Some(connection),
            began_at: now,
            complete_at: None,
            confirmed_at: None,
            done_at: None,
            closed: None,
            drained_at: None,
            handshake: None,
            moves: Vec::new(),
            failed_paths: Vec::new(),
            app,
            last_stats: ConnectionStats::default(),
        }
    }

    /// Progress of the application.
    pub fn progress(&self) -> Progress {
        self.app.progress()
    }

    /// Returns its counters; the last ones if it is drained.
    pub fn stats(&self) -> ConnectionStats {
        self.connection
            .as_ref()
            .map_or(self.last_stats, Connection::stats)
    }

    /// Returns why it is over.
    pub fn close_reason(&self) -> Option<&ConnectionError> {
        self.closed.as_ref().map(|(_, reason)| reason)
    }

    pub(super) fn on_event(&mut self, clock: Clock, event: Event) -> Result<(), String> {
        let Some(connection) = self.connection.as_mut() else {
            return Ok(());
        };
        if let Some((_, reason)) = &self.closed {
            return Err(format!(
                "{event:?} came after the connection closed with {reason}"
            ));
        }
        let at = Some(clock.now);
        match &event {
            Event::HandshakeComplete => {
                self.complete_at = at;
                self.handshake = connection
                    .handshake()
                    .map(|handshake| (**handshake).clone());
                if self.handshake.is_none() {
                    return Err("a complete handshake has no outcome".to_owned());
                }
            }
            Event::HandshakeConfirmed => self.confirmed_at = at,
            Event::PathChanged(path) => self.moves.push((clock.now, *path)),
            Event::PathFailed(path) => self.failed_paths.push((clock.now, *path)),
            _ => {}
        }
        self.app.on_event(clock.instant(), &event, connection);
        if self.progress() == Progress::Done && self.done_at.is_none() {
            self.done_at = at;
        }
        if let Event::Closed(reason) = event {
            self.closed = Some((clock.now, reason));
        }
        Ok(())
    }
}

//! The application's requests to move a connection to another socket.

use std::{net::SocketAddr, task::Waker, time::Instant};

use hybriq_proto::{
    connection::PathChange,
    endpoint::{Local, SocketId},
    wire::error::MigrateError,
};

use super::{State, WaitFor};
use crate::sync::waiters::Waited as _;

/// The application's request to move a connection. A later request replaces an earlier one.
#[derive(Default)]
pub(crate) struct Move {
    request: u64,
    target: Option<Target>,
    outcome: Option<Result<SocketAddr, MigrateError>>,
}

/// Destination of a move.
#[derive(Clone, Copy)]
pub(crate) struct Destination {
    pub(crate) request: u64,
    pub(crate) socket: SocketId,
    pub(crate) address: SocketAddr,
}

/// A destination on the way there.
#[derive(Clone, Copy)]
struct Target {
    to: Destination,
    /// True until the core has accepted the move; it refuses one before the handshake is confirmed.
    waiting: bool,
}

impl Move {
    /// Returns the outcome of a request, if it is known.
    pub(crate) fn outcome(&self, request: u64) -> Option<Result<SocketAddr, MigrateError>> {
        if self.request == request {
            self.outcome
        } else {
            Some(Err(MigrateError::Replaced))
        }
    }

    /// Returns true if no later request replaced this one.
    pub(crate) const fn is_current(&self, request: u64) -> bool {
        self.request == request
    }

    /// Returns the socket that the connection is moving to.
    pub(crate) fn socket(&self) -> Option<SocketId> {
        self.target.map(|target| target.to.socket)
    }
}

impl State {
    /// Begins another move. A task that waits for an earlier move learns that it was replaced.
    pub(crate) fn begin_move(&mut self, wakes: &mut Vec<Waker>) -> u64 {
        self.moving.request += 1;
        self.moving.outcome = None;
        self.waiters(WaitFor::Migration).wake_all(wakes);
        self.moving.request
    }

    /// Notes the outcome of a move, unless another move replaced it.
    pub(crate) fn end_move(
        &mut self,
        request: u64,
        outcome: Result<SocketAddr, MigrateError>,
        wakes: &mut Vec<Waker>,
    ) {
        if self.moving.request == request {
            self.moving.outcome = Some(outcome);
            self.waiters(WaitFor::Migration).wake_all(wakes);
        }
    }

    /// Handles the core's report that it moved to a path.
    pub(super) fn on_path_changed(&mut self, change: PathChange, wakes: &mut Vec<Waker>) {
        self.on_path(change, None, wakes);
    }

    /// Handles the core's report that it could not move to a path.
    pub(super) fn on_path_failed(&mut self, change: PathChange, wakes: &mut Vec<Waker>) {
        self.on_path(change, Some(MigrateError::Unreachable), wakes);
    }

    fn on_path(
        &mut self,
        change: PathChange,
        failure: Option<MigrateError>,
        wakes: &mut Vec<Waker>,
    ) {
        if let Some(target) = self.moving.target {
            if target.to.socket == change.local.socket {
                self.moving.target = None;
                let outcome = failure.map_or(Ok(target.to.address), Err);
                self.end_move(target.to.request, outcome, wakes);
            }
        }
    }

    /// Sets the socket that a request moves to, and tries the move. Returns the sockets that are no
    /// longer needed.
    pub(crate) fn aim(
        &mut self,
        to: Destination,
        now: Instant,
        wakes: &mut Vec<Waker>,
    ) -> impl Iterator<Item = SocketId> + use<> {
        let before = self.moving.target.replace(Target { to, waiting: true });
        let useless = self.try_move(now, wakes);
        before
            .map(|target| target.to.socket)
            .into_iter()
            .chain(useless)
    }

    /// Asks the core to move, if it accepts moves now. Returns a socket that is not needed.
    pub(crate) fn try_move(&mut self, now: Instant, wakes: &mut Vec<Waker>) -> Option<SocketId> {
        let target = self
            .moving
            .target
            .as_mut()
            .filter(|target| target.waiting)?;
        let local = Local {
            socket: target.to.socket,
            ip: None,
        };
        let error = match self.core.migrate(now, local) {
            Ok(()) => {
                target.waiting = false;
                return None;
            }
            // New connection ids arrive at the end of the handshake, or after the last move.
            Err(MigrateError::NotConfirmed | MigrateError::NoConnectionId) => return None,
            Err(error) => error,
        };
        let to = target.to;
        self.moving.target = None;
        self.end_move(to.request, Err(error), wakes);
        Some(to.socket)
    }
}

//! Connections that move from one socket to another.

use std::{net::SocketAddr, sync::Arc, task::Waker, time::Instant};

use super::{
    Worker,
    connection::{SharedConnection, State, WaitFor},
    touch,
    waiters::Waited as _,
};
use crate::udp::Socket;
use hybriq_proto::error::MigrateError;
use hybriq_proto::{
    connection::PathChange,
    endpoint::{Local, SocketId},
};

/// The application's request to move a connection. The last one counts.
#[derive(Default)]
pub(crate) struct Move {
    request: u64,
    target: Option<Target>,
    outcome: Option<Result<SocketAddr, MigrateError>>,
}

/// Where a connection is to move to.
#[derive(Clone, Copy)]
struct Target {
    request: u64,
    socket: SocketId,
    address: SocketAddr,
    /// Whether the core is still to be told: before the handshake is confirmed it refuses.
    waiting: bool,
}

impl Move {
    /// What came of the request, if that is known.
    pub(crate) fn outcome(&self, request: u64) -> Option<Result<SocketAddr, MigrateError>> {
        if self.request == request {
            self.outcome
        } else {
            Some(Err(MigrateError::Replaced))
        }
    }

    /// The socket that was opened for it.
    pub(super) fn socket(&self) -> Option<SocketId> {
        self.target.map(|target| target.socket)
    }
}

impl State {
    /// Begins another move; whoever waits for an earlier one learns that it was replaced.
    pub(crate) fn begin_move(&mut self, wakes: &mut Vec<Waker>) -> u64 {
        self.moving.request += 1;
        self.moving.outcome = None;
        self.waiters(WaitFor::Migration).wake_all(wakes);
        self.moving.request
    }

    /// Notes the outcome of a move, unless another one replaced it.
    fn end_move(
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

    /// Handles a path that the core moved to.
    pub(super) fn on_path_changed(&mut self, change: PathChange, wakes: &mut Vec<Waker>) {
        self.on_path(change, None, wakes);
    }

    /// Handles a path that the core could not move to.
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
            if target.socket == change.local.socket {
                self.moving.target = None;
                let outcome = failure.map_or(Ok(target.address), Err);
                self.end_move(target.request, outcome, wakes);
            }
        }
    }

    /// Tells the core where to move, as soon as it listens. Gives a socket that is of no use.
    pub(super) fn try_move(&mut self, now: Instant, wakes: &mut Vec<Waker>) -> Option<SocketId> {
        let target = self
            .moving
            .target
            .as_mut()
            .filter(|target| target.waiting)?;
        let local = Local {
            socket: target.socket,
            ip: None,
        };
        let error = match self.core.migrate(now, local) {
            Ok(()) => {
                target.waiting = false;
                return None;
            }
            // They come with the end of the handshake, or after the last move.
            Err(MigrateError::NotConfirmed | MigrateError::NoConnectionId) => return None,
            Err(error) => error,
        };
        let Target {
            request, socket, ..
        } = *target;
        self.moving.target = None;
        self.end_move(request, Err(error), wakes);
        Some(socket)
    }
}

impl Worker {
    /// Opens a socket and tells a connection to move there.
    pub(super) fn on_migrate(
        &mut self,
        connection: &Arc<SharedConnection>,
        request: u64,
        address: SocketAddr,
    ) {
        let Some(entry) = self.connections.get(connection.slot) else {
            return;
        };
        if !Arc::ptr_eq(&entry.connection, connection) {
            return;
        }
        touch(&mut self.touched, entry);
        let mut state = connection.lock();
        if state.moving.request != request {
            return;
        }
        let peer = state.core.peer_address();
        drop(state);
        let opened = self.sockets.open(address, peer);
        state = connection.lock();
        match opened {
            Ok((socket, address)) => self.aim(&mut state, (request, socket, address)),
            Err(error) => state.end_move(request, Err(error), &mut self.wakes),
        }
    }

    fn aim(&mut self, state: &mut State, (request, socket, address): (u64, SocketId, SocketAddr)) {
        let before = state.moving.target.replace(Target {
            request,
            socket,
            address,
            waiting: true,
        });
        let useless = state.try_move(self.now, &mut self.wakes);
        let before = before.map(|target| target.socket);
        for socket in before.into_iter().chain(useless) {
            self.sockets.close_unused(socket);
        }
    }

    /// Moves everybody to another socket who can: new connections leave from there.
    pub(super) fn on_rebind(&mut self, socket: Socket) {
        let address = socket.local_address();
        let old = self.sockets.set_primary(socket);
        let socket = self.sockets.primary();
        let connections: Vec<_> = self
            .connections
            .iter_mut()
            .map(|entry| entry.connection.clone())
            .collect();
        for connection in connections {
            let mut state = connection.lock();
            if state.core.side().is_client() {
                let request = state.begin_move(&mut self.wakes);
                self.aim(&mut state, (request, socket, address));
            }
            if let Some(entry) = self.connections.get(connection.slot) {
                let core = &state.core;
                self.sockets
                    .recount(&mut entry.sockets, |socket| core.uses(socket));
                touch(&mut self.touched, entry);
            }
        }
        self.sockets.release(old);
        self.shared.set_addresses(self.sockets.addresses());
    }
}

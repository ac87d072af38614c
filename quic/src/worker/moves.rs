//! Connections that move from one socket to another.

use std::{net::SocketAddr, sync::Arc, task::Waker, time::Instant};

use super::{
    Worker,
    cell::{Cell, State},
    touch,
    waiters::Waiters,
};
use crate::udp::{self, Socket};
use hybriq_proto::error::MigrateError;
use hybriq_proto::{
    connection::PathChange,
    endpoint::{Local, SocketId},
};

/// The application's wish to move a connection: the last one counts.
#[derive(Default)]
pub(crate) struct Move {
    wish: u64,
    target: Option<Target>,
    outcome: Option<Result<SocketAddr, MigrateError>>,
    /// Who waits for the outcome.
    pub(crate) waiters: Waiters,
}

/// Where a connection is to move to.
#[derive(Clone, Copy)]
struct Target {
    wish: u64,
    socket: SocketId,
    address: SocketAddr,
    /// Whether the core is still to be told: before the handshake is confirmed it refuses.
    waiting: bool,
}

impl Move {
    /// Begins another; whoever waits for one before learns of it.
    pub(crate) fn begin(&mut self, wakes: &mut Vec<Waker>) -> u64 {
        self.wish += 1;
        self.outcome = None;
        self.waiters.wake_all(wakes);
        self.wish
    }

    /// What came of the wish, if that is known.
    pub(crate) fn outcome(&self, wish: u64) -> Option<Result<SocketAddr, MigrateError>> {
        if self.wish == wish {
            self.outcome
        } else {
            Some(Err(MigrateError::Replaced))
        }
    }

    /// The socket that was opened for it.
    pub(super) fn socket(&self) -> Option<SocketId> {
        self.target.map(|target| target.socket)
    }

    fn settle(
        &mut self,
        wish: u64,
        outcome: Result<SocketAddr, MigrateError>,
        wakes: &mut Vec<Waker>,
    ) {
        if self.wish == wish {
            self.outcome = Some(outcome);
            self.waiters.wake_all(wakes);
        }
    }

    fn on_path(
        &mut self,
        change: PathChange,
        failure: Option<MigrateError>,
        wakes: &mut Vec<Waker>,
    ) {
        if let Some(target) = self.target
            && target.socket == change.local.socket
        {
            self.target = None;
            self.settle(target.wish, failure.map_or(Ok(target.address), Err), wakes);
        }
    }
}

impl State {
    /// The core moved.
    pub(super) fn on_path_changed(&mut self, change: PathChange, wakes: &mut Vec<Waker>) {
        self.moving.on_path(change, None, wakes);
    }

    /// It could not.
    pub(super) fn on_path_failed(&mut self, change: PathChange, wakes: &mut Vec<Waker>) {
        let failure = Some(MigrateError::Unreachable);
        self.moving.on_path(change, failure, wakes);
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
        let Target { wish, socket, .. } = *target;
        self.moving.target = None;
        self.moving.settle(wish, Err(error), wakes);
        Some(socket)
    }
}

impl Worker {
    /// Opens a socket and tells a connection to move there.
    pub(super) fn on_migrate(&mut self, cell: &Arc<Cell>, wish: u64, address: SocketAddr) {
        let Some(entry) = self.table.get(cell.slot) else {
            return;
        };
        if !Arc::ptr_eq(&entry.cell, cell) {
            return;
        }
        touch(&mut self.touched, entry);
        let mut state = cell.lock();
        if state.moving.wish != wish {
            return;
        }
        let peer = state.core.peer_address();
        drop(state);
        let opened = self.open(address, peer);
        state = cell.lock();
        match opened {
            Ok((socket, address)) => self.aim(&mut state, (wish, socket, address)),
            Err(error) => state.moving.settle(wish, Err(error), &mut self.wakes),
        }
    }

    /// Opens a socket to reach that peer from.
    fn open(
        &mut self,
        address: SocketAddr,
        peer: SocketAddr,
    ) -> Result<(SocketId, SocketAddr), MigrateError> {
        let socket = Socket::bind(address, self.options)
            .map_err(|error| MigrateError::Bind(address, std::io::Error::from(error).kind()))?;
        let bound = socket.local_address();
        if !udp::can_reach(bound, peer) {
            return Err(MigrateError::Unreachable);
        }
        let added = self.sockets.add(socket);
        added
            .map(|socket| (socket, bound))
            .map_err(|_| MigrateError::TooManySockets)
    }

    fn aim(&mut self, state: &mut State, (wish, socket, address): (u64, SocketId, SocketAddr)) {
        let before = state.moving.target.replace(Target {
            wish,
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
        let cells: Vec<_> = self
            .table
            .iter_mut()
            .map(|entry| entry.cell.clone())
            .collect();
        for cell in cells {
            let mut state = cell.lock();
            if state.core.side().is_client() {
                let wish = state.moving.begin(&mut self.wakes);
                self.aim(&mut state, (wish, socket, address));
            }
            if let Some(entry) = self.table.get(cell.slot) {
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

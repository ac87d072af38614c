//! Connections that move from one socket to another. A move of the whole endpoint handles its
//! connections in batches: the worker does other work in between.

use std::{net::SocketAddr, sync::Arc};

use hybriq_proto::endpoint::SocketId;

use super::{Migration, SharedConnection, State, moves::Destination};
use crate::{
    udp::{Opened, Socket},
    worker::Worker,
};

/// Largest number of connections that are moved to another socket in one turn.
const SHARE: usize = 128;

/// Move of all connections to another socket, until it has reached every connection.
pub(in crate::worker) struct Rebinding {
    socket: SocketId,
    address: SocketAddr,
    /// Sockets to close once every connection has been told.
    old: Vec<SocketId>,
    /// Index of the first connection that has yet to be moved.
    next: usize,
}

impl Worker {
    /// Opens a socket and tells a connection to move there.
    pub(in crate::worker) fn on_migrate(&mut self, migration: &Migration) {
        let connection = &migration.connection;
        let request = migration.request;
        let Some(entry) = self.connections.get(connection.slot) else {
            return;
        };
        if !Arc::ptr_eq(&entry.connection, connection) {
            return;
        }
        self.queues.touch(entry);
        let mut state = connection.lock();
        if !state.moving.is_current(request) {
            return;
        }
        let peer = state.core.peer_address();
        drop(state);
        let opened = self.sockets.open(migration.address, peer);
        state = connection.lock();
        match opened {
            Ok((socket, address)) => {
                let to = Destination {
                    request,
                    socket,
                    address,
                };
                self.aim(&mut state, to);
            }
            Err(error) => state.end_move(request, Err(error), &mut self.wakes),
        }
    }

    fn aim(&mut self, state: &mut State, to: Destination) {
        for socket in state.aim(to, self.now, &mut self.wakes) {
            self.sockets.close_unused(socket);
        }
    }

    /// Starts new connections from another socket, and begins to move every client's connection
    /// there.
    pub(in crate::worker) fn on_rebind(&mut self, socket: Opened) {
        let socket = match Socket::register(socket) {
            Ok(socket) => socket,
            Err(error) => {
                tracing::warn!(%error, "cannot use the new socket");
                self.stay();
                return;
            }
        };
        let address = socket.local_address();
        let old = self.sockets.set_primary(socket);
        let mut rebinding = Rebinding {
            socket: self.sockets.primary(),
            address,
            old: vec![old],
            next: 0,
        };
        if let Some(unfinished) = self.walks.rebinding.take() {
            rebinding.old.extend(unfinished.old);
        }
        self.walks.rebinding = Some(rebinding);
        self.go_on_rebinding();
    }

    /// Does nothing: the endpoint has already announced the new address.
    fn stay(&self) {
        if self.index == 0 {
            self.shared.set_addresses(self.sockets.addresses());
        }
    }

    /// Moves this turn's batch of connections.
    pub(in crate::worker) fn go_on_rebinding(&mut self) {
        let Some(mut rebinding) = self.walks.rebinding.take() else {
            return;
        };
        for _ in 0..SHARE {
            let Some((index, entry)) = self.connections.first_from(rebinding.next) else {
                for socket in rebinding.old {
                    self.sockets.release(socket);
                }
                return;
            };
            rebinding.next = index + 1;
            let connection = entry.connection.clone();
            self.rebind_one(&connection, rebinding.socket, rebinding.address);
        }
        self.walks.rebinding = Some(rebinding);
    }

    fn rebind_one(
        &mut self,
        connection: &Arc<SharedConnection>,
        socket: SocketId,
        address: SocketAddr,
    ) {
        let mut state = connection.lock();
        // A connection that started after the rebind is already there.
        if state.core.side().is_client() && state.core.local().socket != socket {
            let request = state.begin_move(&mut self.wakes);
            let to = Destination {
                request,
                socket,
                address,
            };
            self.aim(&mut state, to);
        }
        if let Some(entry) = self.connections.get(connection.slot) {
            let core = &state.core;
            self.sockets
                .recount(&mut entry.sockets, |socket| core.uses(socket));
            self.queues.touch(entry);
        }
    }
}

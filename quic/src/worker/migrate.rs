//! Connections that move from one socket to another.

use std::{net::SocketAddr, sync::Arc};

use super::{
    Worker,
    connection::{Migration, State},
    touch,
};
use crate::udp::{Opened, Socket};
use hybriq_proto::endpoint::SocketId;

impl Worker {
    /// Opens a socket and tells a connection to move there.
    pub(super) fn on_migrate(&mut self, migration: &Migration) {
        let connection = &migration.connection;
        let request = migration.request;
        let Some(entry) = self.connections.get(connection.slot) else {
            return;
        };
        if !Arc::ptr_eq(&entry.connection, connection) {
            return;
        }
        touch(&mut self.touched, entry);
        let mut state = connection.lock();
        if !state.moving.is_current(request) {
            return;
        }
        let peer = state.core.peer_address();
        drop(state);
        let opened = self.sockets.open(migration.address, peer);
        state = connection.lock();
        match opened {
            Ok((socket, address)) => self.aim(&mut state, (request, socket, address)),
            Err(error) => state.end_move(request, Err(error), &mut self.wakes),
        }
    }

    fn aim(&mut self, state: &mut State, target: (u64, SocketId, SocketAddr)) {
        for socket in state.aim(target, self.now, &mut self.wakes) {
            self.sockets.close_unused(socket);
        }
    }

    /// Moves every client's connection to another socket, from which new ones start as well.
    pub(super) fn on_rebind(&mut self, socket: Opened) {
        let socket = match Socket::register(socket) {
            Ok(socket) => socket,
            Err(error) => {
                tracing::warn!(%error, "cannot use the new socket");
                return;
            }
        };
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
        if self.index == 0 {
            self.shared.set_addresses(self.sockets.addresses());
        }
    }
}

//! Sockets that can no longer be received from.

use std::{io, mem};

use hybriq_proto::{endpoint::SocketId, wire::error::SystemError};

use crate::{
    sync::waiters,
    udp::Socket,
    worker::{Advice, Standing, Worker, shared::mailbox::Command, sockets::batch::SendBatch},
};

impl Worker {
    /// Handles a system error while receiving: lets the socket rest, and gives it up if resting has
    /// not helped for long.
    pub(in crate::worker) fn on_receive_error(
        &mut self,
        id: SocketId,
        error: &io::Error,
    ) -> Advice {
        self.stats.receive_errors += 1;
        self.reports.may_wait();
        let advice = self.sockets.on_receive_error(id, self.now);
        match advice {
            Advice::GoOn | Advice::Rest(false) => tracing::debug!(%error, "cannot receive"),
            Advice::Rest(true) => {
                let address = self.sockets.get(id).map(Socket::local_address);
                tracing::warn!(%error, ?address, "cannot receive from a socket; retrying");
            }
            Advice::GiveUp => self.on_socket_failed(id, error.into()),
        }
        advice
    }

    /// Ends what cannot live without the socket: the connections that moved to it, or the endpoint.
    fn on_socket_failed(&mut self, id: SocketId, reason: SystemError) {
        let address = self.sockets.get(id).map(Socket::local_address);
        tracing::error!(%reason, ?address, "a socket failed permanently; ending the connections that need it");
        if self.sockets.is_kept(id) {
            self.shared.on_failed(reason);
            for mailbox in self.shared.others(self.index) {
                mailbox.push(Command::Fail(reason));
            }
            self.fail(reason);
            return;
        }
        for entry in self.connections.iter_mut() {
            let mut state = entry.connection.lock();
            if state.core.local().socket == id {
                state.core.on_socket_failed(self.now, reason);
                drop(state);
                self.queues.touch(entry);
            }
        }
    }

    /// Ends all connections of a worker whose endpoint failed, without telling their peers.
    pub(in crate::worker) fn fail(&mut self, reason: SystemError) {
        let mut wakes = mem::take(&mut self.wakes);
        self.shared.stop_accepting(&mut wakes);
        self.wakes = wakes;
        self.standing = Standing::Closed;
        self.walks.closing = None;
        self.batch = SendBatch::new();
        for entry in self.connections.iter_mut() {
            let mut state = entry.connection.lock();
            state.core.on_socket_failed(self.now, reason);
            drop(state);
            self.queues.touch(entry);
        }
        self.service();
        waiters::wake(&mut self.wakes);
    }
}

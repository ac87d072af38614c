//! The end of an endpoint: the application closes it, or a socket can no longer be received from. A close
//! handles connections in batches: the worker does other work in between.

use std::{io, mem};

use bytes::Bytes;
use hybriq_proto::{endpoint::SocketId, wire::error::SystemError};

use crate::{
    sync::waiters,
    udp::Socket,
    worker::{Advice, Standing, Worker, shared::mailbox::Command, sockets::batch::SendBatch},
};

/// Largest number of connections that are closed in one turn.
const SHARE: usize = 128;

/// Close of an endpoint that has not yet reached every connection.
pub(in crate::worker) struct Closing {
    code: u64,
    reason: Bytes,
    /// Index of the first connection that has yet to be closed.
    next: usize,
}

impl Worker {
    /// Closes the endpoint: takes no new connections and begins to close the existing ones.
    pub(in crate::worker) fn close(&mut self, code: u64, reason: Bytes) {
        if self.standing.is_closed() {
            return;
        }
        self.standing = Standing::Closed;
        self.walks.closing = Some(Closing {
            code,
            reason,
            next: 0,
        });
        self.go_on_closing();
    }

    /// Closes this turn's batch of connections.
    pub(in crate::worker) fn go_on_closing(&mut self) {
        let Some(mut closing) = self.walks.closing.take() else {
            return;
        };
        for _ in 0..SHARE {
            let Some((index, entry)) = self.connections.first_from(closing.next) else {
                return;
            };
            closing.next = index + 1;
            let reason = closing.reason.clone();
            let mut state = entry.connection.lock();
            if state.closed.is_none() {
                self.shared.on_cut_off();
            }
            state.close(closing.code, reason, &mut self.wakes);
            drop(state);
            self.queues.touch(entry);
        }
        self.walks.closing = Some(closing);
    }

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

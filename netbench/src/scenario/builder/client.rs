//! What a client does.

use std::time::Duration;

use super::connect::{Connections, Requests};
use super::{AtClient, Park, Server, Turns, Unpark};
use crate::scenario::ClientOp;

/// What a client does, one after the other.
#[derive(Default)]
pub struct ClientScript {
    ops: Vec<ClientOp>,
    checkpoints: super::script::Numbers,
}

/// What a client does at the same time.
pub struct ClientThreads {
    threads: Vec<Vec<ClientOp>>,
    checkpoints: super::script::Numbers,
}

impl ClientScript {
    pub(super) fn into_ops(self) -> Vec<ClientOp> {
        self.ops
    }

    fn inner(&self) -> Self {
        Self {
            ops: Vec::new(),
            checkpoints: self.checkpoints.clone(),
        }
    }

    /// Makes connections; one unless it is said how many.
    pub fn connect(&mut self, server: Server, write: impl FnOnce(&mut Connections)) -> &mut Self {
        let mut connections = Connections::to(server.0);
        write(&mut connections);
        self.ops
            .push(ClientOp::Connect(Box::new(connections.into_connect())));
        self
    }

    /// Makes requests over connections that are kept and shared.
    pub fn pool(&mut self, server: Server, write: impl FnOnce(&mut Requests)) -> &mut Self {
        let mut requests = Requests::to(server.0);
        write(&mut requests);
        self.ops
            .push(ClientOp::Pool(Box::new(requests.into_pool())));
        self
    }

    /// Does nothing for a while.
    pub fn sleep(&mut self, time: Duration) -> &mut Self {
        self.ops.push(ClientOp::Sleep(time));
        self
    }

    /// A checkpoint: where one of the client's threads waits for another.
    pub fn checkpoint(&mut self) -> (Park<AtClient>, Unpark<AtClient>) {
        self.checkpoints.checkpoint()
    }

    /// Waits at a checkpoint.
    pub fn park(&mut self, at: Park<AtClient>) -> &mut Self {
        self.ops.push(ClientOp::Park(at.number()));
        self
    }

    /// Lets those go on that wait, or will wait, at a checkpoint.
    pub fn unpark(&mut self, at: Unpark<AtClient>) -> &mut Self {
        self.ops.push(ClientOp::Unpark(at.number()));
        self
    }

    /// Does several things at the same time, and goes on when all are done.
    pub fn scope(&mut self, write: impl FnOnce(&mut ClientThreads)) -> &mut Self {
        let mut threads = ClientThreads {
            threads: Vec::new(),
            checkpoints: self.checkpoints.clone(),
        };
        write(&mut threads);
        self.ops.push(ClientOp::Scope(threads.threads));
        self
    }

    /// Does it again and again.
    pub fn iterate(&mut self, turns: Turns, write: impl FnOnce(&mut Self)) -> &mut Self {
        let mut turn = self.inner();
        write(&mut turn);
        self.ops.push(ClientOp::Iterate(turns.of(turn.ops)));
        self
    }
}

impl ClientThreads {
    /// One of the things that are done at the same time.
    pub fn thread(&mut self, write: impl FnOnce(&mut ClientScript)) -> &mut Self {
        let mut script = ClientScript {
            ops: Vec::new(),
            checkpoints: self.checkpoints.clone(),
        };
        write(&mut script);
        self.threads.push(script.ops);
        self
    }
}

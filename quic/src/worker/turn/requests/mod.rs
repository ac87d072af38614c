//! Requests of the application to a worker.

use std::sync::Arc;

use hybriq_proto::{
    connection::Connection,
    endpoint::{AcceptError, Slot, StartError},
};
use hybriq_tls::Side;

use crate::{
    errors::ConnectError,
    sync::clock,
    worker::{
        Command, Promise, Standing, Worker, admit::refusal, connection::SharedConnection,
        meter::trace,
    },
};

impl Worker {
    /// Handles the application's requests since the last call, within this turn's budgets for new
    /// handshakes and touched connections.
    pub(in crate::worker) fn take_requests(&mut self) {
        while let Some(connection) = self.inbox.next_dirty() {
            self.on_dirty(&connection);
        }
        if let Some((count, mut requests)) = self.inbox.take() {
            self.meter.on_requests(count);
            for passed in requests.foreign.drain(..) {
                self.process_passed(passed);
            }
            self.handle_commands();
            self.inbox.limit_dirty(&mut requests.dirty);
            for connection in requests.dirty.drain(..) {
                self.on_dirty(&connection);
            }
            self.inbox.give_back(requests);
        } else {
            self.handle_commands();
        }
        while let Some(start) = self.inbox.next_start() {
            self.on_command(start);
        }
    }

    fn handle_commands(&mut self) {
        while let Some(command) = self.inbox.next_command() {
            self.on_command(command);
        }
    }

    fn on_dirty(&mut self, connection: &Arc<SharedConnection>) {
        connection.clear_dirty();
        if let Some(entry) = self.connections.get(connection.slot) {
            if Arc::ptr_eq(&entry.connection, connection) {
                self.queues.touch(entry);
            }
        }
    }

    fn on_command(&mut self, command: Command) {
        match command {
            Command::Connect {
                setup,
                peer,
                server_name,
                promise,
            } => {
                if self.is_wanted(&promise) {
                    self.sockets.leave_given();
                    let setup = self.settings.watcher.watch(setup);
                    let started = self.endpoint.connect(self.now, &setup, peer, &server_name);
                    self.prepare_for(&setup.provider);
                    self.on_started(started.map_err(not_started), promise);
                }
            }
            Command::Accept {
                incoming,
                setup,
                promise,
            } => {
                if self.is_wanted(&promise) {
                    let began = clock::now();
                    let setup = setup.map(|setup| self.settings.watcher.watch(setup));
                    let started = self.endpoint.accept(self.now, incoming, setup.as_ref());
                    let ended = clock::now();
                    self.endpoint.on_handshake_cost(ended, ended - began);
                    self.on_started(started.map_err(not_accepted), promise);
                } else if self.standing.is_closed() {
                    self.refuse(incoming, refusal::STOPPED);
                } else {
                    self.refuse(incoming, refusal::GIVEN_UP);
                }
            }
            Command::Retry(incoming) => {
                // The handle has checked that the client would follow a Retry.
                if let Err(incoming) = self.endpoint.retry(self.now, incoming) {
                    self.refuse(*incoming, refusal::BY_APPLICATION);
                }
            }
            Command::Refuse(incoming, reason) => self.refuse(incoming, reason),
            Command::Ignore(incoming) => self.endpoint.ignore(incoming),
            Command::Close(code, reason) => self.close(code, reason),
            Command::Abandon => self.standing = Standing::Abandoned,
            Command::Migrate(migration) => self.on_migrate(&migration),
            Command::Rebind(socket) => self.on_rebind(*socket),
            Command::SetServer(setup) => {
                self.endpoint.set_server(setup);
            }
            Command::Prepare(provider) => self.prepare_for(&provider),
            Command::Lend(reply) => {
                let _ = reply.send(self.sockets.lend());
            }
            Command::Census(reply) => {
                let _ = reply.send(self.census());
            }
            Command::GiveWay(relay, reply) => self.give_way(relay, reply),
            Command::GoOn => self.go_on(),
            Command::Succeeded => self.succession.on_succeeded(),
            Command::Fail(reason) => self.fail(reason),
            Command::Release => self.release(),
            Command::Recheck => {}
        }
    }

    /// Returns true if a requested connection should still be started.
    fn is_wanted(&mut self, promise: &Promise) -> bool {
        let wanted = !self.standing.is_closed() && !promise.is_left();
        if !wanted {
            self.published.ended += 1;
        }
        wanted
    }

    fn on_started(&mut self, started: Result<(Slot, Connection), ConnectError>, promise: Promise) {
        self.inbox.on_started();
        match started {
            Ok((slot, mut core)) => {
                if core.side().is_client() {
                    core.start_from(self.sockets.primary());
                    self.begin_reports();
                }
                let holds = promise.holds_first_flight() && core.may_use_early();
                let life = self.meter.on_started(core.side(), self.now);
                let span = trace::span(&self.settings, self.index, &core);
                let mailbox = self.inbox.mailbox().clone();
                let connection = SharedConnection::new(slot, span, mailbox, core);
                if holds {
                    connection.hold_first_flight();
                }
                promise.on_started(&connection, &mut self.wakes);
                self.connections.insert(connection, promise, life);
                if let Some(entry) = self.connections.get(slot) {
                    if !entry.connection.holds_first_flight() {
                        self.queues.touch(entry);
                    }
                }
            }
            Err(error) => {
                let outcome = Err(error);
                // When no connection comes about, only a server refuses because of its policy.
                if let Err(ConnectError::Connection(_)) = &outcome {
                    self.inbox.count_handshake(Side::Server, &outcome);
                }
                promise.keep(outcome, &mut self.wakes);
                self.published.ended += 1;
            }
        }
    }

    /// Handles the drop of the last handle of the endpoint.
    fn release(&mut self) {
        if self.standing == Standing::Open {
            self.standing = Standing::Released;
        }
    }
}

fn not_started(error: StartError) -> ConnectError {
    match error {
        StartError::Tls(error) => ConnectError::Tls(error),
        StartError::AddressInUse(peer) => ConnectError::AddressInUse(peer),
    }
}

fn not_accepted(error: AcceptError) -> ConnectError {
    match error {
        AcceptError::Tls(error) => ConnectError::Tls(error),
        AcceptError::Refused(error) => ConnectError::Connection(error),
    }
}

#[cfg(test)]
mod tests;

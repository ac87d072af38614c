use std::sync::Arc;

use bytes::Bytes;

use super::{Command, Promise, Worker, cell::Cell, clock, touch};
use crate::error::ConnectError;
use hybriq_proto::{
    connection::Connection,
    endpoint::{AcceptError, Slot, StartError},
};

impl Worker {
    /// Does what the application asked for since the last time, within this turn's budget of new
    /// handshakes.
    pub(super) fn take_requests(&mut self) {
        let mut requests = std::mem::take(&mut self.requests);
        if self.link.take(&mut requests) {
            for (arrival, mut datagram) in requests.foreign.drain(..) {
                let len = datagram.len();
                self.process_message(&arrival, &mut datagram, len.max(1));
            }
            self.backlog.extend(requests.commands.drain(..));
            for cell in requests.dirty.drain(..) {
                cell.clear_dirty();
                self.on_dirty(&cell);
            }
        }
        self.requests = requests;
        while self.starts > 0 {
            let Some(command) = self.backlog.pop_front() else {
                return;
            };
            self.on_command(command);
        }
    }

    fn on_dirty(&mut self, cell: &Arc<Cell>) {
        if let Some(entry) = self.table.get(cell.slot)
            && Arc::ptr_eq(&entry.cell, cell)
        {
            touch(&mut self.touched, entry);
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
                    let started = self.endpoint.connect(self.now, &setup, peer, &server_name);
                    self.on_started(started.map_err(ConnectError::from), promise);
                }
            }
            Command::Accept {
                incoming,
                setup,
                promise,
            } => {
                if self.is_wanted(&promise) {
                    let began = clock();
                    let started = self.endpoint.accept(self.now, incoming, setup.as_ref());
                    let ended = clock();
                    self.endpoint.on_handshake_cost(ended, ended - began);
                    self.on_started(started.map_err(ConnectError::from), promise);
                } else {
                    self.endpoint.refuse(incoming);
                }
            }
            Command::Retry(incoming) => {
                // The handle asked whether the client would follow it.
                if let Err(incoming) = self.endpoint.retry(self.now, incoming) {
                    self.endpoint.refuse(*incoming);
                }
            }
            Command::Refuse(incoming) => self.endpoint.refuse(incoming),
            Command::Ignore(incoming) => self.endpoint.ignore(incoming),
            Command::Close(code, reason) => self.close(code, &reason),
            Command::Migrate {
                cell,
                wish,
                address,
            } => self.on_migrate(&cell, wish, address),
            Command::Rebind(socket) => self.on_rebind(socket),
            Command::Release => self.released = true,
        }
    }

    /// Whether a connection that was asked for is still to be started.
    fn is_wanted(&mut self, promise: &Promise) -> bool {
        let wanted = self.closing.is_none() && !promise.is_left();
        if !wanted {
            self.ended += 1;
        }
        wanted
    }

    fn on_started(&mut self, started: Result<(Slot, Connection), ConnectError>, promise: Promise) {
        self.starts = self.starts.saturating_sub(1);
        match started {
            Ok((slot, mut core)) => {
                if core.side().is_client() {
                    core.start_from(self.sockets.primary());
                }
                let cell = Cell::new(slot, self.link.clone(), core);
                promise.on_started(&cell, &mut self.wakes);
                self.table.insert(cell, promise);
                if let Some(entry) = self.table.get(slot) {
                    touch(&mut self.touched, entry);
                }
            }
            Err(error) => {
                promise.keep(Err(error), &mut self.wakes);
                self.ended += 1;
            }
        }
    }

    fn close(&mut self, code: u64, reason: &Bytes) {
        self.closing = Some((code, reason.clone()));
        for entry in self.table.iter_mut() {
            entry
                .cell
                .lock()
                .close(code, reason.clone(), &mut self.wakes);
            touch(&mut self.touched, entry);
        }
    }
}

impl From<StartError> for ConnectError {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Tls(error) => Self::Tls(error),
            StartError::AddressInUse(peer) => Self::AddressInUse(peer),
        }
    }
}

impl From<AcceptError> for ConnectError {
    fn from(error: AcceptError) -> Self {
        match error {
            AcceptError::Tls(error) => Self::Tls(error),
            AcceptError::Refused(error) => Self::Connection(error),
        }
    }
}

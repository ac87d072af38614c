//! Connections that wait for their turn: to be serviced, and to send.

use std::collections::VecDeque;

use hybriq_proto::endpoint::Slot;

use crate::worker::connection::table::Entry;

/// Connections that wait for their turn. Each connection is in a queue at most once.
#[derive(Debug, Default)]
pub(in crate::worker) struct Queues {
    /// Connections to be serviced in this turn.
    pub(in crate::worker) touched: Vec<Slot>,
    /// Connections that may have something to send, in the order of sending.
    pub(in crate::worker) sending: VecDeque<Slot>,
}

impl Queues {
    /// Adds a connection to those to be serviced.
    pub(in crate::worker) fn touch(&mut self, entry: &mut Entry) {
        if !entry.touched {
            entry.touched = true;
            self.touched.push(entry.connection.slot);
        }
    }

    /// Adds a connection to those that may send.
    pub(in crate::worker) fn let_send(&mut self, entry: &mut Entry) {
        if !entry.sending {
            entry.sending = true;
            self.sending.push_back(entry.connection.slot);
        }
    }

    /// Removes all connections, keeping the memory.
    pub(in crate::worker) fn clear(&mut self) {
        self.touched.clear();
        self.sending.clear();
    }
}

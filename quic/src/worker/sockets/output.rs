//! Filling datagrams and sending them, connections in turn.

use hybriq_proto::endpoint::Slot;

use super::batch::Flushed;
use crate::worker::Worker;

/// Largest number of GSO trains that a connection sends in one turn.
const TRAINS: usize = 4;

/// Approximate number of bytes that all connections together send in one turn: everything else
/// waits meanwhile.
const TURN_BYTES: usize = 4 * 1024 * 1024;

/// Smallest number of bytes that a datagram counts for: it costs more than its bytes.
const LEAST_BYTES: usize = 2048;

/// Largest number of datagrams sent outside of connections in one turn.
const UNCONNECTED: usize = 256;

/// Result of filling datagrams of a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Filled {
    /// The connection has nothing more to send now.
    All,
    /// The connection has used its share of this turn.
    More,
    /// The socket is full.
    Blocked,
}

impl Worker {
    /// Sends datagrams of all connections in turn, until each has had its share or the socket is
    /// full.
    pub(in crate::worker) fn transmit(&mut self) {
        if self.batch.flush(&self.sockets, &mut self.stats) == Flushed::Blocked {
            return;
        }
        for _ in 0..UNCONNECTED {
            let transmit = self.endpoint.poll_transmit(self.now, self.batch.space());
            let Some(transmit) = transmit else { break };
            self.batch.push(None, transmit);
            if self.flush_if_full() == Flushed::Blocked {
                return;
            }
        }
        let mut room = TURN_BYTES;
        for _ in 0..self.queues.sending.len() {
            if room == 0 {
                break;
            }
            let Some(slot) = self.queues.sending.pop_front() else {
                break;
            };
            match self.fill(slot, &mut room) {
                Filled::All => {}
                Filled::More => self.queues.sending.push_back(slot),
                Filled::Blocked => {
                    self.queues.sending.push_front(slot);
                    return;
                }
            }
        }
        self.batch.flush(&self.sockets, &mut self.stats);
    }

    /// Tells connections about datagrams that the system refused to send.
    pub(in crate::worker) fn tell_refused(&mut self) {
        if !self.batch.has_refused() {
            return;
        }
        self.reports.may_wait();
        for (slot, refused) in self.batch.take_refused() {
            if let Some(entry) = self.connections.get(slot) {
                entry.connection.lock().core.on_refused(self.now, refused);
                self.queues.touch(entry);
            }
        }
        self.service();
    }

    fn flush_if_full(&mut self) -> Flushed {
        if self.batch.is_full() {
            self.batch.flush(&self.sockets, &mut self.stats)
        } else {
            Flushed::All
        }
    }

    fn fill(&mut self, slot: Slot, room: &mut usize) -> Filled {
        for _ in 0..TRAINS {
            let Some(entry) = self.connections.get(slot) else {
                return Filled::All;
            };
            let mut state = entry.connection.lock();
            let max_datagrams = self.sockets.max_datagrams(state.core.local().socket);
            let space = self.batch.space();
            let transmit = state.core.poll_transmit(self.now, space, max_datagrams);
            let wanted = state.next_timeout();
            // Sending made room in the send buffers, so writers may continue.
            state.take_stream_events(&mut self.wakes);
            drop(state);
            self.timers
                .set_after(self.now, slot, &mut entry.deadline, wanted);
            let bytes = transmit.as_ref().map_or(0, |transmit| transmit.size);
            *room = room.saturating_sub(bytes.max(LEAST_BYTES));
            let Some(transmit) = transmit else {
                entry.sending = false;
                return Filled::All;
            };
            self.batch.push(Some(slot), transmit);
            if self.flush_if_full() == Flushed::Blocked {
                return Filled::Blocked;
            }
        }
        Filled::More
    }
}

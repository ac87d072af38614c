//! Datagrams waiting to be sent.

use std::{collections::VecDeque, io, ops::Range};

use hybriq_proto::stats::EndpointStats;
use hybriq_proto::{
    connection::Refused,
    endpoint::{Slot, SocketId, Transmit},
};

use super::Sockets;
use crate::udp;

/// Largest number of bytes that one call can send: the limit of an IPv6 UDP datagram.
const TRAIN: usize = 65_527;

/// Number of bytes after which the batch is flushed. More would leave the processor's cache.
const ENOUGH: usize = 64 * 1024;

/// Largest number of refusals that are reported to connections in one turn. Later ones are reported
/// when those connections send again.
const REFUSED: usize = 64;

/// Datagrams of any number of connections, waiting to be sent.
///
/// Datagrams that the socket does not take stay here, so nothing is lost while it is full.
pub(in crate::worker) struct SendBatch {
    memory: Box<[u8]>,
    filled: usize,
    trains: VecDeque<Train>,
    /// Refusals by the system since they were last taken, by connection.
    refused: Vec<(Slot, Refused)>,
}

struct Train {
    transmit: Transmit,
    bytes: Range<usize>,
    /// Connection that sends it, if any.
    slot: Option<Slot>,
    part: Part,
}

/// Part of a train that the system refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Not split.
    Whole,
    First,
    Later,
}

/// Result of a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::worker) enum Flushed {
    /// The socket took everything.
    All,
    /// The socket is full.
    Blocked,
}

impl SendBatch {
    pub(in crate::worker) fn new() -> Self {
        Self {
            memory: vec![0; ENOUGH + TRAIN].into_boxed_slice(),
            filled: 0,
            trains: VecDeque::new(),
            refused: Vec::new(),
        }
    }

    /// Returns true if the batch should be flushed.
    pub(in crate::worker) fn is_full(&self) -> bool {
        self.filled >= ENOUGH
    }

    /// Returns true if nothing waits for the socket.
    pub(in crate::worker) fn is_empty(&self) -> bool {
        self.trains.is_empty()
    }

    /// Returns the number of trains that wait for their socket.
    pub(in crate::worker) fn len(&self) -> usize {
        self.trains.len()
    }

    /// Returns the socket of the next datagrams.
    pub(in crate::worker) fn waits_for(&self) -> Option<SocketId> {
        Some(self.trains.front()?.transmit.local.socket)
    }

    /// Returns the space for the next train: enough for the longest, unless the batch is full.
    pub(in crate::worker) fn space(&mut self) -> &mut [u8] {
        let space = self.memory.split_at_mut(self.filled).1;
        let len = space.len().min(TRAIN);
        space.split_at_mut(len).0
    }

    /// Adds the train that was written to the start of the space, of a connection or of none.
    pub(in crate::worker) fn push(&mut self, slot: Option<Slot>, transmit: Transmit) {
        let end = self.memory.len().min(self.filled + transmit.size);
        self.trains.push_back(Train {
            transmit,
            bytes: self.filled..end,
            slot,
            part: Part::Whole,
        });
        self.filled = end;
    }

    /// Sends until everything is sent or a socket is full.
    pub(in crate::worker) fn flush(
        &mut self,
        sockets: &Sockets,
        stats: &mut EndpointStats,
    ) -> Flushed {
        while let Some(train) = self.trains.front_mut() {
            let contents = self.memory.get(train.bytes.clone()).unwrap_or_default();
            match sockets.send(&train.transmit, contents) {
                Ok(()) => {
                    on_sent(stats, &train.transmit, contents.len());
                    if train.part == Part::First {
                        sockets.on_taken_apart(&train.transmit);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Flushed::Blocked;
                }
                Err(error)
                    if train.transmit.segment_size.is_some() && udp::refuses_train(&error) =>
                {
                    tracing::debug!(%error, "the system refused a train of datagrams");
                    Self::split(&mut self.trains);
                    continue;
                }
                Err(error) => self.on_refused(&error, stats),
            }
            self.trains.pop_front();
        }
        self.filled = 0;
        Flushed::All
    }

    /// Handles a refusal of the first train. If it is about the addresses, the system would refuse
    /// the rest of the train as well, so no further call is made.
    fn on_refused(&mut self, error: &io::Error, stats: &mut EndpointStats) {
        let Some(train) = self.trains.front() else {
            return;
        };
        tracing::debug!(%error, peer = %train.transmit.peer, "cannot send");
        stats.send_errors += train.transmit.datagrams();
        if self.refused.len() >= REFUSED {
            return;
        }
        let refusal = refusal(&train.transmit, error);
        self.refused.extend(train.slot.zip(refusal));
        if refusal.is_some() && train.part == Part::First {
            while self.trains.get(1).is_some_and(|it| it.part == Part::Later) {
                self.trains.remove(1);
                stats.send_errors += 1;
            }
        }
    }

    /// Returns true if the system refused datagrams of connections.
    pub(in crate::worker) fn has_refused(&self) -> bool {
        !self.refused.is_empty()
    }

    /// Takes the refusals by the system, by connection.
    pub(in crate::worker) fn take_refused(&mut self) -> Vec<(Slot, Refused)> {
        std::mem::take(&mut self.refused)
    }

    /// Splits the first train into single datagrams, because some drivers refuse trains.
    fn split(trains: &mut VecDeque<Train>) {
        let Some(train) = trains.pop_front() else {
            return;
        };
        let Train {
            transmit,
            bytes,
            slot,
            part: _,
        } = train;
        let segment = transmit.segment_size.unwrap_or(transmit.size).max(1);
        for number in (0..bytes.len().div_ceil(segment)).rev() {
            let start = bytes.start + number * segment;
            let end = bytes.end.min(start + segment);
            let transmit = Transmit {
                size: end - start,
                segment_size: None,
                ..transmit
            };
            trains.push_front(Train {
                transmit,
                bytes: start..end,
                slot,
                part: if number == 0 {
                    Part::First
                } else {
                    Part::Later
                },
            });
        }
    }
}

/// Returns what to tell a connection about datagrams that the system refused; nothing if the next
/// one may well be sent.
fn refusal(transmit: &Transmit, error: &io::Error) -> Option<Refused> {
    let cause = udp::cause_of(error, transmit.local.ip)?;
    Some(Refused {
        peer: transmit.peer,
        local: transmit.local,
        cause,
        reason: error.into(),
    })
}

fn on_sent(stats: &mut EndpointStats, transmit: &Transmit, bytes: usize) {
    let segment = transmit.segment_size.unwrap_or(bytes).max(1);
    stats.send_calls += 1;
    stats.datagrams_sent += bytes.div_ceil(segment) as u64;
    stats.bytes_sent += bytes as u64;
}

#[cfg(test)]
mod tests;

//! DATAGRAM frames (RFC 9221): two bounded queues, and the share they have of a packet.

mod config;

use std::collections::VecDeque;

use bytes::Bytes;

use super::{
    error::{Code, TransportError},
    frame::{Datagram, FrameWriter},
    limits,
    wire::VarInt,
};
use crate::stats::DatagramStats;

pub use config::{DatagramConfig, WhenFull};

#[cfg(test)]
mod tests;

/// Bytes that streams and datagrams may be ahead of each other.
const MAX_LEAD: usize = 16 * 1024;

/// Something that the application may want to know of datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatagramEvent {
    /// One came, and there was none before.
    Readable,
    /// There is room for one after one was refused.
    Writable,
}

/// Reason why a datagram was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// The peer takes none.
    Unsupported,
    /// The datagram has more bytes than this.
    TooLarge(usize),
    /// The queue is full.
    Full,
}

/// Number of datagrams that a packet carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent(u16);

impl Sent {
    /// Returns true if the packet carried none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// Claim of the streams to a share of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rival {
    /// They have something to send.
    Waiting,
    /// They have not.
    Idle,
}

/// Room in the queue for another datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    /// As far as anybody knows.
    Enough,
    /// Somebody waits for it.
    Wanted,
    /// Somebody waited, and is to be told.
    Made,
}

/// The datagrams of a connection.
///
/// They go in the order they were sent, in packets that congestion control and pacing let leave,
/// and not again when they are lost. As long as streams wait as well, both get the same number of
/// bytes: whoever had less goes first in a packet, and the other fills it up. Where only one of
/// them waits, it gets everything, and owes nothing for it later.
#[derive(Debug)]
pub struct Datagrams {
    config: DatagramConfig,
    /// The peer's `max_datagram_frame_size`.
    peer_limit: u64,
    outbox: Queue,
    inbox: Queue,
    /// Bytes that datagrams had more than streams while both waited.
    lead: Lead,
    /// True if it was the turn of the oldest, and it did not fit beside frames that go before.
    squeezed: bool,
    room: Room,
    readable: bool,
    stats: DatagramStats,
}

impl Datagrams {
    /// None yet, and none may be sent before [`Datagrams::set_peer_limit`].
    pub fn new(config: DatagramConfig) -> Self {
        Self {
            config,
            peer_limit: 0,
            outbox: Queue::default(),
            inbox: Queue::default(),
            lead: Lead::default(),
            squeezed: false,
            room: Room::Enough,
            readable: false,
            stats: DatagramStats::default(),
        }
    }

    /// Takes the peer's `max_datagram_frame_size`: of its transport parameters, or the remembered
    /// one for 0-RTT (RFC 9221 §3).
    pub const fn set_peer_limit(&mut self, frame_size: u64) {
        self.peer_limit = frame_size;
    }

    /// Bytes a datagram may have whose frame may fill `room` bytes of a packet. `None`: the peer
    /// takes none.
    pub fn max_size(&self, room: usize) -> Option<usize> {
        // The peer's limit holds for the frame with its length, which it has unless it fills the
        // packet.
        let peer_limit = VarInt::saturating(self.peer_limit);
        let fields = 1 + peer_limit.size() as u64;
        let most = peer_limit.get().checked_sub(fields)?;
        Some(
            room.saturating_sub(1)
                .min(usize::try_from(most).unwrap_or(usize::MAX)),
        )
    }

    /// Queues one to be sent; `room` is the space for frames in a packet. When the queue is full,
    /// the configuration decides.
    ///
    /// # Errors
    /// The datagram was not taken.
    pub fn send(&mut self, data: Bytes, room: usize) -> Result<(), SendError> {
        self.check(&data, room)?;
        if !self.outbox.takes(data.len(), self.config.send_queue) {
            match self.config.when_full {
                WhenFull::Refuse => return Err(SendError::Full),
                WhenFull::DropOldest => {
                    let bound = self.config.send_queue;
                    let dropped = self.outbox.make_room(data.len(), bound);
                    self.stats.dropped_unsent += dropped;
                }
            }
        }
        self.outbox.push(data);
        Ok(())
    }

    /// Queues one to be sent if there is room. Otherwise [`SendError::Full`] is followed by
    /// [`DatagramEvent::Writable`].
    ///
    /// # Errors
    /// The datagram was not taken.
    pub fn send_within(&mut self, data: &Bytes, room: usize) -> Result<(), SendError> {
        self.check(data, room)?;
        if !self.outbox.takes(data.len(), self.config.send_queue) {
            self.room = Room::Wanted;
            return Err(SendError::Full);
        }
        self.outbox.push(data.clone());
        Ok(())
    }

    fn check(&self, data: &Bytes, room: usize) -> Result<(), SendError> {
        let most = self.max_size(room).ok_or(SendError::Unsupported)?;
        if data.len() > most {
            return Err(SendError::TooLarge(most));
        }
        Ok(())
    }

    /// The oldest that came and was not read.
    pub fn recv(&mut self) -> Option<Bytes> {
        self.inbox.pop()
    }

    /// Takes one that came.
    ///
    /// # Errors
    /// `PROTOCOL_VIOLATION`: we told the peer to send none, or none so large (RFC 9221 §3).
    pub fn on_frame(&mut self, frame: &Datagram<'_>) -> Result<(), TransportError> {
        let limit = self.config.max_frame_size();
        let violation = |reason| Err(TransportError::new(Code::PROTOCOL_VIOLATION, reason));
        if limit == 0 {
            return violation("DATAGRAM, which we take none of");
        }
        if frame.least_size() > limit {
            return violation("DATAGRAM is larger than max_datagram_frame_size");
        }
        let (len, bound) = (frame.data.len(), self.config.receive_buffer);
        self.stats.received += 1;
        self.stats.dropped_unread += self.inbox.make_room(len, bound);
        self.readable |= self.inbox.is_empty();
        self.inbox.push(Bytes::copy_from_slice(frame.data));
        Ok(())
    }

    /// Something the application may want to know.
    pub fn poll_event(&mut self) -> Option<DatagramEvent> {
        if std::mem::take(&mut self.readable) {
            Some(DatagramEvent::Readable)
        } else if self.room == Room::Made {
            self.room = Room::Enough;
            Some(DatagramEvent::Writable)
        } else {
            None
        }
    }

    /// Returns true if a datagram waits to be sent.
    pub fn has_pending(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// Drops what has more than `most` bytes, and so fits into no packet any more.
    pub fn drop_larger(&mut self, most: usize) {
        self.stats.dropped_unsent += self.outbox.drop_larger(most);
        self.note_room();
    }

    /// Writes what is due before the streams.
    pub fn write_first(&mut self, streams: Rival, out: &mut FrameWriter<'_>, sent: &mut Sent) {
        if streams == Rival::Idle {
            self.lead = Lead::default();
        }
        let begun = out.len();
        while !self.lead.is_ahead() {
            let before = out.len();
            if !self.write_one(out, sent) {
                break;
            }
            if streams == Rival::Waiting {
                self.lead.on_datagrams(out.len() - before);
            }
        }
        self.squeezed = begun > 0 && sent.is_empty() && !self.lead.is_ahead() && self.has_pending();
        self.note_room();
    }

    /// The streams wrote so many bytes.
    pub fn on_streams_sent(&mut self, bytes: usize) {
        self.lead.on_streams(bytes);
    }

    /// Writes what fits behind the streams, which want no more of this packet.
    pub fn write_rest(&mut self, out: &mut FrameWriter<'_>, sent: &mut Sent) {
        while self.write_one(out, sent) {}
        self.note_room();
    }

    fn write_one(&mut self, out: &mut FrameWriter<'_>, sent: &mut Sent) -> bool {
        let written = self.outbox.front().is_some_and(|data| out.datagram(data));
        if written {
            self.outbox.pop();
            self.stats.sent += 1;
            sent.0 = sent.0.saturating_add(1);
        }
        written
    }

    fn note_room(&mut self) {
        if self.room == Room::Wanted && self.outbox.held < self.config.send_queue {
            self.room = Room::Made;
        }
    }

    /// Returns true, once, if the next packet must go without an ACK frame, beside which the oldest
    /// did not fit: where data goes both ways every packet may have one.
    pub const fn takes_whole_packet(&mut self) -> bool {
        std::mem::replace(&mut self.squeezed, false)
    }

    /// A packet arrived.
    pub const fn on_acked(&mut self, sent: &Sent) {
        self.stats.acknowledged += sent.0 as u64;
    }

    /// A packet was lost, and what it carried with it.
    pub const fn on_lost(&mut self, sent: &Sent) {
        self.stats.lost += sent.0 as u64;
    }

    /// The server refused 0-RTT data: what was sent arrived nowhere, what waits is of no use to
    /// whoever hears later that it was refused, and nobody knows what the server takes.
    pub fn on_early_data_rejected(&mut self) {
        self.peer_limit = 0;
        self.lead = Lead::default();
        self.squeezed = false;
        self.stats.lost = self.stats.sent;
        self.stats.dropped_unsent += std::mem::take(&mut self.outbox).len();
        self.note_room();
    }

    /// Another connection came to nothing, and this one takes its place.
    pub fn go_on_after(&mut self, mut before: Self) {
        before.on_early_data_rejected();
        self.stats = before.stats;
        self.room = before.room;
    }

    /// The connection is over: nothing is sent any more. What came may still be read.
    pub fn on_closed(&mut self) {
        self.stats.dropped_unsent += std::mem::take(&mut self.outbox).len();
    }

    /// Returns the counters of datagrams.
    pub const fn stats(&self) -> DatagramStats {
        self.stats
    }
}

/// Datagrams in order, and the bytes they count for.
#[derive(Debug, Default)]
struct Queue {
    datagrams: VecDeque<Bytes>,
    held: usize,
}

const fn cost(len: usize) -> usize {
    len.saturating_add(limits::DATAGRAM_OVERHEAD)
}

impl Queue {
    fn is_empty(&self) -> bool {
        self.datagrams.is_empty()
    }

    fn len(&self) -> u64 {
        self.datagrams.len() as u64
    }

    fn front(&self) -> Option<&Bytes> {
        self.datagrams.front()
    }

    /// Returns true if another of so many bytes stays within `bound`. One always does.
    fn takes(&self, len: usize, bound: usize) -> bool {
        self.is_empty() || self.held.saturating_add(cost(len)) <= bound
    }

    /// Drops the oldest until another fits, and says how many.
    fn make_room(&mut self, len: usize, bound: usize) -> u64 {
        let mut dropped = 0;
        while !self.takes(len, bound) && self.pop().is_some() {
            dropped += 1;
        }
        dropped
    }

    fn push(&mut self, data: Bytes) {
        self.held = self.held.saturating_add(cost(data.len()));
        self.datagrams.push_back(data);
    }

    fn pop(&mut self) -> Option<Bytes> {
        let data = self.datagrams.pop_front()?;
        self.held = self.held.saturating_sub(cost(data.len()));
        Some(data)
    }

    /// Drops the oldest that have more than so many bytes, and says how many.
    fn drop_larger(&mut self, most: usize) -> u64 {
        let mut dropped = 0;
        while self.front().is_some_and(|data| data.len() > most) {
            self.pop();
            dropped += 1;
        }
        dropped
    }
}

/// Returns who had more bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Lead {
    datagrams: usize,
    streams: usize,
}

impl Lead {
    const fn is_ahead(self) -> bool {
        self.datagrams > self.streams
    }

    fn on_datagrams(&mut self, bytes: usize) {
        self.datagrams += bytes;
        self.settle();
    }

    fn on_streams(&mut self, bytes: usize) {
        self.streams += bytes;
        self.settle();
    }

    fn settle(&mut self) {
        let both = self.datagrams.min(self.streams);
        self.datagrams = (self.datagrams - both).min(MAX_LEAD);
        self.streams = (self.streams - both).min(MAX_LEAD);
    }
}

//! DATAGRAM frames (RFC 9221): two bounded queues, and their share of a packet.

mod config;
mod fates;
mod queue;

use std::time::Instant;

use bytes::Bytes;

use crate::{
    stats::{DatagramStats, census::Census},
    wire::{
        Space, VarInt,
        error::Violation,
        frame::{Datagram, FrameWriter, Owner, Timing},
    },
};
pub use config::{DatagramConfig, DatagramOptions, WhenFull};
pub use fates::Fate;
use fates::Fates;
use queue::{Queue, Taken, cost};

#[cfg(test)]
mod tests;

/// Largest number of bytes by which streams or datagrams may be ahead of each other.
const MAX_LEAD: usize = 16 * 1024;

/// Options of a datagram without any.
const PLAIN: DatagramOptions = DatagramOptions::new();

/// Event of the datagram queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DatagramEvent {
    /// A datagram arrived while none was waiting.
    Readable,
    /// The queue has room again after a datagram was refused.
    Writable,
    /// What became of a datagram that was sent with a tag.
    Fate {
        /// Its tag.
        tag: u64,
        /// What became of it.
        fate: Fate,
    },
}

/// Reason why a datagram was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendError {
    /// The peer accepts no datagrams.
    Unsupported,
    /// The datagram has more bytes than this.
    TooLarge(usize),
    /// The queue is full.
    Full,
}

/// Datagrams that a packet carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    count: u16,
    /// Slot of those whose fate is awaited, counted from 1; 0 if there are none.
    slot: u16,
}

impl Sent {
    /// Returns true if the packet carried none.
    pub const fn is_empty(self) -> bool {
        self.count == 0
    }
}

/// Whether streams need a share of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rival {
    /// Streams have data to send.
    Waiting,
    /// Streams have nothing to send.
    Idle,
}

/// State of the room in the queue for another datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    /// No sender waits for room.
    Enough,
    /// A sender waits for room.
    Wanted,
    /// Room was made for a waiting sender, which must be told.
    Made,
}

/// The datagrams of a connection.
///
/// They are sent in order, subject to congestion control and pacing, and not repeated when lost.
/// While streams wait as well, both get the same number of bytes: the one that is behind goes first
/// in a packet, and the other fills it up. If only one waits, it gets everything, and this is not
/// balanced later.
#[derive(Debug)]
pub struct Datagrams {
    config: DatagramConfig,
    /// The peer's `max_datagram_frame_size`.
    peer_limit: u64,
    outbox: Queue,
    inbox: Queue,
    /// Bytes by which datagrams are ahead of streams while both wait.
    lead: Lead,
    /// True if the oldest datagram was due, but did not fit after the frames before it.
    crowded_out: bool,
    room: Room,
    readable: bool,
    fates: Fates,
    stats: DatagramStats,
}

impl Datagrams {
    /// Creates empty queues. Nothing may be sent before [`Datagrams::set_peer_limit`].
    pub fn new(config: DatagramConfig) -> Self {
        Self {
            config,
            peer_limit: 0,
            outbox: Queue::default(),
            inbox: Queue::default(),
            lead: Lead::default(),
            crowded_out: false,
            room: Room::Enough,
            readable: false,
            fates: Fates::default(),
            stats: DatagramStats::default(),
        }
    }

    /// Takes the peer's `max_datagram_frame_size` from its transport parameters, or the remembered
    /// one for 0-RTT (RFC 9221 §3).
    pub const fn set_peer_limit(&mut self, frame_size: u64) {
        self.peer_limit = frame_size;
    }

    /// Returns the largest datagram whose frame fits into `room` bytes of a packet, or `None` if
    /// the peer accepts none.
    pub fn max_size(&self, room: usize) -> Option<usize> {
        // The peer's limit applies to the frame with its length field, which it has unless it fills
        // the packet.
        let peer_limit = VarInt::saturating(self.peer_limit);
        let fields = 1 + peer_limit.size() as u64;
        let most = peer_limit.get().checked_sub(fields)?;
        Some(
            room.saturating_sub(1)
                .min(usize::try_from(most).unwrap_or(usize::MAX)),
        )
    }

    /// Queues a datagram; `room` is the space for frames in a packet. The configuration decides what happens if the
    /// queue is full.
    ///
    /// # Errors
    /// Fails if the datagram was refused. [`SendError::Full`] also if the fates of too many datagrams are awaited.
    pub fn send(
        &mut self,
        data: Bytes,
        options: DatagramOptions,
        room: usize,
    ) -> Result<(), SendError> {
        self.check(&data, room)?;
        if options.tag.is_some() && !self.fates.has_room() {
            return Err(SendError::Full);
        }
        let (cost, bound) = (cost(data.len(), &options), self.config.send_queue);
        if !self.outbox.takes(cost, bound) {
            let has_room = match self.config.when_full {
                WhenFull::Refuse => false,
                WhenFull::DropOldest => self.outbox.can_take(cost, bound, options.urgency),
            };
            if !has_room {
                return Err(SendError::Full);
            }
            while !self.outbox.takes(cost, bound) {
                let least = self.outbox.take_least();
                self.on_dropped(&least.ok_or(SendError::Full)?);
            }
        }
        self.fates.on_queued(options.tag);
        self.outbox.push(data, options);
        Ok(())
    }

    /// Queues a datagram if there is room. [`SendError::Full`] is followed by
    /// [`DatagramEvent::Writable`].
    ///
    /// # Errors
    /// Fails if the datagram was refused.
    pub fn send_within(&mut self, data: &Bytes, room: usize) -> Result<(), SendError> {
        self.check(data, room)?;
        if !self
            .outbox
            .takes(cost(data.len(), &PLAIN), self.config.send_queue)
        {
            self.room = Room::Wanted;
            return Err(SendError::Full);
        }
        self.outbox.push(data.clone(), PLAIN);
        Ok(())
    }

    fn check(&self, data: &Bytes, room: usize) -> Result<(), SendError> {
        let most = self.max_size(room).ok_or(SendError::Unsupported)?;
        if data.len() > most {
            return Err(SendError::TooLarge(most));
        }
        Ok(())
    }

    /// Returns the oldest unread datagram.
    pub fn recv(&mut self) -> Option<Bytes> {
        self.inbox.pop().map(|taken| taken.data)
    }

    /// Handles a received datagram.
    ///
    /// # Errors
    /// `PROTOCOL_VIOLATION` if we did not allow the peer datagrams, or none of this size (RFC 9221
    /// §3).
    pub fn on_frame(&mut self, frame: &Datagram<'_>) -> Result<(), Violation> {
        let limit = self.config.max_frame_size();
        if limit == 0 {
            return Err(Violation::DatagramNotAccepted);
        }
        if frame.least_size() > limit {
            return Err(Violation::DatagramTooLarge);
        }
        let (cost, bound) = (cost(frame.data.len(), &PLAIN), self.config.receive_buffer);
        self.stats.received += 1;
        while !self.inbox.takes(cost, bound) && self.inbox.pop().is_some() {
            self.stats.dropped_unread += 1;
        }
        self.readable |= self.inbox.is_empty();
        self.inbox.push(Bytes::copy_from_slice(frame.data), PLAIN);
        Ok(())
    }

    /// Returns the next event for the application.
    pub fn poll_event(&mut self) -> Option<DatagramEvent> {
        if std::mem::take(&mut self.readable) {
            Some(DatagramEvent::Readable)
        } else if self.room == Room::Made {
            self.room = Room::Enough;
            Some(DatagramEvent::Writable)
        } else {
            let (tag, fate) = self.fates.poll()?;
            Some(DatagramEvent::Fate { tag, fate })
        }
    }

    /// Returns true if a datagram waits to be sent.
    pub fn has_pending(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// Returns the waiting bytes, in both directions.
    pub(crate) const fn held(&self) -> u64 {
        (self.outbox.held() + self.inbox.held()) as u64
    }

    /// Counts every table. A new field does not compile until somebody decides what it holds.
    pub(crate) fn census(&self, census: &mut Census) {
        let Self {
            config: _,
            peer_limit: _,
            outbox,
            inbox,
            lead: _,
            crowded_out: _,
            room: _,
            readable: _,
            fates,
            stats: _,
        } = self;
        census.add("datagrams to send", outbox.len() as usize, outbox.held());
        census.add("datagrams to read", inbox.len() as usize, inbox.held());
        census.add("datagrams whose fate is awaited", fates.open(), 0);
    }

    /// Returns the time at which [`Datagrams::drop_expired`] must be called.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.outbox.earliest()
    }

    /// Drops datagrams whose deadline has come.
    pub fn drop_expired(&mut self, now: Instant) {
        let expired = self.outbox.take_expired(now);
        for Taken { options, .. } in &expired {
            self.stats.expired += 1;
            self.fates.on_unsent(options.tag, Fate::Expired);
        }
        if !expired.is_empty() {
            self.note_room();
        }
    }

    /// Releases memory that is not used now.
    pub(crate) fn release_memory(&mut self) {
        self.outbox.release_memory();
        self.inbox.release_memory();
    }

    /// Drops datagrams of more than `most` bytes, which no longer fit into a packet.
    pub fn drop_larger(&mut self, most: usize) {
        while let Some(larger) = self.outbox.take_larger(most) {
            self.on_dropped(&larger);
        }
        self.note_room();
    }

    fn on_dropped(&mut self, dropped: &Taken) {
        self.stats.dropped_unsent += 1;
        self.fates.on_unsent(dropped.options.tag, Fate::Dropped);
    }

    fn drop_all(&mut self) {
        while let Some(unsent) = self.outbox.pop() {
            self.on_dropped(&unsent);
        }
    }

    /// Writes the datagrams that go before streams.
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
        self.crowded_out =
            begun > 0 && sent.is_empty() && !self.lead.is_ahead() && self.has_pending();
        self.note_room();
    }

    /// Counts the bytes that streams wrote.
    pub fn on_streams_sent(&mut self, bytes: usize) {
        self.lead.on_streams(bytes);
    }

    fn write_one(&mut self, out: &mut FrameWriter<'_>, sent: &mut Sent) -> bool {
        let written = self.outbox.front().is_some_and(|data| out.datagram(data));
        if written {
            if let Some(Taken { options, .. }) = self.outbox.pop() {
                self.fates.on_sent(options.tag, sent);
            }
            self.stats.sent += 1;
            sent.count = sent.count.saturating_add(1);
        }
        written
    }

    fn note_room(&mut self) {
        if self.room == Room::Wanted && self.outbox.held() < self.config.send_queue {
            self.room = Room::Made;
        }
    }

    /// Returns true, once, if the next packet must omit the ACK frame because the oldest datagram
    /// did not fit next to it: with data in both directions, every packet may have one.
    pub const fn takes_whole_packet(&mut self) -> bool {
        std::mem::replace(&mut self.crowded_out, false)
    }

    /// Drops all datagrams after the server rejected 0-RTT data: those sent did not arrive, those
    /// waiting are outdated, and the server's limit is unknown.
    pub fn on_early_data_rejected(&mut self) {
        self.peer_limit = 0;
        self.lead = Lead::default();
        self.crowded_out = false;
        self.stats.lost = self.stats.sent;
        self.fates.on_all_lost();
        self.drop_all();
        self.note_room();
    }

    /// Replaces a connection attempt that failed, and takes over its counters.
    pub fn go_on_after(&mut self, mut before: Self) {
        before.on_early_data_rejected();
        self.stats = before.stats;
        self.fates = before.fates;
        self.room = before.room;
    }

    /// Drops waiting datagrams when the connection ends. Received ones may still be read.
    pub fn on_closed(&mut self) {
        self.drop_all();
    }

    /// Returns the counters of datagrams.
    pub const fn stats(&self) -> DatagramStats {
        self.stats
    }
}

/// A lost DATAGRAM frame is counted and not sent again (RFC 9221 §5.2).
impl Owner for Datagrams {
    type Sent = Sent;

    #[inline]
    fn wants_to_send(&self, _: Space) -> bool {
        self.has_pending()
    }

    /// Writes datagrams into the room that streams left in the packet. Those that go before streams
    /// are already in it: see [`Datagrams::write_first`].
    #[inline]
    fn write_frames(&mut self, _: Timing, out: &mut FrameWriter<'_>, sent: &mut Sent) {
        while self.write_one(out, sent) {}
        self.note_room();
    }

    #[inline]
    fn on_acked(&mut self, sent: &Sent) {
        self.stats.acknowledged += u64::from(sent.count);
        if sent.slot != 0 {
            self.fates.on_packet(*sent, Fate::Acknowledged);
        }
    }

    #[inline]
    fn on_lost(&mut self, sent: &Sent) {
        self.stats.lost += u64::from(sent.count);
        if sent.slot != 0 {
            self.fates.on_packet(*sent, Fate::Lost);
        }
    }
}

/// Returns the side that had more bytes.
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
        self.cancel_out();
    }

    fn on_streams(&mut self, bytes: usize) {
        self.streams += bytes;
        self.cancel_out();
    }

    fn cancel_out(&mut self) {
        let both = self.datagrams.min(self.streams);
        self.datagrams = (self.datagrams - both).min(MAX_LEAD);
        self.streams = (self.streams - both).min(MAX_LEAD);
    }
}

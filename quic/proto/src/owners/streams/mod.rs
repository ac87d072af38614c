//! Streams (RFC 9000 §2 to §4): state machines, buffers and credit.
//!
//! The two halves of a stream are separate: a `Send` if we send, a `Recv` if we receive, each in a
//! table by stream id. A half is removed once both its peer and its application are done with it;
//! when both halves of a stream that the peer opened are gone, the peer may open another
//! (`MAX_STREAMS`).

mod app;
mod census;
mod flow;
mod frames;
mod halves;
mod queue;
mod recv;
mod send;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use hybriq_tls::Side;

use crate::buffer::Memory;
pub use crate::wire::frame::{Direction, StreamId, Timing};
use flow::opening::{LocalStreams, PeerStreams, PerDirection};
use flow::window::Window;
use flow::{ReceiveCredit, SendCredit};
use frames::schedule::Schedule;
use halves::Halves;
use halves::deadlines::Deadlines;
pub use halves::outcome::{
    Awaited, Blocked, Chunk, ClosedStream, Delivery, ReadError, RecvEnd, ResetAtError, StreamEvent,
    WriteError,
};
use halves::tally::Tallies;
pub use halves::tally::{Tallied, Tally};
pub use queue::priority::Priority;
use recv::Recv;
pub use send::sent::Sent;
use send::{Send, SendRoom};

/// Limits for the peer, and sizes of send buffers.
///
/// Exhaustive: whoever drives the owner must decide on every field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Initial number of bytes that the peer may have in flight or unread on all streams together.
    /// At most [`receive_window`](Self::receive_window).
    pub initial_receive_window: u64,
    /// Largest number of bytes that the peer may have in flight or unread on all streams together.
    pub receive_window: u64,
    /// Initial number of bytes that the peer may have in flight or unread on one stream.
    pub initial_stream_receive_window: u64,
    /// Largest number of bytes that the peer may have in flight or unread on one stream.
    pub stream_receive_window: u64,
    /// Number of bytes per stream that may wait to be sent.
    pub send_buffer: u64,
    /// Number of bytes per stream that may wait to be sent or acknowledged.
    pub max_send_buffer: u64,
    /// Number of bidirectional streams that the peer may have open at once.
    pub max_bidi: u64,
    /// Number of unidirectional streams that the peer may have open at once.
    pub max_uni: u64,
}

impl Limits {
    /// Returns the initial limit for all streams together.
    pub(crate) fn first_receive_window(&self) -> u64 {
        self.initial_receive_window.min(self.receive_window)
    }

    /// Returns the initial limit for each stream.
    pub(crate) fn first_stream_receive_window(&self) -> u64 {
        self.initial_stream_receive_window
            .min(self.stream_receive_window)
    }

    const fn window(&self) -> Window {
        Window::new(self.initial_receive_window, self.receive_window)
    }

    const fn stream_window(&self) -> Window {
        Window::new(
            self.initial_stream_receive_window,
            self.stream_receive_window,
        )
    }

    fn send_room(&self) -> SendRoom {
        SendRoom {
            unsent: self.send_buffer,
            held: self.max_send_buffer.max(self.send_buffer),
        }
    }
}

/// Limits in the peer's transport parameters (RFC 9000 §18.2).
///
/// Exhaustive: whoever drives the owner must decide on every field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerLimits {
    /// `initial_max_data` of the peer.
    pub max_data: u64,
    /// `initial_max_stream_data_bidi_local` of the peer, for bidirectional streams that it opens.
    pub bidi_local: u64,
    /// `initial_max_stream_data_bidi_remote` of the peer, for bidirectional streams that we open.
    pub bidi_remote: u64,
    /// `initial_max_stream_data_uni` of the peer.
    pub uni: u64,
    /// `initial_max_streams_bidi` of the peer.
    pub max_bidi: u64,
    /// `initial_max_streams_uni` of the peer.
    pub max_uni: u64,
    /// True if the peer accepts `RESET_STREAM_AT`.
    pub reset_at: bool,
}

/// Totals over the streams of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Totals {
    /// Streams that we opened.
    pub opened: u64,
    /// Streams the peer opened.
    pub opened_by_peer: u64,
    /// Bytes sent for the first time.
    pub bytes_sent: u64,
    /// Bytes sent again.
    pub bytes_resent: u64,
    /// Bytes received, including gaps but not repetitions.
    pub bytes_received: u64,
}

/// Returns the number of separate pieces that a receive window for all streams allows.
pub(crate) fn most_pieces(window: u64) -> u64 {
    recv::pieces_of_all(window) as u64
}

/// Returns the bytes of the tables of streams that the peer opened: this many with a sending half,
/// and this many with a receiving half. What halves hold apart from the tables is included.
pub(crate) fn memory_of_tables(sends: u64, receives: u64) -> u64 {
    let tables = Halves::<Send>::memory(sends).saturating_add(Halves::<Recv>::memory(receives));
    tables.saturating_add(sends.saturating_mul(Send::APART))
}

/// All streams of a connection.
#[derive(Debug)]
pub struct Streams {
    side: Side,
    limits: Limits,
    peer_limits: PeerLimits,
    sends: Halves<Send>,
    recvs: Halves<Recv>,
    /// Receiving parts of streams that we opened.
    unanswered: usize,
    local: PerDirection<LocalStreams>,
    peer: PerDirection<PeerStreams>,
    send_credit: SendCredit,
    receive_credit: ReceiveCredit,
    /// Largest receive window of any stream.
    widest_window: u64,
    schedule: Schedule,
    events: VecDeque<StreamEvent>,
    bytes_resent: u64,
    /// True if data of any stream was received in a 0-RTT packet.
    any_early: bool,
    tallies: Tallies,
    deadlines: Deadlines,
    /// Memory of buffers of streams that are over, for new ones.
    spare: Vec<Memory>,
}

/// Number of buffers whose memory is kept for new streams while a connection is busy.
const SPARE: usize = 32;

impl Streams {
    /// Creates an empty set of streams; none may be opened before [`Streams::set_peer_limits`].
    pub fn new(side: Side, limits: Limits) -> Self {
        Self {
            side,
            limits,
            peer_limits: PeerLimits::default(),
            sends: Halves::new(),
            recvs: Halves::new(),
            unanswered: 0,
            local: PerDirection::default(),
            peer: PerDirection {
                bidi: PeerStreams::new(limits.max_bidi),
                uni: PeerStreams::new(limits.max_uni),
            },
            send_credit: SendCredit::default(),
            receive_credit: ReceiveCredit::new(limits.window()),
            widest_window: 0,
            schedule: Schedule::default(),
            events: VecDeque::new(),
            bytes_resent: 0,
            any_early: false,
            tallies: Tallies::default(),
            deadlines: Deadlines::default(),
            spare: Vec::new(),
        }
    }

    /// Releases memory that is not used now.
    pub fn release_memory(&mut self) {
        for (_, send) in self.sends.iter_mut() {
            send.release_memory();
        }
        self.sends.release_memory();
        self.recvs.release_memory();
        self.schedule.release_memory();
        self.events.shrink_to_fit();
        self.spare = Vec::new();
    }

    /// Takes the limits in the peer's transport parameters. Limits never shrink.
    pub fn set_peer_limits(&mut self, limits: PeerLimits) {
        self.peer_limits = limits;
        self.send_credit.raise(limits.max_data);
        self.raise_streams(Direction::Bidi, limits.max_bidi);
        self.raise_streams(Direction::Uni, limits.max_uni);
        for (id, send) in self.sends.iter_mut() {
            if send.raise_limit(initial_limit(self.side, &limits, id)) {
                self.schedule.update_send(id, send);
            }
        }
    }

    /// Forgets everything that was sent, because the server rejected 0-RTT data.
    ///
    /// Our streams may be opened again within the limits that [`Streams::set_peer_limits`] sets
    /// next. The peer has opened none, because none of its streams is read before that.
    pub fn on_early_data_rejected(&mut self) {
        self.sends = Halves::new();
        self.recvs = Halves::new();
        self.tallies = Tallies::default();
        self.deadlines = Deadlines::default();
        self.unanswered = 0;
        self.local = PerDirection::default();
        self.send_credit = SendCredit::default();
        self.peer_limits = PeerLimits::default();
        self.schedule = Schedule::default();
        self.events.clear();
        self.bytes_resent = 0;
    }

    fn raise_streams(&mut self, direction: Direction, max: u64) {
        if self.local.of_mut(direction).raise_limit(max) {
            self.events.push_back(StreamEvent::Available(direction));
        }
    }

    /// Returns the totals over all streams.
    pub fn totals(&self) -> Totals {
        let (local, peer) = (&self.local, &self.peer);
        Totals {
            opened: local.bidi.credit.used() + local.uni.credit.used(),
            opened_by_peer: peer.bidi.credit.received() + peer.uni.credit.received(),
            bytes_sent: self.send_credit.used(),
            bytes_resent: self.bytes_resent,
            bytes_received: self.receive_credit.received(),
        }
    }

    /// Returns the bytes of the stream tables, as far as they are needed now.
    pub(crate) fn memory_of_tables(&self) -> u64 {
        match (self.sends.len(), self.recvs.len()) {
            (0, 0) => 0,
            (sends, receives) => memory_of_tables(sends as u64, receives as u64),
        }
    }

    /// Returns the bytes received that were not read, gaps included.
    pub(crate) const fn unread(&self) -> u64 {
        self.receive_credit.unread()
    }

    /// Returns the bytes that are not sent or not acknowledged, on all streams.
    pub(crate) fn unacknowledged(&self) -> u64 {
        self.sends.iter().map(|send| send.buffer.held()).sum()
    }

    /// Returns the number of bidirectional streams that this end has finished but the peer has not
    /// fully acknowledged.
    pub fn undelivered_bidi(&self) -> usize {
        let all = self.sends.iter_with_ids();
        let bidi = all.filter(|(id, _)| id.direction() == Direction::Bidi);
        bidi.filter(|(_, send)| send.is_delivering()).count()
    }

    /// Returns the number of stream halves that are not over.
    pub(crate) fn halves(&self) -> usize {
        self.sends.len() + self.recvs.len()
    }

    /// Returns the limit of [`Streams::halves`]: the halves of the streams that the peer may have
    /// open, and of all that we opened.
    pub(crate) fn most_halves(&self) -> usize {
        let (bidi, uni) = (self.limits.max_bidi, self.limits.max_uni);
        let own = 2 * self.local.bidi.credit.used() + self.local.uni.credit.used();
        usize::try_from(2 * bidi + uni + own).unwrap_or(usize::MAX)
    }

    /// Returns the number of separate pieces in which received data is held.
    pub(crate) const fn pieces(&self) -> usize {
        self.receive_credit.pieces()
    }

    /// Returns the limit of [`Streams::pieces`]: one more piece ends the connection.
    pub(crate) fn most_pieces(&self) -> usize {
        recv::pieces_of_all(self.receive_credit.window()).saturating_add(1)
    }

    /// Returns true if we have the sending part of such a stream.
    fn may_send(&self, id: StreamId) -> bool {
        id.direction() == Direction::Bidi || id.initiator() == self.side
    }

    /// Returns true if we have the receiving part of such a stream.
    fn may_receive(&self, id: StreamId) -> bool {
        id.direction() == Direction::Bidi || id.initiator() != self.side
    }

    /// Creates our halves of a new stream.
    fn create(&mut self, id: StreamId) {
        if self.may_send(id) {
            let limit = initial_limit(self.side, &self.peer_limits, id);
            let mut send = Send::new(limit);
            if let Some(memory) = self.spare.pop() {
                send.buffer.reuse(memory);
            }
            self.sends.insert(id, send);
        }
        if self.may_receive(id) {
            self.recvs
                .insert(id, Recv::new(self.limits.stream_window()));
            self.unanswered += usize::from(id.initiator() == self.side);
        }
    }

    /// Handles a changed sending part: queues its pending frames, or removes it.
    fn on_send_changed(&mut self, id: StreamId) {
        let Some(send) = self.sends.get_mut(id) else {
            return;
        };
        if !send.is_spent() {
            return self.schedule.update_send(id, send);
        }
        self.schedule.leave(id, &mut send.places);
        self.tallies.on_send_over(id, send.final_size());
        self.deadlines.remove(id);
        if self.spare.len() < SPARE {
            self.spare.extend(send.buffer.take_memory());
        }
        self.sends.remove(id);
        self.on_half_closed(id);
    }

    /// Queues the reset of a sending part that was just aborted, instead of its data.
    fn on_aborted(&mut self, id: StreamId) {
        let Some(send) = self.sends.get_mut(id) else {
            return;
        };
        self.schedule.leave(id, &mut send.places);
        self.schedule.reset(id, send);
        self.deadlines.remove(id);
    }

    /// Handles a changed receiving part: queues a new limit, or removes it.
    fn on_recv_changed(&mut self, id: StreamId) {
        let Some(recv) = self.recvs.get_mut(id) else {
            return;
        };
        self.tallies.on_recv(id, || recv.tallied());
        if !recv.is_spent() {
            return self.schedule.update_recv(id, recv);
        }
        debug_assert_eq!(recv.credit.pieces(), 0, "no bytes are left");
        self.tallies.on_recv_over(id);
        self.recvs.remove(id);
        self.unanswered -= usize::from(id.initiator() == self.side);
        self.on_half_closed(id);
    }

    /// Grants the peer another stream for each that is gone (RFC 9000 §4.6).
    fn on_half_closed(&mut self, id: StreamId) {
        let gone = !self.sends.contains(id) && !self.recvs.contains(id);
        if gone && id.initiator() != self.side {
            self.peer.of_mut(id.direction()).credit.consume(1);
        }
    }
}

/// Returns the peer's first limit for a stream that we may send on.
fn initial_limit(side: Side, limits: &PeerLimits, id: StreamId) -> u64 {
    match (id.direction(), id.initiator() == side) {
        (Direction::Bidi, true) => limits.bidi_remote,
        (Direction::Bidi, false) => limits.bidi_local,
        (Direction::Uni, _) => limits.uni,
    }
}

//! Streams (RFC 9000 §2 to §4): both state machines, buffers, credit.
//!
//! The two halves of a stream live apart: a `Send` where we send, a `Recv` where
//! we receive, each in a table by stream id. A half goes as soon as both its peer and its
//! application are done with it, and nothing remains; a stream that the peer opened gives its
//! place back (`MAX_STREAMS`) when both are gone.

mod app;
mod flow;
mod incoming;
mod marks;
mod opening;
mod outcome;
mod outgoing;
mod priority;
mod queue;
mod recv;
mod reset_at;
mod schedule;
mod send;
mod sent;
mod table;
mod window;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

pub use super::frame::{Direction, StreamId, Timing};
use flow::{ReceiveCredit, SendCredit};
use hybriq_tls::Side;
use opening::{LocalStreams, PeerStreams, PerDirection};
pub use outcome::{Chunk, ClosedStream, ReadError, RecvEnd, ResetAtError, StreamEvent, WriteError};
pub use priority::Priority;
use recv::Recv;
use schedule::Schedule;
use send::{Send, SendRoom};
pub use sent::Sent;
use table::Table;
use window::Window;

/// Limits that we set the peer, and buffers for our own application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes the peer may have under way or unread on all streams together, at first. Not more than
    /// [`receive_window`](Self::receive_window) counts.
    pub initial_receive_window: u64,
    /// The same, once the window has grown as far as it may.
    pub receive_window: u64,
    /// Bytes the peer may have under way or unread on one stream, at first.
    pub initial_stream_receive_window: u64,
    /// The same, once the window has grown as far as it may.
    pub stream_receive_window: u64,
    /// Bytes that may wait to be sent per stream.
    pub send_buffer: u64,
    /// Bytes that may wait to be sent or acknowledged per stream.
    pub max_send_buffer: u64,
    /// Bidirectional streams the peer may have open at once.
    pub max_bidi: u64,
    /// Unidirectional streams the peer may have open at once.
    pub max_uni: u64,
}

impl Limits {
    /// Returns what the peer is told at first for all streams together.
    pub(crate) fn first_receive_window(&self) -> u64 {
        self.initial_receive_window.min(self.receive_window)
    }

    /// Returns what the peer is told at first for each stream.
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerLimits {
    /// Its `initial_max_data`.
    pub max_data: u64,
    /// Its `initial_max_stream_data_bidi_local`: bidirectional streams that it opens.
    pub bidi_local: u64,
    /// Its `initial_max_stream_data_bidi_remote`: bidirectional streams that we open.
    pub bidi_remote: u64,
    /// Its `initial_max_stream_data_uni`.
    pub uni: u64,
    /// Its `initial_max_streams_bidi`.
    pub max_bidi: u64,
    /// Its `initial_max_streams_uni`.
    pub max_uni: u64,
    /// True if the peer takes `RESET_STREAM_AT`.
    pub reset_at: bool,
}

/// Totals of what the streams of a connection carried so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Streams opened here.
    pub opened: u64,
    /// Streams the peer opened.
    pub opened_by_peer: u64,
    /// Bytes sent for the first time.
    pub bytes_sent: u64,
    /// Bytes sent again.
    pub bytes_resent: u64,
    /// Bytes received, gaps included, repetitions not.
    pub bytes_received: u64,
}

/// All streams of a connection.
#[derive(Debug)]
pub struct Streams {
    side: Side,
    limits: Limits,
    peer_limits: PeerLimits,
    sends: Table<Send>,
    recvs: Table<Recv>,
    local: PerDirection<LocalStreams>,
    peer: PerDirection<PeerStreams>,
    send_credit: SendCredit,
    receive_credit: ReceiveCredit,
    /// The largest receive window that a stream has grown to.
    widest_window: u64,
    schedule: Schedule,
    events: VecDeque<StreamEvent>,
    bytes_resent: u64,
}

impl Streams {
    /// Makes an empty set of streams; nothing may be opened before [`Streams::set_peer_limits`].
    pub fn new(side: Side, limits: Limits) -> Self {
        Self {
            side,
            limits,
            peer_limits: PeerLimits::default(),
            sends: Table::new(),
            recvs: Table::new(),
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
        }
    }

    /// Takes what the peer's transport parameters allow. Limits never shrink.
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

    /// Forgets everything that was sent so far, because the server refused 0-RTT data.
    ///
    /// Our streams may be opened again within the limits that [`Streams::set_peer_limits`] sets
    /// next. The peer has opened none: nothing that it sends is read before.
    pub fn on_early_data_rejected(&mut self) {
        self.sends = Table::new();
        self.recvs = Table::new();
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

    /// Returns what the streams carried so far.
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

    /// Returns true if we have the sending part of such a stream.
    fn may_send(&self, id: StreamId) -> bool {
        id.direction() == Direction::Bidi || id.initiator() == self.side
    }

    /// Returns true if we have the receiving part of such a stream.
    fn may_receive(&self, id: StreamId) -> bool {
        id.direction() == Direction::Bidi || id.initiator() != self.side
    }

    /// Makes the halves that we have of a new stream.
    fn create(&mut self, id: StreamId) {
        if self.may_send(id) {
            let limit = initial_limit(self.side, &self.peer_limits, id);
            self.sends.insert(id, Send::new(limit));
        }
        if self.may_receive(id) {
            self.recvs
                .insert(id, Recv::new(self.limits.stream_window()));
        }
    }

    /// Acts on what became of a sending part: queues what it has to send, or lets it go.
    fn settle_send(&mut self, id: StreamId) {
        let Some(send) = self.sends.get_mut(id) else {
            return;
        };
        if !send.is_spent() {
            return self.schedule.update_send(id, send);
        }
        self.schedule.leave(id, &mut send.places);
        self.sends.remove(id);
        self.on_half_closed(id);
    }

    /// Queues the reset of a sending part that was just given up, in place of its data.
    fn on_aborted(&mut self, id: StreamId) {
        let Some(send) = self.sends.get_mut(id) else {
            return;
        };
        self.schedule.leave(id, &mut send.places);
        self.schedule.reset(id, send);
    }

    /// Acts on what became of a receiving part: queues a new limit, or lets it go.
    fn settle_recv(&mut self, id: StreamId) {
        let Some(recv) = self.recvs.get_mut(id) else {
            return;
        };
        if !recv.is_spent() {
            return self.schedule.update_recv(id, recv);
        }
        debug_assert_eq!(recv.credit.pieces(), 0, "nothing is held any more");
        self.recvs.remove(id);
        self.on_half_closed(id);
    }

    /// The peer may open another stream for each that is gone (RFC 9000 §4.6).
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

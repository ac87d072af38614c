//! The log of one connection: collects its records and hands them to the writer in pieces.

use std::{
    mem,
    sync::{Arc, Mutex, PoisonError, atomic::Ordering},
    time::{Duration, Instant},
};

use hybriq_proto::events::{ConnectionState, Event, Meta, Subscriber};

use super::{Shared, add, record::Recorder};
use crate::output::queue::{Opening, Piece};

/// Bytes of records that are collected before they are passed to the writer.
const PIECE: usize = 16 * 1024;

/// Age of the oldest record at which the next event passes the piece to the writer.
const AGE: Duration = Duration::from_secs(1);

/// Room that is reserved for the end of a log that reaches its limit: warnings and the reason for
/// the end.
pub(super) const RESERVE: u64 = 8 * 1024;

const BEHIND: &str = "the writer fell behind";
const ABANDONED: &str =
    "the connection ended without a close: its worker failed, or the runtime ended";
const FULL: &str = "the log reached its limit of bytes";

/// The subscriber to one connection.
#[derive(Debug)]
pub(super) struct Log {
    shared: Arc<Shared>,
    number: u64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    recorder: Recorder,
    opening: Option<Opening>,
    records: Vec<u8>,
    /// Number of records.
    events: u64,
    /// Time of the first record of the piece.
    since: Instant,
    /// Time of the last event.
    last: Instant,
    /// Bytes that were passed to the writer.
    bytes: u64,
    /// Number of records for which the writer had no room, since the last warning.
    behind: u64,
    /// Number of records beyond the size limit.
    beyond: u64,
    /// True once the reason for the end was recorded.
    is_closed: bool,
    is_over: bool,
}

impl Log {
    pub(super) fn new(
        shared: Arc<Shared>,
        number: u64,
        recorder: Recorder,
        opening: Option<Opening>,
        now: Instant,
    ) -> Self {
        let header = opening.as_ref().map_or(0, |opening| opening.header.len());
        Self {
            shared,
            number,
            state: Mutex::new(State {
                recorder,
                opening,
                records: Vec::new(),
                events: 0,
                since: now,
                last: now,
                bytes: header as u64,
                behind: 0,
                beyond: 0,
                is_closed: false,
                is_over: false,
            }),
        }
    }

    fn record(&self, state: &mut State, meta: &Meta, event: &Event<'_>) {
        state.last = meta.time;
        state.is_closed |= is_closing(event);
        if state.records.is_empty() {
            state.since = meta.time;
        }
        let before = state.records.len();
        let count = state.recorder.record(&mut state.records, meta, event);
        if count == 0 {
            return;
        }
        add(&self.shared.counters.events, count);
        let most = match event {
            Event::ConnectionClosed(_) | Event::ConnectionStateUpdated(_) => {
                self.shared.max_bytes.saturating_sub(RESERVE / 4)
            }
            _ if state.beyond > 0 => 0,
            _ => self.shared.max_bytes.saturating_sub(RESERVE),
        };
        if state.bytes + state.records.len() as u64 > most {
            state.records.truncate(before);
            state.beyond += count;
            add(&self.shared.counters.events_dropped, count);
            return;
        }
        state.events += count;
        let is_due = meta.time.saturating_duration_since(state.since) >= AGE;
        if state.records.len() >= PIECE || is_due || is_closing(event) {
            self.send(state);
        }
    }

    /// Passes the records to the writer.
    fn send(&self, state: &mut State) {
        let records = mem::take(&mut state.records);
        let events = mem::take(&mut state.events);
        if events == 0 {
            return;
        }
        let mut piece = Piece {
            log: self.number,
            opening: state.opening.take(),
            records: Vec::new(),
            events,
            is_last: false,
        };
        if state.behind > 0 {
            let time = state.since.saturating_duration_since(state.recorder.epoch);
            let missing = mem::take(&mut state.behind);
            state.recorder.warn(
                &mut piece.records,
                time,
                format_args!("{missing} events are missing: {BEHIND}"),
            );
            piece.records.extend_from_slice(&records);
            match self.push(state, piece) {
                Ok(()) => {}
                Err(lost) => state.behind = missing + lost,
            }
            return;
        }
        piece.records = records;
        if let Err(lost) = self.push(state, piece) {
            state.behind = lost;
        }
    }

    /// Returns the number of records for which the queue had no room.
    fn push(&self, state: &mut State, piece: Piece) -> Result<(), u64> {
        let bytes = piece.records.len() as u64;
        match self.shared.queue.push(piece) {
            Ok(()) => {
                state.bytes += bytes;
                Ok(())
            }
            Err(piece) => {
                state.opening = piece.opening;
                add(&self.shared.counters.events_dropped, piece.events);
                Err(piece.events)
            }
        }
    }

    /// Ends the log. Warnings always have room.
    fn end(&self, state: &mut State) {
        if state.is_over {
            return;
        }
        state.is_over = true;
        self.send(state);
        let mut records = Vec::new();
        let time = state.last.saturating_duration_since(state.recorder.epoch);
        for (missing, why) in [(state.behind, BEHIND), (state.beyond, FULL)] {
            if missing > 0 {
                state.recorder.warn(
                    &mut records,
                    time,
                    format_args!("{missing} events are missing: {why}"),
                );
            }
        }
        if !state.is_closed {
            state
                .recorder
                .warn(&mut records, time, format_args!("{ABANDONED}"));
        }
        let _ = self.shared.queue.push(Piece {
            log: self.number,
            opening: state.opening.take(),
            records,
            events: 0,
            is_last: true,
        });
        self.shared.open.fetch_sub(1, Ordering::Relaxed);
    }
}

const fn is_closing(event: &Event<'_>) -> bool {
    matches!(event, Event::ConnectionClosed(_))
}

/// Returns true if no event follows.
const fn is_last(event: &Event<'_>) -> bool {
    match event {
        Event::ConnectionStateUpdated(change) => matches!(change.new, ConnectionState::Closed),
        _ => false,
    }
}

impl Subscriber for Log {
    fn on_event(&self, meta: &Meta, event: &Event<'_>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.is_over {
            self.record(&mut state, meta, event);
        }
        if is_last(event) {
            self.end(&mut state);
        }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.end(&mut state);
    }
}

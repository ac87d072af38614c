//! The bounded queue between the workers and the writing thread.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A piece of a log.
#[derive(Debug, Default)]
pub(crate) struct Piece {
    /// Number of the log.
    pub(crate) log: u64,
    /// Name and header of the log, with its first piece.
    pub(crate) opening: Option<Opening>,
    /// Records.
    pub(crate) records: Vec<u8>,
    /// Number of records.
    pub(crate) events: u64,
    /// True for the last piece.
    pub(crate) is_last: bool,
}

/// Beginning of a log.
#[derive(Debug)]
pub(crate) struct Opening {
    /// Name of the file, without its ending.
    pub(crate) name: String,
    /// The first record.
    pub(crate) header: Vec<u8>,
}

impl Piece {
    /// Returns the number of bytes.
    pub(crate) fn size(&self) -> usize {
        let header = self.opening.as_ref();
        self.records.len() + header.map_or(0, |opening| opening.header.len())
    }
}

/// The queue. Neither side holds its lock while it works.
#[derive(Debug)]
pub(crate) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    /// Largest number of bytes that may wait.
    most: usize,
}

#[derive(Debug, Default)]
struct State {
    pieces: Vec<Piece>,
    bytes: usize,
    /// True while the writer handles the pieces it took.
    is_busy: bool,
    is_closed: bool,
}

impl Queue {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            state: Mutex::default(),
            changed: Condvar::new(),
            most,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a piece, or returns it if the queue is full. A last piece without records always has
    /// room: there are no more of these than logs.
    pub(crate) fn push(&self, piece: Piece) -> Result<(), Piece> {
        let mut state = self.state();
        let bytes = state.bytes.saturating_add(piece.size());
        if bytes > self.most && !(piece.is_last && piece.events == 0) {
            return Err(piece);
        }
        state.bytes = bytes;
        state.pieces.push(piece);
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    /// Waits for pieces and takes them. Returns `None` once the queue is closed and empty.
    pub(crate) fn take(&self) -> Option<Vec<Piece>> {
        let mut state = self.state();
        state.is_busy = false;
        self.changed.notify_all();
        while state.pieces.is_empty() {
            if state.is_closed {
                return None;
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        state.is_busy = true;
        state.bytes = 0;
        Some(std::mem::take(&mut state.pieces))
    }

    /// Waits until everything that was added has been handled.
    pub(crate) fn wait_until_empty(&self) {
        let mut state = self.state();
        while state.is_busy || !state.pieces.is_empty() {
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Lets the writer end after everything that was added.
    pub(crate) fn close(&self) {
        self.state().is_closed = true;
        self.changed.notify_all();
    }
}

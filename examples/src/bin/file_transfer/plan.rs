//! What a receiver asks for next.

use std::{
    collections::{HashSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{
    error::Error,
    message::{Piece, Report},
    part::Part,
    room::{Reserved, Room},
    sender::PIECE,
    store::{Kept, Store},
};

/// Bytes that are asked for on one stream.
const JOB_BYTES: u64 = 4 << 20;
/// Pieces that are asked for on one stream.
const JOB_PIECES: usize = 256;

/// A piece to ask for.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub(crate) piece: Piece,
    /// `None` for a file of one piece.
    part: Option<Arc<Part>>,
}

/// The files that are missing, in the order in which they are asked for, and what became of others.
///
/// Small files share a stream; the pieces of a large one are spread over several.
#[derive(Debug)]
pub(crate) struct Plan {
    store: Store,
    reserved: Reserved,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<usize>,
    /// Part whose pieces are handed out, and the next piece.
    current: Option<(Arc<Part>, usize)>,
    /// Files that are given up.
    failed: HashSet<usize>,
    report: Report,
}

impl Plan {
    /// Makes a plan for the files of the store. Returns it with the number of bytes that are missing. It
    /// reads files: call it from a blocking thread.
    pub(crate) fn new(store: Store, room: &Arc<Room>) -> Result<(Self, u64), Error> {
        let missing = store.missing();
        let reserved = store.reserve(&missing, room)?;
        let mut wanted = 0;
        for &file in &missing {
            let size = store.file(file).map_or(0, |(_, contents)| contents.size);
            wanted += size;
            if size > u64::from(PIECE) {
                wanted -= store.part(file)?.bytes_there();
            }
        }
        let report = Report {
            unchanged: (store.manifest().files() - missing.len()) as u64,
            ..Report::default()
        };
        let state = State {
            waiting: missing.into(),
            report,
            ..State::default()
        };
        Ok((
            Self {
                store,
                reserved,
                state: Mutex::new(state),
            },
            wanted,
        ))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the pieces for the next stream; none if nothing is left. It opens files: call it from a
    /// blocking thread.
    pub(crate) fn next(&self) -> Result<Vec<Task>, Error> {
        let mut job = Vec::new();
        let mut bytes = 0;
        let mut state = self.state();
        while bytes < JOB_BYTES && job.len() < JOB_PIECES {
            let Some(task) = self.task(&mut state)? else {
                break;
            };
            bytes += u64::from(task.piece.len);
            job.push(task);
        }
        Ok(job)
    }

    fn task(&self, state: &mut State) -> Result<Option<Task>, Error> {
        loop {
            if let Some((part, from)) = state.current.take() {
                let is_failed = state.failed.contains(&part.file);
                if let Some((number, piece)) = part.missing_from(from).filter(|_| !is_failed) {
                    state.current = Some((Arc::clone(&part), number + 1));
                    return Ok(Some(Task {
                        piece,
                        part: Some(part),
                    }));
                }
            } else if let Some(file) = state.waiting.pop_front() {
                let size = self
                    .store
                    .file(file)
                    .map_or(0, |(_, contents)| contents.size);
                if size <= u64::from(PIECE) {
                    let piece = Piece {
                        file: file as u32,
                        offset: 0,
                        len: size as u32,
                    };
                    return Ok(Some(Task { piece, part: None }));
                }
                let part = self.store.part(file)?;
                if part.is_complete() {
                    let kept = self.store.keep_part(&part, &self.reserved)?;
                    self.on_part(state, &part, kept);
                } else {
                    state.current = Some((Arc::new(part), 0));
                }
            } else {
                return Ok(None);
            }
        }
    }

    /// Writes the bytes of a piece. Call it from a blocking thread.
    pub(crate) fn done(&self, task: &Task, bytes: &[u8]) -> Result<(), Error> {
        let file = task.piece.file as usize;
        self.state().report.bytes += bytes.len() as u64;
        let Some(part) = &task.part else {
            let kept = self.store.keep_bytes(file, bytes)?;
            self.reserved.on_written(bytes.len() as u64);
            self.on_kept(&mut self.state(), file, kept);
            return Ok(());
        };
        let failed = |error| Error::Io {
            what: self.name(file),
            error,
        };
        let is_last = part.write(task.piece, bytes).map_err(failed)?;
        self.reserved.on_written(bytes.len() as u64);
        if is_last {
            let kept = self.store.keep_part(part, &self.reserved)?;
            self.on_part(&mut self.state(), part, kept);
        }
        Ok(())
    }

    fn on_part(&self, state: &mut State, part: &Part, kept: Kept) {
        if kept == Kept::Differs && part.resumed {
            // An earlier transfer may have left damage: once more, from the beginning.
            state.waiting.push_back(part.file);
        } else {
            self.on_kept(state, part.file, kept);
        }
    }

    fn on_kept(&self, state: &mut State, file: usize, kept: Kept) {
        match kept {
            Kept::Written => state.report.written += 1,
            Kept::Differs => {
                self.on_failed(state, file, "its contents are not those that were listed");
            }
        }
    }

    fn on_failed(&self, state: &mut State, file: usize, why: &str) {
        if state.failed.insert(file) {
            state.report.failed += 1;
            let first = &mut state.report.first_failed;
            first.get_or_insert_with(|| format!("{} ({why})", self.name(file)));
        }
    }

    /// Gives up the file of a task, which the sender could not read.
    pub(crate) fn on_unreadable(&self, task: &Task) {
        let why = "it was changed or removed meanwhile";
        self.on_failed(&mut self.state(), task.piece.file as usize, why);
    }

    fn name(&self, file: usize) -> String {
        self.store
            .file(file)
            .map_or_else(String::new, |(entry, _)| entry.path.to_string())
    }

    /// Ends the transfer, once nothing is left. Returns what was done.
    pub(crate) fn finish(&self) -> Result<Report, Error> {
        self.store.finish()?;
        Ok(self.state().report.clone())
    }
}

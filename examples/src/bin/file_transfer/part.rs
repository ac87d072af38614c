//! An unfinished file, and the journal of the pieces it has.

use std::{
    fs::File,
    io::{self, Read as _, Write as _},
    os::unix::fs::FileExt as _,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::{
    checksum::Checksum,
    manifest::{Contents, Entry},
    message::Piece,
    root::Root,
    sender::PIECE,
};

/// A file that arrives in pieces. Its journal has the number of every piece that was written, four bytes
/// each, so that a later transfer asks for the others only. What the journal says is not trusted: the checksum
/// of the whole decides.
#[derive(Debug)]
pub(crate) struct Part {
    /// Place of the file in the list.
    pub(crate) file: usize,
    pub(crate) contents: Contents,
    /// True if an earlier transfer wrote pieces of it.
    pub(crate) resumed: bool,
    names: Names,
    data: File,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    journal: File,
    /// True for each piece that is there.
    there: Vec<bool>,
    missing: usize,
}

/// Names of the files in the work folder.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    pub(crate) data: String,
    pub(crate) journal: String,
}

impl Names {
    /// Returns the names for a file: others if its path or contents change.
    pub(crate) fn of(entry: &Entry, contents: &Contents) -> Self {
        let mark = Self::prefix(entry) + &contents.sha256.to_hex();
        Self {
            data: format!("{mark}.part"),
            journal: format!("{mark}.journal"),
        }
    }

    /// Returns what the names for a path begin with, whatever its contents.
    pub(crate) fn prefix(entry: &Entry) -> String {
        Checksum::of(entry.path.as_str().as_bytes()).to_hex() + "-"
    }

    pub(crate) fn remove(&self, work: &Root) -> io::Result<()> {
        work.remove(&self.data)?;
        work.remove(&self.journal)
    }
}

impl Part {
    /// Opens the part of a file, with the pieces that an earlier transfer left.
    pub(crate) fn open(
        work: &Root,
        file: usize,
        entry: &Entry,
        contents: Contents,
    ) -> io::Result<Self> {
        let names = Names::of(entry, &contents);
        let data = work.write(&names.data)?;
        let mut journal = work.write(&names.journal)?;
        let count = contents.size.div_ceil(u64::from(PIECE)) as usize;
        let mut there = vec![false; count];
        let mut missing = count;
        if data.metadata()?.len() == contents.size {
            let mut text = Vec::new();
            // Every piece is written once.
            (&mut journal)
                .take(count as u64 * 4)
                .read_to_end(&mut text)?;
            for number in text.as_chunks::<4>().0 {
                if let Some(piece @ false) = there.get_mut(u32::from_be_bytes(*number) as usize) {
                    *piece = true;
                    missing -= 1;
                }
            }
        } else {
            journal.set_len(0)?;
            data.set_len(contents.size)?;
        }
        let state = Mutex::new(State {
            journal,
            there,
            missing,
        });
        let resumed = missing < count;
        Ok(Self {
            file,
            contents,
            resumed,
            names,
            data,
            state,
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.state().missing == 0
    }

    /// Returns the number of bytes that are there.
    pub(crate) fn bytes_there(&self) -> u64 {
        let pieces = (0..self.state().there.len()).filter(|&number| !self.lacks(number));
        pieces.map(|number| u64::from(self.piece(number).len)).sum()
    }

    fn lacks(&self, number: usize) -> bool {
        self.state().there.get(number) == Some(&false)
    }

    /// Returns the next missing piece from this number on, with its number.
    pub(crate) fn missing_from(&self, number: usize) -> Option<(usize, Piece)> {
        let count = self.state().there.len();
        let number = (number..count).find(|&number| self.lacks(number))?;
        Some((number, self.piece(number)))
    }

    fn piece(&self, number: usize) -> Piece {
        let offset = number as u64 * u64::from(PIECE);
        let len = self
            .contents
            .size
            .saturating_sub(offset)
            .min(u64::from(PIECE)) as u32;
        Piece {
            file: self.file as u32,
            offset,
            len,
        }
    }

    /// Writes a piece. Returns true if it was the last one that was missing.
    pub(crate) fn write(&self, piece: Piece, bytes: &[u8]) -> io::Result<bool> {
        self.data.write_all_at(bytes, piece.offset)?;
        let number = (piece.offset / u64::from(PIECE)) as u32;
        let mut state = self.state();
        state.journal.write_all(&number.to_be_bytes())?;
        if let Some(there @ false) = state.there.get_mut(number as usize) {
            *there = true;
            state.missing -= 1;
        }
        Ok(state.missing == 0)
    }

    /// Returns true if the whole is what was listed.
    pub(crate) fn is_right(&self) -> io::Result<bool> {
        let contents = self.contents;
        Ok(Checksum::of_file(&self.data, contents.size)? == contents.sha256)
    }

    pub(crate) fn data(&self) -> &File {
        &self.data
    }

    pub(crate) fn names(&self) -> &Names {
        &self.names
    }
}

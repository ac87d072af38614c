//! The thread that writes logs: to files in a directory, or to one stream.

pub(crate) mod queue;

use std::{
    collections::{HashMap, VecDeque},
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use self::queue::{Opening, Piece, Queue};
use super::{Counters, add};

/// File name extension (draft-ietf-quic-qlog-main-schema-14 §11.2).
const ENDING: &str = "sqlog";

/// Destination of logs.
pub(super) enum Output {
    Directory(Directory),
    Stream(Box<dyn Write + Send>),
}

/// A directory with a file for each log.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    open: HashMap<u64, (File, PathBuf)>,
    /// All files, oldest first.
    files: VecDeque<PathBuf>,
    most: usize,
    /// Number of the next log whose connection id and role already have a file. Each number is used
    /// once: a client chooses its id, and may choose the same one again and again.
    next_twin: u64,
}

impl Directory {
    /// Creates the directory if it does not exist, and looks for logs in it.
    pub(super) fn open(path: PathBuf, most: usize) -> io::Result<Self> {
        fs::create_dir_all(&path)?;
        let mut found = Vec::new();
        let mut last_twin = 1;
        for entry in fs::read_dir(&path)? {
            let entry = entry?;
            if let Some(number) = number_of(Path::new(&entry.file_name())) {
                last_twin = number.max(last_twin);
                found.push((entry.metadata()?.modified()?, entry.path()));
            }
        }
        found.sort();
        Ok(Self {
            path,
            open: HashMap::new(),
            files: found.into_iter().map(|(_, path)| path).collect(),
            most,
            next_twin: last_twin.saturating_add(1),
        })
    }

    fn create(&mut self, opening: &Opening, counters: &Counters) -> io::Result<(File, PathBuf)> {
        self.make_room(counters);
        let mut name = format!("{}.{ENDING}", opening.name);
        loop {
            let path = self.path.join(name);
            let mut options = File::options();
            options.write(true).create_new(true);
            // Addresses and ids must not be readable by anybody else.
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o640);
            match options.open(&path) {
                Ok(file) => {
                    self.files.push_back(path.clone());
                    return Ok((file, path));
                }
                // The number is new in this process, but another process may have used it. No
                // number is tried twice.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    name = format!("{}_{}.{ENDING}", opening.name, self.next_twin);
                    self.next_twin = self.next_twin.checked_add(1).ok_or(error)?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Removes the oldest complete files, so that there is room for another.
    fn make_room(&mut self, counters: &Counters) {
        while self.files.len() >= self.most {
            let is_open = |path: &PathBuf| self.open.values().any(|(_, open)| open == path);
            let Some(at) = self.files.iter().position(|path| !is_open(path)) else {
                return;
            };
            if let Some(path) = self.files.remove(at) {
                // Another process may have removed it.
                if fs::remove_file(&path).is_ok() {
                    add(&counters.files_removed, 1);
                }
            }
        }
    }

    /// Writes a piece of a log to its file. Returns the number of bytes written.
    pub(super) fn write(&mut self, piece: &Piece, counters: &Counters) -> io::Result<usize> {
        if let Some(opening) = &piece.opening {
            let mut opened = self.create(opening, counters)?;
            opened.0.write_all(&opening.header)?;
            self.open.insert(piece.log, opened);
        }
        let Some((file, _)) = self.open.get_mut(&piece.log) else {
            // An earlier error, which was already reported.
            add(&counters.events_dropped, piece.events);
            return Ok(0);
        };
        let written = file.write_all(&piece.records);
        if written.is_err() || piece.is_last {
            self.open.remove(&piece.log);
        }
        written.map(|()| piece.size())
    }
}

/// Returns the number in the name of a file that this module wrote, 1 if it has none; `None` for
/// other files.
fn number_of(name: &Path) -> Option<u64> {
    let stem = name.file_stem().and_then(|stem| stem.to_str());
    let mut parts = stem.unwrap_or_default().split('_');
    let (id, role, number) = (parts.next()?, parts.next()?, parts.next());
    let ours = name.extension().is_some_and(|ending| ending == ENDING)
        && id.len() >= 2
        && id.bytes().all(|byte| byte.is_ascii_hexdigit())
        && matches!(role, "client" | "server")
        && parts.next().is_none();
    let number = number.map_or(Some(1), |number| number.parse().ok());
    number.filter(|_| ours)
}

impl Output {
    /// Returns the number of bytes written.
    fn write(&mut self, piece: &Piece, counters: &Counters) -> io::Result<usize> {
        match self {
            Self::Directory(directory) => directory.write(piece, counters),
            Self::Stream(stream) => {
                if let Some(opening) = &piece.opening {
                    stream.write_all(&opening.header)?;
                }
                stream.write_all(&piece.records)?;
                Ok(piece.size())
            }
        }
    }

    /// Writes everything that arrives in the queue until the queue is closed.
    pub(super) fn run(mut self, queue: &Arc<Queue>, counters: &Counters) {
        let mut reported = false;
        while let Some(pieces) = queue.take() {
            for piece in &pieces {
                match self.write(piece, counters) {
                    Ok(bytes) => add(&counters.bytes, bytes as u64),
                    Err(error) => {
                        add(&counters.write_errors, 1);
                        add(&counters.events_dropped, piece.events);
                        if !reported {
                            tracing::warn!(%error, "cannot write a qlog");
                            reported = true;
                        }
                    }
                }
            }
            if let Self::Stream(stream) = &mut self {
                if let Err(error) = stream.flush() {
                    tracing::debug!(%error, "cannot flush a qlog");
                }
            }
        }
    }
}

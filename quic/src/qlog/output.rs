//! The thread that writes logs: to files of a directory, or to one stream.

use std::{
    collections::{HashMap, VecDeque},
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    queue::{Opening, Piece, Queue},
    stats::{Counters, add},
};

/// Ending of the names of files (draft-ietf-quic-qlog-main-schema-14 §11.2).
const ENDING: &str = "sqlog";

/// Largest number of files with the same connection and role. A client chooses the id, and may
/// choose it again.
const SAME_NAME: usize = 100;

/// Place that logs are written to.
pub(super) enum Output {
    Directory(Directory),
    Stream(Box<dyn Write + Send>),
}

/// A directory with a file for each log.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    open: HashMap<u64, (File, PathBuf)>,
    /// All files, the oldest first.
    files: VecDeque<PathBuf>,
    most: usize,
}

impl Directory {
    /// Makes the directory if it does not exist, and looks for the logs in it.
    pub(super) fn open(path: PathBuf, most: usize) -> io::Result<Self> {
        fs::create_dir_all(&path)?;
        let mut found = Vec::new();
        for entry in fs::read_dir(&path)? {
            let entry = entry?;
            if is_log(Path::new(&entry.file_name())) {
                found.push((entry.metadata()?.modified()?, entry.path()));
            }
        }
        found.sort();
        Ok(Self {
            path,
            open: HashMap::new(),
            files: found.into_iter().map(|(_, path)| path).collect(),
            most,
        })
    }

    fn create(&mut self, opening: &Opening, counters: &Counters) -> io::Result<(File, PathBuf)> {
        self.make_room(counters);
        for number in 1..=SAME_NAME {
            let name = match number {
                1 => format!("{}.{ENDING}", opening.name),
                _ => format!("{}_{number}.{ENDING}", opening.name),
            };
            let path = self.path.join(name);
            let mut options = File::options();
            options.write(true).create_new(true);
            // Addresses and ids are nobody else's business.
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o640);
            match options.open(&path) {
                Ok(file) => {
                    self.files.push_back(path.clone());
                    return Ok((file, path));
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Removes the oldest files that are complete, so that there is room for another.
    fn make_room(&mut self, counters: &Counters) {
        while self.files.len() >= self.most {
            let is_open = |path: &PathBuf| self.open.values().any(|(_, open)| open == path);
            let Some(at) = self.files.iter().position(|path| !is_open(path)) else {
                return;
            };
            if let Some(path) = self.files.remove(at) {
                // Somebody else may have removed it.
                if fs::remove_file(&path).is_ok() {
                    add(&counters.files_removed, 1);
                }
            }
        }
    }

    /// Returns the number of bytes written.
    fn write(&mut self, piece: &Piece, counters: &Counters) -> io::Result<usize> {
        if let Some(opening) = &piece.opening {
            let mut opened = self.create(opening, counters)?;
            opened.0.write_all(&opening.header)?;
            self.open.insert(piece.log, opened);
        }
        let Some((file, _)) = self.open.get_mut(&piece.log) else {
            // An earlier error, which was reported.
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

/// Returns true for the name of a file that this module wrote.
fn is_log(name: &Path) -> bool {
    let stem = name.file_stem().and_then(|stem| stem.to_str());
    let mut parts = stem.unwrap_or_default().split('_');
    let (id, role, number) = (parts.next(), parts.next(), parts.next());
    name.extension().is_some_and(|ending| ending == ENDING)
        && id.is_some_and(|id| id.len() >= 2 && id.bytes().all(|byte| byte.is_ascii_hexdigit()))
        && matches!(role, Some("client" | "server"))
        && number.is_none_or(|number| number.parse::<usize>().is_ok())
        && parts.next().is_none()
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

    /// Writes what arrives in the queue until the queue is closed.
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

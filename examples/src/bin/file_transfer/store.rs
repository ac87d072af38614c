//! The folder that a transfer writes into.

use std::{
    collections::HashSet,
    fs::{File, Permissions},
    io::{self, Write as _},
    os::unix::fs::PermissionsExt as _,
    sync::Arc,
    time::{Duration, SystemTime},
};

use crate::{
    checksum::{self, Checksum},
    error::Error,
    manifest::{Contents, Entry, Kind, Manifest},
    part::{Names, Part},
    path::WORK,
    room::{Reserved, Room},
    root::{Missing, Root},
};

/// A folder with a work folder in it, where files are written before they appear under their names.
#[derive(Debug)]
pub(crate) struct Store {
    root: Root,
    work: Root,
    manifest: Manifest,
}

/// End of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// It has its name.
    Written,
    /// Its checksum differs from that in the list. What was received is removed.
    Differs,
}

impl Store {
    /// Opens the folder for the files of a list, and makes the folders in it.
    ///
    /// # Errors
    /// [`Error::Busy`] while another transfer writes into it.
    pub(crate) fn open(root: Root, manifest: Manifest) -> Result<Self, Error> {
        let failed = |error| Error::Io {
            what: WORK.to_owned(),
            error,
        };
        let work = root.below(Some(WORK), Missing::Create).map_err(failed)?;
        if !work.lock().map_err(failed)? {
            return Err(Error::Busy);
        }
        for entry in manifest
            .entries()
            .iter()
            .filter(|entry| entry.kind == Kind::Folder)
        {
            let made = root.below(Some(entry.path.as_str()), Missing::Create);
            made.map_err(Error::at(&entry.path))?;
        }
        Ok(Self {
            root,
            work,
            manifest,
        })
    }

    pub(crate) fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns the file at a place of the list.
    pub(crate) fn file(&self, file: usize) -> Option<(&Entry, Contents)> {
        let entry = self.manifest.entries().get(file)?;
        Some((entry, entry.contents()?))
    }

    /// Returns the places of files whose contents are not there yet. It reads what is there.
    pub(crate) fn missing(&self) -> Vec<usize> {
        let all: Vec<_> = (0..self.manifest.entries().len()).collect();
        let missing = checksum::each(&all, |&file| match self.file(file) {
            Some((entry, contents)) => !self.has(entry, &contents),
            None => false,
        });
        all.into_iter()
            .zip(missing)
            .filter_map(|(file, missing)| missing.then_some(file))
            .collect()
    }

    fn has(&self, entry: &Entry, contents: &Contents) -> bool {
        let same = || -> io::Result<bool> {
            let file = self.root.read(&entry.path)?;
            let is_same = file.metadata()?.len() == contents.size
                && Checksum::of_file(&file, contents.size)? == contents.sha256;
            if is_same {
                dress(&file, entry, contents)?;
            }
            Ok(is_same)
        };
        // It is written again if it cannot be read.
        same().unwrap_or(false)
    }

    /// Reserves the space for files, before anything is made as large as the list says.
    ///
    /// # Errors
    /// [`Error::NoSpace`] if too little is left after what other transfers have reserved.
    pub(crate) fn reserve(&self, files: &[usize], room: &Arc<Room>) -> Result<Reserved, Error> {
        let reserve = || {
            let mut needed = 0_u64;
            for (entry, contents) in files.iter().filter_map(|&file| self.file(file)) {
                let there = self.work.allocated(&Names::of(entry, &contents).data)?;
                needed = needed.saturating_add(contents.size.saturating_sub(there));
            }
            room.reserve(self.root.device()?, needed, || self.root.free())
        };
        reserve().map_err(|error| Error::Io {
            what: WORK.to_owned(),
            error,
        })?
    }

    /// Opens the part of a file.
    pub(crate) fn part(&self, file: usize) -> Result<Part, Error> {
        let (entry, contents) = self.file(file).ok_or_else(not_listed)?;
        Part::open(&self.work, file, entry, contents).map_err(Error::at(&entry.path))
    }

    /// Writes a file that arrived in one piece.
    pub(crate) fn keep_bytes(&self, file: usize, bytes: &[u8]) -> Result<Kept, Error> {
        let (entry, contents) = self.file(file).ok_or_else(not_listed)?;
        if Checksum::of(bytes) != contents.sha256 {
            return Ok(Kept::Differs);
        }
        let names = Names::of(entry, &contents);
        let write = || {
            let mut data = self.work.write(&names.data)?;
            data.set_len(0)?;
            data.write_all(bytes)?;
            dress(&data, entry, &contents)?;
            self.work.rename(&names.data, &self.root, &entry.path)
        };
        write().map_err(Error::at(&entry.path))?;
        Ok(Kept::Written)
    }

    /// Checks a file whose pieces are all there, and gives it its name.
    pub(crate) fn keep_part(&self, part: &Part, reserved: &Reserved) -> Result<Kept, Error> {
        let (entry, contents) = self.file(part.file).ok_or_else(not_listed)?;
        let names = part.names();
        let keep = || {
            if !part.is_right()? {
                if part.resumed {
                    reserved.again(contents.size);
                }
                names.remove(&self.work)?;
                return Ok(Kept::Differs);
            }
            dress(part.data(), entry, &contents)?;
            self.work.rename(&names.data, &self.root, &entry.path)?;
            self.work.remove(&names.journal)?;
            Ok(Kept::Written)
        };
        keep().map_err(Error::at(&entry.path))
    }

    /// Sets the modes of the folders, the innermost first, and removes what is left in the work folder of files
    /// in the list, former contents too. Unfinished files of other transfers stay, so that those can resume.
    pub(crate) fn finish(&self) -> Result<(), Error> {
        let folders = self
            .manifest
            .entries()
            .iter()
            .filter(|entry| entry.kind == Kind::Folder);
        let mut folders: Vec<_> = folders.collect();
        folders.sort_unstable_by(|a, b| b.path.cmp(&a.path));
        for entry in folders {
            let folder = self.root.below(Some(entry.path.as_str()), Missing::Fail);
            let set = folder.and_then(|folder| folder.set_mode(entry.mode));
            set.map_err(Error::at(&entry.path))?;
        }
        let clean = || {
            let prefixes: HashSet<_> = self.manifest.entries().iter().map(Names::prefix).collect();
            let mut others = false;
            for found in self.work.list()? {
                let name = found.name.to_string_lossy();
                let prefix = name.split_inclusive('-').next();
                if prefix.is_some_and(|prefix| prefixes.contains(prefix)) {
                    self.work.remove(&name)?;
                } else {
                    others = true;
                }
            }
            if others {
                return Ok(());
            }
            self.root.remove_folder(WORK)
        };
        clean().map_err(|error| Error::Io {
            what: WORK.to_owned(),
            error,
        })
    }
}

fn not_listed() -> Error {
    Error::Protocol("a file that is not in the list".to_owned())
}

/// Gives a file its mode and its time.
fn dress(file: &File, entry: &Entry, contents: &Contents) -> io::Result<()> {
    let since = Duration::from_nanos(contents.modified.unsigned_abs());
    let modified = if contents.modified < 0 {
        SystemTime::UNIX_EPOCH.checked_sub(since)
    } else {
        SystemTime::UNIX_EPOCH.checked_add(since)
    };
    file.set_permissions(Permissions::from_mode(entry.mode))?;
    file.set_modified(modified.unwrap_or(SystemTime::UNIX_EPOCH))
}

//! A folder that nothing leads out of.

use std::{
    ffi::OsString,
    fs::File,
    io,
    os::{fd::OwnedFd, unix::ffi::OsStringExt as _},
    path::Path,
};

use rustix::{
    fs::{self, AtFlags, FileType, FlockOperation, Mode, OFlags, RawMode},
    io::Errno,
};

use crate::path::RelativePath;

const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);
const FOLDER_MODE: Mode = Mode::from_raw_mode(0o777);

/// An open folder. Every name of a path is looked up in the folder before it, and symbolic links are not
/// followed, whoever made them and whenever: what is reached lies below the folder.
#[derive(Debug)]
pub(crate) struct Root(OwnedFd);

/// What to do about folders that are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    Create,
    Fail,
}

/// A name in a folder.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) name: OsString,
    pub(crate) kind: FileType,
}

impl Root {
    /// Opens a folder that the user named; here symbolic links are followed.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(fs::open(
            path,
            FOLDER | OFlags::RDONLY,
            Mode::empty(),
        )?))
    }

    /// Opens a folder below this one; `None` is this one.
    pub(crate) fn below(&self, path: Option<&str>, missing: Missing) -> io::Result<Self> {
        let mut folder = Self(self.0.try_clone()?);
        for name in path.into_iter().flat_map(|path| path.split('/')) {
            folder = folder.child(name, missing)?;
        }
        Ok(folder)
    }

    fn child(&self, name: &str, missing: Missing) -> io::Result<Self> {
        let flags = FOLDER | OFlags::RDONLY | OFlags::NOFOLLOW;
        if missing == Missing::Create {
            match fs::mkdirat(&self.0, name, FOLDER_MODE) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        match fs::openat(&self.0, name, flags, Mode::empty()) {
            Ok(folder) => Ok(Self(folder)),
            Err(Errno::LOOP | Errno::NOTDIR) => Err(not_a_folder()),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a file for reading.
    ///
    /// # Errors
    /// It is missing or no regular file.
    pub(crate) fn read(&self, path: &RelativePath) -> io::Result<File> {
        let (folder, name) = path.split();
        // Opening a pipe would wait for its writer.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let folder = self.below(folder, Missing::Fail)?;
        let file = match fs::openat(&folder.0, name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::LOOP) => return Err(not_a_file()),
            Err(error) => return Err(error.into()),
        };
        if file.metadata()?.is_file() {
            Ok(file)
        } else {
            Err(not_a_file())
        }
    }

    /// Opens a file of this folder for reading and writing, and creates it if it is missing. Nobody else
    /// may read it until it has its mode.
    ///
    /// A file that cannot be opened makes room: an earlier transfer that was cut at its end has left one
    /// that is read-only already.
    pub(crate) fn write(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = || fs::openat(&self.0, name, flags, Mode::RUSR | Mode::WUSR);
        let file = match open() {
            Err(Errno::ACCESS | Errno::LOOP) => {
                self.remove(name)?;
                open()
            }
            opened => opened,
        };
        Ok(file?.into())
    }

    /// Moves a file of this folder to a path below another, in place of what is there.
    pub(crate) fn rename(&self, name: &str, to: &Self, path: &RelativePath) -> io::Result<()> {
        let (folder, new_name) = path.split();
        let folder = to.below(folder, Missing::Create)?;
        match fs::renameat(&self.0, name, &folder.0, new_name) {
            Err(Errno::ISDIR) => Err(io::Error::new(
                io::ErrorKind::IsADirectory,
                "a folder is there; remove or rename it",
            )),
            moved => Ok(moved?),
        }
    }

    /// Removes a file of this folder, if it is there.
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        absent(fs::unlinkat(&self.0, name, AtFlags::empty()))
    }

    /// Removes an empty folder of this folder, if it is there.
    pub(crate) fn remove_folder(&self, name: &str) -> io::Result<()> {
        absent(fs::unlinkat(&self.0, name, AtFlags::REMOVEDIR))
    }

    /// Sets the mode of this folder.
    pub(crate) fn set_mode(&self, mode: u32) -> io::Result<()> {
        Ok(fs::fchmod(&self.0, Mode::from_raw_mode(mode as RawMode))?)
    }

    /// Returns the mode of this folder.
    pub(crate) fn mode(&self) -> io::Result<u32> {
        let raw = fs::fstat(&self.0)?.st_mode;
        Ok(Mode::from_raw_mode(raw).as_raw_mode() as u32)
    }

    /// Returns what lies in this folder, in the order of the names.
    pub(crate) fn list(&self) -> io::Result<Vec<Found>> {
        let mut found = Vec::new();
        for entry in fs::Dir::read_from(&self.0)? {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => {
                    let stat = fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)?;
                    FileType::from_raw_mode(stat.st_mode)
                }
                kind => kind,
            };
            let name = OsString::from_vec(name.to_bytes().to_vec());
            found.push(Found { name, kind });
        }
        found.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }

    /// Locks this folder against other openings of it, until it is dropped. Returns false if another opening
    /// has locked it.
    pub(crate) fn lock(&self) -> io::Result<bool> {
        match fs::flock(&self.0, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(true),
            Err(Errno::WOULDBLOCK) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the bytes of the disk that a file of this folder takes up; 0 if it is missing.
    pub(crate) fn allocated(&self, name: &str) -> io::Result<u64> {
        match fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW) {
            // Blocks have 512 bytes here, whatever those of the file system have.
            Ok(stat) => Ok(stat.st_blocks as u64 * 512),
            Err(Errno::NOENT) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the number of the file system that this folder is on.
    pub(crate) fn device(&self) -> io::Result<u64> {
        Ok(fs::fstat(&self.0)?.st_dev)
    }

    /// Returns the bytes that may still be written.
    pub(crate) fn free(&self) -> io::Result<u64> {
        let stat = fs::fstatvfs(&self.0)?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }
}

fn absent(removed: rustix::io::Result<()>) -> io::Result<()> {
    match removed {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn not_a_folder() -> io::Error {
    io::Error::new(
        io::ErrorKind::NotADirectory,
        "a name in the path is a symbolic link or no folder; links are not followed",
    )
}

fn not_a_file() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidInput,
        "it is no regular file; symbolic links are not followed",
    )
}

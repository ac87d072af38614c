//! Lists the files of a folder with their checksums.

use std::{fs::Metadata, io, os::unix::fs::MetadataExt as _, path::Path};

use rustix::fs::FileType;

use crate::{
    checksum::{self, Checksum},
    error::Error,
    manifest::{Contents, Entry, Kind, Manifest},
    path::{RelativePath, WORK},
    root::{Missing, Root},
};

/// Files to send.
#[derive(Debug)]
pub(crate) struct Scan {
    /// Folder that the paths of the list begin in.
    pub(crate) root: Root,
    pub(crate) manifest: Manifest,
    /// Symbolic links, pipes, sockets and devices, which are not sent.
    pub(crate) skipped: u64,
}

impl Scan {
    /// Lists a file or folder that the user named. It reads all files: call it from a blocking thread.
    pub(crate) fn of(path: &Path) -> Result<Self, Error> {
        let failed = |error| Error::Io {
            what: path.display().to_string(),
            error,
        };
        let path = path.canonicalize().map_err(failed)?;
        match (path.is_dir(), path.parent(), path.file_name()) {
            (false, Some(folder), Some(name)) => {
                let name = name
                    .to_str()
                    .ok_or_else(|| Error::NotUnicode(path.clone()))?;
                let name = name.parse().map_err(|rule| Error::Name {
                    path: path.clone(),
                    rule,
                })?;
                Self::below(&Root::open(folder).map_err(failed)?, Some(&name))
            }
            _ => Self::below(&Root::open(&path).map_err(failed)?, None),
        }
    }

    /// Lists a file or folder below another; `None` is the folder itself. It reads all files: call it from
    /// a blocking thread.
    pub(crate) fn below(root: &Root, path: Option<&RelativePath>) -> Result<Self, Error> {
        let failed = |error| match path {
            Some(path) => Error::at(path)(error),
            None => Error::Io {
                what: "the folder".to_owned(),
                error,
            },
        };
        match root.below(path.map(RelativePath::as_str), Missing::Fail) {
            Ok(folder) => Self::of_folder(folder),
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                let Some(path) = path else {
                    return Err(failed(error));
                };
                let (folder, name) = path.split();
                let name = name.parse().unwrap_or_else(|_| path.clone());
                let root = root.below(folder, Missing::Fail).map_err(failed)?;
                let entries = vec![read(&root, &name).map_err(failed)?];
                Ok(Self {
                    root,
                    manifest: Manifest::of_own(entries),
                    skipped: 0,
                })
            }
            Err(error) => Err(failed(error)),
        }
    }

    fn of_folder(root: Root) -> Result<Self, Error> {
        let mut walk = Walk::default();
        walk.folder(&root, None)?;
        while let Some(path) = walk.waiting.pop() {
            let failed = Error::at(&path);
            let folder = root
                .below(Some(path.as_str()), Missing::Fail)
                .map_err(failed)?;
            walk.folder(&folder, Some(&path))?;
        }
        let read = |path: &RelativePath| read(&root, path).map_err(Error::at(path));
        let files: Result<Vec<_>, _> = checksum::each(&walk.files, read).into_iter().collect();
        walk.entries.extend(files?);
        let manifest = Manifest::of_own(walk.entries);
        Ok(Self {
            root,
            manifest,
            skipped: walk.skipped,
        })
    }
}

/// Folders and files that were found so far.
#[derive(Default)]
struct Walk {
    waiting: Vec<RelativePath>,
    entries: Vec<Entry>,
    files: Vec<RelativePath>,
    skipped: u64,
}

impl Walk {
    fn folder(&mut self, folder: &Root, path: Option<&RelativePath>) -> Result<(), Error> {
        let failed = |error| match path {
            Some(path) => Error::at(path)(error),
            None => Error::Io {
                what: "the folder".to_owned(),
                error,
            },
        };
        if let Some(path) = path {
            let mode = folder.mode().map_err(failed)?;
            self.entries.push(Entry {
                path: path.clone(),
                mode,
                kind: Kind::Folder,
            });
        }
        for found in folder.list().map_err(failed)? {
            if found.name == WORK {
                continue;
            }
            if !matches!(found.kind, FileType::Directory | FileType::RegularFile) {
                self.skipped += 1;
                continue;
            }
            let whole = || {
                path.map_or("".as_ref(), |path| Path::new(path.as_str()))
                    .join(&found.name)
            };
            let name = found
                .name
                .to_str()
                .ok_or_else(|| Error::NotUnicode(whole()))?;
            let child = match path {
                Some(path) => path.join(name),
                None => name.parse(),
            };
            let child = child.map_err(|rule| Error::Name {
                path: whole(),
                rule,
            })?;
            if found.kind == FileType::Directory {
                self.waiting.push(child);
            } else {
                self.files.push(child);
            }
        }
        Ok(())
    }
}

fn read(root: &Root, path: &RelativePath) -> io::Result<Entry> {
    let file = root.read(path)?;
    let metadata = file.metadata()?;
    let size = metadata.len();
    let sha256 = Checksum::of_file(&file, size)?;
    let contents = Contents {
        size,
        modified: modified(&metadata),
        sha256,
    };
    Ok(Entry {
        path: path.clone(),
        mode: metadata.mode() & 0o777,
        kind: Kind::File(contents),
    })
}

/// Returns the time of the last change in nanoseconds; it fits until the year 2262.
fn modified(metadata: &Metadata) -> i64 {
    let seconds = metadata.mtime().saturating_mul(1_000_000_000);
    seconds.saturating_add(metadata.mtime_nsec())
}

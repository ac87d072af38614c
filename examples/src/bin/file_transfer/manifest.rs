//! The list of what a transfer consists of.

use std::collections::HashSet;

use hybriq::error::Printable;
use serde::{Deserialize, Serialize};

use crate::{
    checksum::Checksum,
    path::{RelativePath, UnsafePath},
};

/// Largest number of files and folders of a transfer.
const MAX_ENTRIES: usize = 500_000;
/// Largest sum of the lengths of all paths, which bounds the memory for a list.
const MAX_PATH_BYTES: usize = 64 << 20;

/// A file or a folder, as it is sent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RawEntry {
    pub(crate) path: String,
    /// Rights of owner, group and others.
    pub(crate) mode: u32,
    pub(crate) kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    Folder,
    File(Contents),
}

/// Facts about the contents of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Contents {
    pub(crate) size: u64,
    /// Time of the last change, in nanoseconds since 1970.
    pub(crate) modified: i64,
    pub(crate) sha256: Checksum,
}

/// A file or a folder that is safe to write.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) path: RelativePath,
    pub(crate) mode: u32,
    pub(crate) kind: Kind,
}

impl Entry {
    /// Returns the contents of a file; `None` for a folder.
    pub(crate) fn contents(&self) -> Option<Contents> {
        match self.kind {
            Kind::Folder => None,
            Kind::File(contents) => Some(contents),
        }
    }

    pub(crate) fn to_raw(&self) -> RawEntry {
        RawEntry {
            path: self.path.as_str().to_owned(),
            mode: self.mode,
            kind: self.kind,
        }
    }
}

/// The rule that a list breaks.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ManifestError {
    #[error("the path '{}' is not safe: {rule}", Printable(path))]
    Path { path: String, rule: UnsafePath },
    #[error(
        "it has more than {MAX_ENTRIES} files and folders, or paths of more than {MAX_PATH_BYTES} bytes; send parts of it"
    )]
    TooLong,
    #[error("the files have {bytes} bytes, and {most} are allowed")]
    TooLarge { bytes: u128, most: u64 },
    #[error("'{0}' is listed twice")]
    Twice(RelativePath),
    #[error("'{0}' is listed as a file, and something lies in it")]
    FileAsFolder(RelativePath),
}

/// A list that is safe to write: no path leads out of the folder, and no two entries stand for the same.
#[derive(Debug, Default)]
pub(crate) struct Manifest {
    entries: Vec<Entry>,
}

/// A list that is being received.
#[derive(Debug)]
pub(crate) struct Draft {
    entries: Vec<Entry>,
    path_bytes: usize,
    bytes: u128,
    max_bytes: u64,
}

impl Draft {
    /// Begins a list of files of at most `max_bytes`.
    pub(crate) fn new(max_bytes: u64) -> Self {
        Self {
            entries: Vec::new(),
            path_bytes: 0,
            bytes: 0,
            max_bytes,
        }
    }

    /// Adds what the peer listed.
    pub(crate) fn push(&mut self, raw: &RawEntry) -> Result<(), ManifestError> {
        let unsafe_path = |rule| {
            let path = raw.path.clone();
            ManifestError::Path { path, rule }
        };
        let path: RelativePath = raw.path.parse().map_err(unsafe_path)?;
        self.path_bytes += raw.path.len();
        if self.entries.len() == MAX_ENTRIES || self.path_bytes > MAX_PATH_BYTES {
            return Err(ManifestError::TooLong);
        }
        if let Kind::File(contents) = raw.kind {
            self.bytes += u128::from(contents.size);
            let (bytes, most) = (self.bytes, self.max_bytes);
            if bytes > u128::from(most) {
                return Err(ManifestError::TooLarge { bytes, most });
            }
        }
        // Nobody gets a program that runs with the rights of its owner.
        let mode = raw.mode & 0o777;
        self.entries.push(Entry {
            path,
            mode,
            kind: raw.kind,
        });
        Ok(())
    }

    /// Returns the list, unless entries contradict each other.
    pub(crate) fn finish(self) -> Result<Manifest, ManifestError> {
        let entries = self.entries;
        let mut all = HashSet::with_capacity(entries.len());
        let mut files = HashSet::new();
        for entry in &entries {
            if !all.insert(entry.path.as_str()) {
                return Err(ManifestError::Twice(entry.path.clone()));
            }
            if entry.contents().is_some() {
                files.insert(entry.path.as_str());
            }
        }
        for entry in &entries {
            if let Some(file) = entry.path.ancestors().find(|path| files.contains(path)) {
                let file = file.parse().unwrap_or_else(|_| entry.path.clone());
                return Err(ManifestError::FileAsFolder(file));
            }
        }
        Ok(Manifest { entries })
    }
}

impl Manifest {
    /// Takes a list of this end's own files.
    pub(crate) fn of_own(entries: Vec<Entry>) -> Self {
        Self { entries }
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns the number of files.
    pub(crate) fn files(&self) -> usize {
        self.entries.iter().filter_map(Entry::contents).count()
    }
}

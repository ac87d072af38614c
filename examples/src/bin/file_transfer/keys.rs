//! Lists of known keys: `known_hosts` of clients and `authorized` of servers.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use hybriq::error::Printable;

use crate::fingerprint::Fingerprint;

/// A file with a name and a fingerprint in each line. It is read again for every lookup, so that a
/// change takes effect at once.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    file: PathBuf,
}

/// A line of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) line: usize,
    pub(crate) name: String,
    pub(crate) key: Fingerprint,
}

/// A list that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeysError {
    #[error("{}: {error}", file.display())]
    Io { file: PathBuf, error: io::Error },
    #[error("{} line {line} is not a name and a fingerprint; mend or remove it", file.display())]
    Line { file: PathBuf, line: usize },
    #[error("'{}' is not a valid key name; use one without spaces and '#'", Printable(.0))]
    Name(String),
}

impl Keys {
    pub(crate) fn new(file: PathBuf) -> Self {
        Self { file }
    }

    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// Returns all lines. A file that is missing has none.
    pub(crate) fn all(&self) -> Result<Vec<Known>, KeysError> {
        let text = match fs::read_to_string(&self.file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            text => text.map_err(|error| self.failed(error))?,
        };
        let lines = text.lines().zip(1..);
        let lines = lines.filter(|(text, _)| !text.trim().is_empty() && !text.starts_with('#'));
        let known = lines.map(|(text, line)| {
            let mut words = text.split_whitespace();
            let (name, key, rest) = (words.next(), words.next(), words.next());
            match (name, key.map(str::parse), rest) {
                (Some(name), Some(Ok(key)), None) => Ok(Known {
                    line,
                    name: name.to_owned(),
                    key,
                }),
                _ => Err(KeysError::Line {
                    file: self.file.clone(),
                    line,
                }),
            }
        });
        known.collect()
    }

    /// Returns the key with a name.
    pub(crate) fn named(&self, name: &str) -> Result<Option<Known>, KeysError> {
        Ok(self.all()?.into_iter().find(|known| known.name == name))
    }

    /// Returns the line with a key.
    pub(crate) fn with_key(&self, key: Fingerprint) -> Result<Option<Known>, KeysError> {
        Ok(self.all()?.into_iter().find(|known| known.key == key))
    }

    /// Appends a key.
    pub(crate) fn add(&self, name: &str, key: Fingerprint) -> Result<(), KeysError> {
        let bad = |letter: char| letter.is_whitespace() || letter.is_control() || letter == '#';
        if name.is_empty() || name.contains(bad) {
            return Err(KeysError::Name(name.to_owned()));
        }
        let mut options = OpenOptions::new();
        let file = options
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&self.file);
        // One write, so that the lines of two processes do not mix.
        let line = format!("{name} {key}\n");
        file.and_then(|mut file| file.write_all(line.as_bytes()))
            .map_err(|error| self.failed(error))
    }

    fn failed(&self, error: io::Error) -> KeysError {
        KeysError::Io {
            file: self.file.clone(),
            error,
        }
    }
}

//! Paths that are safe to use below a folder.

use std::{fmt, str::FromStr};

use hybriq::error::Printable;

/// Name of the folder for unfinished files, which no path may contain.
pub(crate) const WORK: &str = ".hybriq-transfer";
/// Longest path, in bytes.
const LONGEST: usize = 4096;
/// Longest name of a file or folder, in bytes.
const LONGEST_NAME: usize = 255;
/// Largest number of names in a path.
const DEEPEST: usize = 128;

/// A path below a folder: names with `/` between them. No name leads out of the folder.
///
/// [`FromStr`] is the only way to make one, also of what a peer sends.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RelativePath(String);

/// The rule that a path breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UnsafePath {
    #[error("it is empty or has an empty name, as an absolute path has")]
    EmptyName,
    #[error("'.' and '..' are not allowed")]
    Dots,
    #[error("a name has a NUL byte")]
    Nul,
    #[error("a name has a backslash, which separates names on Windows")]
    Backslash,
    #[error("the name {WORK} is reserved for unfinished files")]
    Reserved,
    #[error(
        "it is longer than {LONGEST} bytes, a name in it longer than {LONGEST_NAME}, or it has more than {DEEPEST} names"
    )]
    TooLong,
}

impl RelativePath {
    /// Splits the last name off.
    pub(crate) fn split(&self) -> (Option<&str>, &str) {
        match self.0.rsplit_once('/') {
            Some((folder, name)) => (Some(folder), name),
            None => (None, &self.0),
        }
    }

    /// Returns the folders that contain it, the innermost first.
    pub(crate) fn ancestors(&self) -> impl Iterator<Item = &str> {
        std::iter::successors(self.split().0, |path| Some(path.rsplit_once('/')?.0))
    }

    /// Returns the path of a name in this folder.
    pub(crate) fn join(&self, name: &str) -> Result<Self, UnsafePath> {
        format!("{}/{name}", self.0).parse()
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for RelativePath {
    type Err = UnsafePath;

    fn from_str(text: &str) -> Result<Self, UnsafePath> {
        if text.len() > LONGEST || text.split('/').count() > DEEPEST {
            return Err(UnsafePath::TooLong);
        }
        for name in text.split('/') {
            match name {
                "" => return Err(UnsafePath::EmptyName),
                "." | ".." => return Err(UnsafePath::Dots),
                WORK => return Err(UnsafePath::Reserved),
                _ if name.len() > LONGEST_NAME => return Err(UnsafePath::TooLong),
                _ if name.contains('\0') => return Err(UnsafePath::Nul),
                _ if name.contains('\\') => return Err(UnsafePath::Backslash),
                _ => {}
            }
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for RelativePath {
    /// Writes control characters as escapes: a name must not steer the terminal it is shown on.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Printable(&self.0).fmt(f)
    }
}

//! Files and logs of a run.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};

use super::{
    Failure,
    cases::{Case, Files},
    peers::Peer,
};

/// Files and logs of a run.
pub(super) struct Folders {
    root: PathBuf,
}

impl Folders {
    pub(super) fn make(
        logs: &Path,
        case: &Case,
        client: &Peer,
        server: &Peer,
    ) -> Result<Self, Failure> {
        let pair = format!("{}_{}", client.name, server.name);
        let root = logs.join(pair).join(case.name);
        if root.exists() {
            fs::remove_dir_all(&root)?;
        }
        for part in ["www", "downloads", "client", "server"] {
            fs::create_dir_all(root.join(part))?;
        }
        // The page has links to these, whether or not the endpoint comes to write them.
        for (end, peer) in [("client", client), ("server", server)] {
            File::create(root.join(end).join("output.log"))?;
            if peer.is_ours() {
                fs::create_dir(root.join(end).join("qlog"))?;
            }
        }
        Ok(Self {
            root: root.canonicalize()?,
        })
    }

    pub(super) fn at(&self, part: &str) -> PathBuf {
        self.root.join(part)
    }

    /// Makes the files to download. Returns their names.
    pub(super) fn fill(&self, files: Files) -> Result<Vec<String>, Failure> {
        let sizes = match files {
            Files::Sizes(sizes) => sizes.to_vec(),
            Files::Many(count, size) | Files::LongNames(count, size, _) => vec![size; count],
        };
        let mut names = Vec::new();
        for (number, size) in sizes.into_iter().enumerate() {
            let name = match files {
                // Not only digits: for such a name some servers create a file of that many bytes.
                Files::LongNames(_, _, letters) => format!("{number:x>letters$}"),
                _ => format!("file-{number}"),
            };
            let contents: Vec<u8> = (0..size)
                .map(|at| (at * 131 + at / 251 + number) as u8)
                .collect();
            fs::write(self.at("www").join(&name), contents)?;
            names.push(name);
        }
        Ok(names)
    }

    /// Compares the downloads. Returns the sum of their bytes, or the first file that differs.
    pub(super) fn compare(&self, names: &[String]) -> Result<usize, String> {
        let mut bytes = 0;
        for name in names {
            let sent = fs::read(self.at("www").join(name)).unwrap_or_default();
            let got = fs::read(self.at("downloads").join(name));
            let got = got.map_err(|_| format!("{name} was not downloaded"))?;
            if sent != got {
                return Err(format!("{name} differs{}", difference(&sent, &got)));
            }
            bytes += sent.len();
        }
        let all = fs::read_dir(self.at("downloads")).map_err(|error| error.to_string())?;
        let mut all = all.flatten().map(|entry| entry.file_name());
        match all.find(|name| !names.iter().any(|known| name.as_os_str() == known.as_str())) {
            Some(other) => Err(format!("{} was not asked for", other.display())),
            None => Ok(bytes),
        }
    }
}

/// The files of a run are removed, its logs stay.
impl Drop for Folders {
    fn drop(&mut self) {
        for part in ["www", "downloads"] {
            let _ = fs::remove_dir_all(self.at(part));
        }
    }
}

/// Tells where two files begin to differ.
fn difference(sent: &[u8], got: &[u8]) -> String {
    let at = sent.iter().zip(got).position(|(sent, got)| sent != got);
    let (len, of) = (got.len(), sent.len());
    match at {
        Some(at) if len == of => format!(" at byte {at} of {of}"),
        Some(at) => format!(" at byte {at}, and has {len} of {of} bytes"),
        None => format!(": {len} of {of} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_differs_is_told_with_the_place() {
        assert_eq!(difference(b"hello", b"hallo"), " at byte 1 of 5");
        assert_eq!(difference(b"hello", b"hel"), ": 3 of 5 bytes");
        assert_eq!(
            difference(b"hello", b"hallooo"),
            " at byte 1, and has 7 of 5 bytes"
        );
    }
}

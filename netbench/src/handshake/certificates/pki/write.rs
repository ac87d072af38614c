//! Files of a hierarchy on disk.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::File;
use crate::system::failure::Failure;

/// Permissions of keys: their owner reads and writes them.
const SECRET: u32 = 0o600;
const PUBLIC: u32 = 0o644;

/// Writes all files into a folder, or none. Returns their paths.
pub(super) fn all(folder: &Path, files: &[File]) -> Result<Vec<PathBuf>, Failure> {
    fs::create_dir_all(folder)
        .map_err(|error| format!("cannot make the folder {}: {error}", folder.display()))?;
    let mut written = Vec::new();
    for file in files {
        let path = folder.join(&file.name);
        match one(&path, file) {
            Ok(()) => written.push(path),
            Err(error) => {
                for path in &written {
                    // The first error is the one to report.
                    let _ = fs::remove_file(path);
                }
                return Err(refusal(&path, &error).into());
            }
        }
    }
    Ok(written)
}

fn one(path: &Path, file: &File) -> io::Result<()> {
    let mode = if file.is_secret { SECRET } else { PUBLIC };
    let mut options = OpenOptions::new();
    let mut open = options.write(true).create_new(true).mode(mode).open(path)?;
    let done = open.write_all(file.content.as_bytes());
    if done.is_err() {
        let _ = fs::remove_file(path);
    }
    done
}

fn refusal(path: &Path, error: &io::Error) -> String {
    let path = path.display();
    if error.kind() == io::ErrorKind::AlreadyExists {
        format!("{path} exists already and is not replaced; choose another folder")
    } else {
        format!("cannot write {path}: {error}; nothing was written")
    }
}

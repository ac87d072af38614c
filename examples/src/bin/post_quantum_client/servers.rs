//! A file that remembers servers.

use std::{
    fs,
    io::{self, Write as _},
    path::PathBuf,
};

use hybriq::memory::ServerMemory;
use hybriq_examples::Failure;

/// What is known about servers, kept in a file from run to run.
pub(crate) struct Servers {
    file: PathBuf,
    memory: ServerMemory,
}

impl Servers {
    /// Reads the file. Without one nothing is known yet; a damaged one is an error.
    pub(crate) fn open(file: PathBuf) -> Result<Self, Failure> {
        let fail = |error: &dyn std::error::Error| {
            let file = file.display();
            format!(
                "cannot use {file}: {error}; without it, no server is known: remove it or give another"
            )
        };
        let memory = match fs::read(&file) {
            Ok(bytes) => ServerMemory::from_bytes(&bytes).map_err(|error| fail(&error))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => ServerMemory::new(),
            Err(error) => return Err(fail(&error).into()),
        };
        Ok(Self { file, memory })
    }

    /// Returns the memory, for a client's configuration.
    pub(crate) fn memory(&self) -> ServerMemory {
        self.memory.clone()
    }

    /// Replaces the file, so that it is never half written. Nobody else may read it.
    pub(crate) fn save(&self) -> Result<(), Failure> {
        let new = self.file.with_added_extension("new");
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(true);
        // It has tokens and sessions, and whoever changes it can silence the alarm.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(&new)?.write_all(&self.memory.to_bytes())?;
        Ok(fs::rename(new, &self.file)?)
    }
}

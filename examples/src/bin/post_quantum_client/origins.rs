//! A file that remembers which servers were post-quantum.

use std::{fs, io, path::PathBuf, sync::Arc};

use hybriq::memory::MemoryOrigins;
use hybriq_examples::Failure;

/// What is known about servers, kept in a file from run to run.
pub(crate) struct Origins {
    file: PathBuf,
    memory: Arc<MemoryOrigins>,
}

impl Origins {
    /// Reads the file. Without one nothing is known yet; a damaged one is an error.
    pub(crate) fn open(file: PathBuf) -> Result<Self, Failure> {
        let fail = |error: &dyn std::error::Error| {
            let file = file.display();
            format!(
                "cannot use {file}: {error}; without it, no server is known: remove it or give another"
            )
        };
        let memory = match fs::read(&file) {
            Ok(bytes) => MemoryOrigins::from_bytes(&bytes).map_err(|error| fail(&error))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => MemoryOrigins::new(),
            Err(error) => return Err(fail(&error).into()),
        };
        let memory = Arc::new(memory);
        Ok(Self { file, memory })
    }

    /// Returns the memory, for a client's configuration.
    pub(crate) fn memory(&self) -> Arc<MemoryOrigins> {
        self.memory.clone()
    }

    /// Replaces the file, so that it is never half written.
    pub(crate) fn save(&self) -> Result<(), Failure> {
        let new = self.file.with_added_extension("new");
        fs::write(&new, self.memory.to_bytes())?;
        Ok(fs::rename(new, &self.file)?)
    }
}

//! Checksums of files.

use std::{
    fmt, fs::File, io, os::unix::fs::FileExt as _, sync::Mutex, sync::PoisonError,
    sync::atomic::AtomicUsize, sync::atomic::Ordering, thread,
};

use aws_lc_rs::digest::{Context, SHA256, digest};
use base64ct::{Base64Unpadded, Encoding as _};
use serde::{Deserialize, Serialize};

/// Bytes that are read at once.
const BUFFER: usize = 256 * 1024;

/// SHA-256 of a file.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Checksum([u8; 32]);

impl Checksum {
    /// Returns the checksum of bytes. It computes: call it from a blocking thread.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self::from_digest(&digest(&SHA256, bytes))
    }

    /// Returns the checksum of the first `size` bytes of a file, which it reads: call it from a blocking
    /// thread.
    ///
    /// # Errors
    /// The file cannot be read or is shorter.
    pub(crate) fn of_file(file: &File, size: u64) -> io::Result<Self> {
        let mut context = Context::new(&SHA256);
        let mut buffer = vec![0; BUFFER];
        let mut offset = 0;
        while offset < size {
            let len = (size - offset).min(BUFFER as u64) as usize;
            let part = buffer.get_mut(..len).unwrap_or_default();
            file.read_exact_at(part, offset)?;
            context.update(part);
            offset += len as u64;
        }
        Ok(Self::from_digest(&context.finish()))
    }

    fn from_digest(digest: &aws_lc_rs::digest::Digest) -> Self {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest.as_ref());
        Self(bytes)
    }

    /// Returns the digits of a name of a file.
    pub(crate) fn to_hex(self) -> String {
        use fmt::Write as _;
        self.0.iter().fold(String::new(), |mut text, byte| {
            // Writing to a string does not fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}

impl fmt::Debug for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_hex())
    }
}

impl TryFrom<String> for Checksum {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let mut bytes = [0; 32];
        match Base64Unpadded::decode(&text, &mut bytes) {
            Ok(all) if all.len() == 32 => Ok(Self(bytes)),
            _ => Err("a checksum is 32 bytes in base64"),
        }
    }
}

impl From<Checksum> for String {
    fn from(checksum: Checksum) -> Self {
        Base64Unpadded::encode_string(&checksum.0)
    }
}

/// Runs `work` for each item on several threads, and returns the results in order: for checksums of many
/// files. Call it from a blocking thread.
pub(crate) fn each<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = thread::available_parallelism()
        .map_or(1, usize::from)
        .min(8);
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::with_capacity(items.len()));
    let run = || {
        let take = || {
            let at = next.fetch_add(1, Ordering::Relaxed);
            Some((at, items.get(at)?))
        };
        while let Some((at, item)) = take() {
            let result = work(item);
            let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
            results.push((at, result));
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads.min(items.len()) {
            scope.spawn(run);
        }
        run();
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_unstable_by_key(|&(at, _)| at);
    results.into_iter().map(|(_, result)| result).collect()
}

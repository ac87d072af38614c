//! A client's memory of servers, and its form in a file.

use std::{
    fmt,
    sync::{Mutex, PoisonError},
    time::SystemTime,
};

use hashbrown::HashMap;
use hybriq_proto::remembered::origin::{OriginRecord, OriginStore};

#[cfg(test)]
mod tests;

/// Number of servers that are kept.
const ORIGINS: usize = 1024;

/// Length of the longest name with its port. A DNS name has at most 253 bytes (RFC 1035 §2.3.4).
const LONGEST_ORIGIN: usize = 280;

/// First bytes of a file.
const MAGIC: &[u8] = b"hybriq origins 1\n";

/// Memory of 1,024 servers, which can be written to a file: the default [`OriginStore`].
///
/// When it is full, a new server replaces the one that changed longest ago among those that are not
/// pinned: those that may be classical, or whose pin has expired. A server that must be
/// post-quantum is removed only after its time is over, so that visits to many other servers cannot
/// silence the alarm. If all are pinned, a new one is not stored; [`MemoryOrigins::dropped`] counts
/// these.
///
/// # Examples
/// Kept in a file, with a fresh memory if there is none:
/// ```no_run
/// use std::{fs, io::ErrorKind, sync::Arc};
///
/// use hybriq::{
///     ClientConfig,
///     memory::{Continuity, MemoryOrigins},
/// };
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let origins = Arc::new(match fs::read("origins") {
///     Ok(bytes) => MemoryOrigins::from_bytes(&bytes)?,
///     Err(error) if error.kind() == ErrorKind::NotFound => MemoryOrigins::new(),
///     Err(error) => return Err(error.into()),
/// });
/// let config = ClientConfig::new()
///     .origin_store(origins.clone())
///     .continuity(Continuity::Refuse);
/// // Before the end, and now and then: written next to the file, then renamed over it.
/// fs::write("origins.new", origins.to_bytes())?;
/// fs::rename("origins.new", "origins")?;
/// # Ok(())
/// # }
/// ```
///
/// # Security
/// The file reveals which servers were visited, and whoever can change it can silence the alarm:
/// let nobody else read or write it.
#[derive(Default)]
pub struct MemoryOrigins(Mutex<Memory>);

#[derive(Default)]
struct Memory {
    origins: HashMap<Box<str>, (u64, OriginRecord)>,
    /// Counter of changes, to find the server that changed longest ago.
    turn: u64,
    dropped: u64,
}

/// Error for bytes that are not a memory of servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidOrigins;

impl fmt::Display for InvalidOrigins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "no memory of servers: the file was cut or changed, or another version wrote it; find out \
             which before you begin with an empty memory, which raises no alarm",
        )
    }
}

impl std::error::Error for InvalidOrigins {}

impl MemoryOrigins {
    /// Creates an empty memory.
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes the memory, the server that changed longest ago first.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut servers: Vec<_> = self.with(|memory| {
            let servers = memory.origins.iter();
            let servers = servers.map(|(name, (turn, record))| (*turn, name.clone(), *record));
            servers.collect()
        });
        servers.sort_unstable_by_key(|(turn, ..)| *turn);
        let mut bytes = MAGIC.to_vec();
        for (_, name, record) in servers {
            let len = u16::try_from(name.len()).unwrap_or_default();
            bytes.extend_from_slice(&len.to_be_bytes());
            bytes.extend_from_slice(name.as_bytes());
            bytes.extend_from_slice(&record.to_bytes());
        }
        bytes
    }

    /// Reads a memory that [`to_bytes`](Self::to_bytes) wrote.
    ///
    /// # Errors
    /// The bytes were not written by [`to_bytes`](Self::to_bytes).
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, InvalidOrigins> {
        Memory::read(bytes)
            .map(|memory| Self(Mutex::new(memory)))
            .ok_or(InvalidOrigins)
    }

    /// Forgets a server, for example after its operator announced that it may be classical from now
    /// on.
    pub fn forget(&self, server_name: &str, port: u16) {
        let origin = hybriq_proto::remembered::origin::origin(server_name, port);
        self.with(|memory| memory.origins.remove(&*origin));
    }

    /// Returns the number of servers that were not stored because all others were pinned.
    pub fn dropped(&self) -> u64 {
        self.with(|memory| memory.dropped)
    }

    fn with<T>(&self, act: impl FnOnce(&mut Memory) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl OriginStore for MemoryOrigins {
    fn get(&self, origin: &str) -> Option<OriginRecord> {
        self.with(|memory| memory.origins.get(origin).map(|(_, record)| *record))
    }

    fn update(&self, now: SystemTime, origin: &str, change: &dyn Fn(&mut OriginRecord)) {
        self.with(|memory| memory.update(now, origin, change));
    }
}

impl Memory {
    fn update(&mut self, now: SystemTime, origin: &str, change: &dyn Fn(&mut OriginRecord)) {
        self.turn += 1;
        if let Some((turn, record)) = self.origins.get_mut(origin) {
            *turn = self.turn;
            change(record);
            if record.is_empty(now) {
                self.origins.remove(origin);
            }
            return;
        }
        let mut record = OriginRecord::default();
        change(&mut record);
        if record.is_empty(now) || origin.len() > LONGEST_ORIGIN {
            return;
        }
        if self.origins.len() >= ORIGINS && !self.make_room(now) {
            self.dropped += 1;
            return;
        }
        self.origins.insert(origin.into(), (self.turn, record));
    }

    /// Removes the server that changed longest ago among those that are not pinned. Returns false if
    /// all are.
    fn make_room(&mut self, now: SystemTime) -> bool {
        let free = self
            .origins
            .iter()
            .filter(|(_, (_, record))| !record.is_pinned(now));
        let oldest = free.min_by_key(|(_, (turn, _))| *turn);
        match oldest.map(|(name, _)| name.clone()) {
            Some(name) => self.origins.remove(&name).is_some(),
            None => false,
        }
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes.strip_prefix(MAGIC)?;
        let mut memory = Self::default();
        while !rest.is_empty() {
            let (len, after) = rest.split_first_chunk()?;
            let (name, after) = after.split_at_checked(u16::from_be_bytes(*len).into())?;
            let (record, after) = after.split_at_checked(OriginRecord::LEN)?;
            let name = std::str::from_utf8(name).ok()?;
            let record = OriginRecord::from_bytes(record).ok()?;
            memory.turn += 1;
            let before = memory.origins.insert(name.into(), (memory.turn, record));
            let fits = name.len() <= LONGEST_ORIGIN && memory.origins.len() <= ORIGINS;
            if before.is_some() || !fits {
                return None;
            }
            rest = after;
        }
        Some(memory)
    }
}

impl fmt::Debug for MemoryOrigins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryOrigins").finish_non_exhaustive()
    }
}

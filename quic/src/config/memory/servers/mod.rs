//! A client's memory of servers, and its form in a file.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};

use hashbrown::HashMap;
use hybriq_proto::remembered::server::{InvalidServerMemory, ServerKey, ServerRecord, ServerStore};
use hybriq_tls::{SessionKey, SessionStore};

#[cfg(test)]
mod tests;

/// Number of servers that are kept.
const SERVERS: usize = 1024;

/// Bytes of all records, as they are written: 8 KiB for each server. What must stay of 1,024 servers in
/// any case, their names and pins, has a quarter.
const BYTES: usize = 8 * 1024 * 1024;

/// Bytes of the longest name. A DNS name has at most 253 bytes (RFC 1035 §2.3.4).
const NAME_LEN: usize = 255;

/// Bytes of a server in addition to its name and its record.
const FRAMING: usize = 6;

/// First bytes of a file.
const MAGIC: &[u8] = b"hybriq servers 1\n";

/// Memory of 1,024 servers, which can be written to a file: tokens, versions, groups and downgrade
/// alarms, what paths carried ([`CarefulResume`](crate::memory::CarefulResume)), what servers offered by
/// `alt-svc` to a client of `hybriq-http` and their settings of HTTP/3, and TLS sessions where the
/// library can turn one into bytes: see [`ClientConfig::session_memory`](crate::ClientConfig::session_memory).
///
/// What a client finds after a restart of its program, by TLS provider:
///
/// | | rustls | s2n-tls |
/// |---|---|---|
/// | tokens against Retry (RFC 9000 §8.1.3) | yes | yes |
/// | the version of QUIC and the key-exchange group | yes | yes |
/// | commitments to post-quantum key exchange | yes | yes |
/// | what paths carried (RFC 9959) | yes | yes |
/// | offers of `alt-svc` and settings of HTTP/3 (RFC 7838, RFC 9114 §7.2.4.2) | yes | yes |
/// | TLS sessions | no | yes |
/// | 0-RTT | no, it needs a TLS session | no, s2n-tls has none in QUIC |
///
/// rustls 0.23 cannot turn a session into bytes. It keeps its sessions outside this memory, in the process:
/// each configuration keeps up to 8 tickets of each of 256 servers, and the server that changed longest ago
/// makes room. [`ClientConfig::session_memory`](crate::ClientConfig::session_memory) says which applies
/// to a configuration, and why.
///
/// Clones are the same memory. When it is full, a new server replaces the least recently changed one that is not
/// pinned. A server is pinned while it must stay post-quantum. A server that has to be post-quantum is removed only
/// when its commitment expires, so that visits to many other servers cannot end the alarm. If all are pinned, a new one
/// is not stored; [`ServerMemory::dropped`] counts these. Where records are large, those that changed longest ago lose
/// all but their pins, so that the whole has at most 8 MiB.
///
/// # Examples
/// A memory that is kept in a file, and begins empty if there is no file:
/// ```no_run
/// use std::{fs, io::ErrorKind};
///
/// use hybriq::{ClientConfig, memory::ServerMemory};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let memory = match fs::read("servers") {
///     Ok(bytes) => ServerMemory::from_bytes(&bytes)?,
///     Err(error) if error.kind() == ErrorKind::NotFound => ServerMemory::new(),
///     Err(error) => return Err(error.into()),
/// };
/// let config = ClientConfig::new().server_memory(memory.clone());
/// // Before the end, and from time to time: written to a new file, which then replaces the old one.
/// fs::write("servers.new", memory.to_bytes())?;
/// fs::rename("servers.new", "servers")?;
/// # Ok(())
/// # }
/// ```
///
/// # Security
/// The bytes say which servers were visited, resume TLS sessions, and let servers recognise the client. Anyone who can
/// change them can disable the alarm. Let nobody else read or write them, and let one process at a time use them: a
/// token or a session that is used twice links the connections.
#[derive(Clone, Default)]
pub struct ServerMemory(Arc<Mutex<Memory>>);

#[derive(Default)]
struct Memory {
    servers: HashMap<ServerKey, Entry>,
    /// Bytes of all servers.
    bytes: usize,
    /// Counter of changes, to find the server that changed longest ago.
    turn: u64,
    dropped: u64,
}

struct Entry {
    /// Turn of the last change.
    turn: u64,
    bytes: usize,
    record: Arc<ServerRecord>,
}

impl ServerMemory {
    /// Creates an empty memory.
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes the memory, the server that changed longest ago first.
    pub fn to_bytes(&self) -> Vec<u8> {
        let (servers, bytes) = self.with(|memory| (memory.by_age(), memory.bytes));
        let mut out = Vec::with_capacity(MAGIC.len() + bytes);
        out.extend_from_slice(MAGIC);
        for (name, record) in servers {
            // Both lengths are bounded.
            out.extend_from_slice(&(name.as_str().len() as u16).to_be_bytes());
            out.extend_from_slice(&(record.encoded_len() as u32).to_be_bytes());
            out.extend_from_slice(name.as_str().as_bytes());
            record.write(&mut out);
        }
        out
    }

    /// Reads a memory that [`to_bytes`](Self::to_bytes) wrote.
    ///
    /// # Errors
    /// The bytes are not such a memory.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, InvalidServerMemory> {
        let memory = Memory::read(bytes).ok_or(InvalidServerMemory)?;
        Ok(Self(Arc::new(Mutex::new(memory))))
    }

    /// Returns what is remembered of a server, if anything is.
    pub fn get(&self, server_name: &str) -> Option<ServerRecord> {
        let server = ServerKey::new(server_name);
        let record = self.with(|memory| memory.record(&server))?;
        Some((*record).clone())
    }

    /// Returns the names of all servers, the one that changed longest ago first.
    pub fn names(&self) -> Vec<String> {
        let servers = self.with(|memory| memory.by_age()).into_iter();
        servers.map(|(name, _)| name.as_str().to_owned()).collect()
    }

    /// Returns the number of servers.
    pub fn len(&self) -> usize {
        self.with(|memory| memory.servers.len())
    }

    /// Returns true if no server is remembered.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets everything about a server, on all ports.
    ///
    /// TLS sessions of rustls are not in the memory: they stay until the configuration is dropped.
    pub fn forget(&self, server_name: &str) {
        let server = ServerKey::new(server_name);
        self.with(|memory| memory.remove(&server));
    }

    /// Forgets that a port of a server has to be post-quantum, for example after its operator said that
    /// it may be classical from now on.
    pub fn unpin(&self, server_name: &str, port: u16) {
        let server = ServerKey::new(server_name);
        self.with(|memory| {
            let unpin = &mut |record: &mut ServerRecord| record.unpin(port);
            // At this time no other record is taken for one whose pins are over.
            memory.change(SystemTime::UNIX_EPOCH, &server, unpin);
        });
    }

    /// Returns the number of servers that were not stored, because all others were pinned.
    pub fn dropped(&self) -> u64 {
        self.with(|memory| memory.dropped)
    }

    fn with<T>(&self, act: impl FnOnce(&mut Memory) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ServerStore for ServerMemory {
    fn read(&self, server: &ServerKey, read: &mut dyn FnMut(&ServerRecord)) {
        let record = self.with(|memory| memory.record(server));
        read(&record.unwrap_or_default());
    }

    fn change(
        &self,
        now: SystemTime,
        server: &ServerKey,
        change: &mut dyn FnMut(&mut ServerRecord),
    ) {
        self.with(|memory| memory.change(now, server, change));
    }
}

impl Memory {
    fn record(&self, server: &ServerKey) -> Option<Arc<ServerRecord>> {
        Some(self.servers.get(server)?.record.clone())
    }

    /// Returns all servers, the one that changed longest ago first. Records are shared, not copied.
    fn by_age(&self) -> Vec<(ServerKey, Arc<ServerRecord>)> {
        let mut servers: Vec<_> = self.servers.iter().collect();
        servers.sort_unstable_by_key(|(_, entry)| entry.turn);
        let servers = servers.into_iter();
        servers
            .map(|(name, entry)| (name.clone(), entry.record.clone()))
            .collect()
    }

    fn change(
        &mut self,
        now: SystemTime,
        server: &ServerKey,
        change: &mut dyn FnMut(&mut ServerRecord),
    ) {
        let known = self.remove(server);
        let is_new = known.is_none();
        let mut record = known.unwrap_or_default();
        change(Arc::make_mut(&mut record));
        if record.is_empty(now) || server.as_str().len() > NAME_LEN {
            return;
        }
        if is_new && self.servers.len() >= SERVERS && !self.make_room(now) {
            self.dropped += 1;
            return;
        }
        self.insert(server.clone(), record);
        while self.bytes > BYTES && self.shrink(now) {}
    }

    /// Inserts a server that is not there, as the one that changed last.
    fn insert(&mut self, server: ServerKey, record: Arc<ServerRecord>) {
        self.turn += 1;
        let bytes = FRAMING + server.as_str().len() + record.encoded_len();
        self.bytes += bytes;
        let entry = Entry {
            turn: self.turn,
            bytes,
            record,
        };
        self.servers.insert(server, entry);
    }

    fn remove(&mut self, server: &ServerKey) -> Option<Arc<ServerRecord>> {
        let entry = self.servers.remove(server)?;
        self.bytes -= entry.bytes;
        Some(entry.record)
    }

    /// Returns the server that changed longest ago among those that `may_go`.
    fn oldest(&self, may_go: impl Fn(&ServerRecord) -> bool) -> Option<ServerKey> {
        let servers = self.servers.iter();
        let free = servers.filter(|(_, entry)| may_go(&entry.record));
        let oldest = free.min_by_key(|(_, entry)| entry.turn);
        oldest.map(|(name, _)| name.clone())
    }

    /// Removes a server that is not pinned. Returns false if all are.
    fn make_room(&mut self, now: SystemTime) -> bool {
        let oldest = self.oldest(|record| !record.is_pinned(now));
        oldest.is_some_and(|server| self.remove(&server).is_some())
    }

    /// Takes all but its pins from a server. Returns false if none has more than that.
    fn shrink(&mut self, now: SystemTime) -> bool {
        let Some(server) = self.oldest(|record| !record.has_only_pins(now)) else {
            return false;
        };
        let Some(entry) = self.servers.get_mut(&server) else {
            return false;
        };
        let record = Arc::make_mut(&mut entry.record);
        record.keep_pins(now);
        if record.is_empty(now) {
            self.remove(&server);
        } else {
            let bytes = FRAMING + server.as_str().len() + record.encoded_len();
            self.bytes = self.bytes - entry.bytes + bytes;
            entry.bytes = bytes;
        }
        true
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes.strip_prefix(MAGIC)?;
        let mut memory = Self::default();
        while !rest.is_empty() {
            let (name_len, after) = rest.split_first_chunk()?;
            let (record_len, after) = after.split_first_chunk()?;
            let (name, after) = after.split_at_checked(u16::from_be_bytes(*name_len).into())?;
            let record_len = usize::try_from(u32::from_be_bytes(*record_len)).ok()?;
            let (record, after) = after.split_at_checked(record_len)?;
            let name = std::str::from_utf8(name).ok()?;
            let server = ServerKey::new(name);
            let is_known = memory.servers.contains_key(&server);
            let is_plain = server.as_str() == name && name.len() <= NAME_LEN;
            if is_known || !is_plain || memory.servers.len() >= SERVERS {
                return None;
            }
            memory.insert(server, Arc::new(ServerRecord::from_bytes(record).ok()?));
            rest = after;
        }
        (memory.bytes <= BYTES).then_some(memory)
    }
}

impl fmt::Debug for ServerMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerMemory").finish_non_exhaustive()
    }
}

/// The sessions of a store of servers.
pub(in crate::config) struct Sessions(pub(in crate::config) Arc<dyn ServerStore>);

#[expect(
    clippy::disallowed_methods,
    reason = "what is remembered of servers ends by the wall clock"
)]
fn now() -> SystemTime {
    SystemTime::now()
}

impl SessionStore for Sessions {
    fn put(&self, key: SessionKey<'_>, session: &[u8]) {
        let server = ServerKey::new(key.server_name);
        self.0.change(now(), &server, &mut |record| {
            record.put_session(key.policy, session);
        });
    }

    fn take(&self, key: SessionKey<'_>) -> Option<Vec<u8>> {
        let server = ServerKey::new(key.server_name);
        let mut has_any = false;
        self.0
            .read(&server, &mut |record| has_any = record.sessions() > 0);
        let mut taken = None;
        if has_any {
            self.0.change(now(), &server, &mut |record| {
                taken = record.take_session(key.policy);
            });
        }
        taken
    }
}

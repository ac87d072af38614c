//! Memory of the QUIC versions that servers speak.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use hybriq_proto::{config::VersionMemory, wire::packet::Version};

/// Number of servers that are remembered; a new one replaces the oldest.
const SERVERS: usize = 256;

/// Memory of the version that a client last spoke with each server.
///
/// A ticket or token is valid only for connections of one version (RFC 9369 §5). A client that
/// begins with the version of its last connection can use them.
#[derive(Clone, Debug, Default)]
pub struct KnownVersions(Arc<Mutex<Memory>>);

#[derive(Debug, Default)]
struct Memory {
    versions: HashMap<Box<str>, Version>,
    /// Server names in insertion order.
    order: VecDeque<Box<str>>,
}

impl KnownVersions {
    fn lock(&self) -> MutexGuard<'_, Memory> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl VersionMemory for KnownVersions {
    fn get(&self, server_name: &str) -> Option<Version> {
        self.lock().versions.get(server_name).copied()
    }

    fn put(&self, server_name: &str, version: Version) {
        let mut memory = self.lock();
        if memory
            .versions
            .insert(server_name.into(), version)
            .is_some()
        {
            return;
        }
        memory.order.push_back(server_name.into());
        if memory.order.len() > SERVERS {
            if let Some(oldest) = memory.order.pop_front() {
                memory.versions.remove(&oldest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{KnownVersions, SERVERS};
    use hybriq_proto::{config::VersionMemory, wire::packet::Version};

    #[test]
    fn the_last_version_of_a_server_is_known_and_old_servers_are_forgotten() {
        let known = KnownVersions::default();
        assert_eq!(known.get("a"), None);
        known.put("a", Version::V1);
        known.put("a", Version::V2);
        assert_eq!(known.get("a"), Some(Version::V2));
        for index in 0..SERVERS {
            known.put(&index.to_string(), Version::V1);
        }
        assert_eq!(known.get("a"), None);
        assert_eq!(known.lock().order.len(), SERVERS);
        assert_eq!(known.lock().versions.len(), SERVERS);
    }
}

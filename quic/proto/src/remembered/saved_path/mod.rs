//! Capacity of a path, saved for the next connection over it.

use std::{
    net::IpAddr,
    time::{Duration, SystemTime},
};

use crate::{owners::congestion::careful_resume::Observed, remembered::known_path::KnownPath};

#[cfg(test)]
mod tests;

/// First byte of the result of [`SavedPath::to_bytes`].
const VERSION: u8 = 1;

/// Longest round trip that can be saved. No path on Earth takes longer.
const LONGEST_RTT: Duration = Duration::from_secs(60);

/// Largest capacity that can be saved: a terabyte.
const LARGEST_CAPACITY: u64 = 1 << 40;

/// Record of the capacity that a connection found on a path, from which [careful
/// resume](crate::config::PathMemory) starts the next connection.
///
/// Useful for an end that sends much: a server of downloads, a client that uploads.
/// `Connection::saved_path` returns it.
///
/// # Security
/// The bytes are not protected. Whoever can change them decides how much the next connection sends
/// at once, up to [`PathMemory::max_jump`](crate::config::PathMemory::max_jump): do not accept them
/// from a peer without your own MAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavedPath {
    known: KnownPath,
    /// Seconds of the wall clock since 1970.
    saved_at: u64,
}

/// Error for bytes that are not a saved path, or an impossible one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a saved path of this version; resume without it")]
#[non_exhaustive]
pub struct InvalidSavedPath;

impl SavedPath {
    /// Creates a record of a path, dated by the wall clock.
    pub fn new(known: KnownPath, now: SystemTime) -> Self {
        let since = now.duration_since(SystemTime::UNIX_EPOCH);
        Self {
            known,
            saved_at: since.unwrap_or_default().as_secs(),
        }
    }

    /// Returns the state of the path, without its date.
    pub const fn known(&self) -> KnownPath {
        self.known
    }

    /// Returns the smallest round trip.
    pub const fn rtt(&self) -> Duration {
        self.known.observed.rtt
    }

    /// Returns the bytes that arrived in one round trip.
    pub const fn capacity(&self) -> u64 {
        self.known.observed.capacity
    }

    /// Returns the peer's address.
    pub const fn peer(&self) -> IpAddr {
        self.known.peer
    }

    /// Returns its age, or `None` if the clock was set back since then.
    pub fn age(&self, now: SystemTime) -> Option<Duration> {
        let now = now.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        now.as_secs()
            .checked_sub(self.saved_at)
            .map(Duration::from_secs)
    }

    /// Encodes the record in at most 60 bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(60);
        bytes.push(VERSION);
        let micros = u64::try_from(self.rtt().as_micros()).unwrap_or(u64::MAX);
        for number in [micros, self.capacity(), self.saved_at] {
            bytes.extend_from_slice(&number.to_be_bytes());
        }
        push_address(Some(self.known.peer), &mut bytes);
        push_address(self.known.local, &mut bytes);
        bytes
    }

    /// Decodes the result of [`SavedPath::to_bytes`].
    ///
    /// # Errors
    /// The bytes are something else, or contain impossible values.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, InvalidSavedPath> {
        Self::read(bytes).ok_or(InvalidSavedPath)
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (&version, mut rest) = bytes.split_first()?;
        let mut number = || {
            let (bytes, tail) = rest.split_first_chunk()?;
            rest = tail;
            Some(u64::from_be_bytes(*bytes))
        };
        let (micros, capacity, saved_at) = (number()?, number()?, number()?);
        let (peer, rest) = take_address(rest)?;
        let (local, rest) = take_address(rest)?;
        let rtt = Duration::from_micros(micros);
        let is_possible = version == VERSION
            && rest.is_empty()
            && !rtt.is_zero()
            && rtt <= LONGEST_RTT
            && capacity <= LARGEST_CAPACITY;
        is_possible.then_some(Self {
            known: KnownPath {
                observed: Observed { rtt, capacity },
                peer: peer?,
                local,
            },
            saved_at,
        })
    }
}

/// Appends the length of the address, then the address.
fn push_address(address: Option<IpAddr>, bytes: &mut Vec<u8>) {
    match address {
        None => bytes.push(0),
        Some(IpAddr::V4(address)) => {
            bytes.push(4);
            bytes.extend_from_slice(&address.octets());
        }
        Some(IpAddr::V6(address)) => {
            bytes.push(16);
            bytes.extend_from_slice(&address.octets());
        }
    }
}

fn take_address(bytes: &[u8]) -> Option<(Option<IpAddr>, &[u8])> {
    let (&len, rest) = bytes.split_first()?;
    match len {
        0 => Some((None, rest)),
        4 => {
            let (octets, rest) = rest.split_first_chunk::<4>()?;
            Some((Some(IpAddr::from(*octets)), rest))
        }
        16 => {
            let (octets, rest) = rest.split_first_chunk::<16>()?;
            Some((Some(IpAddr::from(*octets)), rest))
        }
        _ => None,
    }
}

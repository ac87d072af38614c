//! The bytes of a record. Numbers are big-endian; a list begins with its length in one byte:
//!
//! ```text
//! format 1 | version 4, 0 for none
//! tokens:   version 4 | length 2 | token
//! ports:    port 2 | record
//! paths:    length 1 | path
//! sessions: policy 16 | length 2 | session
//! alternatives: port 2 | length 2 | alternatives
//! length 2, 0 for none | settings
//! ```

use bytes::Bytes;
use zeroize::Zeroizing;

use super::{InvalidServerMemory, ServerRecord, record::Session};
use crate::{
    remembered::{origin::OriginRecord, saved_path::SavedPath},
    wire::{codec::Reader, limits, packet::Version},
};

/// First byte of a record.
const FORMAT: u8 = 1;

impl ServerRecord {
    /// Returns the number of bytes that [`write`](Self::write) appends.
    pub fn encoded_len(&self) -> usize {
        let tokens = self.tokens.iter().map(|(_, token)| 6 + token.len());
        let ports = self.origins.len() * (2 + OriginRecord::LEN);
        let paths = self.paths.iter().map(|path| 1 + path.to_bytes().len());
        let sessions = self.sessions.iter().map(|it| 18 + it.bytes.len());
        let alternatives = self.alternatives.iter().map(|(_, bytes)| 4 + bytes.len());
        let lists = tokens.chain(paths).chain(sessions).chain(alternatives);
        12 + ports + lists.sum::<usize>() + self.settings.len()
    }

    /// Appends the record to `out`, secrets included.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.reserve_exact(self.encoded_len());
        out.push(FORMAT);
        let version = self.version.map_or(0, Version::number);
        out.extend_from_slice(&version.to_be_bytes());
        // All lists and their members are bounded so that the casts lose nothing.
        out.push(self.tokens.len() as u8);
        for (version, token) in &self.tokens {
            out.extend_from_slice(&version.number().to_be_bytes());
            out.extend_from_slice(&(token.len() as u16).to_be_bytes());
            out.extend_from_slice(token);
        }
        out.push(self.origins.len() as u8);
        for (port, record) in &self.origins {
            out.extend_from_slice(&port.to_be_bytes());
            out.extend_from_slice(&record.to_bytes());
        }
        out.push(self.paths.len() as u8);
        for path in &self.paths {
            let path = path.to_bytes();
            out.push(path.len() as u8);
            out.extend_from_slice(&path);
        }
        out.push(self.sessions.len() as u8);
        for Session { policy, bytes } in &self.sessions {
            out.extend_from_slice(policy);
            out.extend_from_slice(&(bytes.len() as u16).to_be_bytes());
            out.extend_from_slice(bytes);
        }
        out.push(self.alternatives.len() as u8);
        for (port, bytes) in &self.alternatives {
            out.extend_from_slice(&port.to_be_bytes());
            out.extend_from_slice(&(bytes.len() as u16).to_be_bytes());
            out.extend_from_slice(bytes);
        }
        out.extend_from_slice(&(self.settings.len() as u16).to_be_bytes());
        out.extend_from_slice(&self.settings);
    }

    /// Reads a record that [`write`](Self::write) wrote.
    ///
    /// # Errors
    /// The bytes are not what it writes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, InvalidServerMemory> {
        read(bytes).ok_or(InvalidServerMemory)
    }
}

fn read(bytes: &[u8]) -> Option<ServerRecord> {
    let mut reader = Reader::new(bytes);
    let from = &mut reader;
    if from.u8().ok()? != FORMAT {
        return None;
    }
    let version = match from.u32().ok()? {
        0 => None,
        number => Some(Version::from_number(number)?),
    };
    let record = ServerRecord {
        version,
        tokens: list(from, ServerRecord::TOKENS, token)?,
        origins: list(from, ServerRecord::PORTS, port)?,
        paths: list(from, ServerRecord::PATHS, path)?,
        sessions: list(from, ServerRecord::SESSIONS, session)?,
        alternatives: list(from, ServerRecord::ALTERNATIVES, alternatives)?,
        settings: Bytes::copy_from_slice(at_most(from, ServerRecord::SETTINGS_LEN)?),
    };
    let ends = from.take_rest().is_empty();
    let unlike = are_unlike(&record.tokens, |a, b| a == b)
        && are_unlike(&record.origins, |a, b| a.0 == b.0)
        && are_unlike(&record.paths, |a, b| {
            let (a, b) = (a.known(), b.known());
            a.is_between(b.local, b.peer)
        })
        && are_unlike(&record.sessions, |a, b| a.policy == b.policy)
        && are_unlike(&record.alternatives, |a, b| a.0 == b.0);
    (ends && unlike).then_some(record)
}

/// Reads a list of at most `most` members.
fn list<T>(
    from: &mut Reader<'_>,
    most: usize,
    read: fn(&mut Reader<'_>) -> Option<T>,
) -> Option<Vec<T>> {
    let count = usize::from(from.u8().ok()?);
    if count > most {
        return None;
    }
    (0..count).map(|_| read(from)).collect()
}

fn token(from: &mut Reader<'_>) -> Option<(Version, Bytes)> {
    let version = Version::from_number(from.u32().ok()?)?;
    let token = sized(from, limits::TOKEN_LEN)?;
    Some((version, Bytes::copy_from_slice(token)))
}

fn port(from: &mut Reader<'_>) -> Option<(u16, OriginRecord)> {
    let port = from.u16().ok()?;
    let record = OriginRecord::from_bytes(from.bytes(OriginRecord::LEN).ok()?)?;
    Some((port, record))
}

fn path(from: &mut Reader<'_>) -> Option<SavedPath> {
    let len = usize::from(from.u8().ok()?);
    SavedPath::from_bytes(from.bytes(len).ok()?).ok()
}

fn session(from: &mut Reader<'_>) -> Option<Session> {
    let policy = from.array().ok()?;
    let bytes = Zeroizing::new(sized(from, ServerRecord::SESSION_LEN)?.to_vec());
    Some(Session { policy, bytes })
}

fn alternatives(from: &mut Reader<'_>) -> Option<(u16, Bytes)> {
    let port = from.u16().ok()?;
    let bytes = sized(from, ServerRecord::ALTERNATIVES_LEN)?;
    Some((port, Bytes::copy_from_slice(bytes)))
}

/// Reads bytes after their length, at least one and at most `most`.
fn sized<'a>(from: &mut Reader<'a>, most: usize) -> Option<&'a [u8]> {
    at_most(from, most).filter(|bytes| !bytes.is_empty())
}

/// Reads bytes after their length, at most `most`.
fn at_most<'a>(from: &mut Reader<'a>, most: usize) -> Option<&'a [u8]> {
    let len = usize::from(from.u16().ok()?);
    from.bytes(len).ok().filter(|bytes| bytes.len() <= most)
}

/// Returns true if no two members of a list are the same.
fn are_unlike<T>(list: &[T], same: fn(&T, &T) -> bool) -> bool {
    let mut before = list.iter().enumerate();
    before.all(|(index, a)| !list.iter().skip(index + 1).any(|b| same(a, b)))
}

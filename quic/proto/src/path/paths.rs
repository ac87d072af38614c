//! The paths beside the one in use.

use std::{
    hash::{DefaultHasher, Hasher as _},
    net::SocketAddr,
    time::Instant,
};

use super::Path;
use crate::{limits, udp::Local};

/// Both ends of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// Where the peer is.
    pub peer: SocketAddr,
    /// Where we are.
    pub local: Local,
}

/// What a path is kept for that is not in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The peer sent from there, or was there before.
    Heard,
    /// It is to be used once it is validated.
    Candidate,
    /// The last one that was validated: it is used again should the one in use fail
    /// (RFC 9000 §9.3.2).
    Fallback,
}

/// The paths beside the one in use: at most [`limits::OTHER_PATHS`], and mostly none.
#[derive(Debug)]
pub struct Paths {
    others: Vec<Path>,
    /// What challenges are made of.
    seed: u64,
    drawn: u64,
}

impl Paths {
    /// None. The seed is a secret.
    pub const fn new(seed: u64) -> Self {
        Self {
            others: Vec::new(),
            seed,
            drawn: 0,
        }
    }

    /// Whether there is none.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.others.is_empty()
    }

    /// Eight bytes that nobody can foresee (RFC 9000 §8.2.1).
    pub fn draw(&mut self) -> u64 {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.seed);
        hasher.write_u64(self.drawn);
        self.drawn += 1;
        hasher.finish()
    }

    /// Where the path with these ends is.
    pub fn position(&self, at: Address) -> Option<usize> {
        self.others.iter().position(|path| path.is_at(at))
    }

    /// Where the first path of that role is.
    pub fn position_of(&self, role: Role) -> Option<usize> {
        self.others.iter().position(|path| path.role == role)
    }

    /// The path in that place.
    pub fn get_mut(&mut self, place: usize) -> Option<&mut Path> {
        self.others.get_mut(place)
    }

    /// The path with these ends.
    pub fn find_mut(&mut self, at: Address) -> Option<&mut Path> {
        self.others.iter_mut().find(|path| path.is_at(at))
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Path> {
        self.others.iter()
    }

    /// Likewise.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Path> {
        self.others.iter_mut()
    }

    /// Adds one. Where there is no room, one that was only heard of gives way, one that is not
    /// validated first, and is handed over.
    pub fn add(&mut self, path: Path) -> Option<Path> {
        let evicted = if self.others.len() < limits::OTHER_PATHS {
            None
        } else {
            let value = |path: &Path| (path.role != Role::Heard, path.is_validated());
            let places = self.others.iter().enumerate();
            let least = places
                .filter(|(_, path)| path.role != Role::Fallback)
                .min_by_key(|(_, path)| value(path));
            least.map(|(place, _)| place)
        };
        let evicted = evicted.map(|place| self.others.remove(place));
        self.others.push(path);
        evicted
    }

    /// Takes one out.
    pub fn take(&mut self, place: usize) -> Option<Path> {
        (place < self.others.len()).then(|| self.others.remove(place))
    }

    /// Takes out the one that would be forgotten first of those that are known to lead to the peer
    /// and serve nothing any more.
    pub fn take_left(&mut self) -> Option<Path> {
        let places = self.others.iter().enumerate();
        let left = places.filter(|(_, path)| path.role == Role::Heard && path.is_validated());
        let until = left.filter_map(|(place, path)| Some((path.kept_until?, place)));
        let (_, place) = until.min()?;
        self.take(place)
    }

    /// When something is due on one of them.
    pub fn next_timeout(&self) -> Option<Instant> {
        let timers = |path: &Path| [path.validation.next_timeout(), path.kept_until];
        self.others.iter().flat_map(timers).flatten().min()
    }
}

#[cfg(test)]
mod tests;

//! Generations of processes that serve one address one after another.

/// Set of generations of processes that serve one address. The latest process receives, and the
/// earlier ones keep their connections.
///
/// A generation is a number below [`Generations::MOST`]. Numbers of ended processes are reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Generations(u32);

/// Worker of an earlier process.
///
/// Exhaustive: a connection id has no room for more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// Generation of the process.
    pub generation: u8,
    /// Index of its worker.
    pub worker: u8,
}

impl Generations {
    /// Largest number of generations.
    pub const MOST: u8 = 32;

    /// Returns the number of generations that ids can distinguish with this many workers: they have
    /// one byte for both.
    pub const fn possible(workers: u8) -> u8 {
        let workers = if workers == 0 { 1 } else { workers as u16 };
        let possible = 256 / workers;
        if possible < Self::MOST as u16 {
            possible as u8
        } else {
            Self::MOST
        }
    }

    /// Adds a generation.
    pub const fn insert(&mut self, generation: u8) {
        self.0 |= Self::bit(generation);
    }

    /// Removes a generation.
    pub const fn remove(&mut self, generation: u8) {
        self.0 &= !Self::bit(generation);
    }

    /// Returns true if the generation is in the set.
    pub const fn contains(self, generation: u8) -> bool {
        self.0 & Self::bit(generation) != 0
    }

    /// Returns true if the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the generation that follows `generation` with this many workers: the next number
    /// that is not in the set. Returns `None` if all of them are.
    pub fn next_after(self, generation: u8, workers: u8) -> Option<u8> {
        let possible = Self::possible(workers);
        let others = (1..possible).map(|step| {
            let next = u16::from(generation) + u16::from(step);
            (next % u16::from(possible)) as u8
        });
        others.into_iter().find(|&next| !self.contains(next))
    }

    /// Returns the bit of a generation; numbers that are too large have none.
    const fn bit(generation: u8) -> u32 {
        if generation < Self::MOST {
            1 << generation
        } else {
            0
        }
    }
}

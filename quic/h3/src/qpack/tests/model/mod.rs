//! Both ends beside a naive model of the dynamic table (RFC 9204 §3.2): all entries that were ever inserted, and the
//! number of those that were evicted.

mod decoding;
mod encoding;

use super::super::{fixed, primitives::put_integer, put_string};

/// A name and a value.
type Pair = (Vec<u8>, Vec<u8>);

/// The dynamic table. An entry has its place for an absolute index.
#[derive(Clone, Debug, Default)]
struct Model {
    entries: Vec<Pair>,
    evicted: usize,
    capacity: usize,
}

const fn size((name, value): &Pair) -> usize {
    name.len() + value.len() + 32
}

impl Model {
    fn inserted(&self) -> u64 {
        self.entries.len() as u64
    }

    fn size(&self) -> usize {
        self.entries[self.evicted..].iter().map(size).sum()
    }

    fn set_capacity(&mut self, capacity: usize) {
        self.capacity = capacity;
        while self.size() > capacity {
            self.evicted += 1;
        }
    }

    /// Returns false for an entry that is larger than the table.
    fn insert(&mut self, entry: Pair) -> bool {
        if size(&entry) > self.capacity {
            return false;
        }
        while self.size() + size(&entry) > self.capacity {
            self.evicted += 1;
        }
        self.entries.push(entry);
        true
    }

    fn get(&self, index: u64) -> Option<&Pair> {
        let index = usize::try_from(index).ok()?;
        self.entries.get(index).filter(|_| index >= self.evicted)
    }

    /// Returns the entry that is this many places behind the newest.
    fn relative(&self, back: u64) -> Option<Pair> {
        let index = self.inserted().checked_sub(back + 1)?;
        self.get(index).cloned()
    }
}

fn fixed_pair(index: u64) -> Option<Pair> {
    let (name, value) = fixed::FIELDS.get(usize::try_from(index).ok()?)?;
    Some((name.as_bytes().to_vec(), value.as_bytes().to_vec()))
}

/// An instruction of an encoder (RFC 9204 §4.3).
#[derive(Clone, Debug)]
enum Instruction {
    Capacity(usize),
    Fixed(u64, Vec<u8>),
    Dynamic(u64, Vec<u8>),
    Literal(Vec<u8>, Vec<u8>),
    Duplicate(u64),
}

impl Instruction {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Capacity(capacity) => put_integer(out, 0x20, 5, *capacity as u64),
            Self::Fixed(index, value) => {
                put_integer(out, 0xc0, 6, *index);
                put_string(out, 0, 7, value);
            }
            Self::Dynamic(back, value) => {
                put_integer(out, 0x80, 6, *back);
                put_string(out, 0, 7, value);
            }
            Self::Literal(name, value) => {
                put_string(out, 0x40, 5, name);
                put_string(out, 0, 7, value);
            }
            Self::Duplicate(back) => put_integer(out, 0, 5, *back),
        }
    }

    /// Returns false if it cannot be followed.
    fn follow(self, model: &mut Model, most: usize) -> bool {
        let entry = match self {
            Self::Capacity(capacity) => {
                if capacity <= most {
                    model.set_capacity(capacity);
                }
                return capacity <= most;
            }
            Self::Fixed(index, value) => fixed_pair(index).map(|(name, _)| (name, value)),
            Self::Dynamic(back, value) => model.relative(back).map(|(name, _)| (name, value)),
            Self::Literal(name, value) => Some((name, value)),
            Self::Duplicate(back) => model.relative(back),
        };
        entry.is_some_and(|entry| model.insert(entry))
    }
}

/// A field line (RFC 9204 §4.5).
#[derive(Clone, Debug)]
enum Line {
    Fixed(u64),
    Dynamic(u64),
    PostBase(u64),
    FixedName(u64, Vec<u8>),
    DynamicName(u64, Vec<u8>),
    PostBaseName(u64, Vec<u8>),
    Literal(Vec<u8>, Vec<u8>),
}

impl Line {
    fn put(&self, never: bool, out: &mut Vec<u8>) {
        let never = u8::from(never);
        match self {
            Self::Fixed(index) => put_integer(out, 0xc0, 6, *index),
            Self::Dynamic(back) => put_integer(out, 0x80, 6, *back),
            Self::PostBase(ahead) => put_integer(out, 0x10, 4, *ahead),
            Self::FixedName(index, _) => put_integer(out, 0x50 | never << 5, 4, *index),
            Self::DynamicName(back, _) => put_integer(out, 0x40 | never << 5, 4, *back),
            Self::PostBaseName(ahead, _) => put_integer(out, never << 3, 3, *ahead),
            Self::Literal(name, _) => put_string(out, 0x20 | never << 4, 3, name),
        }
        if let Self::FixedName(_, value)
        | Self::DynamicName(_, value)
        | Self::PostBaseName(_, value)
        | Self::Literal(_, value) = self
        {
            put_string(out, 0, 7, value);
        }
    }

    /// Returns true if it refers to an entry.
    const fn has_entry(&self) -> bool {
        !matches!(
            self,
            Self::Fixed(_) | Self::FixedName(..) | Self::Literal(..)
        )
    }

    /// Returns the absolute index of its entry, if there can be such an index.
    fn index(&self, base: u64) -> Option<u64> {
        match self {
            Self::Fixed(_) | Self::FixedName(..) | Self::Literal(..) => None,
            Self::Dynamic(back) | Self::DynamicName(back, _) => base.checked_sub(back + 1),
            Self::PostBase(ahead) | Self::PostBaseName(ahead, _) => Some(base + ahead),
        }
    }

    /// Returns the field, if the line can be decoded.
    fn field(&self, model: &Model, base: u64, required: u64) -> Option<Pair> {
        let index = self.index(base).filter(|index| *index < required);
        let entry = index.and_then(|index| model.get(index)).cloned();
        if self.has_entry() && entry.is_none() {
            return None;
        }
        match self {
            Self::Fixed(index) => fixed_pair(*index),
            Self::FixedName(index, value) => Some((fixed_pair(*index)?.0, value.clone())),
            Self::Literal(name, value) => Some((name.clone(), value.clone())),
            Self::Dynamic(_) | Self::PostBase(_) => entry,
            Self::DynamicName(_, value) | Self::PostBaseName(_, value) => {
                Some((entry?.0, value.clone()))
            }
        }
    }
}

/// Returns the required insert count by the text of RFC 9204 §4.5.1.1.
fn required(encoded: u64, inserted: u64, most_entries: u64) -> Option<u64> {
    let full_range = 2 * most_entries;
    if encoded == 0 {
        return Some(0);
    }
    if encoded > full_range {
        return None;
    }
    let max_value = inserted + most_entries;
    let max_wrapped = max_value / full_range * full_range;
    let mut required = max_wrapped + encoded - 1;
    if required > max_value {
        if required <= full_range {
            return None;
        }
        required -= full_range;
    }
    (required != 0).then_some(required)
}

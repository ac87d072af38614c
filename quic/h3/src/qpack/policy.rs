//! What the encoder inserts into its table.
//!
//! A field goes into the table when it comes again soon after it came before: most fields of a message come
//! once, and each entry pushes another one out. The numbers were found on the public lists of requests and
//! responses (see the tests of the encoder).

/// Fields that are remembered, most of which never come again.
const REMEMBERED: usize = 28;

/// Names that are remembered.
const NAMES: usize = 128;

/// Number of fields with a name after which older ones count half.
const FORGOTTEN: u8 = 32;

/// Fields with a name that must have come again, of ten, for a new value to be inserted at once.
const REPEATED: u32 = 7;

/// Number of times that a name must have come, for an entry without a value.
const KNOWN_NAME: u8 = 3;

/// Part of the table that takes whatever comes first, in tenths.
const FREE: usize = 3;

/// Number of times that a field must have come, for its entry to be kept when it is the oldest.
const POPULAR: u32 = 8;

/// What the entry of a name counts for at first.
const USES_OF_NAME: u32 = 4;

/// Sections since the last use of an entry after which it is not kept.
const RECENT: u64 = 40;

/// Largest part of the table that an entry may take, in tenths.
const LARGEST: usize = 3;

/// What the encoder knows of an entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Note {
    /// Hashes of the name, and of name and value.
    pub(super) name: u32,
    pub(super) field: u32,
    /// Number of times that the field came.
    pub(super) uses: u32,
    /// Section that used the entry last.
    pub(super) last: u64,
}

impl Note {
    /// Returns true if the entry, which is the oldest, should be made the newest.
    pub(super) const fn is_worth_keeping(&self, section: u64) -> bool {
        self.uses >= POPULAR && section - self.last <= RECENT
    }
}

/// Fields that came lately, as hashes with the number of times; the last one first.
#[derive(Debug, Default)]
pub(super) struct History(Vec<(u32, u32)>);

impl History {
    /// Returns the bytes of memory that it takes.
    pub(super) fn memory(&self) -> usize {
        self.0.capacity() * size_of::<(u32, u32)>()
    }

    /// Notes a field without an entry that is used. Returns the number of times that it came before.
    pub(super) fn note(&mut self, field: u32) -> u32 {
        let Self(fields) = self;
        let place = fields.iter().position(|(known, _)| *known == field);
        let before = match place {
            Some(place) => fields.remove(place).1,
            None => 0,
        };
        fields.truncate(REMEMBERED - 1);
        fields.insert(0, (field, before + 1));
        before
    }
}

/// How often names came, and how often with a value that had come before, by their hash.
#[derive(Debug, Default)]
pub(super) struct Names(Vec<Name>);

#[derive(Clone, Copy, Debug, Default)]
struct Name {
    hash: u32,
    seen: u8,
    again: u8,
}

/// What is known of a field that comes, before it is noted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Past {
    /// Number of times that the field came.
    pub(super) before: u32,
    /// Number of times that the name came, this one included.
    name_seen: u8,
    /// True if most values of the name come again.
    repeats: bool,
}

impl Names {
    /// Returns the bytes of memory that it takes.
    pub(super) fn memory(&self) -> usize {
        self.0.capacity() * size_of::<Name>()
    }

    /// Notes a field: its name, how often it came before, and whether it has an entry that was used.
    pub(super) fn note(&mut self, hash: u32, before: u32, has_entry: bool) -> Past {
        let Self(names) = self;
        if names.is_empty() {
            names.resize(NAMES, Name::default());
        }
        let name = &mut names[hash as usize % NAMES];
        if name.hash != hash {
            *name = Name {
                hash,
                ..Name::default()
            };
        }
        let repeats =
            name.seen > 0 && 10 * u32::from(name.again) >= REPEATED * u32::from(name.seen);
        if name.seen >= FORGOTTEN {
            name.seen /= 2;
            name.again /= 2;
        }
        name.seen += 1;
        name.again += u8::from(before > 0 || has_entry);
        Past {
            before,
            name_seen: name.seen,
            repeats,
        }
    }
}

/// Bytes of an entry, of all others, and of the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    pub(super) entry: usize,
    pub(super) taken: usize,
    pub(super) capacity: usize,
}

impl Room {
    const fn is_enough(self) -> bool {
        10 * self.entry <= LARGEST * self.capacity
    }

    const fn is_free(self) -> bool {
        10 * (self.taken + self.entry) <= FREE * self.capacity
    }
}

impl Past {
    /// Returns true if the field should have an entry.
    pub(super) const fn is_worth_inserting(self, room: Room) -> bool {
        room.is_enough() && (self.before > 0 || self.repeats || room.is_free())
    }

    /// Returns true if the name should have an entry without a value, so that values that differ each time can
    /// refer to it.
    pub(super) const fn is_name_worth_inserting(self, room: Room) -> bool {
        room.is_enough() && self.name_seen >= KNOWN_NAME
    }
}

impl Note {
    /// Makes the note of a field's entry.
    pub(super) const fn of_field(hashes: Hashes, past: Past, section: u64) -> Self {
        Self {
            name: hashes.name,
            field: hashes.field,
            uses: past.before,
            last: section,
        }
    }

    /// Makes the note of the entry of a name.
    pub(super) const fn of_name(hashes: Hashes, section: u64) -> Self {
        Self {
            name: hashes.name,
            field: hashes.field,
            uses: USES_OF_NAME,
            last: section,
        }
    }
}

/// Hashes of a field: of its name, and of the name with the value.
#[derive(Clone, Copy)]
pub(super) struct Hashes {
    pub(super) name: u32,
    pub(super) field: u32,
}

impl Hashes {
    pub(super) fn of(name: &[u8], value: &[u8]) -> Self {
        let of_name = hash(0x9e37_79b9_7f4a_7c15, name);
        Self {
            name: (of_name >> 32) as u32,
            field: (hash(of_name, value) >> 32) as u32,
        }
    }
}

/// A hash for places where a collision costs a comparison.
fn hash(seed: u64, bytes: &[u8]) -> u64 {
    const FACTOR: u64 = 0xff51_afd7_ed55_8ccd;
    let words = bytes.chunks_exact(8);
    let rest = words.remainder();
    let mut hash = seed ^ bytes.len() as u64;
    let mut last = [0; 8];
    for word in words {
        last.copy_from_slice(word);
        hash = (hash ^ u64::from_le_bytes(last))
            .wrapping_mul(FACTOR)
            .rotate_left(29);
    }
    last = [0; 8];
    if let Some(last) = last.get_mut(..rest.len()) {
        last.copy_from_slice(rest);
    }
    (hash ^ u64::from_le_bytes(last)).wrapping_mul(FACTOR) ^ hash >> 31
}

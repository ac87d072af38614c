//! The decoder: it follows the peer's encoder stream, and decodes field sections.

use bytes::Bytes;

use super::{
    Error,
    blocked::Blocked,
    fixed,
    line::{Arena, LastAuthority, NOT_HUFFMAN, Part},
    primitives::{Coded, Reader, Stop, put_integer},
    table::{OVERHEAD, Table, size_of},
};

/// A field of a section.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Field {
    /// Name, as received.
    pub name: Bytes,
    /// Value, as received.
    pub value: Bytes,
    /// True if whoever passes the field on must not index it either (RFC 9204 §7.1.3).
    pub never_indexed: bool,
}

/// What became of a field section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decoded {
    /// All fields were given.
    Whole,
    /// The section refers to entries that have not arrived. Decode it again when
    /// [`Decoder::next_unblocked`] names its stream.
    Blocked,
    /// The fields are larger than allowed (RFC 9114 §4.2.2). Some were given.
    TooLarge,
}

/// Decoder of field sections.
///
/// It holds no more than the capacity of its table, about as much again for the entries, a part of one instruction, and
/// some words for each blocked stream; sections that are blocked stay with the caller.
#[derive(Debug)]
pub struct Decoder {
    table: Table<()>,
    /// Capacity and blocked streams that the settings allow.
    most_capacity: usize,
    most_blocked: usize,
    /// Largest field section, counted as in RFC 9114 §4.2.2.
    most_fields: u64,
    /// The beginning of an instruction of the peer's encoder.
    begun: Vec<u8>,
    blocked: Blocked,
    /// Streams that were given up before the peer set a capacity. A peer that never does refers to no entry, and may
    /// not read what it does not need.
    early: Vec<u64>,
    /// Number of entries of which the peer knows that they came.
    told: u64,
    /// Instructions for the peer's encoder.
    instructions: Vec<u8>,
    scratch: Vec<u8>,
    authority: LastAuthority,
}

/// A field line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'l> {
    pub(super) name: Part<'l>,
    pub(super) value: Part<'l>,
    never_indexed: bool,
}

/// Prefix of a field section.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prefix {
    required: u64,
    base: u64,
}

impl Decoder {
    /// Creates a decoder for the settings SETTINGS_QPACK_MAX_TABLE_CAPACITY, in bytes, and
    /// SETTINGS_QPACK_BLOCKED_STREAMS, and for field sections of at most `most_fields` bytes (RFC 9114 §4.2.2).
    pub const fn new(capacity: usize, blocked_streams: usize, most_fields: u64) -> Self {
        Self {
            table: Table::new(),
            most_capacity: capacity,
            most_blocked: blocked_streams,
            most_fields,
            begun: Vec::new(),
            blocked: Blocked::new(),
            early: Vec::new(),
            told: 0,
            instructions: Vec::new(),
            scratch: Vec::new(),
            authority: LastAuthority::new(),
        }
    }

    /// Returns the number of entries that were ever inserted into the table.
    pub const fn inserted(&self) -> u64 {
        self.table.inserted()
    }

    /// Returns the number of streams that wait for entries.
    pub fn blocked_streams(&self) -> usize {
        self.blocked.waiting()
    }

    /// Returns the bytes of memory that the decoder holds.
    pub fn memory(&self) -> usize {
        let buffers = [&self.begun, &self.instructions, &self.scratch];
        let buffers = buffers.iter().map(|buffer| buffer.capacity());
        let early = self.early.capacity() * std::mem::size_of::<u64>();
        self.table.memory()
            + self.blocked.memory()
            + early
            + buffers.sum::<usize>()
            + self.authority.memory()
    }

    /// Takes bytes of the peer's encoder stream, after its type. Afterwards, streams may no longer be blocked.
    ///
    /// # Errors
    /// [`Error::EncoderStream`]: an instruction is malformed, or asks for what the table cannot do.
    pub fn on_encoder_stream(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if self.begun.is_empty() {
            let taken = self.follow(bytes)?;
            self.begun
                .extend_from_slice(bytes.get(taken..).unwrap_or_default());
        } else {
            self.begun.extend_from_slice(bytes);
            let begun = std::mem::take(&mut self.begun);
            let taken = self.follow(&begun);
            self.begun = begun;
            self.begun.drain(..taken?);
        }
        if self.begun.is_empty() {
            self.begun = Vec::new();
        }
        self.scratch.shrink_to(SCRATCH);
        self.blocked.on_inserted(self.table.inserted());
        Ok(())
    }

    /// Follows instructions as far as they are whole. Returns the number of bytes taken.
    fn follow(&mut self, bytes: &[u8]) -> Result<usize, Error> {
        let mut reader = Reader::new(bytes);
        loop {
            let left = reader.remaining();
            match self.follow_one(&mut reader) {
                Ok(()) => {}
                Err(Fault::Stop(Stop::Incomplete)) => return Ok(bytes.len() - left),
                Err(Fault::Stop(Stop::Malformed)) => {
                    return Err(Error::EncoderStream("a number or a string is too large"));
                }
                Err(Fault::Is(what)) => return Err(Error::EncoderStream(what)),
            }
        }
    }

    /// Follows an instruction (RFC 9204 §4.3).
    fn follow_one(&mut self, reader: &mut Reader<'_>) -> Result<(), Fault> {
        let first = reader.peek().ok_or(Stop::Incomplete)?;
        let mut ahead = *reader;
        let most = self.most_string();
        match first {
            0x80.. => {
                let index = ahead.integer(6)?;
                let name = if first & 0x40 == 0 {
                    let entry = self.relative(index)?;
                    self.table.get(entry).map(|entry| entry.name.clone())
                } else {
                    let name = fixed_field(index).map(|(name, _)| name);
                    name.map(|name| Bytes::from_static(name.as_bytes()))
                };
                let name = name.ok_or(Fault::Is("a name that is not in the table"))?;
                let value = ahead.string(7, most)?;
                let value = self.string(value)?;
                self.insert(name, value)?;
            }
            0x40.. => {
                let name = ahead.string(5, most)?;
                let value = ahead.string(7, most - name.len())?;
                let (name, value) = (self.string(name)?, self.string(value)?);
                self.insert(name, value)?;
            }
            0x20.. => {
                let capacity = usize::try_from(ahead.integer(5)?).unwrap_or(usize::MAX);
                if capacity > self.most_capacity {
                    return Err(Fault::Is("a capacity beyond that of the settings"));
                }
                self.table.set_capacity(capacity);
                if capacity > 0 {
                    for stream in std::mem::take(&mut self.early) {
                        put_integer(&mut self.instructions, 0x40, 6, stream);
                    }
                }
            }
            _ => {
                let index = ahead.integer(5)?;
                let entry = self.relative(index)?;
                let entry = self.table.get(entry).ok_or(Fault::Is(GONE))?;
                let (name, value) = (entry.name.clone(), entry.value.clone());
                self.insert(name, value)?;
            }
        }
        *reader = ahead;
        Ok(())
    }

    /// Returns the most bytes of strings that an instruction may have: Huffman code has at most 30 bits for each byte
    /// of what the table can take.
    const fn most_string(&self) -> usize {
        self.most_capacity.saturating_mul(15) / 4
    }

    /// Returns the absolute index for one that counts back from the newest entry.
    fn relative(&self, index: u64) -> Result<u64, Fault> {
        let back = index
            .checked_add(1)
            .and_then(|back| self.table.inserted().checked_sub(back));
        back.ok_or(Fault::Is(GONE))
    }

    fn string(&mut self, string: Coded<'_>) -> Result<Bytes, Fault> {
        self.scratch.clear();
        let decoded = string.decode(&mut self.scratch);
        decoded.map_err(|_| Fault::Is(NOT_HUFFMAN))?;
        Ok(Bytes::copy_from_slice(&self.scratch))
    }

    fn insert(&mut self, name: Bytes, value: Bytes) -> Result<(), Fault> {
        if !self.table.make_room(size_of(&name, &value)) {
            return Err(Fault::Is("an entry that is larger than the table"));
        }
        self.table.insert(name, value, ());
        Ok(())
    }

    /// Returns a stream whose section can be decoded now, once.
    pub fn next_unblocked(&mut self) -> Option<u64> {
        self.blocked.next_ready()
    }

    /// Decodes the complete field section of a stream.
    ///
    /// # Errors
    /// [`Error::Section`]: it cannot be decoded, or too many streams are blocked.
    pub fn decode(
        &mut self,
        stream: u64,
        section: &[u8],
        mut give: impl FnMut(Field),
    ) -> Result<Decoded, Error> {
        let mut reader = Reader::new(section);
        let prefix = self.prefix(&mut reader).map_err(in_section)?;
        if prefix.required > self.table.inserted() {
            let is_new = !self.blocked.contains(stream);
            if is_new && self.blocked_streams() >= self.most_blocked {
                return Err(Error::Section(
                    "more streams are blocked than the settings allow",
                ));
            }
            self.blocked.insert(stream, prefix.required);
            return Ok(Decoded::Blocked);
        }
        self.blocked.remove(stream);
        let mut scratch = std::mem::take(&mut self.scratch);
        let mut authority = std::mem::take(&mut self.authority);
        let mut arena = Arena::new(&mut scratch, &mut authority);
        let mut size = 0_u64;
        while reader.remaining() > 0 {
            let line = self.line(&mut reader, prefix).map_err(in_section)?;
            let left = reader.remaining();
            let value = match line.name {
                Part::Fixed(":authority") => arena.authority(line.value, left)?,
                _ => arena.keep(line.value, left)?,
            };
            let field = Field {
                name: arena.keep(line.name, left)?,
                value,
                never_indexed: line.never_indexed,
            };
            size = size.saturating_add(size_of(&field.name, &field.value) as u64);
            if size <= self.most_fields {
                give(field);
            }
        }
        scratch.clear();
        scratch.shrink_to(SCRATCH);
        self.scratch = scratch;
        self.authority = authority;
        if prefix.required > 0 {
            put_integer(&mut self.instructions, 0x80, 7, stream);
            self.told = self.told.max(prefix.required);
        }
        Ok(if size <= self.most_fields {
            Decoded::Whole
        } else {
            Decoded::TooLarge
        })
    }

    /// Takes the prefix of a section (RFC 9204 §4.5.1).
    pub(super) fn prefix(&self, reader: &mut Reader<'_>) -> Result<Prefix, Fault> {
        let encoded = reader.integer(8)?;
        let required = self.required(encoded)?;
        let is_negative = reader.peek().is_some_and(|byte| byte & 0x80 != 0);
        let delta = reader.integer(7)?;
        let base = if is_negative {
            delta
                .checked_add(1)
                .and_then(|delta| required.checked_sub(delta))
        } else {
            required.checked_add(delta)
        };
        let base = base.ok_or(Fault::Is("a base before the first entry"))?;
        Ok(Prefix { required, base })
    }

    /// Returns the required insert count (RFC 9204 §4.5.1.1).
    fn required(&self, encoded: u64) -> Result<u64, Fault> {
        const WRONG: Fault = Fault::Is("a required insert count that cannot be");
        if encoded == 0 {
            return Ok(0);
        }
        let entries = (self.most_capacity / OVERHEAD) as u64;
        let range = 2 * entries;
        if encoded > range {
            return Err(WRONG);
        }
        let most = self.table.inserted() + entries;
        let mut required = most / range * range + encoded - 1;
        if required > most {
            required = required.checked_sub(range).ok_or(WRONG)?;
        }
        if required == 0 {
            Err(WRONG)
        } else {
            Ok(required)
        }
    }

    /// Takes a field line (RFC 9204 §4.5.2 to §4.5.6).
    pub(super) fn line<'l>(
        &'l self,
        reader: &mut Reader<'l>,
        prefix: Prefix,
    ) -> Result<Line<'l>, Fault> {
        let first = reader.peek().ok_or(Stop::Incomplete)?;
        let most = reader.remaining();
        let before_base = |index: u64| prefix.base.checked_sub(index.checked_add(1)?);
        let behind_base = |index: u64| prefix.base.checked_add(index);
        // The bits that say where the index points, and whether the value may be indexed.
        let ((name, value), never) = match first {
            0x80.. if first & 0x40 == 0 => {
                let index = reader.integer(6)?;
                (self.entry(before_base(index), prefix)?, 0)
            }
            0x80.. => (fixed_parts(reader.integer(6)?)?, 0),
            0x40.. if first & 0x10 == 0 => {
                let index = reader.integer(4)?;
                (self.entry(before_base(index), prefix)?, 0x20)
            }
            0x40.. => (fixed_parts(reader.integer(4)?)?, 0x20),
            0x20.. => {
                let name = Part::Coded(reader.string(3, most)?);
                ((name, name), 0x10)
            }
            0x10.. => {
                let index = reader.integer(4)?;
                (self.entry(behind_base(index), prefix)?, 0)
            }
            _ => {
                let index = reader.integer(3)?;
                (self.entry(behind_base(index), prefix)?, 0x08)
            }
        };
        let value = if never == 0 {
            value
        } else {
            Part::Coded(reader.string(7, most)?)
        };
        Ok(Line {
            name,
            value,
            never_indexed: first & never != 0,
        })
    }

    /// Returns the name and value of an entry to which a section may refer.
    fn entry(&self, index: Option<u64>, prefix: Prefix) -> Result<(Part<'_>, Part<'_>), Fault> {
        let index = index.filter(|&index| index < prefix.required);
        let entry = index.and_then(|index| self.table.get(index));
        let entry = entry.ok_or(Fault::Is(GONE))?;
        Ok((Part::Entry(&entry.name), Part::Entry(&entry.value)))
    }

    /// Gives up the sections of a stream that were not decoded: it was reset, or nobody reads it.
    pub fn cancel(&mut self, stream: u64) {
        self.blocked.remove(stream);
        if self.table.capacity() > 0 {
            put_integer(&mut self.instructions, 0x40, 6, stream);
        } else if self.most_capacity > 0 && self.early.len() < EARLY {
            self.early.push(stream);
        }
    }

    /// Returns true if there is something to send on the decoder stream.
    pub fn has_instructions(&self) -> bool {
        !self.instructions.is_empty() || self.told < self.table.inserted()
    }

    /// Returns the bytes of instructions that wait to be taken.
    pub fn unsent(&self) -> usize {
        self.instructions.len()
    }

    /// Takes the bytes to send on the decoder stream (RFC 9204 §4.4), after its type.
    pub fn take_instructions(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.instructions);
        let new = self.table.inserted() - self.told;
        if new > 0 {
            put_integer(out, 0, 6, new);
            self.told += new;
        }
    }
}

/// Streams that are remembered until the peer sets a capacity.
const EARLY: usize = 64;

/// Bytes of the buffer for one string that are kept between sections.
const SCRATCH: usize = 1 << 10;

const GONE: &str = "an entry that is not in the table";

/// Reason why something cannot be read.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    Stop(Stop),
    Is(&'static str),
}

impl From<Stop> for Fault {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        match error {
            Error::Section(what) | Error::EncoderStream(what) | Error::DecoderStream(what) => {
                Self::Is(what)
            }
        }
    }
}

pub(super) fn in_section(fault: Fault) -> Error {
    Error::Section(match fault {
        Fault::Stop(Stop::Incomplete) => "it ends inside a field",
        Fault::Stop(Stop::Malformed) => "a number or a string is too large",
        Fault::Is(what) => what,
    })
}

fn fixed_field(index: u64) -> Option<(&'static str, &'static str)> {
    fixed::FIELDS.get(usize::try_from(index).ok()?).copied()
}

fn fixed_parts<'p>(index: u64) -> Result<(Part<'p>, Part<'p>), Fault> {
    let (name, value) = fixed_field(index).ok_or(Fault::Is(GONE))?;
    Ok((Part::Fixed(name), Part::Fixed(value)))
}

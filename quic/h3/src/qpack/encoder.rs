//! The encoder: it decides what goes into the table, and encodes field sections.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;

use super::{
    Error,
    fixed::{self, Found},
    integer::{Reader, Stop, put_integer, put_string},
    policy::{Hashes, History, Names, Note, Past, Room},
    table::{OVERHEAD, Table, size_of},
};

/// Sections that may wait for their acknowledgement: of a stream, and of all. Later ones refer to no entry, so
/// that a peer that acknowledges nothing costs no more.
const SECTIONS_OF_STREAM: usize = 8;
const SECTIONS: usize = 256;

/// A field to encode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldRef<'f> {
    /// Name, in lower case.
    pub name: &'f [u8],
    /// Value.
    pub value: &'f [u8],
    /// True if no table may have the value, at either end or between (RFC 9204 §7.1.3).
    pub sensitive: bool,
}

/// Encoder of field sections.
#[derive(Debug)]
pub struct Encoder {
    table: Table<Note>,
    /// Capacity that the table is to have. The peer learns it with the next section.
    wanted_capacity: usize,
    /// Number of entries of the largest table that the peer's settings allow.
    most_entries: u64,
    /// Number of streams that may wait for entries.
    most_blocked: usize,
    /// Number of entries of which we know that they came.
    known: u64,
    /// Sections that are not acknowledged, by stream.
    sent: BTreeMap<u64, VecDeque<Sent>>,
    /// Number of sections in it.
    unacknowledged: usize,
    /// Number of those sections whose oldest entry this is.
    pins: BTreeMap<u64, u32>,
    history: History,
    /// Unused until there is a table.
    names: Names,
    section: u64,
    /// How the fields of the section under way are written.
    lines: Vec<Line>,
    /// The beginning of an instruction of the peer's decoder.
    begun: Vec<u8>,
}

/// A section that refers to entries.
#[derive(Clone, Copy, Debug)]
struct Sent {
    required: u64,
    oldest: u64,
}

/// How a field is written.
#[derive(Clone, Copy, Debug)]
enum Line {
    Static(u8),
    Dynamic(u64),
    StaticName(u8),
    DynamicName(u64),
    Literal,
}

/// References of the section under way.
#[derive(Clone, Copy, Debug)]
struct References {
    /// True if entries may be referred to that may not have come.
    may_block: bool,
    oldest: Option<u64>,
    required: u64,
}

impl References {
    fn add(&mut self, index: u64) {
        self.oldest = Some(self.oldest.map_or(index, |oldest| oldest.min(index)));
        self.required = self.required.max(index + 1);
    }
}

impl Encoder {
    /// Makes an encoder that uses no dynamic table until the peer's settings are known.
    pub fn new() -> Self {
        Self {
            table: Table::new(),
            wanted_capacity: 0,
            most_entries: 0,
            most_blocked: 0,
            known: 0,
            sent: BTreeMap::new(),
            unacknowledged: 0,
            pins: BTreeMap::new(),
            history: History::default(),
            names: Names::default(),
            section: 0,
            lines: Vec::new(),
            begun: Vec::new(),
        }
    }

    /// Takes the peer's SETTINGS_QPACK_MAX_TABLE_CAPACITY and SETTINGS_QPACK_BLOCKED_STREAMS. The table has at
    /// most `own` bytes, whatever the peer allows.
    pub fn set_peer(&mut self, capacity: u64, blocked_streams: u64, own: usize) {
        let capacity = usize::try_from(capacity).unwrap_or(usize::MAX);
        self.most_entries = (capacity / OVERHEAD) as u64;
        self.most_blocked = usize::try_from(blocked_streams).unwrap_or(usize::MAX);
        self.wanted_capacity = capacity.min(own);
    }

    /// Returns the number of entries that were ever inserted into the table.
    pub const fn inserted(&self) -> u64 {
        self.table.inserted()
    }

    /// Returns the number of entries of which the peer has said that they came.
    pub const fn known_received(&self) -> u64 {
        self.known
    }

    /// Returns the bytes of memory that the encoder holds, without its records of sections.
    pub fn memory(&self) -> usize {
        self.table.memory() + self.lines.capacity() * size_of_line() + self.begun.capacity()
    }

    /// Encodes a field section of a stream, appending it to `section`. The instructions that it needs are appended
    /// to `instructions`; send them on the encoder stream before the section or together with it.
    pub fn encode<'f>(
        &mut self,
        stream: u64,
        fields: impl Iterator<Item = FieldRef<'f>> + Clone,
        section: &mut Vec<u8>,
        instructions: &mut Vec<u8>,
    ) {
        if self.wanted_capacity != self.table.capacity() && self.inserted() == 0 {
            self.table.set_capacity(self.wanted_capacity);
            put_integer(instructions, 0x20, 5, self.wanted_capacity as u64);
        }
        self.section += 1;
        let mut references = References {
            may_block: self.may_block(stream),
            oldest: None,
            required: 0,
        };
        let uses_table = self.table.capacity() > 0 && self.has_room_for_section(stream);
        let mut lines = std::mem::take(&mut self.lines);
        lines.clear();
        for field in fields.clone() {
            lines.push(self.line(field, uses_table, &mut references, instructions));
        }
        self.put_prefix(section, references.required);
        for (field, line) in fields.zip(&lines) {
            put_line(section, references.required, field, *line);
        }
        self.lines = lines;
        if let Some(oldest) = references.oldest {
            let required = references.required;
            self.sent
                .entry(stream)
                .or_default()
                .push_back(Sent { required, oldest });
            *self.pins.entry(oldest).or_default() += 1;
            self.unacknowledged += 1;
        }
    }

    /// Returns true if a section of a stream may wait for its acknowledgement.
    fn has_room_for_section(&self, stream: u64) -> bool {
        let of_stream = self.sent.get(&stream).map_or(0, VecDeque::len);
        of_stream < SECTIONS_OF_STREAM && self.unacknowledged < SECTIONS
    }

    /// Returns true if a section of a stream may refer to entries that may not have come (RFC 9204 §2.1.2).
    fn may_block(&self, stream: u64) -> bool {
        if self.most_blocked == 0 {
            return false;
        }
        let is_blocked = |sent: &VecDeque<Sent>| sent.iter().any(|sent| sent.required > self.known);
        if self.sent.get(&stream).is_some_and(is_blocked) {
            return true;
        }
        let blocked = self.sent.values().filter(|sent| is_blocked(sent));
        blocked.take(self.most_blocked).count() < self.most_blocked
    }

    /// Decides how to write a field.
    fn line(
        &mut self,
        field: FieldRef<'_>,
        uses_table: bool,
        references: &mut References,
        instructions: &mut Vec<u8>,
    ) -> Line {
        let static_name = match fixed::find(field.name, field.value) {
            Found::Field(index) => return Line::Static(index),
            Found::Name(index) => Some(index),
            Found::Nothing => None,
        };
        let by_name = static_name.map_or(Line::Literal, Line::StaticName);
        if !uses_table {
            return by_name;
        }
        let hashes = Hashes::of(field.name, field.value);
        let known = self.entry(field, hashes.field).filter(|_| !field.sensitive);
        let past = self.past(field, hashes, known);
        let index = match known {
            Some(index) => Some(index),
            None => self.insert_field(field, hashes, past, references, instructions),
        };
        if let Some(index) = index.filter(|&index| self.is_usable(index, references)) {
            self.refer(index, references);
            return Line::Dynamic(index);
        }
        if static_name.is_some() {
            return by_name;
        }
        let index = match self.name_entry(field.name, hashes.name) {
            Some(index) => Some(index),
            None => self.insert_name(field, past, references, instructions),
        };
        match index.filter(|&index| self.is_usable(index, references)) {
            Some(index) => {
                self.refer(index, references);
                Line::DynamicName(index)
            }
            None => Line::Literal,
        }
    }

    /// Records a field, and returns how often it was seen before.
    fn past(&mut self, field: FieldRef<'_>, hashes: Hashes, known: Option<u64>) -> Past {
        if field.sensitive {
            return self.names.note(hashes.name, 0, false);
        }
        let entry = known.and_then(|index| self.table.get(index));
        let is_used = entry.is_some_and(|entry| entry.note.uses > 0);
        let before = self.history.note(hashes.field);
        self.names.note(hashes.name, before, is_used)
    }

    fn refer(&mut self, index: u64, references: &mut References) {
        references.add(index);
        let section = self.section;
        if let Some(entry) = self.table.get_mut(index) {
            entry.note.uses += 1;
            entry.note.last = section;
        }
    }

    /// Inserts a field, if that is worth it.
    fn insert_field(
        &mut self,
        field: FieldRef<'_>,
        hashes: Hashes,
        past: Past,
        references: &References,
        instructions: &mut Vec<u8>,
    ) -> Option<u64> {
        let room = self.room(size_of(field.name, field.value));
        if field.sensitive || !past.is_worth_inserting(room) {
            return None;
        }
        let note = Note::of_field(hashes, past, self.section);
        self.insert(field, note, references, instructions)
    }

    /// Inserts a name without a value, if that is worth it.
    fn insert_name(
        &mut self,
        field: FieldRef<'_>,
        past: Past,
        references: &References,
        instructions: &mut Vec<u8>,
    ) -> Option<u64> {
        let room = self.room(size_of(field.name, b""));
        if !past.is_name_worth_inserting(room) {
            return None;
        }
        let note = Note::of_name(Hashes::of(field.name, b""), self.section);
        let field = FieldRef {
            value: b"",
            ..field
        };
        self.insert(field, note, references, instructions)
    }

    const fn room(&self, entry: usize) -> Room {
        Room {
            entry,
            taken: self.table.size(),
            capacity: self.table.capacity(),
        }
    }

    fn entry(&self, field: FieldRef<'_>, whole: u32) -> Option<u64> {
        let FieldRef { name, value, .. } = field;
        let mut entries = self.table.newest_first();
        let found = entries.find(|(_, entry)| {
            entry.note.field == whole && entry.name == name && entry.value == value
        });
        found.map(|(index, _)| index)
    }

    fn name_entry(&self, text: &[u8], name: u32) -> Option<u64> {
        let mut entries = self.table.newest_first();
        let found = entries.find(|(_, entry)| entry.note.name == name && entry.name == text);
        found.map(|(index, _)| index)
    }

    const fn is_usable(&self, index: u64, references: &References) -> bool {
        index < self.known || references.may_block
    }

    /// Inserts an entry, if there is or can be room for it. Popular entries that are the oldest become the
    /// newest.
    fn insert(
        &mut self,
        field: FieldRef<'_>,
        note: Note,
        references: &References,
        instructions: &mut Vec<u8>,
    ) -> Option<u64> {
        let FieldRef { name, value, .. } = field;
        let static_name = match fixed::find(name, b"\0") {
            Found::Field(index) | Found::Name(index) => Some(index),
            Found::Nothing => None,
        };
        if !self.make_room(size_of(name, value), references, instructions) {
            return None;
        }
        if let Some(index) = static_name {
            put_integer(instructions, 0xc0, 6, index.into());
        } else if let Some(index) = self.name_entry(name, note.name) {
            put_integer(instructions, 0x80, 6, self.inserted() - 1 - index);
        } else {
            put_string(instructions, 0x40, 5, name);
        }
        put_string(instructions, 0, 7, value);
        let (name, value) = (Bytes::copy_from_slice(name), Bytes::copy_from_slice(value));
        Some(self.table.insert(name, value, note))
    }

    /// Evicts entries until `bytes` more fit. Returns false if there cannot be.
    fn make_room(
        &mut self,
        bytes: usize,
        references: &References,
        instructions: &mut Vec<u8>,
    ) -> bool {
        /// Entries that are made the newest for one insertion.
        const KEPT: usize = 8;
        let mut kept = 0;
        while self.table.size() + bytes > self.table.capacity() {
            let oldest = self.table.oldest();
            if !self.is_evictable(oldest, references) {
                return false;
            }
            let Some(entry) = self.table.evict() else {
                return false;
            };
            if kept < KEPT && entry.note.is_worth_keeping(self.section) {
                kept += 1;
                put_integer(instructions, 0, 5, self.inserted() - 1 - oldest);
                self.table.insert(entry.name, entry.value, entry.note);
            }
        }
        true
    }

    /// Returns true if an entry may be evicted (RFC 9204 §2.1.1).
    fn is_evictable(&self, index: u64, references: &References) -> bool {
        let pinned = self.pins.first_key_value().map(|(oldest, _)| *oldest);
        let mut pins = [pinned, references.oldest].into_iter().flatten();
        index < self.known && pins.all(|oldest| index < oldest)
    }

    /// Writes the prefix of a section (RFC 9204 §4.5.1). Its base is its required insert count.
    fn put_prefix(&self, section: &mut Vec<u8>, required: u64) {
        let encoded = match required {
            0 => 0,
            _ => required % (2 * self.most_entries) + 1,
        };
        put_integer(section, 0, 8, encoded);
        section.push(0);
    }

    /// Takes bytes of the peer's decoder stream, behind its type.
    ///
    /// # Errors
    /// [`Error::DecoderStream`]: an instruction is malformed, or acknowledges what was not sent.
    pub fn on_decoder_stream(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let mut all = std::mem::take(&mut self.begun);
        all.extend_from_slice(bytes);
        let mut reader = Reader::new(&all);
        loop {
            let left = reader.remaining();
            let Some(first) = reader.peek() else {
                return Ok(());
            };
            let prefix = if first & 0x80 != 0 { 7 } else { 6 };
            match reader.integer(prefix) {
                Ok(number) => self.on_instruction(first, number)?,
                Err(Stop::Incomplete) => {
                    all.drain(..all.len() - left);
                    self.begun = all;
                    return Ok(());
                }
                Err(Stop::Malformed) => {
                    return Err(Error::DecoderStream("a number is too large"));
                }
            }
        }
    }

    /// Follows an instruction (RFC 9204 §4.4).
    fn on_instruction(&mut self, first: u8, number: u64) -> Result<(), Error> {
        match first {
            0x80.. => self.on_acknowledged(number),
            0x40.. => {
                self.cancel(number);
                Ok(())
            }
            _ => {
                let known = self.known.checked_add(number);
                let known = known.filter(|known| number > 0 && *known <= self.inserted());
                self.known =
                    known.ok_or(Error::DecoderStream("more entries came than were sent"))?;
                Ok(())
            }
        }
    }

    fn on_acknowledged(&mut self, stream: u64) -> Result<(), Error> {
        const UNKNOWN: Error = Error::DecoderStream("a section is acknowledged that was not sent");
        let sections = self.sent.get_mut(&stream).ok_or(UNKNOWN)?;
        let sent = sections.pop_front().ok_or(UNKNOWN)?;
        if sections.is_empty() {
            self.sent.remove(&stream);
        }
        self.unpin(sent);
        self.known = self.known.max(sent.required);
        Ok(())
    }

    /// Forgets the sections of a stream that the peer will not decode.
    fn cancel(&mut self, stream: u64) {
        for sent in self.sent.remove(&stream).unwrap_or_default() {
            self.unpin(sent);
        }
    }

    fn unpin(&mut self, sent: Sent) {
        self.unacknowledged -= 1;
        if let Some(count) = self.pins.get_mut(&sent.oldest) {
            *count -= 1;
            if *count == 0 {
                self.pins.remove(&sent.oldest);
            }
        }
    }
}

impl Default for Encoder {
    fn default() -> Self {
        Self::new()
    }
}

const fn size_of_line() -> usize {
    std::mem::size_of::<Line>()
}

/// Writes a field (RFC 9204 §4.5.2 to §4.5.6).
fn put_line(section: &mut Vec<u8>, base: u64, field: FieldRef<'_>, line: Line) {
    let never = u8::from(field.sensitive);
    match line {
        Line::Static(index) => put_integer(section, 0xc0, 6, index.into()),
        Line::Dynamic(index) => put_integer(section, 0x80, 6, base - 1 - index),
        Line::StaticName(index) => {
            put_integer(section, 0x50 | never << 5, 4, index.into());
            put_string(section, 0, 7, field.value);
        }
        Line::DynamicName(index) => {
            put_integer(section, 0x40 | never << 5, 4, base - 1 - index);
            put_string(section, 0, 7, field.value);
        }
        Line::Literal => {
            put_string(section, 0x20 | never << 4, 3, field.name);
            put_string(section, 0, 7, field.value);
        }
    }
}

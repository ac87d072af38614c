//! The encoder: it decides what goes into the table, and encodes field sections.

use std::collections::VecDeque;

use bytes::Bytes;

use super::{
    Error,
    fixed::{self, Found},
    line::{FieldRef, LastDate, Line, put_line},
    policy::{Hashes, History, Names, Note, Past, Room},
    primitives::{Reader, Stop, put_integer, put_string},
    table::{Entry, OVERHEAD, Table, size_of as size_of_entry},
};

/// Sections that may wait for their acknowledgement. Later ones refer to no entry, so that a peer that acknowledges
/// nothing costs no more.
const SECTIONS: usize = 128;

/// Streams that were cancelled before anything was encoded for them, and that are remembered.
const CANCELLED: usize = 32;

/// Places in which the entry of a field is looked for first.
const PLACES: usize = 128;

/// Fields of a section for which memory is kept until the next one.
const LINES: usize = 64;

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
    /// Sections that are not acknowledged, in the order in which they were sent.
    sent: VecDeque<Sent>,
    /// Streams that the peer has cancelled: it would not acknowledge their sections.
    cancelled: VecDeque<u64>,
    /// Entries by the hashes of their fields, of which there may be others with the same place.
    places: Vec<u64>,
    history: History,
    /// Unused until there is a table.
    names: Names,
    section: u64,
    /// How the fields of the section under way are written.
    lines: Vec<Line>,
    /// The beginning of an instruction of the peer's decoder.
    begun: Vec<u8>,
    date: LastDate,
}

/// A section that refers to entries.
#[derive(Clone, Copy, Debug)]
struct Sent {
    stream: u64,
    required: u64,
    oldest: u64,
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
    /// Creates an encoder that uses no dynamic table until the peer's settings are known.
    pub fn new() -> Self {
        Self {
            table: Table::new(),
            wanted_capacity: 0,
            most_entries: 0,
            most_blocked: 0,
            known: 0,
            sent: VecDeque::new(),
            cancelled: VecDeque::new(),
            places: Vec::new(),
            history: History::default(),
            names: Names::default(),
            section: 0,
            lines: Vec::new(),
            begun: Vec::new(),
            date: LastDate::default(),
        }
    }

    /// Takes the peer's SETTINGS_QPACK_MAX_TABLE_CAPACITY and SETTINGS_QPACK_BLOCKED_STREAMS. The table has at most
    /// `own` bytes, regardless of what the peer allows.
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

    /// Returns the number of entries that the peer has acknowledged.
    pub const fn known_received(&self) -> u64 {
        self.known
    }

    /// Returns the bytes of memory that the encoder holds.
    pub fn memory(&self) -> usize {
        let own = self.lines.capacity() * size_of::<Line>()
            + self.sent.capacity() * size_of::<Sent>()
            + self.cancelled.capacity() * size_of::<u64>()
            + self.places.capacity() * size_of::<u64>()
            + self.begun.capacity()
            + self.date.memory();
        own + self.table.memory() + self.history.memory() + self.names.memory()
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
        let is_acknowledged = self.sent.len() < SECTIONS && !self.cancelled.contains(&stream);
        if self.table.capacity() == 0 || !is_acknowledged {
            self.put_prefix(section, 0);
            for field in fields {
                let line = match fixed::find(field.name, field.value) {
                    Found::Field(index) => Line::Static(index),
                    Found::Name(index) => Line::StaticName(index),
                    Found::Nothing => Line::Literal,
                };
                put_line(section, 0, field, line, &mut self.date);
            }
            return;
        }
        self.section += 1;
        let mut references = References {
            may_block: self.may_block(stream),
            oldest: None,
            required: 0,
        };
        let mut lines = std::mem::take(&mut self.lines);
        for field in fields.clone() {
            lines.push(self.line(field, &mut references, instructions));
        }
        self.put_prefix(section, references.required);
        for (field, line) in fields.zip(&lines) {
            put_line(section, references.required, field, *line, &mut self.date);
        }
        lines.clear();
        lines.shrink_to(LINES);
        self.lines = lines;
        if let Some(oldest) = references.oldest {
            let required = references.required;
            self.sent.push_back(Sent {
                stream,
                required,
                oldest,
            });
        }
    }

    /// Returns true if a section of a stream may refer to entries that may not have come (RFC 9204 §2.1.2). A stream
    /// with several such sections counts as several.
    fn may_block(&self, stream: u64) -> bool {
        if self.most_blocked == 0 {
            return false;
        }
        if self.known == self.inserted() {
            return true;
        }
        let mut blocked = 0;
        for sent in self.sent.iter().filter(|sent| sent.required > self.known) {
            if sent.stream == stream {
                return true;
            }
            blocked += 1;
        }
        blocked < self.most_blocked
    }

    /// Decides how to write a field.
    fn line(
        &mut self,
        field: FieldRef<'_>,
        references: &mut References,
        instructions: &mut Vec<u8>,
    ) -> Line {
        let static_name = match fixed::find(field.name, field.value) {
            Found::Field(index) => return Line::Static(index),
            Found::Name(index) => Some(index),
            Found::Nothing => None,
        };
        let by_name = static_name.map_or(Line::Literal, Line::StaticName);
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
        let before = if is_used {
            1
        } else {
            self.history.note(hashes.field)
        };
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
        let room = self.room(size_of_entry(field.name, field.value));
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
        let room = self.room(size_of_entry(field.name, b""));
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
        let is_it = |entry: &Entry<Note>| {
            entry.note.field == whole && entry.name == name && entry.value == value
        };
        let place = self.places.get(whole as usize % PLACES);
        let likely = place.filter(|&&index| self.table.get(index).is_some_and(is_it));
        if let Some(index) = likely {
            return Some(*index);
        }
        let mut entries = self.table.newest_first();
        let found = entries.find(|(_, entry)| is_it(entry));
        found.map(|(index, _)| index)
    }

    /// Inserts an entry for which there is room.
    fn put(&mut self, name: Bytes, value: Bytes, note: Note) -> u64 {
        let index = self.table.insert(name, value, note);
        self.places.resize(PLACES, u64::MAX);
        if let Some(place) = self.places.get_mut(note.field as usize % PLACES) {
            *place = index;
        }
        index
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
        if !self.make_room(size_of_entry(name, value), references, instructions) {
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
        Some(self.put(name, value, note))
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
        let pinned = self.sent.iter().map(|sent| sent.oldest).min();
        let pinned = pinned.into_iter().chain(references.oldest).min();
        let is_evictable = |known: u64, index: u64| {
            // RFC 9204 §2.1.1.
            index < known && pinned.is_none_or(|oldest| index < oldest)
        };
        let mut kept = 0;
        while self.table.size() + bytes > self.table.capacity() {
            let oldest = self.table.oldest();
            if !is_evictable(self.known, oldest) {
                return false;
            }
            let Some(entry) = self.table.evict() else {
                return false;
            };
            if kept < KEPT && entry.note.is_worth_keeping(self.section) {
                kept += 1;
                put_integer(instructions, 0, 5, self.inserted() - 1 - oldest);
                self.put(entry.name, entry.value, entry.note);
            }
        }
        true
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

    /// Takes bytes of the peer's decoder stream, after its type.
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
        let mut sections = self.sent.iter();
        let place = sections.position(|sent| sent.stream == stream);
        let sent = place.and_then(|place| self.sent.remove(place));
        self.known = self.known.max(sent.ok_or(UNKNOWN)?.required);
        Ok(())
    }

    /// Forgets the sections of a stream that the peer will not decode.
    fn cancel(&mut self, stream: u64) {
        let before = self.sent.len();
        self.sent.retain(|sent| sent.stream != stream);
        if self.sent.len() == before && self.table.capacity() > 0 {
            self.cancelled.truncate(CANCELLED - 1);
            self.cancelled.push_front(stream);
        }
    }
}

impl Default for Encoder {
    fn default() -> Self {
        Self::new()
    }
}

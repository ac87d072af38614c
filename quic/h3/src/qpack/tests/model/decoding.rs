//! A decoder beside the model.

use std::collections::{BTreeMap, BTreeSet};

use proptest::{collection::vec, prelude::*};

use super::{
    super::super::{Decoded, Decoder, primitives::put_integer},
    Instruction, Line, Model, Pair, required,
};

/// A section: its stream, its prefix, and its lines.
#[derive(Clone, Debug)]
struct Section {
    stream: u64,
    required: Required,
    is_negative: bool,
    delta: u64,
    lines: Vec<(Line, bool)>,
}

/// A required insert count.
#[derive(Clone, Copy, Debug)]
enum Required {
    /// Of so many entries less, or more, than there are.
    Near(i64),
    Encoded(u64),
}

/// What happens to a decoder.
#[derive(Clone, Debug)]
enum Step {
    Instruction(Instruction, usize),
    Section(Section),
    Cancel(u64),
}

fn text() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        "[a-c]{0,3}".prop_map(String::into_bytes),
        vec(any::<u8>(), 0..30),
    ]
}

fn instruction() -> impl Strategy<Value = Instruction> {
    prop_oneof![
        1 => prop_oneof![0..300_usize, Just(256)].prop_map(Instruction::Capacity),
        3 => (0..102_u64, text()).prop_map(|(index, value)| Instruction::Fixed(index, value)),
        3 => (0..5_u64, text()).prop_map(|(back, value)| Instruction::Dynamic(back, value)),
        4 => (text(), text()).prop_map(|(name, value)| Instruction::Literal(name, value)),
        2 => (0..5_u64).prop_map(Instruction::Duplicate),
    ]
}

fn line() -> impl Strategy<Value = Line> {
    prop_oneof![
        (0..102_u64).prop_map(Line::Fixed),
        (0..4_u64).prop_map(Line::Dynamic),
        (0..3_u64).prop_map(Line::PostBase),
        (0..102_u64, text()).prop_map(|(index, value)| Line::FixedName(index, value)),
        (0..4_u64, text()).prop_map(|(back, value)| Line::DynamicName(back, value)),
        (0..3_u64, text()).prop_map(|(ahead, value)| Line::PostBaseName(ahead, value)),
        (text(), text()).prop_map(|(name, value)| Line::Literal(name, value)),
    ]
}

fn section() -> impl Strategy<Value = Section> {
    let required = prop_oneof![
        9 => (-4..3_i64).prop_map(Required::Near),
        1 => (0..19_u64).prop_map(Required::Encoded),
    ];
    let lines = vec((line(), any::<bool>()), 0..6);
    let parts = (0..4_u64, required, any::<bool>(), 0..4_u64, lines);
    parts.prop_map(|(stream, required, is_negative, delta, lines)| Section {
        stream,
        required,
        is_negative,
        delta,
        lines,
    })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => (instruction(), 1..9_usize).prop_map(|(it, piece)| Step::Instruction(it, piece)),
        4 => section().prop_map(Step::Section),
        1 => (0..4_u64).prop_map(Step::Cancel),
    ]
}

/// The settings of the decoder.
const CAPACITY: usize = 256;
const BLOCKED: usize = 2;

impl Section {
    /// Returns the required insert count and the base.
    fn prefix(&self, encoded: u64, inserted: u64) -> Option<(u64, u64)> {
        let required = required(encoded, inserted, CAPACITY as u64 / 32)?;
        let base = if self.is_negative {
            required.checked_sub(self.delta + 1)?
        } else {
            required + self.delta
        };
        Some((required, base))
    }
}

/// What becomes of a section.
#[derive(Debug)]
enum Expected {
    Waits,
    Fields(Vec<Pair>),
}

/// A decoder, and what the model expects of it.
struct Decoding {
    decoder: Decoder,
    model: Model,
    /// Streams that wait, with the number of entries for which they do.
    waiting: BTreeMap<u64, u64>,
    told: u64,
    /// Streams that were given up while there was no capacity.
    early: Vec<u64>,
    /// What the decoder should send.
    answers: Vec<u8>,
}

impl Decoding {
    fn new() -> Self {
        Self {
            decoder: Decoder::new(CAPACITY, BLOCKED, u64::MAX),
            model: Model::default(),
            waiting: BTreeMap::new(),
            told: 0,
            early: Vec::new(),
            answers: Vec::new(),
        }
    }

    /// Returns false at the end of the connection. An honest peer leaves out what would be wrong.
    fn step(&mut self, step: Step, is_honest: bool) -> bool {
        let goes_on = match step {
            Step::Instruction(instruction, piece) => {
                let mut ahead = self.model.clone();
                if is_honest && !instruction.clone().follow(&mut ahead, CAPACITY) {
                    return true;
                }
                self.follow(instruction, piece)
            }
            Step::Section(section) => self.decode(section, is_honest),
            Step::Cancel(stream) => {
                self.decoder.cancel(stream);
                self.waiting.remove(&stream);
                if self.model.capacity > 0 {
                    put_integer(&mut self.answers, 0x40, 6, stream);
                } else if self.early.len() < 64 {
                    self.early.push(stream);
                }
                true
            }
        };
        assert_eq!(self.decoder.inserted(), self.model.inserted());
        if goes_on {
            self.check_answers();
        }
        goes_on
    }

    fn decode(&mut self, mut section: Section, is_honest: bool) -> bool {
        const RANGE: u64 = 2 * CAPACITY as u64 / 32;
        let inserted = self.model.inserted();
        let encoded = match section.required {
            Required::Near(more) => match inserted.saturating_add_signed(more) {
                0 => 0,
                required => required % RANGE + 1,
            },
            Required::Encoded(encoded) => encoded,
        };
        if is_honest {
            let prefix = section.prefix(encoded, inserted);
            let is_right = |line: &Line| {
                prefix.is_some_and(|(required, base)| {
                    required > inserted || line.field(&self.model, base, required).is_some()
                })
            };
            section.lines.retain(|(line, _)| is_right(line));
            let is_known = self.waiting.contains_key(&section.stream);
            let waits = prefix.is_none_or(|(required, _)| required > inserted);
            if prefix.is_none() || (waits && !is_known && self.waiting.len() >= BLOCKED) {
                return true;
            }
        }
        let mut bytes = Vec::new();
        put_integer(&mut bytes, 0, 8, encoded);
        put_integer(
            &mut bytes,
            u8::from(section.is_negative) << 7,
            7,
            section.delta,
        );
        for (line, never) in &section.lines {
            line.put(*never, &mut bytes);
        }
        let expected = self.expected(&section, encoded);
        let mut came = Vec::new();
        let decoded = self.decoder.decode(section.stream, &bytes, |field| {
            came.push((field.name.to_vec(), field.value.to_vec()));
        });
        match (&expected, decoded) {
            (None, Err(_)) => false,
            (Some(Expected::Waits), Ok(Decoded::Blocked)) => true,
            (Some(Expected::Fields(fields)), Ok(Decoded::Whole)) => {
                assert_eq!(*fields, came);
                true
            }
            (_, decoded) => panic!("{decoded:?} instead of {expected:?}"),
        }
    }

    fn follow(&mut self, instruction: Instruction, piece: usize) -> bool {
        let mut bytes = Vec::new();
        instruction.put(&mut bytes);
        let can_be = instruction.follow(&mut self.model, CAPACITY);
        if self.model.capacity > 0 {
            for stream in std::mem::take(&mut self.early) {
                put_integer(&mut self.answers, 0x40, 6, stream);
            }
        }
        let mut pieces = bytes.chunks(piece);
        let followed = pieces.try_for_each(|piece| self.decoder.on_encoder_stream(piece));
        assert_eq!(followed.is_ok(), can_be, "{followed:?}");
        let inserted = self.model.inserted();
        let ready: Vec<_> = self
            .waiting
            .iter()
            .filter(|(_, needs)| **needs <= inserted)
            .collect();
        let ready: BTreeSet<_> = ready.into_iter().map(|(stream, _)| *stream).collect();
        self.waiting.retain(|stream, _| !ready.contains(stream));
        let named: BTreeSet<_> = std::iter::from_fn(|| self.decoder.next_unblocked()).collect();
        assert_eq!(named, ready);
        assert_eq!(self.decoder.blocked_streams(), self.waiting.len());
        can_be
    }

    /// Returns what becomes of a section; `None` if it is wrong.
    fn expected(&mut self, section: &Section, encoded: u64) -> Option<Expected> {
        let (stream, inserted) = (section.stream, self.model.inserted());
        let (required, base) = section.prefix(encoded, inserted)?;
        if required > inserted {
            let others = self.waiting.keys().filter(|other| **other != stream);
            if others.count() >= BLOCKED {
                return None;
            }
            self.waiting.insert(stream, required);
            return Some(Expected::Waits);
        }
        self.waiting.remove(&stream);
        let fields = section
            .lines
            .iter()
            .map(|(line, _)| line.field(&self.model, base, required));
        let fields: Vec<_> = fields.collect::<Option<_>>()?;
        if required > 0 {
            put_integer(&mut self.answers, 0x80, 7, stream);
            self.told = self.told.max(required);
        }
        Some(Expected::Fields(fields))
    }

    fn check_answers(&mut self) {
        let new = self.model.inserted() - self.told;
        if new > 0 {
            put_integer(&mut self.answers, 0, 6, new);
            self.told += new;
        }
        let mut answers = Vec::new();
        self.decoder.take_instructions(&mut answers);
        assert_eq!(answers, std::mem::take(&mut self.answers));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn a_decoder_does_what_the_model_does(
        steps in vec((step(), prop::bool::weighted(0.95)), 1..100),
    ) {
        let mut decoding = Decoding::new();
        decoding.step(Step::Instruction(Instruction::Capacity(CAPACITY), 9), true);
        for (step, is_honest) in steps {
            if !decoding.step(step, is_honest) {
                break;
            }
        }
    }
}

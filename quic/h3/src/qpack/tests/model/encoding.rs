//! An encoder beside the model.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proptest::{collection::vec, prelude::*, sample::Index};

use super::{
    super::super::{
        Encoder, FieldRef,
        primitives::{huffman, put_integer},
    },
    Instruction, Line, Model, required,
};

/// Takes an integer off the front (RFC 7541 §5.1).
fn integer(bytes: &mut &[u8], prefix: u32) -> u64 {
    let most = (1 << prefix) - 1;
    let mut value = u64::from(bytes[0]) & most;
    *bytes = &bytes[1..];
    let mut factor = 1;
    while value >= most {
        let byte = bytes[0];
        *bytes = &bytes[1..];
        value += u64::from(byte & 0x7f) * factor;
        factor *= 128;
        if byte < 128 {
            break;
        }
    }
    value
}

fn string(bytes: &mut &[u8], prefix: u32) -> Vec<u8> {
    let is_huffman = bytes[0] >> prefix & 1 == 1;
    let len = integer(bytes, prefix) as usize;
    let (coded, rest) = bytes.split_at(len);
    *bytes = rest;
    if !is_huffman {
        return coded.to_vec();
    }
    let mut text = Vec::new();
    huffman::decode(coded, &mut text).expect("Huffman code");
    text
}

/// Takes an instruction off the front of an encoder stream.
fn read_instruction(bytes: &mut &[u8]) -> Instruction {
    match bytes[0] {
        0xc0.. => Instruction::Fixed(integer(bytes, 6), string(bytes, 7)),
        0x80.. => Instruction::Dynamic(integer(bytes, 6), string(bytes, 7)),
        0x40.. => Instruction::Literal(string(bytes, 5), string(bytes, 7)),
        0x20.. => Instruction::Capacity(integer(bytes, 5) as usize),
        _ => Instruction::Duplicate(integer(bytes, 5)),
    }
}

/// Takes a field line off the front of a section, and whether it must never be indexed.
fn read_line(bytes: &mut &[u8]) -> (Line, bool) {
    let first = bytes[0];
    match first {
        0xc0.. => (Line::Fixed(integer(bytes, 6)), false),
        0x80.. => (Line::Dynamic(integer(bytes, 6)), false),
        0x40.. => {
            let (index, value) = (integer(bytes, 4), string(bytes, 7));
            let line = match first & 0x10 {
                0 => Line::DynamicName(index, value),
                _ => Line::FixedName(index, value),
            };
            (line, first & 0x20 != 0)
        }
        0x20.. => (
            Line::Literal(string(bytes, 3), string(bytes, 7)),
            first & 0x10 != 0,
        ),
        0x10.. => (Line::PostBase(integer(bytes, 4)), false),
        _ => {
            let line = Line::PostBaseName(integer(bytes, 3), string(bytes, 7));
            (line, first & 0x08 != 0)
        }
    }
}

/// What happens to an encoder.
#[derive(Clone, Debug)]
enum Turn {
    /// A section for a stream, of these fields.
    Section(u64, Vec<(u8, u8, bool)>),
    /// The peer has decoded the oldest section of some stream.
    Acknowledge(Index),
    /// The peer tells of some entries.
    Increment(u8),
    Cancel(u64),
}

fn turn() -> impl Strategy<Value = Turn> {
    let field = (0..6_u8, 0..12_u8, prop::bool::weighted(0.1));
    prop_oneof![
        4 => (0..12_u64, vec(field, 0..8)).prop_map(|(stream, fields)| Turn::Section(stream, fields)),
        3 => any::<Index>().prop_map(Turn::Acknowledge),
        2 => (1..6_u8).prop_map(Turn::Increment),
        1 => (0..12_u64).prop_map(Turn::Cancel),
    ]
}

/// An encoder, and what its peer knows.
struct Encoding {
    encoder: Encoder,
    model: Model,
    most: usize,
    blocked: usize,
    known: u64,
    /// Required insert counts and references of sections that are not acknowledged, by stream.
    sent: BTreeMap<u64, VecDeque<(u64, BTreeSet<u64>)>>,
}

impl Encoding {
    fn new(most: usize, blocked: usize) -> Self {
        let mut encoder = Encoder::new();
        encoder.set_peer(most as u64, blocked as u64, 4096);
        Self {
            encoder,
            model: Model::default(),
            most,
            blocked,
            known: 0,
            sent: BTreeMap::new(),
        }
    }

    fn turn(&mut self, turn: Turn) {
        let mut answer = Vec::new();
        match turn {
            Turn::Section(stream, fields) => self.section(stream, &fields),
            Turn::Acknowledge(which) => {
                let streams: Vec<_> = self.sent.keys().copied().collect();
                if streams.is_empty() {
                    return;
                }
                let stream = *which.get(&streams);
                put_integer(&mut answer, 0x80, 7, stream);
                let sections = self.sent.get_mut(&stream).expect("a stream");
                let (required, _) = sections.pop_front().expect("a section");
                if sections.is_empty() {
                    self.sent.remove(&stream);
                }
                self.known = self.known.max(required);
            }
            Turn::Increment(more) => {
                let more = u64::from(more).min(self.model.inserted() - self.known);
                if more > 0 {
                    put_integer(&mut answer, 0, 6, more);
                }
                self.known += more;
            }
            Turn::Cancel(stream) => {
                put_integer(&mut answer, 0x40, 6, stream);
                self.sent.remove(&stream);
            }
        }
        self.encoder
            .on_decoder_stream(&answer)
            .expect("a peer that keeps the rules");
        assert_eq!(self.encoder.known_received(), self.known);
        assert_eq!(self.encoder.inserted(), self.model.inserted());
    }

    fn section(&mut self, stream: u64, choices: &[(u8, u8, bool)]) {
        const NAMES: [&[u8]; 6] = [
            b":path", b"x-some", b"etag", b"x-other", b"cookie", b"x-long",
        ];
        let text = |name: u8, value: u8| {
            let text = if name == 5 {
                "long ".repeat(9)
            } else {
                String::new()
            };
            format!("{text}value {value}").into_bytes()
        };
        let fields = choices.iter().map(|(name, value, sensitive)| {
            (
                NAMES[usize::from(*name)].to_vec(),
                text(*name, *value),
                *sensitive,
            )
        });
        let fields: Vec<_> = fields.collect();
        let to_encode = fields.iter().map(|(name, value, sensitive)| FieldRef {
            name,
            value,
            sensitive: *sensitive,
        });
        let (mut section, mut instructions) = (Vec::new(), Vec::new());
        self.encoder
            .encode(stream, to_encode, &mut section, &mut instructions);
        self.follow(&instructions);
        self.decode(stream, &section, &fields);
    }

    /// Follows instructions, and checks that none evicts what the peer may still need (RFC 9204 §2.1.1).
    fn follow(&mut self, mut instructions: &[u8]) {
        while !instructions.is_empty() {
            let instruction = read_instruction(&mut instructions);
            let text = format!("{instruction:?}");
            let before = self.model.evicted as u64;
            assert!(instruction.follow(&mut self.model, self.most), "{text}");
            let evicted = before..self.model.evicted as u64;
            let mut references = self.sent.values().flatten();
            assert!(
                evicted.end <= self.known,
                "{text} evicts what may not have come"
            );
            let is_needed =
                references.any(|(_, used)| used.range(evicted.clone()).next().is_some());
            assert!(!is_needed, "{text} evicts what a section refers to");
        }
    }

    fn decode(&mut self, stream: u64, mut section: &[u8], fields: &[(Vec<u8>, Vec<u8>, bool)]) {
        let encoded = integer(&mut section, 8);
        let most_entries = self.most as u64 / 32;
        let required = required(encoded, self.model.inserted(), most_entries).expect("a count");
        let is_negative = section[0] & 0x80 != 0;
        let delta = integer(&mut section, 7);
        let base = if is_negative {
            required - delta - 1
        } else {
            required + delta
        };
        let mut used = BTreeSet::new();
        for (name, value, sensitive) in fields {
            let (line, never) = read_line(&mut section);
            let decoded = line.field(&self.model, base, required);
            assert_eq!(
                decoded.as_ref(),
                Some(&(name.clone(), value.clone())),
                "{line:?}"
            );
            used.extend(line.index(base));
            let in_table = matches!(line, Line::Dynamic(_) | Line::PostBase(_));
            assert!(
                !sensitive || (never && !in_table),
                "{line:?} of a sensitive field"
            );
        }
        assert!(section.is_empty());
        assert_eq!(
            required,
            used.last().map_or(0, |last| last + 1),
            "RFC 9204 §2.1.2"
        );
        if required > 0 {
            self.sent
                .entry(stream)
                .or_default()
                .push_back((required, used));
        }
        let may_wait =
            |sent: &&VecDeque<(u64, _)>| sent.iter().any(|(needs, _)| *needs > self.known);
        let waiting = self.sent.values().filter(may_wait).count();
        assert!(
            waiting <= self.blocked,
            "{waiting} streams may be blocked (RFC 9204 §2.1.2)"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn an_encoder_does_what_the_model_allows(
        most in prop_oneof![Just(0_usize), 0..400_usize, Just(4096)],
        blocked in 0..4_usize,
        turns in vec(turn(), 1..150),
    ) {
        let mut encoding = Encoding::new(most, blocked);
        for turn in turns {
            encoding.turn(turn);
        }
    }
}

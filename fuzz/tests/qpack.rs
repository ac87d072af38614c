//! QPACK in both directions: bytes of a hostile peer, and sections whose table entries come late.

use std::collections::VecDeque;

use hybriq_h3::qpack::{Decoded, Decoder, Encoder, FieldRef};

/// Capacity of the table, blocked streams, and bytes of the fields of a section.
const CAPACITY: usize = 4096;
const BLOCKED: usize = 8;
const FIELDS: u64 = 16 * 1024;

/// What a decoder with these settings may hold: the table, its entries, and buffers.
const MEMORY: usize = 64 * 1024;

#[test]
fn hostile_bytes() {
    bolero::check!()
        .with_iterations(5_000)
        .with_type::<Vec<(u8, u8, Vec<u8>)>>()
        .for_each(|steps| {
            let mut decoder = Decoder::new(CAPACITY, BLOCKED, FIELDS);
            let mut encoder = Encoder::new();
            encoder.set_peer(CAPACITY as u64, BLOCKED as u64, CAPACITY);
            for (kind, stream, bytes) in steps {
                let stream = u64::from(*stream);
                let goes_on = match kind % 4 {
                    0 => decoder.on_encoder_stream(bytes).is_ok(),
                    1 => decoder.decode(stream, bytes, |_| ()).is_ok(),
                    2 => encoder.on_decoder_stream(bytes).is_ok(),
                    _ => {
                        decoder.cancel(stream);
                        decoder.take_instructions(&mut Vec::new());
                        true
                    }
                };
                assert!(decoder.memory() <= MEMORY, "{} bytes", decoder.memory());
                assert!(decoder.blocked_streams() <= BLOCKED);
                if !goes_on {
                    break;
                }
            }
        });
}

/// A section on its way.
struct Sent {
    stream: u64,
    section: Vec<u8>,
    fields: Vec<(&'static str, String)>,
}

/// An encoder and a decoder, and what is on its way between them.
struct Pair {
    encoder: Encoder,
    decoder: Decoder,
    to_decoder: VecDeque<u8>,
    to_encoder: VecDeque<u8>,
    sections: Vec<Sent>,
    streams: u64,
}

impl Pair {
    fn new(capacity: usize, blocked: usize) -> Self {
        let mut encoder = Encoder::new();
        encoder.set_peer(capacity as u64, blocked as u64, CAPACITY);
        Self {
            encoder,
            decoder: Decoder::new(capacity, blocked, u64::MAX),
            to_decoder: VecDeque::new(),
            to_encoder: VecDeque::new(),
            sections: Vec::new(),
            streams: 0,
        }
    }

    fn send(&mut self, fields: &[(u8, u8)]) {
        let names = [
            ":path",
            "cookie",
            "authorization",
            "x-request-id",
            "etag",
            "x-long",
            "date",
            "server",
        ];
        let fields: Vec<_> = fields
            .iter()
            .map(|(name, value)| {
                let name = names[usize::from(*name) % names.len()];
                let repeated = usize::from(*value >> 4) * if name == "x-long" { 90 } else { 3 };
                (name, "v".repeat(repeated) + &value.to_string())
            })
            .collect();
        let (mut section, mut instructions) = (Vec::new(), Vec::new());
        let written = fields.iter().map(|(name, value)| FieldRef {
            name: name.as_bytes(),
            value: value.as_bytes(),
            sensitive: *name == "authorization",
        });
        let stream = self.streams * 4;
        self.streams += 1;
        self.encoder
            .encode(stream, written, &mut section, &mut instructions);
        self.to_decoder.extend(instructions);
        self.sections.push(Sent {
            stream,
            section,
            fields,
        });
    }

    fn deliver_instructions(&mut self, most: usize) {
        let most = most.min(self.to_decoder.len());
        let bytes: Vec<u8> = self.to_decoder.drain(..most).collect();
        let taken = self.decoder.on_encoder_stream(&bytes);
        taken.expect("instructions of our encoder");
    }

    fn deliver_acknowledgements(&mut self, most: usize) {
        let mut new = Vec::new();
        self.decoder.take_instructions(&mut new);
        self.to_encoder.extend(new);
        let most = most.min(self.to_encoder.len());
        let bytes: Vec<u8> = self.to_encoder.drain(..most).collect();
        let taken = self.encoder.on_decoder_stream(&bytes);
        taken.expect("instructions of our decoder");
    }

    /// Decodes a section, and keeps it if it is blocked. Returns true if it was whole.
    fn deliver_section(&mut self, index: usize) -> bool {
        let sent = &self.sections[index];
        let mut came = Vec::new();
        let decoded = self.decoder.decode(sent.stream, &sent.section, |field| {
            came.push((field.name, field.value, field.never_indexed));
        });
        if decoded.expect("a section of our encoder") == Decoded::Blocked {
            return false;
        }
        let sent = self.sections.remove(index);
        assert_eq!(came.len(), sent.fields.len());
        for ((name, value, never_indexed), (sent_name, sent_value)) in came.iter().zip(&sent.fields)
        {
            assert_eq!(
                (&name[..], &value[..]),
                (sent_name.as_bytes(), sent_value.as_bytes())
            );
            assert!(*never_indexed || *sent_name != "authorization");
        }
        true
    }

    fn cancel(&mut self, index: usize) {
        let sent = self.sections.remove(index);
        self.decoder.cancel(sent.stream);
    }
}

#[test]
fn sections_survive_late_instructions() {
    bolero::check!()
        .with_iterations(1_000)
        .with_type::<(u16, u8, Vec<(u8, u8, Vec<(u8, u8)>)>)>()
        .for_each(|(capacity, blocked, steps)| {
            let mut pair = Pair::new(
                usize::from(*capacity) % (CAPACITY + 1),
                usize::from(*blocked % 9),
            );
            for (kind, number, fields) in steps {
                let number = usize::from(*number);
                let any = (!pair.sections.is_empty()).then(|| number % pair.sections.len().max(1));
                match (kind % 6, any) {
                    (0 | 1, _) => pair.send(fields),
                    (2, _) => pair.deliver_instructions(number),
                    (3, _) => pair.deliver_acknowledgements(number),
                    (4, Some(index)) => _ = pair.deliver_section(index),
                    (5, Some(index)) => pair.cancel(index),
                    _ => {}
                }
            }
            pair.deliver_instructions(usize::MAX);
            while !pair.sections.is_empty() {
                assert!(
                    pair.deliver_section(0),
                    "nothing is blocked when all instructions came"
                );
            }
            pair.deliver_acknowledgements(usize::MAX);
            assert_eq!(pair.encoder.known_received(), pair.decoder.inserted());
        });
}

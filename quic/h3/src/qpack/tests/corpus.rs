//! The corpus of the QPACK working group: the part of it beside this file, or the whole (<https://github.com/qpackers/qifs>)
//! in the folder that `HYBRIQ_QIFS` names.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use super::super::{Decoded, Decoder, Encoder, FieldRef, primitives::put_integer};

/// A header list.
type List = Vec<(Vec<u8>, Vec<u8>)>;

/// A record of an encoded file: its stream, and the bytes.
type Record = (u64, Vec<u8>);

/// Field sections are of any size here.
const ANY: u64 = u64::MAX;

fn corpus() -> PathBuf {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/qpack/tests/corpus");
    env::var_os("HYBRIQ_QIFS").map_or(beside, PathBuf::from)
}

fn lists(path: &Path) -> Vec<List> {
    let text = fs::read(path).unwrap();
    let mut lists = vec![List::new()];
    for line in text.split(|&byte| byte == b'\n') {
        let last = lists.last_mut().unwrap();
        match line.iter().position(|&byte| byte == b'\t') {
            _ if line.starts_with(b"#") => {}
            Some(tab) => last.push((line[..tab].to_vec(), line[tab + 1..].to_vec())),
            None if !last.is_empty() => lists.push(List::new()),
            None => {}
        }
    }
    lists.retain(|list| !list.is_empty());
    lists
}

/// Returns the lists of this name, which may be there as encoded by another encoder alone.
fn lists_of(corpus: &Path, name: &str) -> Option<Vec<List>> {
    let path = corpus.join("qifs").join(format!("{name}.qif"));
    if path.is_file() {
        return Some(lists(&path));
    }
    let encoded = corpus.join("nghttp3");
    let encoded = encoded.join(format!("{name}.out.4096.100.1"));
    encoded
        .is_file()
        .then(|| decode_file(&encoded, (4096, 100), usize::MAX))
}

fn records(path: &Path) -> Vec<Record> {
    let all = fs::read(path).unwrap();
    let (mut rest, mut records) = (&all[..], Vec::new());
    while let Some((head, after)) = rest.split_first_chunk::<12>() {
        let stream = u64::from_be_bytes(head[..8].try_into().unwrap());
        let len = u32::from_be_bytes(head[8..].try_into().unwrap()) as usize;
        records.push((stream, after[..len].to_vec()));
        rest = &after[len..];
    }
    records
}

/// Decodes records, a piece of the encoder stream at a time, and returns the lists in the order of their
/// streams.
fn decode(decoder: &mut Decoder, records: &[Record], piece: usize) -> Vec<List> {
    let mut lists = std::collections::BTreeMap::new();
    let mut take = |decoder: &mut Decoder, stream: u64| {
        let (_, section) = records.iter().find(|(of, _)| *of == stream).unwrap();
        let mut list = List::new();
        let decoded = decoder.decode(stream, section, |field| {
            list.push((field.name.to_vec(), field.value.to_vec()));
        });
        if decoded.unwrap() == Decoded::Whole {
            lists.insert(stream, list);
        }
    };
    for (stream, bytes) in records {
        if *stream != 0 {
            take(decoder, *stream);
            continue;
        }
        for piece in bytes.chunks(piece) {
            decoder.on_encoder_stream(piece).unwrap();
            while let Some(stream) = decoder.next_unblocked() {
                take(decoder, stream);
            }
        }
    }
    assert_eq!(decoder.blocked_streams(), 0);
    lists.into_values().collect()
}

/// Decodes a file of an encoder for this capacity and number of blocked streams.
fn decode_file(path: &Path, (capacity, blocked): (usize, usize), piece: usize) -> Vec<List> {
    let mut decoder = Decoder::new(capacity, blocked, ANY);
    // The files begin with a table of this capacity.
    let mut begin = Vec::new();
    put_integer(&mut begin, 0x20, 5, capacity as u64);
    decoder.on_encoder_stream(&begin).unwrap();
    decode(&mut decoder, &records(path), piece)
}

#[test]
fn what_others_encoded_is_what_they_had() {
    let corpus = corpus();
    let files = |folder: &Path| {
        fs::read_dir(folder)
            .unwrap()
            .map(|file| file.unwrap().path())
    };
    let encoders = ["ls-qpack", "nghttp3"].map(|encoder| files(&corpus.join(encoder)));
    // The whole corpus has the examples of a draft beside its folders.
    let examples = files(&corpus).filter(|path| path.is_file());
    let all = encoders.into_iter().flatten().chain(examples);
    let mut count = 0;
    for path in all {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let parts: Vec<_> = name.split('.').collect();
        let [list, "out", capacity, blocked, _] = parts[..] else {
            continue;
        };
        let expected = lists_of(&corpus, list).unwrap();
        let bounds = (capacity.parse().unwrap(), blocked.parse().unwrap());
        for piece in [usize::MAX, 1] {
            let decoded = decode_file(&path, bounds, piece);
            // The list of the examples is that of an older draft than what was encoded.
            let is_expected = decoded == expected || list == "draft-examples";
            assert!(is_expected, "{}", path.display());
        }
        count += 1;
    }
    println!("decoded {count} files");
    assert!(count >= 16);
}

/// Two files of the corpus are not wrong by RFC 9204: `err9` and `err10` are fields of the static table.
#[test]
fn wrong_encodings_are_errors() {
    let corpus = corpus();
    for number in 1..=12 {
        let mut decoder = Decoder::new(0, 0, ANY);
        let mut outcome = Ok(());
        for (stream, bytes) in records(&corpus.join("errors").join(format!("err{number}"))) {
            outcome = outcome.and(if stream == 0 {
                decoder.on_encoder_stream(&bytes)
            } else {
                decoder.decode(stream, &bytes, drop).map(drop)
            });
        }
        assert_eq!(outcome.is_err(), !(9..=10).contains(&number), "err{number}");
    }
}

/// Returns the bytes of all sections and instructions, with 12 bytes for each record as in the corpus, for a
/// peer that acknowledges each section at once.
fn encoded_size(lists: &[List], capacity: usize) -> usize {
    let mut encoder = Encoder::new();
    encoder.set_peer(capacity as u64, 100, capacity);
    let mut decoder = Decoder::new(capacity, 100, ANY);
    let mut size = 0;
    for (stream, list) in (1..).zip(lists) {
        let fields = list.iter().map(|(name, value)| FieldRef {
            name,
            value,
            sensitive: false,
        });
        let (mut section, mut instructions) = (Vec::new(), Vec::new());
        encoder.encode(stream, fields, &mut section, &mut instructions);
        for record in [&section, &instructions] {
            size += if record.is_empty() {
                0
            } else {
                12 + record.len()
            };
        }
        decoder.on_encoder_stream(&instructions).unwrap();
        let mut decoded = List::new();
        let outcome = decoder.decode(stream, &section, |field| {
            decoded.push((field.name.to_vec(), field.value.to_vec()));
        });
        assert_eq!(outcome, Ok(Decoded::Whole));
        assert!(decoded == *list);
        let mut answer = Vec::new();
        decoder.take_instructions(&mut answer);
        encoder.on_decoder_stream(&answer).unwrap();
    }
    size
}

#[test]
fn the_encoder_needs_no_more_than_the_best_of_others() {
    let corpus = corpus();
    for (name, capacity, most) in [
        ("fb-req-hq", 4096, 55_500),
        ("fb-resp-hq", 4096, 59_000),
        ("netbsd-hq", 4096, 1_210),
        ("fb-req-hq", 0, 150_484),
        ("fb-resp-hq", 0, 211_705),
    ] {
        let lists = lists_of(&corpus, name).unwrap();
        let size = encoded_size(&lists, capacity);
        println!("{name} at {capacity}: {size} bytes");
        assert!(size <= most, "{name} at {capacity}: {size} > {most} bytes");
    }
}

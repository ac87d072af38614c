//! Which test proves which requirement.
//!
//! The requirements stand in `requirements/<rfc>.txt`, one a line: section, name, and what it
//! demands in our words. A test that proves one says so in a line of its doc comment:
//! `Proves: <rfc> <section> <name>`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

/// The lists, in the order of the table.
const LISTS: &[(&str, &str, &str)] = &[
    (
        "rfc8999",
        "Version-Independent Properties of QUIC",
        include_str!("requirements/rfc8999.txt"),
    ),
    (
        "rfc9000",
        "QUIC: A UDP-Based Multiplexed and Secure Transport",
        include_str!("requirements/rfc9000.txt"),
    ),
    (
        "rfc9001",
        "Using TLS to Secure QUIC",
        include_str!("requirements/rfc9001.txt"),
    ),
    (
        "rfc9002",
        "QUIC Loss Detection and Congestion Control",
        include_str!("requirements/rfc9002.txt"),
    ),
    (
        "rfc8899",
        "Datagram Packetization Layer Path MTU Discovery",
        include_str!("requirements/rfc8899.txt"),
    ),
    (
        "rfc9221",
        "An Unreliable Datagram Extension to QUIC",
        include_str!("requirements/rfc9221.txt"),
    ),
    (
        "rfc9287",
        "Greasing the QUIC Bit",
        include_str!("requirements/rfc9287.txt"),
    ),
    (
        "rfc9368",
        "Compatible Version Negotiation for QUIC",
        include_str!("requirements/rfc9368.txt"),
    ),
    (
        "rfc9369",
        "QUIC Version 2",
        include_str!("requirements/rfc9369.txt"),
    ),
    (
        "security",
        "Field bugs and floods",
        include_str!("requirements/security.txt"),
    ),
];

/// Folders with tests, from the workspace's root.
const SOURCES: &[&str] = &[
    "quic/src",
    "quic/proto/src",
    "quic/sim/src",
    "quic/sim/tests",
    "quic/h3/src",
    "quic/h3/tests",
    "quic/http/src",
    "quic/http/tests",
    "quic/tests",
    "fuzz/tests",
    "tls-provider/src",
    "tls-provider/tests",
    "interop/tests",
];

/// The rfc and the name; names are unique within an rfc.
type Key = (String, String);

/// The requirements and what proves them.
pub(crate) struct Proofs {
    /// Proofs of each requirement: file and function.
    proofs: BTreeMap<Key, BTreeSet<(String, String)>>,
    /// Tags that name no requirement of the lists: where they stand and what they say.
    pub(crate) unknown: Vec<String>,
}

/// One line of a list.
struct Requirement<'a> {
    section: &'a str,
    name: &'a str,
    words: &'a str,
}

impl<'a> Requirement<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (head, words) = line.split_once(": ")?;
        let (section, name) = head.split_once(' ')?;
        Some(Self {
            section,
            name,
            words,
        })
    }
}

fn requirements(list: &str) -> impl Iterator<Item = Requirement<'_>> {
    list.lines()
        .filter(|line| !line.starts_with("= "))
        .map(|line| {
            Requirement::parse(line)
                .unwrap_or_else(|| panic!("not `<section> <name>: <words>`: {line}"))
        })
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

impl Proofs {
    /// Reads the sources.
    pub(crate) fn read() -> Self {
        let mut sections = BTreeMap::new();
        for (rfc, _, list) in LISTS {
            for it in requirements(list) {
                let key = ((*rfc).to_owned(), it.name.to_owned());
                let before = sections.insert(key, it.section.to_owned());
                assert_eq!(before, None, "{rfc} has {} twice", it.name);
            }
        }
        let mut table = Self {
            proofs: BTreeMap::new(),
            unknown: Vec::new(),
        };
        for source in SOURCES {
            table.read_folder(&root().join(source), source, &sections);
        }
        table
    }

    fn read_folder(&mut self, folder: &Path, name: &str, known: &BTreeMap<Key, String>) {
        let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{name}: {error}"));
        for entry in entries.flatten() {
            let path = entry.path();
            let name = format!("{name}/{}", entry.file_name().to_string_lossy());
            if path.is_dir() {
                self.read_folder(&path, &name, known);
            } else if path.extension().is_some_and(|it| it == "rs") && !name.ends_with("/table.rs")
            {
                let text = fs::read_to_string(&path).unwrap_or_default();
                self.read_file(&text, &name, known);
            }
        }
    }

    /// Tags belong to the next function below them.
    fn read_file(&mut self, text: &str, file: &str, known: &BTreeMap<Key, String>) {
        let mut tags = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if let Some(tag) = line.strip_prefix("/// Proves: ") {
                let words = tag.split_whitespace().collect::<Vec<_>>();
                match words[..] {
                    [rfc, section, name]
                        if known.get(&(rfc.to_owned(), name.to_owned()))
                            == Some(&section.to_owned()) =>
                    {
                        tags.push((rfc.to_owned(), name.to_owned()));
                    }
                    _ => self.unknown.push(format!("{file}:{}: {tag}", number + 1)),
                }
            } else if let Some(function) = function_name(line) {
                for key in tags.drain(..) {
                    let place = (file.to_owned(), function.to_owned());
                    self.proofs.entry(key).or_default().insert(place);
                }
            }
        }
    }

    /// Requirements that no test proves.
    pub(crate) fn missing(&self) -> Vec<String> {
        let all = LISTS
            .iter()
            .flat_map(|(rfc, _, list)| requirements(list).map(move |it| (*rfc, it)));
        all.filter(|(rfc, it)| {
            !self
                .proofs
                .contains_key(&((*rfc).to_owned(), it.name.to_owned()))
        })
        .map(|(rfc, it)| format!("{rfc} {} {}: {}", it.section, it.name, it.words))
        .collect()
    }

    /// The document.
    pub(crate) fn document(&self) -> String {
        let mut out = String::from(HEAD);
        for (rfc, title, list) in LISTS {
            let _ = match rfc.strip_prefix("rfc") {
                Some(number) => write!(out, "\n## RFC {number}: {title}\n"),
                None => write!(out, "\n## {title}\n"),
            };
            for line in list.lines() {
                if let Some(chapter) = line.strip_prefix("= ") {
                    let _ = write!(
                        out,
                        "\n### {chapter}\n\n| § | demand | proved by |\n|---|---|---|\n"
                    );
                } else if let Some(it) = Requirement::parse(line) {
                    let key = ((*rfc).to_owned(), it.name.to_owned());
                    let _ = writeln!(
                        out,
                        "| {} | {} | {} |",
                        it.section,
                        it.words,
                        self.proof(&key)
                    );
                }
            }
        }
        out
    }

    fn proof(&self, key: &Key) -> String {
        let Some(places) = self.proofs.get(key) else {
            return "**nothing**".to_owned();
        };
        let links = places
            .iter()
            .map(|(file, function)| format!("[{}](../../{file})", function.replace('_', " ")));
        links.collect::<Vec<_>>().join("<br>")
    }
}

const HEAD: &str = "\
# What the RFCs demand, and which test proves it

Every demand on what is seen on the wire that an RFC puts as MUST or MUST NOT, in our words, and the tests that fail
when it is broken. Generated from the lists in `quic/tests/conformance/requirements` and the `Proves:` lines of the
tests:

```text
cargo run -p hybriq --example conformance_table
```

A test compares this file with the sources, and fails where a demand has no test.
";

fn function_name(line: &str) -> Option<&str> {
    let rest = line
        .strip_prefix("async fn ")
        .or_else(|| line.strip_prefix("fn "))
        .or_else(|| line.strip_prefix("pub(crate) fn "))?;
    rest.split(['(', '<']).next()
}

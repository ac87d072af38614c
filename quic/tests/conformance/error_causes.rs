//! A cause is part of an error's message or its `source()`, never both and never neither: whoever prints the
//! chain of causes reads each of them once.

use std::{fs, path::Path};

const CRATES: [&str; 6] = [
    "tls-provider/src",
    "quic/proto/src",
    "quic/src",
    "quic/h3/src",
    "quic/qlog/src",
    "quic/http/src",
];

/// Marks of a field that `thiserror` returns as the source.
const SOURCES: [&str; 3] = ["#[source]", "#[from]", " source: "];

/// Collects the sources in a folder: their paths and texts.
pub(crate) fn sources(folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("a source in UTF-8");
            found.push((path.display().to_string(), text));
        }
    }
}

/// Returns the variants of the errors in a source: the message, and the fields behind it.
fn variants(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split("#[error(").skip(1).filter_map(|rest| {
        let (message, fields) = rest.split_once(")]")?;
        let end = fields.find("#[error(").unwrap_or(fields.len());
        let fields = fields.get(..end)?;
        // The last variant ends with its type.
        let fields = fields.split("\n}").next()?;
        // A struct of one field ends with its line.
        Some((message, fields.split(";\n").next()?))
    })
}

/// Returns true if a message shows the field that is the source.
fn shows_its_source(message: &str, fields: &str) -> bool {
    let Some(mark) = SOURCES.iter().find(|mark| fields.contains(**mark)) else {
        return false;
    };
    let named = fields.split_once(mark).and_then(|(_, field)| {
        let (name, _) = field.split_once(": ")?;
        Some(name.trim())
    });
    let name = match (*mark, named) {
        (" source: ", _) => "source",
        (_, Some(name)) if name.chars().all(|c| c.is_alphanumeric() || c == '_') => name,
        _ => "0",
    };
    message.contains(&format!("{{{name}")) || message.contains(&format!(", {name}"))
}

/// A field of an error.
struct Field<'a> {
    /// Name, or number.
    name: String,
    kind: &'a str,
    is_source: bool,
}

impl Field<'_> {
    /// Returns true if the field is an error itself.
    fn is_cause(&self) -> bool {
        let mut words = self.kind.split(|c: char| !c.is_alphanumeric());
        words.any(|word| word.ends_with("Error"))
    }
}

/// Splits at commas that are not in brackets.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, c) in text.char_indices() {
        match c {
            '(' | '<' | '[' | '{' => depth += 1,
            ')' | '>' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// Returns the fields of the variant that a text without comments begins with.
fn fields_of(text: &str) -> Vec<Field<'_>> {
    let end = |open: usize, close: &str| text.rfind(close).filter(|&end| end > open);
    let (inner, is_named) = match text.find(['(', '{', ',', ';']) {
        Some(at) if text[at..].starts_with('(') => {
            (end(at, ")").map(|end| &text[at + 1..end]), false)
        }
        Some(at) if text[at..].starts_with('{') => (
            Some(&text[at + 1..end(at, "}").unwrap_or(text.len())]),
            true,
        ),
        _ => (None, false),
    };
    let fields = split(inner.unwrap_or_default()).into_iter().enumerate();
    fields
        .filter(|(_, field)| !field.trim().is_empty())
        .map(|(number, field)| {
            let marked = field.rsplit(']').next().unwrap_or(field);
            let is_marked = field.contains("#[source]") || field.contains("#[from]");
            let (name, kind) = match field.rsplit_once(": ").filter(|_| is_named) {
                Some((name, kind)) => (
                    name.rsplit([' ', '\n']).next().unwrap_or(name).to_owned(),
                    kind,
                ),
                None => (number.to_string(), marked),
            };
            Field {
                is_source: is_marked || name == "source",
                name,
                kind,
            }
        })
        .collect()
}

/// Returns true if neither the message nor `source()` tells a cause.
fn hides_its_cause(message: &str, fields: &str) -> bool {
    let lines = fields.lines().filter(|line| !line.trim().starts_with("//"));
    let fields = lines.collect::<Vec<_>>().join("\n");
    let words: Vec<_> = message
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .collect();
    message != "transparent"
        && fields_of(&fields)
            .iter()
            .any(|it| it.is_cause() && !it.is_source && !words.contains(&it.name.as_str()))
}

#[test]
fn causes_are_told_once() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for source in CRATES {
        sources(&workspace.join(source), &mut files);
    }
    let mut count = 0;
    for (path, text) in &files {
        for (message, fields) in variants(text) {
            count += 1;
            assert!(
                !shows_its_source(message, fields),
                "{path}: \"{message}\" tells a cause that `source()` returns"
            );
            assert!(
                !hides_its_cause(message, fields),
                "{path}: neither \"{message}\" nor `source()` tells the cause in {fields}"
            );
        }
    }
    assert!(count > 100, "{count} variants found");
}

#[test]
fn a_cause_that_is_told_twice_is_found() {
    assert!(shows_its_source(
        "\"no file: {0}\"",
        "\n    File(#[from] io::Error),"
    ));
    assert!(shows_its_source(
        "\"lost: {source}; go\"",
        "\n    Lost {\n        source: E,\n    },"
    ));
    assert!(shows_its_source(
        "\"{why}\"",
        "\n    Lost {\n        #[source]\n        why: E,\n    },"
    ));
    assert!(!shows_its_source(
        "\"no file\"",
        "\n    File(#[from] io::Error),"
    ));
    assert!(!shows_its_source(
        "\"no file: {0}\"",
        "\n    File(io::Error),"
    ));
}

#[test]
fn a_cause_that_is_not_told_is_found() {
    let hidden = [
        ("\"no file\"", "\n    File(io::Error),\n"),
        (
            "\"no host {host}\"",
            "\n    /// Of `host`.\n    Host {\n        /// Name.\n        host: String,\n        cause: io::Error,\n    },\n",
        ),
        (
            "\"failed\"",
            "\npub struct Failed(Arc<dyn Error + Send>);\n",
        ),
        ("\"{0}\"", "\n    Two(u8, Box<TlsError>),\n"),
    ];
    for (message, fields) in hidden {
        assert!(hides_its_cause(message, fields), "{message} {fields}");
    }
    let told = [
        ("transparent", "\n    Tls(TlsError),\n"),
        ("\"no file: {0}\"", "\n    File(io::Error),\n"),
        ("\"no file\"", "\n    File(#[source] io::Error),\n"),
        (
            "\"no host: {}\", causes(cause)",
            "\n    Host {\n        host: String,\n        cause: io::Error,\n    },\n",
        ),
        (
            "\"no host\"",
            "\n    Host {\n        #[source]\n        cause: io::Error,\n    },\n",
        ),
        ("\"gone\"", "\n    Gone,\n    /// Another.\n"),
    ];
    for (message, fields) in told {
        assert!(!hides_its_cause(message, fields), "{message} {fields}");
    }
}

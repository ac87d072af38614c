//! A cause is part of an error's message or its `source()`, never both and never neither: a reader of the
//! chain of causes reads each once.

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
        Some((message, fields.split("\n}").next()?))
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

/// Returns the first field that is a cause, but neither in the message nor the source.
fn hidden_cause<'f>(message: &str, fields: &'f str) -> Option<&'f str> {
    let tells_all = message == "transparent" || message.contains("self.");
    if tells_all || SOURCES.iter().any(|mark| fields.contains(mark)) {
        return None;
    }
    // A unit struct has no fields, but more code may follow.
    let fields = fields.split(";\n").next()?;
    let is_shown = |name: &str| {
        let marks = ["{", ", ", "(&", "("].map(|before| format!("{before}{name}"));
        marks.iter().any(|mark| message.contains(mark))
    };
    fields
        .lines()
        .map(str::trim)
        .filter(|line| !line.starts_with("//") && !line.contains("struct "))
        .find_map(|line| match (line.split_once(": "), line.split_once('(')) {
            (Some((name, kind)), _) => {
                let name = name.trim_start_matches("pub ");
                (kind.contains("Error") && !is_shown(name)).then_some(line)
            }
            (None, Some((_, kinds))) => {
                let mut kinds = kinds.split(',').enumerate();
                let is_hidden = |(place, kind): (usize, &str)| {
                    kind.contains("Error") && !is_shown(&place.to_string())
                };
                kinds.any(is_hidden).then_some(line)
            }
            _ => None,
        })
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
            if let Some(field) = hidden_cause(message, fields) {
                panic!("{path}: `{field}` is neither in \"{message}\" nor the `source()`");
            }
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
fn a_cause_that_is_never_told_is_found() {
    let hidden = [
        ("\"no file\"", "\n    File(io::Error),"),
        ("\"no file: {0}\"", "\n    File(PathBuf, io::ErrorKind),"),
        (
            "\"lost {server}\"",
            "\n    Lost {\n        /// Its name.\n        server: String,\n        /// Why.\n        cause: ConnectionError,\n    },",
        ),
    ];
    for (message, fields) in hidden {
        assert!(hidden_cause(message, fields).is_some(), "{fields}");
    }
    let told = [
        ("\"no file\"", "\n    File(#[from] io::Error),"),
        ("transparent", "\n    Refused(ConnectionError),"),
        (
            "\"no file: {0}: {1}\"",
            "\n    File(PathBuf, io::ErrorKind),",
        ),
        (
            "\"lost: {}\", text(cause)",
            "\n    Lost {\n        cause: ConnectionError,\n    },",
        ),
        ("\"full\"", "\n    /// An Error of memory.\n    Full,"),
    ];
    for (message, fields) in told {
        assert_eq!(hidden_cause(message, fields), None, "{message}");
    }
}

//! Problems of a file, each in one line with its place.

pub(super) mod locate;

use serde::de::DeserializeOwned;
use serde_json::Value;

/// Formats a syntax error: `line 3, column 7: expected ',' or '}'`.
pub(super) fn syntax(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let what = text.strip_suffix(&place).unwrap_or(&text);
    let what = what.replace("EOF while parsing", "the file ends within");
    format!("line {}, column {}: {what}", error.line(), error.column())
}

/// Returns the text as one line of limited length, whatever parts of a file it quotes.
pub(super) fn one_line(text: &str) -> String {
    const MAX: usize = 1000;
    let mut line: String = (text.chars().take(MAX))
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if text.chars().nth(MAX).is_some() {
        line.push('…');
    }
    line
}

/// Reads a typed value; an error gives the path to the problem.
pub(super) fn typed<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let problem = plain(&error.into_inner().to_string());
        match path.as_str() {
            "." => problem,
            path => format!("{path}: {problem}"),
        }
    })
}

/// Translates the deserializer's message from terms of Rust to those of the format.
fn plain(text: &str) -> String {
    for (prefix, noun) in [("unknown field ", "key"), ("unknown variant ", "operation")] {
        if let Some(names) = text.strip_prefix(prefix) {
            let mut names = names.split('`').skip(1).step_by(2);
            let unknown = names.next().unwrap_or_default();
            return unknown_name(noun, unknown, &names.collect::<Vec<_>>());
        }
    }
    if let Some(key) = text.strip_prefix("missing field ") {
        return format!("the key {key} is missing");
    }
    let text = ["u64", "u32", "usize", "u8"]
        .iter()
        .fold(text.to_owned(), |text, kind| {
            text.replace(&format!("expected {kind}"), "expected a whole number")
        });
    let text = text.strip_prefix("invalid type: ").unwrap_or(&text);
    text.strip_prefix("invalid value: ")
        .unwrap_or(text)
        .to_owned()
}

/// Returns a message about an unknown name, with a suggestion and the valid names.
pub(crate) fn unknown_name(noun: &str, unknown: &str, valid: &[&str]) -> String {
    let near = valid
        .iter()
        .map(|name| (distance(unknown, name), *name))
        .filter(|(distance, name)| *distance <= name.chars().count() / 3 + 1)
        .min();
    let meant = near.map_or(String::new(), |(_, name)| {
        format!("did you mean `{name}`? ")
    });
    match valid {
        [] => format!("unknown {noun} `{unknown}`; there are none here"),
        valid => format!(
            "unknown {noun} `{unknown}`; {meant}valid: {}",
            valid.join(", ")
        ),
    }
}

/// Returns the number of letters that differ between two words (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().take(64).enumerate() {
        let mut diagonal = i;
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

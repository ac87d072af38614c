//! Public types of the lower crates may grow without breaking their users, or say why they do not have to.

use std::path::Path;

use crate::error_causes::sources;

const CRATES: [&str; 2] = ["tls-provider/src", "quic/proto/src"];

/// Returns the public enums, and the public structs without private fields, that are neither
/// `#[non_exhaustive]` nor documented as exhaustive. A newtype has nothing to grow by.
fn open_types(text: &str) -> Vec<&str> {
    let lines: Vec<&str> = text.lines().collect();
    let is_open = |place: usize| {
        let attributes = lines[..place]
            .iter()
            .rev()
            .take_while(|line| !line.is_empty());
        let is_fenced = attributes
            .clone()
            .any(|line| *line == "#[non_exhaustive]" || line.starts_with("/// Exhaustive: "));
        let mut fields = lines[place + 1..]
            .iter()
            .take_while(|line| **line != "}")
            .map(|line| line.trim())
            .filter(|line| !line.starts_with("//") && !line.starts_with('#'));
        let can_grow = lines[place].starts_with("pub enum ")
            || lines[place].ends_with(';') && !lines[place].contains('(')
            || lines[place].ends_with('{') && fields.all(|field| field.starts_with("pub "));
        !is_fenced && can_grow
    };
    let is_type = |line: &str| line.starts_with("pub enum ") || line.starts_with("pub struct ");
    let places = (0..lines.len()).filter(|place| is_type(lines[*place]) && is_open(*place));
    places.map(|place| lines[place]).collect()
}

#[test]
fn public_types_may_grow_or_say_why_not() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for source in CRATES {
        sources(&workspace.join(source), &mut files);
    }
    files.retain(|(path, _)| !path.contains("/forge/"));
    let mut count = 0;
    for (path, text) in &files {
        count += text.matches("#[non_exhaustive]").count();
        assert_eq!(open_types(text), [""; 0], "{path}");
    }
    assert!(count > 150, "{count} types may grow");
}

#[test]
fn an_open_type_is_found() {
    let open = [
        "pub enum Way {\n    Here,\n}",
        "pub struct Unit;",
        "#[derive(Debug)]\npub struct Both {\n    /// One.\n    pub one: u8,\n    pub other: u8,\n}",
    ];
    for text in open {
        assert_eq!(open_types(text).len(), 1, "{text}");
    }
    let fenced = [
        "#[non_exhaustive]\npub enum Way {\n    Here,\n}",
        "/// A way.\n///\n/// Exhaustive: there are two.\npub enum Way {\n    Here,\n}",
        "pub struct Number(pub u64);",
        "pub struct Half {\n    pub one: u8,\n    other: u8,\n}",
    ];
    for text in fenced {
        assert!(open_types(text).is_empty(), "{text}");
    }
}

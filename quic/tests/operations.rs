//! The page on production names methods, settings, metrics and files that exist.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn page(name: &str) -> String {
    read(&root().join("quic/docs").join(name))
}

/// Adds the sources below a folder.
fn collect(folder: &Path, sources: &mut Vec<String>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            collect(&path, sources);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            sources.push(read(&path));
        }
    }
}

/// Pieces of a text between backticks, outside of blocks of code.
fn code(text: &str) -> Vec<&str> {
    let blocks = text.split("```").step_by(2);
    blocks
        .flat_map(|prose| prose.split('`').skip(1).step_by(2))
        .collect()
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|it| it.is_ascii_alphanumeric() || it == '_')
}

/// Adds a source, and the macros in all sources that write setters into it.
fn with_macros<'a>(source: &'a str, sources: &'a [String], found: &mut Vec<&'a str>) {
    found.push(source);
    let calls = source.match_indices("_setters!(");
    for (end, _) in calls {
        let name = source[..end].rsplit([' ', ':']).next().unwrap_or_default();
        let start = format!("macro_rules! {name}_setters {{");
        let bodies = sources.iter().filter_map(|other| other.split_once(&start));
        for (_, body) in bodies {
            let body = body.split("macro_rules! ").next().unwrap_or_default();
            with_macros(body, sources, found);
        }
    }
}

#[test]
fn every_method_and_variant_on_the_page_exists() {
    let mut sources = Vec::new();
    for folder in [
        "quic/src",
        "quic/proto/src",
        "quic/http/src",
        "tls-provider/src",
    ] {
        collect(&root().join(folder), &mut sources);
    }
    let page = page("production.md");
    let mut seen = 0;
    for name in code(&page) {
        let Some((owner, member)) = name.split_once("::") else {
            continue;
        };
        // Calls and arguments are not part of the name.
        let member = member.split('(').next().unwrap_or_default();
        if !is_name(owner) || !is_name(member) || owner == "tokio" {
            continue;
        }
        let of_owner = |source: &&String| {
            let starts = ["impl", "pub enum", "pub struct"].map(|what| format!("{what} {owner} "));
            // The handles of connections have a type parameter.
            starts.iter().any(|start| source.contains(start))
                || source.contains(&format!("> {owner}<"))
        };
        let mut of_it = Vec::new();
        for source in sources.iter().filter(of_owner) {
            with_macros(source, &sources, &mut of_it);
        }
        let has = |source: &&str| {
            source.contains(&format!("fn {member}("))
                || source.contains(&format!("fn {member}<"))
                || source.contains(&format!("    {member},"))
                || source.contains(&format!("    {member}("))
                || source.contains(&format!("    pub {member}:"))
        };
        assert!(of_it.iter().any(has), "`{name}` does not exist");
        seen += 1;
    }
    assert!(seen > 30, "{seen} names found");
}

#[test]
fn every_metric_on_the_page_is_in_the_table_of_metrics() {
    let page = page("production.md");
    let names: BTreeSet<&str> = page
        .split(|it: char| !it.is_ascii_alphanumeric() && it != '_')
        .filter(|word| word.starts_with("hybriq_") && *word != "hybriq_http")
        .collect();
    let known = self::page("metrics.md");
    for name in &names {
        let name = name.strip_suffix("_bucket").unwrap_or(name);
        assert!(known.contains(&format!("`{name}`")), "{name}");
    }
    assert!(names.len() > 8);
}

#[test]
fn every_file_on_the_page_exists() {
    let page = page("production.md");
    let files = code(&page);
    let files = files
        .iter()
        .filter(|it| it.starts_with("examples/") || it.starts_with("docs/"));
    let mut seen = 0;
    for file in files {
        let path = if file.starts_with("docs/") {
            root().join("quic").join(file)
        } else {
            root().join(file)
        };
        assert!(path.exists(), "{file}");
        seen += 1;
    }
    assert!(seen > 4, "{seen} files found");
}

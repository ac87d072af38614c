//! The pages name methods, settings, metrics and files that exist.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
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

/// Returns the pages for users: name, and text.
fn pages() -> Vec<(String, String)> {
    let folders =
        ["quic/docs", "quic/http/docs", "quic/evidence"].map(|folder| root().join(folder));
    let entries = folders
        .iter()
        .flat_map(|it| fs::read_dir(it).expect("pages"));
    let mut paths: Vec<_> = entries.map(|it| it.expect("an entry").path()).collect();
    paths.push(root().join("README.md"));
    let page = |path: &PathBuf| {
        let (name, text) = (path.display().to_string(), read(path));
        if !name.contains("/from-") {
            return (name, text);
        }
        // The first cells of its tables have names of the other library.
        let cells = text.lines().map(|it| {
            it.strip_prefix("| ").map_or(it, |row| {
                row.split_once(" | ").map_or(row, |(_, rest)| rest)
            })
        });
        let ours = cells.collect::<Vec<_>>().join("\n");
        (name, ours)
    };
    paths.iter().map(page).collect()
}

/// Returns the words of a text, one after another.
fn words_of(text: &str) -> impl Iterator<Item = &str> {
    text.split(|it: char| !it.is_alphanumeric() && it != '_')
}

/// Returns true if a source has methods, variants or fields of a type.
fn is_of(source: &str, owner: &str) -> bool {
    let starts = ["impl", "pub enum", "pub struct", "pub trait", "for"];
    let is_its = |what| source.contains(&format!("{what} {owner} "));
    starts.into_iter().any(is_its)
        // The handles of connections have a type parameter.
        || source.contains(&format!("> {owner}<"))
        || source.contains(&format!("{owner}<S"))
        || source.contains(&format!("{owner}: "))
}

#[test]
fn every_method_and_variant_on_the_pages_exists() {
    let mut sources = Vec::new();
    for folder in [
        "quic/src",
        "quic/proto/src",
        "quic/h3/src",
        "quic/http/src",
        "quic/qlog/src",
        "quic/sim/src",
        "tls-provider/src",
    ] {
        collect(&root().join(folder), &mut sources);
    }
    let words: Vec<HashSet<_>> = sources.iter().map(|it| words_of(it).collect()).collect();
    let mut declared = HashSet::new();
    for source in &sources {
        for kind in ["pub struct ", "pub enum ", "pub trait "] {
            let names = source.split(kind).skip(1);
            declared.extend(names.filter_map(|rest| words_of(rest).next()));
        }
    }
    // What belongs to a type: the sources that implement it, and the macros that write setters into them.
    let mut owners: HashMap<String, Vec<&str>> = HashMap::new();
    let (mut seen, mut wrong) = (0, Vec::new());
    for (page, text) in pages() {
        for name in code(&text) {
            // Calls and arguments are not part of the name.
            let path = name.split(['(', ' ', '<']).next().unwrap_or_default();
            let mut parts = path.rsplit("::");
            let (Some(member), Some(owner)) = (parts.next(), parts.next()) else {
                continue;
            };
            // Names of other libraries are not for us to check.
            if !is_name(owner) || !is_name(member) || !declared.contains(owner) {
                continue;
            }
            let of_it = owners.entry(owner.to_owned()).or_insert_with(|| {
                let mut found = Vec::new();
                let with_words = sources.iter().zip(&words);
                let own = with_words.filter(|(_, words)| words.contains(owner));
                for (source, _) in own.filter(|(source, _)| is_of(source, owner)) {
                    with_macros(source, &sources, &mut found);
                }
                found
            });
            let has = |source: &&str| {
                let function = ["(", "<"].map(|end| format!("fn {member}{end}"));
                let variant = [",", "(", " {"].map(|end| format!("    {member}{end}"));
                let constant = format!("const {member}:");
                let field = format!("    pub {member}:");
                let mut forms = function.iter().chain(&variant).chain([&constant, &field]);
                forms.any(|form| source.contains(form))
            };
            if !of_it.iter().any(has) {
                wrong.push(format!("{page}: `{name}`"));
            }
            seen += 1;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 300, "{seen} names found");
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

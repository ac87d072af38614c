//! Each line of the tables in `docs/security.md` names tests that exist.

use std::{collections::BTreeSet, fs, path::Path};

const PAGE: &str = include_str!("../../docs/security.md");

/// A line of a table: its first cell, and the tests in its last one.
struct Promise<'a> {
    words: &'a str,
    tests: Vec<Test<'a>>,
}

/// A link to a test: the words of its name, and its file.
struct Test<'a> {
    name: &'a str,
    file: &'a str,
}

/// Returns the links of a cell, `[name](file)`.
fn links(cell: &str) -> Vec<Test<'_>> {
    let links = cell.split('[').skip(1);
    links
        .map(|link| {
            let (name, rest) = link.split_once("](").expect("a link");
            let (file, _) = rest.split_once(')').expect("the end of a link");
            Test { name, file }
        })
        .collect()
}

/// Returns the lines of all tables, without their heads.
fn promises() -> Vec<Promise<'static>> {
    let lines = PAGE.lines().filter_map(|line| {
        let line = line.strip_prefix("| ")?.strip_suffix(" |")?;
        let (words, _) = line.split_once(" |")?;
        let (_, last) = line.rsplit_once("| ")?;
        Some((words, last))
    });
    lines
        .filter(|(_, last)| *last != "proved by")
        .map(|(words, last)| Promise {
            words,
            tests: links(last),
        })
        .collect()
}

/// Returns the names of the tests in a source file: functions below a `#[test]` or
/// `#[tokio::test]`.
fn tests_of(source: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut is_test = false;
    for line in source.lines().map(str::trim) {
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            is_test = true;
        }
        let function = line.strip_prefix("async ").unwrap_or(line);
        if let Some(function) = function.strip_prefix("fn ") {
            if is_test {
                let name = function.split(['(', '<']).next().unwrap_or_default();
                names.insert(name.to_owned());
            }
            is_test = false;
        }
    }
    names
}

#[test]
fn every_line_of_the_security_page_names_tests_that_exist() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let promises = promises();
    assert!(promises.len() > 30, "{} lines found", promises.len());
    let mut wrong = Vec::new();
    for Promise { words, tests } in &promises {
        if tests.is_empty() {
            wrong.push(format!("no test: {words}"));
        }
        for Test { name, file } in tests {
            let known = fs::read_to_string(docs.join(file)).map(|source| tests_of(&source));
            let name = name.replace(' ', "_");
            if !known.is_ok_and(|known| known.contains(&name)) {
                wrong.push(format!("{words}: no test {name} in {file}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_function_that_is_no_test_proves_nothing() {
    let source = "#[test]\n#[ignore = \"slow\"]\nfn one() {}\nfn helper() {}\n#[tokio::test]\nasync fn two() {}\n";
    let names = tests_of(source);
    assert_eq!(names.into_iter().collect::<Vec<_>>(), ["one", "two"]);
}

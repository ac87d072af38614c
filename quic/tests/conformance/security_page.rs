//! Each line of the tables in `evidence/security.md` names tests that exist, and the policy says what one needs to
//! report a vulnerability.

use std::{collections::BTreeSet, fs, path::Path};

const PAGE: &str = include_str!("../../evidence/security.md");
const POLICY: &str = include_str!("../../../.github/SECURITY.md");

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

/// Returns the text below a heading of second order.
fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let start = format!("\n## {heading}\n");
    let (_, rest) = page.split_once(&start).expect("the section");
    rest.split_once("\n## ")
        .map_or(rest, |(section, _)| section)
}

/// Returns the cells of each line of the table in a text, without its head.
fn table(text: &str) -> Vec<Vec<&str>> {
    let lines = text.lines().filter_map(|line| {
        let line = line.strip_prefix("| ")?.strip_suffix(" |")?;
        Some(line.split(" | ").collect())
    });
    lines.skip(1).collect()
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
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("evidence");
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

#[test]
fn every_section_of_promises_has_lines() {
    let headings = PAGE.lines().filter_map(|line| line.strip_prefix("## "));
    let promises: Vec<_> = headings
        .filter(|name| name.starts_with("Promises"))
        .collect();
    for wanted in [
        "Promises against datagrams from anybody",
        "Promises against a peer that holds the keys",
        "Promises of HTTP servers",
    ] {
        assert!(promises.contains(&wanted), "{promises:?}");
    }
    for heading in promises {
        let lines = table(section(PAGE, heading));
        assert!(lines.len() >= 5, "{heading}");
        for line in lines {
            assert!(line.len() >= 3, "{line:?}");
            assert!(!links(line.last().expect("cells")).is_empty(), "{line:?}");
        }
    }
}

#[test]
fn the_policy_names_a_private_way_supported_versions_and_what_counts() {
    let headings: Vec<_> = POLICY
        .lines()
        .filter(|line| line.starts_with('#'))
        .collect();
    let expected = [
        "# Security policy",
        "## Reporting",
        "## What happens then",
        "## Supported versions",
        "## What counts",
    ];
    assert_eq!(headings, expected);
    let reporting = section(POLICY, "Reporting");
    assert!(reporting.contains(concat!(
        env!("CARGO_PKG_REPOSITORY"),
        "/security/advisories/new"
    )));
    for step in table(section(POLICY, "What happens then")) {
        assert_eq!(step.len(), 2, "{step:?}");
    }
    let versions = table(section(POLICY, "Supported versions"));
    assert!(versions.iter().any(|line| line[..] == ["`main`", "yes"]));
    assert!(versions.iter().any(|line| line.last() == Some(&"no")));
    let counts = table(section(POLICY, "What counts"));
    for layer in ["all", "transport", "TLS", "HTTP", "WebTransport"] {
        assert!(counts.iter().any(|line| line[0] == layer), "{layer}");
    }
    for line in &counts {
        assert_eq!(line.len(), 2, "{line:?}");
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.github");
    let targets = POLICY
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'));
    for (target, _) in targets.filter(|(target, _)| !target.starts_with("https://")) {
        assert!(folder.join(target).exists(), "{target}");
    }
}

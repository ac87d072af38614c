//! What the pages claim, and what can be compared: links, paths, commands, features and variables.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Component, Path, PathBuf},
};

use super::commands::{Page, check_program, pages, root, words};

/// Returns a path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

/// Returns the prose of a page: without blocks of code, and without code in lines.
fn prose(text: &str) -> String {
    let blocks = text.split("```").step_by(2);
    let lines = blocks.map(|prose| prose.split('`').step_by(2).collect::<String>());
    lines.collect()
}

/// Returns the targets of the links of a page.
fn targets(text: &str) -> Vec<String> {
    let prose = prose(text);
    let inline = prose.split("](").skip(1);
    let inline = inline.filter_map(|rest| rest.split(')').next());
    let defined = prose.lines().filter_map(|line| {
        let (label, target) = line.split_once("]: ")?;
        label.starts_with('[').then_some(target)
    });
    inline.chain(defined).map(str::to_owned).collect()
}

/// Returns the anchors that GitHub gives the headings of a page.
fn anchors(text: &str) -> BTreeSet<String> {
    let blocks = text.split("```").step_by(2);
    let headings = blocks.flat_map(str::lines).filter(|it| it.starts_with('#'));
    let anchor = |heading: &str| {
        let heading = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = heading
            .chars()
            .filter(|it| it.is_alphanumeric() || "-_ ".contains(*it));
        kept.map(|it| if it == ' ' { '-' } else { it }).collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn every_link_leads_to_a_page_and_a_heading_that_exist() {
    let (pages, mut wrong, mut seen) = (pages(), Vec::new(), 0);
    let texts: BTreeMap<_, _> = pages.iter().map(|it| (it.path.clone(), &it.text)).collect();
    for Page { path, text } in &pages {
        for target in targets(text) {
            if target.contains("://") || target.contains("::") || target.starts_with("mailto:") {
                continue;
            }
            seen += 1;
            let (file, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let file = match file {
                "" => path.clone(),
                file => plain(&path.parent().expect("a folder").join(file)),
            };
            let heading = texts
                .get(&file)
                .is_none_or(|text| anchors(text).contains(anchor));
            if !root().join(&file).exists() || !(anchor.is_empty() || heading) {
                wrong.push(format!("{}: {target}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 200, "{seen} links");
}

#[test]
fn every_page_for_users_is_in_an_index() {
    let pages = pages();
    let indexes = ["quic/docs/README.md", "quic/evidence/README.md"].map(|index| {
        let page = pages.iter().find(|page| page.path == Path::new(index));
        let folder = Path::new(index).parent().expect("a folder");
        let targets = targets(&page.expect(index).text);
        let files = targets.iter().filter_map(|target| target.split('#').next());
        files
            .map(|file| plain(&folder.join(file)))
            .collect::<Vec<_>>()
    });
    let indexed: BTreeSet<_> = indexes.concat().into_iter().collect();
    for Page { path, .. } in &pages {
        let folders = [
            "quic/docs",
            "quic/evidence",
            "quic/http/docs",
            "netbench/docs",
        ];
        let is_page = folders.iter().any(|folder| path.starts_with(folder));
        let is_index = path.ends_with("README.md");
        assert!(
            !is_page || is_index || indexed.contains(path),
            "no index has {}",
            path.display()
        );
    }
}

#[test]
fn every_path_exists() {
    let tops = [
        "quic/",
        "examples/",
        "netbench/",
        "interop/",
        "fuzz/",
        "tls-provider/",
        ".ci/",
        ".github/",
    ];
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for page in pages()
        .into_iter()
        .filter(|page| !page.path.ends_with("CHANGELOG.md"))
    {
        for code in page.code() {
            let word = code.split_whitespace().next().unwrap_or_default();
            let is_plain = |it: char| it.is_ascii_alphanumeric() || "/._-".contains(it);
            if !tops.iter().any(|top| word.starts_with(top))
                || !word.chars().all(is_plain)
                || word.contains("NAME")
            {
                continue;
            }
            seen += 1;
            if !root().join(word).exists() {
                wrong.push(format!("{}: {word}", page.path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 50, "{seen} paths");
}

/// A package of the workspace.
struct Package {
    folder: PathBuf,
    manifest: String,
    features: BTreeSet<String>,
}

/// Returns the features of a manifest, dependencies that are features included.
fn features(manifest: &str) -> BTreeSet<String> {
    let section = manifest.split("\n[features]\n").nth(1).unwrap_or_default();
    let section = section.split("\n[").next().unwrap_or_default();
    let named = section.lines().filter_map(|line| line.split_once(" = ["));
    let named = named.map(|(name, _)| name.trim().to_owned());
    let optional = manifest
        .lines()
        .filter(|line| line.contains("optional = true"));
    let optional = optional.filter_map(|line| line.split(['.', ' ']).next());
    named.chain(optional.map(str::to_owned)).collect()
}

/// Returns the packages of the workspace by their names.
fn packages() -> BTreeMap<String, Package> {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let members = manifest.split("members = [").nth(1).unwrap();
    let members = members.split(']').next().unwrap();
    let folders = members.split('"').skip(1).step_by(2);
    let package = |folder: &str| {
        let folder = root().join(folder);
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let name = manifest.split("\nname = \"").nth(1).unwrap();
        let name = name.split('"').next().unwrap().to_owned();
        let package = Package {
            features: features(&manifest),
            manifest,
            folder,
        };
        (name, package)
    };
    folders.map(package).collect()
}

/// Adds what a test's name may contain to a list: the names of functions, modules and files below a folder.
fn names(folder: &Path, found: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            names(&path, found);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            *found += path.file_stem().unwrap().to_str().unwrap();
            let source = fs::read_to_string(&path).unwrap();
            let lines = source.lines().map(str::trim);
            for line in lines.filter(|it| it.contains("fn ") || it.starts_with("mod ")) {
                *found += "\n";
                *found += line;
            }
        }
    }
}

/// Returns what is wrong with a command of cargo.
fn faults(words: &[String], packages: &BTreeMap<String, Package>) -> Vec<String> {
    let mut faults = Vec::new();
    let after = |flag: &str| {
        let at = words.iter().position(|word| word == flag)?;
        words.get(at + 1).map(String::as_str)
    };
    let Some(name) = after("-p") else {
        return faults;
    };
    let Some(Package {
        folder,
        manifest,
        features,
    }) = packages.get(name)
    else {
        return vec![format!("no package {name}")];
    };
    for (flag, place) in [
        ("--bin", "src/bin"),
        ("--example", "examples"),
        ("--test", "tests"),
    ] {
        let Some(target) = after(flag) else { continue };
        let place = folder.join(place).join(target);
        let is_named = manifest.contains(&format!("name = \"{target}\""));
        if !place.exists() && !place.with_extension("rs").exists() && !is_named {
            faults.push(format!("no {flag} {target}"));
        }
    }
    for feature in after("--features").unwrap_or_default().split(',') {
        let (package, feature) = feature.split_once('/').unwrap_or((name, feature));
        let known = packages.get(package).map_or(features, |it| &it.features);
        if !feature.is_empty() && !feature.contains(char::is_uppercase) && !known.contains(feature)
        {
            faults.push(format!("{package} has no feature {feature}"));
        }
    }
    if words.get(1).is_some_and(|word| word == "test") {
        let mut all = String::new();
        names(folder, &mut all);
        let takes_value = ["-p", "--test", "--features", "--example"];
        let filters = words.iter().enumerate().skip(2).filter(|(at, word)| {
            !word.starts_with('-') && !takes_value.contains(&words[at - 1].as_str())
        });
        for (_, filter) in filters {
            let last = filter.rsplit("::").find(|part| !part.is_empty());
            if !last.is_some_and(|last| all.contains(last)) {
                faults.push(format!("no test has {filter} in its name"));
            }
        }
    }
    faults
}

#[test]
fn every_command_of_cargo_names_packages_programs_tests_and_features_that_exist() {
    let packages = packages();
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for page in pages() {
        for command in page.code() {
            let words = words(&command).unwrap_or_default();
            if words.first().is_none_or(|first| first != "cargo") {
                continue;
            }
            seen += 1;
            for fault in faults(&words, &packages) {
                wrong.push(format!("{}: {command}: {fault}", page.path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 40, "{seen} commands");
}

#[test]
fn a_command_that_names_what_is_not_there_is_found() {
    let packages = packages();
    let faults = |command: &str| faults(&words(command).unwrap(), &packages);
    assert_eq!(faults("cargo test -p hybriq --test metrics page"), [""; 0]);
    for (command, fault) in [
        ("cargo run -p hybriq-none", "no package hybriq-none"),
        ("cargo run -p hybriq-examples --bin none", "no --bin none"),
        ("cargo test -p hybriq --test none", "no --test none"),
        (
            "cargo build -p hybriq --features none",
            "hybriq has no feature none",
        ),
        (
            "cargo test -p hybriq -- nobody_is_called_so",
            "no test has nobody_is_called_so in its name",
        ),
    ] {
        assert_eq!(faults(command), [fault]);
    }
}

#[test]
fn the_examples_know_the_options_that_the_pages_name() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bin");
    let programs = Path::new(env!("CARGO_BIN_EXE_echo_server"));
    let mut without = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        if check_program(name, &programs.with_file_name(name)) == 0 {
            without.push(name.to_owned());
        }
    }
    assert!(without.is_empty(), "no page says how to start {without:?}");
}

#[test]
fn every_feature_that_is_named_exists() {
    let packages = packages();
    let all: BTreeSet<_> = packages.values().flat_map(|it| &it.features).collect();
    let mut seen = 0;
    for page in pages() {
        // In prose: the feature `name`, features `one` and `two`.
        for (at, _) in page.text.match_indices("eature") {
            let rest = page.text[at..]
                .trim_start_matches("eatures")
                .trim_start_matches("eature");
            let Some(rest) = rest.strip_prefix(" `") else {
                continue;
            };
            let name = rest.split('`').next().unwrap();
            let is_name = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-';
            if name.chars().all(is_name) {
                seen += 1;
                assert!(
                    all.contains(&name.to_owned()),
                    "{}: {name}",
                    page.path.display()
                );
            }
        }
        // In manifests, of the libraries.
        for line in page.text.lines().filter(|it| it.starts_with("hybriq")) {
            let name = line.split(" = ").next().unwrap();
            let Some((_, features)) = line.split_once("features = [") else {
                continue;
            };
            for feature in features.split('"').skip(1).step_by(2) {
                seen += 1;
                assert!(
                    packages[name].features.contains(feature),
                    "{}: {line}",
                    page.path.display()
                );
            }
        }
    }
    assert!(seen > 20, "{seen} features");
}

#[test]
fn the_documentation_of_the_libraries_lists_their_features() {
    for (
        name,
        Package {
            folder, manifest, ..
        },
    ) in packages()
    {
        let Ok(source) = fs::read_to_string(folder.join("src/lib.rs")) else {
            continue;
        };
        let Some((_, table)) = source.split_once("//! | feature |") else {
            assert!(
                !["hybriq", "hybriq-http"].contains(&name.as_str()),
                "{name} lists none"
            );
            continue;
        };
        let manifest = manifest.replace("optional = true", "");
        let mut features = features(&manifest);
        features.remove("default");
        let rows = table
            .lines()
            .skip(2)
            .take_while(|line| line.starts_with("//! |"));
        let cells = rows.filter_map(|row| row.split('|').nth(1));
        let listed: BTreeSet<_> = cells
            .flat_map(|cell| cell.split('`').skip(1).step_by(2))
            .map(str::to_owned)
            .collect();
        assert_eq!(
            listed, features,
            "{name}: in the documentation (left), and in Cargo.toml"
        );
    }
}

/// Adds the sources and scripts below a folder.
fn sources(folder: &Path, found: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() {
            if !["target", ".git", "corpus"].contains(&name) {
                sources(&path, found);
            }
        } else if path.extension().is_none_or(|kind| kind != "md") {
            *found += &fs::read_to_string(&path).unwrap_or_default();
        }
    }
}

#[test]
fn every_variable_of_the_environment_is_read_somewhere() {
    let mut all = String::new();
    sources(&root(), &mut all);
    let mut seen = BTreeSet::new();
    for page in pages() {
        for word in page
            .text
            .split(|it: char| !it.is_ascii_uppercase() && it != '_')
        {
            if word.starts_with("HYBRIQ_") {
                assert!(all.contains(word), "{}: {word}", page.path.display());
                seen.insert(word.to_owned());
            }
        }
    }
    assert!(seen.len() > 5, "{seen:?}");
}

//! The walks of `ARCHITECTURE.md` lead through files that exist, and the rooms of the lower crates are as small
//! as it says.

use std::{
    fs,
    path::{Path, PathBuf},
};

const PAGE: &str = include_str!("../../../.github/ARCHITECTURE.md");

/// Most rooms at the top of a crate, and most files and rooms in a room: tests, `mod.rs` and programs apart.
const TOP: usize = 10;
const ROOM: usize = 8;

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns the links of the page to files of this repository, each with its words.
fn links() -> Vec<(&'static str, &'static str)> {
    let links = PAGE.split('[').skip(1).filter_map(|link| {
        let (words, rest) = link.split_once("](")?;
        let (target, _) = rest.split_once(')')?;
        Some((words, target))
    });
    links
        .filter(|(_, target)| target.starts_with("../"))
        .collect()
}

#[test]
fn every_step_of_the_walks_exists() {
    let github = workspace().join(".github");
    let links = links();
    assert!(links.len() > 20, "{} links found", links.len());
    for (words, target) in links {
        assert_eq!(
            target.strip_prefix("../"),
            Some(words),
            "a link says what it leads to"
        );
        assert!(github.join(target).exists(), "{target} does not exist");
    }
}

/// Returns the rooms below a folder of sources, itself included, with the number of what each holds.
fn rooms(folder: &Path, found: &mut Vec<(PathBuf, usize)>) {
    let mut holds = 0;
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        let is_test =
            name.starts_with("tests") || ["testing.rs", "forge", "rng.rs"].contains(&name);
        if is_test || ["mod.rs", "lib.rs", "main.rs", "bin"].contains(&name) {
            continue;
        }
        holds += 1;
        if path.is_dir() {
            rooms(&path, found);
        }
    }
    found.push((folder.to_owned(), holds));
}

#[test]
fn no_room_holds_more_than_a_reader_sees_at_a_glance() {
    for (source, most_in_room) in [
        ("quic/proto/src", ROOM),
        ("quic/src", ROOM),
        ("quic/qlog/src", ROOM),
        ("quic/h3/src", ROOM),
        ("quic/http/src", ROOM),
        ("quic/quinn/src", ROOM),
        ("quic/sim/src", ROOM),
        ("tls-provider/src", ROOM),
        // Its drivers are one folder for each stack.
        ("netbench/src", usize::MAX),
    ] {
        let source = workspace().join(source);
        let mut found = Vec::new();
        rooms(&source, &mut found);
        assert!(found.len() > 2, "{} has rooms", source.display());
        for (room, holds) in found {
            let most = if room == source { TOP } else { most_in_room };
            assert!(
                holds <= most,
                "{} holds {holds} files and rooms: at most {most}",
                room.display(),
            );
        }
    }
}

/// Most names at the root of `hybriq`, its modules apart.
const NAMES: usize = 30;

/// Returns the names that a file re-exports at its root: what `pub use` has outside of modules.
fn names(source: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut is_open = false;
    for line in source.lines() {
        let listed = if let Some(rest) = line.strip_prefix("pub use ") {
            is_open = !line.ends_with(';');
            rest.rsplit_once("::").map_or(rest, |(_, last)| last)
        } else if is_open && line.starts_with(' ') {
            line
        } else {
            is_open = is_open && !line.starts_with('}');
            continue;
        };
        let words = listed.split(|c: char| !c.is_alphanumeric());
        names.extend(words.filter(|word| word.starts_with(|c: char| c.is_ascii_uppercase())));
    }
    names
}

#[test]
fn the_root_of_the_library_has_few_names() {
    let source = fs::read_to_string(workspace().join("quic/src/lib.rs")).expect("the root");
    let names = names(&source);
    assert!(
        names.contains(&"Endpoint") && names.contains(&"Trust"),
        "{names:?}"
    );
    assert!(names.len() <= NAMES, "{} names: {names:?}", names.len());
    for whole in ["hybriq_proto", "hybriq_tls"] {
        let re_exported = format!("pub use {whole} as");
        assert!(
            !source.contains(&re_exported),
            "{whole} is re-exported as a whole"
        );
    }
}

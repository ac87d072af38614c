//! What the README shows is what the examples are.

use std::fs;
use std::path::Path;

fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The fenced blocks of one language, in order.
fn blocks(readme: &str, language: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut lines = readme.lines();
    while let Some(line) = lines.next() {
        if line.strip_prefix("```") == Some(language) {
            let block: Vec<_> = lines.by_ref().take_while(|line| *line != "```").collect();
            blocks.push(block.join("\n") + "\n");
        }
    }
    blocks
}

#[test]
fn the_readme_shows_the_echo_examples_as_they_are() {
    let blocks = blocks(&read("README.md"), "rust");
    for example in ["echo_server", "echo_client"] {
        let source = read(&format!("examples/src/bin/{example}.rs"));
        assert!(
            blocks.contains(&source),
            "README.md must have one ```rust block that is exactly examples/src/bin/{example}.rs"
        );
        assert!(
            source.lines().count() <= 40,
            "{example} is longer than 40 lines"
        );
    }
}

#[test]
fn every_example_fits_on_two_screens() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bin");
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let lines = fs::read_to_string(&path).unwrap().lines().count();
        assert!(lines <= 80, "{} has {lines} lines", path.display());
    }
}

#[test]
fn the_readme_gives_the_two_commands_that_ci_takes_from_it() {
    let commands = blocks(&read("README.md"), "sh").concat();
    for command in [
        "cargo run --release -p hybriq-netbench -- run request-response --groups all\n",
        "cargo test --workspace\n",
    ] {
        assert!(commands.contains(command), "no `sh` block has: {command}");
    }
}

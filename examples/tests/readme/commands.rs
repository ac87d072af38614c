//! Commands that the pages of this repository tell readers to type. The tests of netbench and of the interoperability
//! tests have this file too, for their own programs.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// A page of the repository.
pub(crate) struct Page {
    /// Path below the root of the repository.
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

/// Returns the root of the repository: the package of a test is one folder below it.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns all pages, except those of other projects.
pub(crate) fn pages() -> Vec<Page> {
    let (mut pages, mut folders) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root().join(&folder)).expect("a folder") {
            let path = folder.join(entry.expect("an entry").file_name());
            let name = path.file_name().and_then(|name| name.to_str());
            let whole = root().join(&path);
            if whole.is_dir() {
                // Build output, and repositories that tests fetch.
                if !matches!(name, Some("target" | ".git" | "corpus")) {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|kind| kind == "md") {
                let text = fs::read_to_string(&whole).expect("a page");
                pages.push(Page { path, text });
            }
        }
    }
    pages
}

impl Page {
    /// Returns the lines of its blocks of code, with continued ones joined, and the code in its prose.
    pub(crate) fn code(&self) -> Vec<String> {
        let (mut code, mut is_block, mut started) = (Vec::new(), false, String::new());
        for line in self.text.lines() {
            if line.trim_start().starts_with("```") {
                is_block = !is_block;
            } else if is_block || line.starts_with("    ") {
                if let Some(begun) = line.trim().strip_suffix('\\') {
                    started += begun;
                    continue;
                }
                code.push(std::mem::take(&mut started) + line.trim());
            } else {
                let spans = line.split('`').skip(1).step_by(2);
                code.extend(spans.map(str::to_owned));
            }
        }
        code
    }
}

/// Returns the words of a command, up to a comment, a redirection or another command. Those with placeholders are none.
pub(crate) fn words(command: &str) -> Option<Vec<String>> {
    let command = command.split(" #").next().unwrap_or_default();
    let is_placeholder = |it: &str| {
        let is_name = it.len() > 2 && it.chars().all(|it| it.is_ascii_uppercase());
        is_name
            || it == "="
            || !it.is_ascii()
            || it.contains(['<', '$', '[', '*'])
            || it.contains("...")
    };
    let mut words = Vec::new();
    for word in command.split_whitespace() {
        if ["|", "&&", "&", ";", ">", "2>"].contains(&word) {
            break;
        }
        // IPv6 addresses have brackets, in quotes.
        if is_placeholder(word) && !word.starts_with("'[") {
            return None;
        }
        words.push(word.trim_matches('\'').to_owned());
    }
    // Variables of the environment, and what stands in front of a program.
    let is_before = |word: &String| {
        word == "sudo"
            || word.split_once('=').is_some_and(|(name, _)| {
                name.starts_with("HYBRIQ_") || name.chars().all(|it| it.is_ascii_uppercase())
            })
    };
    let start = words.iter().position(|word| !is_before(word))?;
    Some(words.split_off(start))
}

/// Returns the arguments of a program in a command, if the command starts that program.
fn arguments(words: &[String], program: &str) -> Option<Vec<String>> {
    let (first, rest) = words.split_first()?;
    let after = |rest: &[String]| {
        let at = rest.iter().position(|word| word == "--");
        at.map_or_else(Vec::new, |at| rest[at + 1..].to_vec())
    };
    let is_cargo = first == "cargo" && rest.first().is_some_and(|word| word == "run");
    let mut arguments = if is_cargo {
        let named = |flag: &str| {
            let at = rest.iter().position(|word| word == flag)?;
            rest.get(at + 1)
        };
        let started = named("--bin").or(named("-p"))?;
        if started.trim_start_matches("hybriq-") != program.trim_start_matches("hybriq-") {
            return None;
        }
        after(rest)
    } else if first.rsplit('/').next() != Some(program) {
        return None;
    } else if rest.first().is_some_and(|word| word == "--") {
        // As in the table of examples, which leaves out what all their commands begin with.
        after(rest)
    } else {
        rest.to_vec()
    };
    let end = arguments.iter().position(|word| word == "--");
    arguments.truncate(end.unwrap_or(arguments.len()));
    Some(arguments)
}

/// Checks that a program knows the subcommands and options with which the pages start it, and returns their number.
///
/// A program that is asked for help reads what stands in front of that, and refuses what it does not know. An option
/// without its value is known, too.
pub(crate) fn check_program(name: &str, path: &Path) -> usize {
    let mut checked = 0;
    let pages = pages().into_iter();
    for page in pages.filter(|page| !page.path.ends_with("CHANGELOG.md")) {
        for command in page.code() {
            let words = words(&command).unwrap_or_default();
            let Some(mut arguments) = arguments(&words, name) else {
                continue;
            };
            if arguments.first().is_none_or(|first| first != "help") {
                arguments.push("--help".to_owned());
            }
            let output = Command::new(path).args(&arguments).output();
            let output = output.expect("the program starts");
            let error = String::from_utf8_lossy(&output.stderr);
            let wants_value = ["a value is required", "needs a value"];
            let is_known =
                output.status.success() || wants_value.iter().any(|it| error.contains(it));
            assert!(is_known, "{}: {command}\n{error}", page.path.display());
            checked += 1;
        }
    }
    checked
}

#[test]
fn arguments_are_found_in_commands_of_any_form() {
    let found = |command: &str| arguments(&words(command)?, "netbench").map(|it| it.join(" "));
    for command in [
        "cargo run --release -p hybriq-netbench -- run bulk --json it",
        "sudo target/release/netbench run bulk --json it > log",
        "netbench run bulk --json it # a comment",
        "HYBRIQ_X=1 netbench -- run bulk --json it -- other",
    ] {
        assert_eq!(
            found(command).as_deref(),
            Some("run bulk --json it"),
            "{command}"
        );
    }
    for command in [
        "netbench run <NAME>",
        "cargo test -p hybriq-netbench",
        "netbenches run",
    ] {
        assert_eq!(found(command), None, "{command}");
    }
}

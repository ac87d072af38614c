//! The last test program of `cargo test --workspace`: prints how long the run has taken, what it
//! skipped, and why. Without a harness, so that its output is not captured.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::Path,
};

use test_summary::Run;

fn main() {
    // Programs that list tests, such as editors, expect nothing else.
    if env::args().any(|argument| argument == "--list") {
        return;
    }
    let Some(run) = Run::current() else {
        return println!("the summary of the tests needs Linux");
    };
    let reports = run.reports().and_then(|file| {
        let reports = fs::read_to_string(&file).ok()?;
        fs::remove_file(file).ok()?;
        Some(reports)
    });
    println!("\nskipped, or in part:");
    print(
        reports
            .iter()
            .flat_map(|it| it.lines())
            .filter_map(|it| it.split_once('\t')),
    );
    println!("ignored by default (cargo test -p PACKAGE --test PROGRAM NAME -- --ignored):");
    let mut ignored = Vec::new();
    find_ignored(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."),
        &mut ignored,
    );
    print(ignored.iter().map(|(reason, test)| (&**reason, &**test)));
    if let Some(seconds) = run.seconds() {
        let (minutes, seconds) = ((seconds / 60.0).floor(), (seconds % 60.0).floor());
        println!(
            "cargo test took {minutes} min {seconds} s until here, with building; documentation tests follow\n"
        );
    }
}

/// Prints each reason once, with its tests.
fn print<'a>(reports: impl Iterator<Item = (&'a str, &'a str)>) {
    let mut reasons = BTreeMap::<_, BTreeSet<_>>::new();
    for (reason, test) in reports {
        reasons.entry(reason).or_default().insert(test);
    }
    if reasons.is_empty() {
        println!("  nothing");
    }
    for (reason, tests) in reasons {
        println!("  {reason}");
        for test in tests {
            println!("    {test}");
        }
    }
}

/// Adds the reason and name of each ignored test in the sources of a folder.
fn find_ignored(folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        if path.is_dir() && name != "target" && !name.to_string_lossy().starts_with('.') {
            find_ignored(&path, found);
        } else if path.extension().is_some_and(|it| it == "rs") {
            let source = fs::read_to_string(&path).unwrap_or_default();
            let mut lines = source.lines().map(str::trim_start);
            while let Some(line) = lines.next() {
                let reason = line
                    .strip_prefix("#[ignore = \"")
                    .and_then(|it| it.strip_suffix("\"]"));
                let test = reason.and_then(|_| lines.find_map(|it| it.split_once("fn ")));
                if let (Some(reason), Some((_, test))) = (reason, test) {
                    let name = test.split('(').next().unwrap_or(test);
                    found.push((reason.to_owned(), name.to_owned()));
                }
            }
        }
    }
}

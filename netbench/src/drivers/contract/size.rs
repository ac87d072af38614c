//! The size of a driver.

use std::fs;
use std::path::{Path, PathBuf};

use crate::scenario::axes::Stack;

/// Maximum number of lines in the main file of a driver. The aim is 200; s2n-quic has 203.
const DRIVER: usize = 205;
/// Maximum number of lines in each other file.
const FILE: usize = 350;

fn drivers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/drivers")
}

/// Returns the number of lines of a file without its tests.
fn lines(file: &Path) -> usize {
    let text = fs::read_to_string(file).unwrap();
    let production = text.lines().take_while(|line| *line != "mod tests {");
    let code = production
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with("//"));
    code.count()
}

#[test]
fn the_file_that_is_a_driver_is_short() {
    for stack in Stack::ALL.into_iter().filter(|it| !it.is_program()) {
        let name = stack.name().replace('-', "_");
        let files = [format!("{name}.rs"), format!("{name}/mod.rs")];
        let file = files.iter().map(|file| drivers().join(file));
        let file = file.into_iter().find(|file| file.exists());
        let file = file.unwrap_or_else(|| panic!("no file is called after {name}"));
        assert!(lines(&file) < DRIVER, "{} has {}", name, lines(&file));
    }
}

#[test]
fn no_file_of_a_driver_is_long() {
    let folders = fs::read_dir(drivers()).unwrap();
    for folder in folders.map(|folder| folder.unwrap().path()) {
        if !folder.is_dir() || folder.ends_with("contract") {
            continue;
        }
        for file in fs::read_dir(&folder).unwrap() {
            let file = file.unwrap().path();
            assert!(
                lines(&file) <= FILE,
                "{} has {}",
                file.display(),
                lines(&file)
            );
        }
    }
}

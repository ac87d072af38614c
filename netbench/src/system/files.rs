//! Files that are replaced as a whole, and a last resort for results that no file took.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Writes a file. A reader never sees half of it, and a failure leaves nothing behind; a pipe or a
/// device is written directly.
pub(crate) fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    if !is_replaced(path) {
        let mut file = File::options().write(true).open(path)?;
        return file.write_all(content);
    }
    let part = part(path);
    let written = fs::write(&part, content).and_then(|()| fs::rename(&part, path));
    if written.is_err() {
        // The file may never have been created.
        let _ = fs::remove_file(&part);
    }
    written
}

/// Checks that a file can be written, without changing it.
pub(crate) fn check(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if is_replaced(path) {
        let part = part(path);
        File::create(&part)?;
        fs::remove_file(part)?;
    }
    Ok(())
}

/// Returns true if a file is replaced as a whole, unlike a pipe or a device.
pub(crate) fn is_replaced(path: &Path) -> bool {
    fs::metadata(path).map_or(true, |it| it.is_file())
}

fn part(path: &Path) -> PathBuf {
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    part.into()
}

/// Writes results that no requested file took to the first folder with room for them; returns the
/// file.
pub(crate) fn rescue(content: &[u8]) -> Option<PathBuf> {
    let folders = [
        std::env::temp_dir(),
        "/var/tmp".into(),
        "/dev/shm".into(),
        std::env::current_dir().unwrap_or_default(),
    ];
    rescue_in(&folders, content)
}

fn rescue_in(folders: &[PathBuf], content: &[u8]) -> Option<PathBuf> {
    let name = |number: u32| match number {
        0 => format!("netbench-rescue-{}.json", std::process::id()),
        _ => format!("netbench-rescue-{}-{number}.json", std::process::id()),
    };
    folders.iter().find_map(|folder| {
        let mut paths = (0..100).map(|number| folder.join(name(number)));
        // Another run's rescued results stay.
        let (mut file, path) =
            paths.find_map(|path| Some((File::create_new(&path).ok()?, path)))?;
        if file.write_all(content).is_ok() {
            return Some(path);
        }
        let _ = fs::remove_file(path);
        None
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::{rescue_in, write};

    fn folder(name: &str) -> PathBuf {
        let name = format!("netbench-files-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn count(folder: &Path) -> usize {
        fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn a_file_that_cannot_be_replaced_leaves_no_part_behind() {
        let folder = folder("part");
        // A link to nothing counts as a new file, and its folder is none.
        let missing = folder.join("missing/results.json");
        assert!(write(&missing, b"{}").is_err());
        // Only the name of the part fits: 250 bytes, and 5 more.
        let long = folder.join("x".repeat(253));
        assert!(write(&long, b"{}").is_err());
        assert_eq!(count(&folder), 0);
        let good = folder.join("results.json");
        write(&good, b"{}").unwrap();
        assert_eq!(count(&folder), 1, "the part became the file");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_device_is_written_directly_and_its_failure_told() {
        write(Path::new("/dev/null"), b"{}").unwrap();
        assert!(write(Path::new("/dev/full"), b"{}").is_err());
        assert!(!Path::new("/dev/full.part").exists());
    }

    #[test]
    fn rescued_results_stand_in_the_first_folder_that_takes_them() {
        let folder = folder("rescue");
        let folders = [folder.join("missing"), folder.clone()];
        let first = rescue_in(&folders, b"one").unwrap();
        let second = rescue_in(&folders, b"two").unwrap();
        assert_eq!(fs::read(first).unwrap(), b"one", "it is not overwritten");
        assert_eq!(fs::read(second).unwrap(), b"two");
        assert_eq!(rescue_in(&folders[..1], b"one"), None);
        fs::remove_dir_all(folder).unwrap();
    }
}

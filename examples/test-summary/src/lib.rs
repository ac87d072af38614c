//! What a run of all tests left out, and why: tests that lack something report it by [`skip`], and
//! the program in `tests/summary.rs`, which cargo runs last, prints the reports of its run.

use std::{env, fmt::Display, fs, io::Write, path::PathBuf, thread};

/// Ticks of the kernel's accounts in a second: `USER_HZ`, the same on all platforms.
const TICKS: f64 = 100.0;

/// A run of `cargo test`: the parent process of every test program.
#[derive(Debug)]
pub struct Run {
    cargo: String,
    /// Clock ticks between the start of the machine and that of cargo.
    started: f64,
}

impl Run {
    /// Returns the run that this program belongs to. Only Linux tells.
    pub fn current() -> Option<Self> {
        let cargo = field(&fs::read_to_string("/proc/self/stat").ok()?, 4)?;
        let status = fs::read_to_string(format!("/proc/{cargo}/stat")).ok()?;
        let started = field(&status, 22)?.parse().ok()?;
        Some(Self { cargo, started })
    }

    /// Returns the seconds since cargo was started.
    pub fn seconds(&self) -> Option<f64> {
        let uptime = fs::read_to_string("/proc/uptime").ok()?;
        let now: f64 = uptime.split(' ').next()?.parse().ok()?;
        Some(now - self.started / TICKS)
    }

    /// Returns the file in the target folder with a line for each report: reason, tab, test.
    pub fn reports(&self) -> Option<PathBuf> {
        let folder = env::current_exe().ok()?.parent()?.to_owned();
        Some(folder.join(format!("skipped-{}-{}", self.cargo, self.started)))
    }
}

/// Returns a field of a process's status by its number in proc_pid_stat(5).
fn field(status: &str, number: usize) -> Option<String> {
    // The second field is a name, and may have spaces and parentheses.
    let (_, fields) = status.rsplit_once(") ")?;
    fields.split(' ').nth(number - 3).map(str::to_owned)
}

/// Reports that the current test, or a part of it, is skipped. The reason is one line that says what
/// is missing and how to get it.
pub fn skip(reason: impl Display) {
    let reason = reason.to_string().replace(['\n', '\t'], " ");
    println!("skipped: {reason}");
    let _ = record(reason.trim());
}

fn record(reason: &str) -> Option<()> {
    let program = env::current_exe().ok()?;
    let program = program.file_stem()?.to_str()?.rsplit_once('-')?.0;
    let current = thread::current();
    let test = current.name().unwrap_or("a test");
    let mut options = fs::OpenOptions::new();
    let file = options.create(true).append(true);
    let mut file = file.open(Run::current()?.reports()?).ok()?;
    file.write_all(format!("{reason}\t{program} {test}\n").as_bytes())
        .ok()
}

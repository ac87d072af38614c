//! Processes that are watched from outside.

use std::fs;
use std::io::Read;
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Longest time that anything may take. It measures nothing and only ends waiting.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

/// Asks until there is an answer.
pub(crate) fn eventually<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < end, "in vain: {what}");
        thread::yield_now();
    }
}

/// All that is read to the end: as several processes share it, to the end of the last of them.
pub(crate) fn read_to_end(mut from: impl Read + Send + 'static) -> mpsc::Receiver<String> {
    let (ended, wait) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = from.read_to_end(&mut bytes);
        ended.send(String::from_utf8_lossy(&bytes).into_owned())
    });
    wait
}

/// The child of a process that plays this part, as soon as there is one.
pub(crate) fn child(parent: u32, part: &str) -> u32 {
    let list = format!("/proc/{parent}/task/{parent}/children");
    eventually(&format!("{part}, a child of {parent}"), || {
        let pids = fs::read_to_string(&list).unwrap_or_default();
        let mut pids = pids.split_whitespace().map(|pid| pid.parse().unwrap());
        pids.find(|pid| plays(*pid, part))
    })
}

/// Returns true if a process with this id exists and plays this part.
pub(crate) fn plays(pid: u32, part: &str) -> bool {
    let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split('\0').nth(1) == Some(part)
}

/// Waits until a process has worked for a while: longer than any warm-up takes.
pub(crate) fn busy(pid: u32) {
    eventually(&format!("{pid} works"), || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        // After the name in brackets, the 12th field is the user time in hundredths of a second.
        let after_name = stat.rsplit(')').next()?;
        let ticks: u64 = after_name.split_whitespace().nth(11)?.parse().ok()?;
        (ticks >= 50).then_some(())
    });
}

pub(crate) fn signal(pid: u32, name: &str) {
    let mut kill = Command::new("kill");
    let status = kill.args([&format!("-{name}"), &pid.to_string()]).status();
    assert!(status.unwrap().success());
}

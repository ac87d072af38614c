//! CPU time of other processes on this machine, which disturbs what is measured.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

/// CPU time of other processes, in cores, from which on a measurement counts as disturbed.
pub(crate) const LOUD: f64 = 0.15;

/// Shortest measurement whose other work can be told: the kernel counts in hundredths of a second.
const SHORTEST: Duration = Duration::from_millis(250);

/// Ticks of the kernel's accounts in a second: `USER_HZ`, the same on all platforms of netbench.
const TICKS: f64 = 100.0;

/// Meter of the CPU time of processes that are neither this one nor its children.
pub(crate) struct Meter {
    began: Instant,
    before: Accounts,
}

impl Meter {
    /// Starts to measure; `None` if the system does not tell.
    pub(crate) fn start() -> Option<Self> {
        let before = Accounts::read()?;
        Some(Self {
            began: Instant::now(),
            before,
        })
    }

    /// Returns the CPU time since the start, in cores; `None` if the time was too short to tell.
    pub(crate) fn cores(&self) -> Option<f64> {
        let lasted = self.began.elapsed();
        if lasted < SHORTEST {
            return None;
        }
        let ticks = Accounts::read()?.since(&self.before);
        Some(ticks as f64 / TICKS / lasted.as_secs_f64())
    }
}

/// CPU time so far, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Accounts {
    /// All work on all cores, and the time that a hypervisor gave to other machines.
    machine: u64,
    /// This process and its descendants.
    own: u64,
    /// All other processes that can be seen, with those of their children that have ended.
    others: u64,
}

impl Accounts {
    fn read() -> Option<Self> {
        let machine = machine(&fs::read_to_string("/proc/stat").ok()?)?;
        let processes = fs::read_dir("/proc").ok()?.filter_map(|entry| {
            let name = entry.ok()?.file_name();
            let id: u32 = name.to_str()?.parse().ok()?;
            Process::parse(id, &fs::read_to_string(format!("/proc/{id}/stat")).ok()?)
        });
        Some(Self::of(machine, std::process::id(), processes))
    }

    fn of(machine: u64, this: u32, processes: impl Iterator<Item = Process>) -> Self {
        let processes: BTreeMap<u32, Process> =
            processes.map(|process| (process.id, process)).collect();
        let is_own = |process: &Process| {
            let parent = |process: &&Process| processes.get(&process.parent);
            // Bounded, because identifiers may be used again while the list is read.
            let mut line = std::iter::successors(Some(process), parent).take(64);
            line.any(|process| process.id == this)
        };
        let mut all = Self {
            machine,
            ..Self::default()
        };
        for process in processes.values() {
            if is_own(process) {
                all.own += process.ticks;
            } else if !process.is_of_kernel() {
                all.others += process.ticks;
            }
        }
        all
    }

    /// Returns the ticks of others since earlier accounts. Both ways to count miss some: processes
    /// of other containers cannot be seen, and the kernel samples its sum.
    fn since(&self, before: &Self) -> u64 {
        let own = self.own.saturating_sub(before.own);
        let rest = self.machine.saturating_sub(before.machine);
        let seen = self.others.saturating_sub(before.others);
        rest.saturating_sub(own).max(seen)
    }
}

/// A process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process {
    id: u32,
    parent: u32,
    /// CPU time, with that of its children that have ended.
    ticks: u64,
}

impl Process {
    /// Reads `/proc/<id>/stat`.
    fn parse(id: u32, stat: &str) -> Option<Self> {
        // The name, in parentheses, may contain anything.
        let (_, fields) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let field = |index: usize| fields.get(index)?.parse::<u64>().ok();
        Some(Self {
            id,
            parent: u32::try_from(field(1)?).ok()?,
            ticks: (11..=14).map(field).sum::<Option<u64>>()?,
        })
    }

    /// Returns true for threads of the kernel, which also do the work of measured sockets.
    fn is_of_kernel(&self) -> bool {
        const KTHREADD: u32 = 2;
        self.id == KTHREADD || self.parent == KTHREADD
    }
}

/// Returns the user, nice, system and steal time of all cores. Interrupts are left out: those of
/// the loopback interface are caused by what is measured.
fn machine(stat: &str) -> Option<u64> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let fields: Vec<u64> = line
        .split_whitespace()
        .map_while(|field| field.parse().ok())
        .collect();
    let field = |index: usize| fields.get(index).copied();
    Some(field(0)? + field(1)? + field(2)? + field(7).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::{Accounts, Meter, Process, machine};

    const fn process(id: u32, parent: u32, ticks: u64) -> Process {
        Process { id, parent, ticks }
    }

    #[test]
    fn the_files_of_the_kernel_are_read() {
        let stat = "cpu  100 20 30 4000 5 6 7 8 0 0\ncpu0 1 2 3 4\n";
        assert_eq!(machine(stat), Some(158));
        let stat = "7 (a) b) S 3 7 7 0 -1 0 0 0 0 0 10 20 3 4 20 0 1 0 5";
        assert_eq!(Process::parse(7, stat), Some(process(7, 3, 37)));
        assert_eq!(Process::parse(7, "nonsense"), None);
    }

    #[test]
    fn children_are_no_others_and_the_kernel_is_neither() {
        let processes = [
            process(1, 0, 1),
            process(2, 0, 1000),
            process(9, 2, 1000),
            process(50, 1, 10),
            process(51, 50, 20),
            process(52, 51, 40),
            process(60, 1, 300),
        ];
        let accounts = Accounts::of(5000, 50, processes.into_iter());
        assert_eq!(accounts.own, 70);
        assert_eq!(accounts.others, 301);
    }

    #[test]
    fn work_counts_once_whichever_account_shows_it() {
        let before = Accounts::default();
        let after = |machine, own, others| Accounts {
            machine,
            own,
            others,
        };
        assert_eq!(after(200, 190, 0).since(&before), 10, "in a container");
        assert_eq!(after(200, 190, 12).since(&before), 12);
        assert_eq!(after(180, 190, 0).since(&before), 0);
        assert_eq!(before.since(&after(9, 9, 9)), 0);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_moment_tells_nothing() {
        assert_eq!(Meter::start().unwrap().cores(), None);
        assert!(Accounts::read().unwrap().machine > 0);
    }
}

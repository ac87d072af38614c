//! Resources used by this process.

use std::fs;
use std::time::Duration;

use crate::drivers::Traffic;
use crate::report::results::Process;
use crate::system::failure::Failure;
use crate::system::os::{self, Usage};

/// Clocks and counters of this process at the start of a measurement.
pub(crate) struct Meter {
    /// Another process that does the work.
    other: Option<u32>,
    usage: Usage,
    traffic: Option<Traffic>,
    rss_kib: u64,
}

impl Meter {
    /// Starts to measure; `traffic` is that of the sockets so far.
    pub(crate) fn start(traffic: Option<Traffic>) -> Result<Self, Failure> {
        Self::of(None, traffic)
    }

    /// Starts to measure another process, of which CPU time is all that is known, together with this one.
    pub(crate) fn of(other: Option<u32>, traffic: Option<Traffic>) -> Result<Self, Failure> {
        // What was freed on the way here would count as held.
        os::release_freed_memory();
        Ok(Self {
            other,
            traffic,
            rss_kib: memory().rss_kib,
            usage: usage(other)?,
        })
    }

    /// Returns the CPU time since the start.
    pub(crate) fn cpu(&self) -> Duration {
        let cpu = |usage: &Usage| usage.user + usage.system;
        usage(self.other).map_or(Duration::ZERO, |usage| {
            cpu(&usage).saturating_sub(cpu(&self.usage))
        })
    }

    /// Returns the resources used since the start. The peak of memory covers the whole life of the
    /// process, because the system keeps no other.
    pub(crate) fn read(&self, traffic: Option<Traffic>) -> Result<Process, Failure> {
        let now = usage(self.other)?;
        let memory = memory();
        let micros = |end: Duration, begin: Duration| end.saturating_sub(begin).as_secs_f64() * 1e6;
        Ok(Process {
            user_us: micros(now.user, self.usage.user),
            system_us: micros(now.system, self.usage.system),
            voluntary_switches: now
                .voluntary_switches
                .saturating_sub(self.usage.voluntary_switches),
            involuntary_switches: now
                .involuntary_switches
                .saturating_sub(self.usage.involuntary_switches),
            rss_at_start_kib: self.rss_kib,
            rss_at_end_kib: memory.rss_kib,
            peak_rss_kib: memory.peak_rss_kib,
            traffic: traffic
                .zip(self.traffic)
                .map(|(end, begin)| end.since(begin)),
            completed: 0,
            failed: 0,
        })
    }
}

/// Returns what this process used so far, with the CPU time of another one.
fn usage(other: Option<u32>) -> Result<Usage, Failure> {
    let mut usage = os::usage()?;
    if let Some(id) = other {
        usage.user += os::cpu_time_of(id)?;
    }
    Ok(usage)
}

#[derive(Default)]
struct Memory {
    rss_kib: u64,
    peak_rss_kib: u64,
}

/// Returns the memory in use; 0 if the system does not tell.
fn memory() -> Memory {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = |name: &str| {
        status
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .and_then(|value| value.split_whitespace().next()?.parse().ok())
            .unwrap_or(0)
    };
    Memory {
        rss_kib: kib("VmRSS:"),
        peak_rss_kib: kib("VmHWM:"),
    }
}

#[cfg(test)]
mod tests {
    use super::memory;
    use crate::system::os;

    #[test]
    fn memory_that_was_freed_is_not_held() {
        const BLOCK: usize = 32 << 10;
        // The last block stays, so that the heap cannot shrink by itself.
        let mut blocks: Vec<Vec<u8>> = (0..2048).map(|_| vec![1; BLOCK]).collect();
        let last = blocks.pop();
        drop(blocks);
        let before = memory().rss_kib;
        os::release_freed_memory();
        let freed_kib = before.saturating_sub(memory().rss_kib);
        assert!(freed_kib > (32 << 10), "{freed_kib} KiB of 64 MiB");
        assert!(last.is_some());
    }
}

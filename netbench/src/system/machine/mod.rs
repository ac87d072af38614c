//! The machine that the measurements depend on.

pub(crate) mod crates;

use std::collections::BTreeMap;
use std::fs;

use serde::{Deserialize, Serialize};

use crate::system::os;

/// The machine, as far as the figures depend on it.
#[derive(Clone, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub(crate) struct Machine {
    /// Model of the CPU.
    pub(crate) cpu: String,
    /// Release of the kernel.
    pub(crate) kernel: String,
    /// Memory in MiB; `None`: the system does not tell.
    #[schemars(with = "u64")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) memory_mib: Option<u64>,
    /// Governor of the cores' clock rate, as `performance`.
    #[schemars(with = "String")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) governor: Option<String>,
    /// Mitigation of the kernel for each flaw of the CPU.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) mitigations: BTreeMap<String, String>,
    /// Load average of the last minute before the run.
    #[schemars(range(min = 0))]
    pub(crate) load: f64,
    /// Number of cores that this run may use.
    #[schemars(range(min = 1))]
    pub(crate) cores: usize,
    /// Core that the server is pinned to.
    pub(crate) server_core: Option<usize>,
    /// Core that the first client is pinned to.
    pub(crate) client_core: Option<usize>,
}

impl Machine {
    /// Detects this machine and chooses a core for each process if there are two.
    pub(crate) fn detect() -> Self {
        let allowed = os::allowed_cores().unwrap_or_default();
        let (server_core, client_core) = two_cores(&allowed).unzip();
        Self {
            cpu: cpu_model().unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            kernel: read("/proc/sys/kernel/osrelease")
                .unwrap_or_else(|| std::env::consts::OS.to_owned()),
            memory_mib: memory_mib(),
            governor: read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            mitigations: mitigations(),
            load: read("/proc/loadavg")
                .and_then(|text| text.split_whitespace().next()?.parse().ok())
                .unwrap_or(0.0),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            server_core,
            client_core,
        }
    }

    /// Returns the core of a client process; several share the remaining cores in turn.
    pub(crate) fn core_of_client(&self, number: usize) -> Option<usize> {
        let first = self.client_core?;
        let allowed = os::allowed_cores().unwrap_or_default();
        let others = allowed
            .into_iter()
            .filter(|core| Some(*core) != self.server_core && *core != first);
        let cores: Vec<usize> = std::iter::once(first).chain(others).collect();
        cores.get(number % cores.len()).copied()
    }
}

/// Returns the first core, and the first that is not its hyper-thread, or else any other.
fn two_cores(allowed: &[usize]) -> Option<(usize, usize)> {
    let (&first, others) = allowed.split_first()?;
    let siblings = siblings(first);
    let second = others
        .iter()
        .find(|core| !siblings.contains(core))
        .or(others.first())?;
    Some((first, *second))
}

/// Returns the hardware threads of a core, from the kernel's list form (`0,4` or `0-1`).
fn siblings(core: usize) -> Vec<usize> {
    read(&format!(
        "/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list"
    ))
    .map(|list| parse_list(&list))
    .unwrap_or_default()
}

fn parse_list(list: &str) -> Vec<usize> {
    list.split(',')
        .filter_map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            Some(first.trim().parse().ok()?..=last.trim().parse().ok()?)
        })
        .flatten()
        .collect()
}

fn cpu_model() -> Option<String> {
    read("/proc/cpuinfo")?
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
        .map(|(_, model)| model.trim().to_owned())
}

fn memory_mib() -> Option<u64> {
    let meminfo = read("/proc/meminfo")?;
    let total = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = total.split_whitespace().next()?.parse().ok()?;
    Some(kib / 1024)
}

fn mitigations() -> BTreeMap<String, String> {
    let Ok(flaws) = fs::read_dir("/sys/devices/system/cpu/vulnerabilities") else {
        return BTreeMap::new();
    };
    flaws
        .filter_map(|flaw| {
            let flaw = flaw.ok()?;
            let text = read(flaw.path().to_str()?)?;
            let name = flaw.file_name().into_string().ok()?;
            (text != "Not affected").then_some((name, text))
        })
        .collect()
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path)
        .ok()
        .map(|text| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::{parse_list, two_cores};

    #[test]
    fn kernel_lists_are_read() {
        assert_eq!(parse_list("0,4"), [0, 4]);
        assert_eq!(parse_list("2-4,9"), [2, 3, 4, 9]);
        assert_eq!(parse_list("nonsense"), [0_usize; 0]);
    }

    #[test]
    fn one_core_is_not_split() {
        assert_eq!(two_cores(&[]), None);
        assert_eq!(two_cores(&[5]), None);
        assert!(two_cores(&[0, 1]).is_some_and(|(a, b)| a != b));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_memory_of_the_machine_is_known() {
        assert!(super::Machine::detect().memory_mib.unwrap() > 100);
    }
}

//! Facts that are needed to do a run again.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::{About, FORMAT, Results};
use crate::scenario::Scenario;
use crate::system::machine::Machine;
use crate::system::machine::crates;

impl Results {
    /// Returns results of a scenario without any measurement.
    pub(crate) fn of(scenario: Scenario, machine: Machine) -> Self {
        Self {
            netbench_results: FORMAT,
            complete: false,
            problems: Vec::new(),
            about: About::this_run(machine),
            scenario_id: scenario.id(),
            scenario,
            cells: Vec::new(),
            breakdowns: Vec::new(),
        }
    }
}

impl About {
    /// Returns the facts about this process, now.
    pub(crate) fn this_run(machine: Machine) -> Self {
        Self {
            netbench: env!("CARGO_PKG_VERSION").to_owned(),
            build: if cfg!(debug_assertions) {
                "debug"
            } else {
                "release"
            }
            .to_owned(),
            git: option_env!("NETBENCH_GIT").map(str::to_owned),
            command: without_secrets(std::env::args_os().map(|arg| {
                let arg = arg.to_string_lossy();
                arg.into_owned()
            })),
            started: rfc3339(SystemTime::now()),
            machine,
            servers: Vec::new(),
            fleet: None,
            merged: Vec::new(),
            crates: crates::all()
                .map(|(name, version)| (name.to_owned(), version.to_owned()))
                .collect(),
        }
    }
}

/// Clients that share server processes and measure at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub(crate) struct Fleet {
    /// Number of clients.
    pub(crate) size: u32,
    /// Number of this client, counted from 0.
    pub(crate) client: u32,
}

impl Default for Fleet {
    fn default() -> Self {
        Self { size: 1, client: 0 }
    }
}

/// Removes the token of the control port from the arguments, as results are passed around.
fn without_secrets(args: impl Iterator<Item = String>) -> Vec<String> {
    let mut args: Vec<String> = args.collect();
    let mut is_secret = false;
    for arg in &mut args {
        if is_secret {
            arg.replace_range(.., "…");
        } else if arg.starts_with("--token=") {
            arg.replace_range("--token=".len().., "…");
        }
        is_secret = arg == "--token";
    }
    args
}

/// Formats a time in UTC to the second, as `2026-11-22T08:30:00Z`.
pub(crate) fn rfc3339(time: SystemTime) -> String {
    let seconds = time
        .duration_since(UNIX_EPOCH)
        .unwrap_or(Duration::ZERO)
        .as_secs();
    let (year, month, day) = date(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Returns the Gregorian date that is this number of days after 1970-01-01.
fn date(days: u64) -> (u64, u64, u64) {
    // Counted from 1 March of the year 0, so that the leap day is a year's last and 400 years,
    // 146,097 days, are a cycle.
    let days = days + 719_468;
    let (cycle, day_of_cycle) = (days / 146_097, days % 146_097);
    let leap_days = day_of_cycle / 1460 - day_of_cycle / 36_524 + day_of_cycle / 146_096;
    let year_of_cycle = (day_of_cycle - leap_days) / 365;
    let day_of_year =
        day_of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
    // From March on, five months have 153 days, again and again.
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let year = 400 * cycle + year_of_cycle + u64::from(month >= 10);
    (year, if month < 10 { month + 3 } else { month - 9 }, day)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::{About, rfc3339, without_secrets};
    use crate::system::machine::Machine;

    #[test]
    fn times_are_written_as_rfc_3339_has_them() {
        let at = |seconds| rfc3339(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01T00:00:00Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(at(951_868_799), "2000-02-29T23:59:59Z");
        assert_eq!(at(951_868_800), "2000-03-01T00:00:00Z");
        assert_eq!(at(1_735_689_599), "2024-12-31T23:59:59Z");
        assert_eq!(at(4_107_542_400), "2100-03-01T00:00:00Z");
    }

    #[test]
    fn the_command_is_kept_without_the_token() {
        let kept = |text: &str| {
            let args = text.split_whitespace().map(str::to_owned);
            without_secrets(args).join(" ")
        };
        let command = kept("netbench client --token hush-hush --group X25519");
        assert_eq!(command, "netbench client --token … --group X25519");
        assert_eq!(
            kept("netbench client --token=hush"),
            "netbench client --token=…"
        );
        assert_eq!(kept("netbench client --token"), "netbench client --token");
    }

    #[test]
    fn the_versions_of_what_is_measured_are_known() {
        let about = About::this_run(Machine::detect());
        for name in ["hybriq", "rustls", "aws-lc-rs", "s2n-tls"] {
            assert!(about.crates.contains_key(name), "{:?}", about.crates);
        }
        assert_eq!(about.crates.contains_key("quinn"), cfg!(feature = "quinn"));
        assert!(!about.command.is_empty());
    }
}

//! A program between two hosts, for measurements by hand.

use std::{path::Path, process::ExitStatus, time::Duration};

use hybriq_sim::{
    Chance,
    link::{Line, Settings},
};
use tokio::process::Command;

use super::{
    Failure,
    hosts::{self, Hosts, PORTS, addresses},
    link::{Capturing, Conditions, Link},
};
use crate::runner::{Role, stopped};

/// A link that is the same in both directions.
#[derive(Clone, Copy, Debug)]
pub struct Wire {
    /// Time that every packet takes.
    pub delay: Duration,
    /// Share of the packets that are lost, from 0 to 1.
    pub loss: f64,
    /// Bits in a second; `None` for as many as the machine does.
    pub rate: Option<u64>,
    /// Seed of the losses.
    pub seed: u64,
}

impl Wire {
    fn conditions(self) -> Conditions {
        let line = self.rate.map(|rate| {
            // The queue holds what the link holds.
            let round_trip = 2.0 * self.delay.as_secs_f64();
            let queue = rate as f64 / 8.0 * round_trip;
            Line::new(rate, (queue as u64).max(64 * 1024))
        });
        let settings = Settings {
            delay: self.delay,
            loss: Chance::share(self.loss),
            line,
            ..Settings::default()
        };
        Conditions {
            up: settings.clone(),
            down: settings,
            capturing: Capturing::Nothing,
            seed: self.seed,
            ..Conditions::default()
        }
    }
}

/// Runs a program while two hosts are joined by a link, which carries TCP, and UDP of the server's port 443.
/// The variables `ON_CLIENT` and `ON_SERVER` have the words that run a program on a host, `SERVER` has the
/// address of the server.
///
/// # Errors
/// The machine allows no namespaces, or the program cannot be started.
pub async fn on_hosts(wire: Wire, program: &Path, words: &[String]) -> Result<ExitStatus, Failure> {
    let stopped = stopped()?;
    hosts::remove_leftovers();
    let hosts = Hosts::make()?;
    let link = Link::join(&hosts, wire.conditions())?;
    let run = Command::new(program)
        .args(words)
        .env("ON_CLIENT", hosts.on(Role::Client).join(" "))
        .env("ON_SERVER", hosts.on(Role::Server).join(" "))
        .env("SERVER", addresses(Role::Server).v4)
        .env("PORT", PORTS[0].to_string())
        .kill_on_drop(true)
        .status();
    // The hosts are removed after an interruption, too.
    let ended = tokio::select! {
        ended = run => ended.map_err(|error| format!("{}: {error}", program.display()).into()),
        () = stopped => Err("interrupted".into()),
    };
    link.end().await;
    ended
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_program_reaches_both_hosts() {
        if let Some(lack) = crate::testbed::lack() {
            test_summary::skip(format!(
                "network namespaces with TUN devices need root: {lack}"
            ));
            return;
        }
        let wire = Wire {
            delay: Duration::from_millis(1),
            loss: 0.0,
            rate: Some(1_000_000),
            seed: 1,
        };
        let script =
            "$ON_SERVER ip address show | grep -q $SERVER && $ON_CLIENT ip route get $SERVER";
        let words = ["-c".to_owned(), script.to_owned()];
        let ended = on_hosts(wire, Path::new("sh"), &words).await;
        assert!(ended.expect("hosts").success());
    }
}

//! The cases of the QUIC interop runner without containers: two network namespaces, a link between them
//! that loses, corrupts, delays and rebinds, a capture on both sides, and the peers as processes.
//!
//! The verdict is taken from the captures, decrypted with the key log, by code that shares nothing with
//! the peers: what an endpoint says of itself counts for nothing but its exit status and its files.
//!
//! ```text
//!  client (namespace) ── TUN ── link ── TUN ── server (namespace)
//!                           │          │
//!                        capture    capture ──► dissect ──► verdict
//! ```

mod capture;
mod cases;
mod certificates;
mod dissect;
mod folders;
mod hosts;
mod link;
mod packet;
mod peers;
mod report;
mod run;
mod shell;
mod traffic;
mod verdict;

use std::{
    collections::{HashSet, VecDeque},
    path::{Path, PathBuf},
    sync::Arc,
};

use tokio::task::JoinSet;

use self::{cases::Case, peers::Peer};
use crate::runner::{Role, stopped};

pub use cases::names as case_names;
pub use hosts::lack;
pub use peers::names as peer_names;
pub use report::{Comparison, Report, logs_from};
pub use shell::{Wire, on_hosts};
pub use traffic::{receive, send};

/// An error that ends a run.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Choice of runs.
#[derive(Clone, Debug)]
pub struct Selection {
    /// Names of clients; empty for all.
    pub clients: Vec<String>,
    /// Names of servers; empty for all.
    pub servers: Vec<String>,
    /// Cases by their names or letters; empty for all.
    pub cases: Vec<String>,
    /// True for the cases that show most in a short time, where none is named.
    pub quick: bool,
    /// True if one end of each run is hybriq.
    pub with_us: bool,
    /// Runs at a time, each between hosts of its own.
    pub jobs: usize,
    /// Times that a failed run is repeated alone.
    pub retries: usize,
}

/// A run that was chosen.
type Job = (&'static Case, &'static Peer, &'static Peer);

impl Selection {
    /// Checks the names.
    ///
    /// # Errors
    /// A name that nobody has.
    pub fn check(&self) -> Result<(), Failure> {
        if self.runs()?.is_empty() {
            return Err(
                "no run is left: one end must be hybriq, curl is no server, nginx no client; \
                        see --all-pairs"
                    .into(),
            );
        }
        Ok(())
    }

    fn runs(&self) -> Result<VecDeque<Job>, Failure> {
        let mut runs = VecDeque::new();
        for case in cases::select(&self.cases, self.quick)? {
            for server in peers::select(&self.servers)? {
                for client in peers::select(&self.clients)? {
                    let with_us = client.is_ours() || server.is_ours();
                    let can = client.plays(Role::Client) && server.plays(Role::Server);
                    if can && (with_us || !self.with_us) {
                        runs.push_back((case, client, server));
                    }
                }
            }
        }
        Ok(runs)
    }
}

/// Returns what these names stand for. Who is named twice runs once: two runs at a time would share a folder.
fn find_each<T>(
    wanted: &[String],
    find: impl Fn(&String) -> Result<T, Failure>,
    name: impl Fn(&T) -> &'static str,
) -> Result<Vec<T>, Failure> {
    let mut found = wanted.iter().map(find).collect::<Result<Vec<_>, _>>()?;
    let mut names = HashSet::new();
    found.retain(|one| names.insert(name(one)));
    Ok(found)
}

/// Runs the chosen cases, prints each result, and has the results so far saved: they stand after an interruption.
///
/// # Errors
/// A name that nobody has, the machine allows no namespaces, or the folder for the logs cannot be written. A
/// run that fails is no error: the report has it.
pub async fn run(
    selection: &Selection,
    logs: &Path,
    save: impl Fn(&Report),
) -> Result<Report, Failure> {
    let mut waiting = selection.runs()?;
    let stopped = stopped()?;
    tokio::pin!(stopped);
    hosts::remove_leftovers();
    let logs: Arc<Path> = PathBuf::from(logs).into();
    std::fs::create_dir_all(&logs)?;
    let certificates = Arc::new(certificates::Certificates::make(&logs)?);
    let mut report = Report::begin();
    for peer in peers::select(&[])? {
        let runs = |&(_, client, server): &Job| [client.name, server.name].contains(&peer.name);
        if let Some(version) = waiting.iter().any(runs).then(|| peer.version()).flatten() {
            report.add_version(peer.name, version);
        }
    }
    let mut running = JoinSet::new();
    let (mut failed, mut jobs, mut retries) = (VecDeque::new(), selection.jobs, selection.retries);
    loop {
        if waiting.is_empty() && running.is_empty() && retries > 0 {
            waiting = std::mem::take(&mut failed);
            (jobs, retries) = (1, retries - 1);
        }
        while running.len() < jobs.max(1)
            && let Some(job) = waiting.pop_front()
        {
            let (certificates, logs) = (Arc::clone(&certificates), Arc::clone(&logs));
            let (case, client, server) = job;
            running.spawn(async move {
                let line = run::run(case, client, server, &certificates, &logs).await?;
                Ok::<_, Failure>((job, line))
            });
        }
        tokio::select! {
            done = running.join_next() => {
                let Some(done) = done else { break };
                match done.map_err(Failure::from).and_then(|line| line) {
                    Ok((job, line)) => {
                        if line.is_bad() {
                            failed.push_back(job);
                        }
                        report.add(line);
                        save(&report.so_far());
                    }
                    Err(error) => {
                        eprintln!("a run could not be done: {error}; the results so far stand");
                        report.interrupted = true;
                        break;
                    }
                }
            }
            () = &mut stopped => {
                eprintln!("interrupted: the results so far stand");
                report.interrupted = true;
                break;
            }
        }
    }
    running.shutdown().await;
    report.finish();
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(clients: &[&str], servers: &[&str], with_us: bool) -> usize {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let selection = Selection {
            clients: names(clients),
            servers: names(servers),
            cases: names(&["handshake"]),
            quick: false,
            with_us,
            jobs: 1,
            retries: 0,
        };
        selection.runs().expect("known names").len()
    }

    #[test]
    fn runs_without_us_and_of_roles_that_a_peer_lacks_are_left_out() {
        assert_eq!(
            runs(&["hybriq", "quic-go"], &["hybriq", "quic-go"], true),
            3
        );
        assert_eq!(
            runs(&["hybriq", "quic-go"], &["hybriq", "quic-go"], false),
            4
        );
        assert_eq!(runs(&["curl"], &["hybriq"], true), 1);
        assert_eq!(runs(&["hybriq"], &["curl"], true), 0);
    }
}

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
mod hosts;
mod link;
mod packet;
mod peers;
mod report;
mod run;
mod verdict;

use std::path::{Path, PathBuf};

pub use cases::names as case_names;
pub use peers::names as peer_names;
pub use report::Report;

/// An error that ends a run.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Choice of runs.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Names of clients; empty for all.
    pub clients: Vec<String>,
    /// Names of servers; empty for all.
    pub servers: Vec<String>,
    /// Cases by their names; empty for all.
    pub cases: Vec<String>,
    /// True if one end of each run is hybriq.
    pub with_us: bool,
}

/// Runs the chosen cases, one after the other, and prints each result.
///
/// # Errors
/// The machine allows no namespaces, or the folder for the logs cannot be written. A run that fails is no
/// error: the report has it.
pub async fn run(selection: &Selection, logs: &Path) -> Result<Report, Failure> {
    let logs = PathBuf::from(logs);
    std::fs::create_dir_all(&logs)?;
    let certificates = certificates::Certificates::make(&logs)?;
    let mut report = Report::default();
    let stopped = tokio::signal::ctrl_c();
    tokio::pin!(stopped);
    for case in cases::select(&selection.cases)? {
        for server in peers::select(&selection.servers)? {
            for client in peers::select(&selection.clients)? {
                if selection.with_us && !client.is_ours() && !server.is_ours() {
                    continue;
                }
                let work = run::run(case, client, server, &certificates, &logs);
                tokio::select! {
                    line = work => report.add(line?),
                    _ = &mut stopped => {
                        eprintln!("interrupted: the results so far stand");
                        report.interrupted = true;
                        return Ok(report);
                    }
                }
            }
        }
    }
    Ok(report)
}

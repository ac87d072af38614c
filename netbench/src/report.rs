//! What was measured, as a table and as JSON.

use std::fs;
use std::path::Path;

use serde::Serialize;

use crate::Failure;
use crate::groups::Plan;
use crate::machine::Machine;
use crate::message::{ClientReport, ServerReport, Work};

/// The load average up to which a machine counts as quiet. A run itself adds less than 2.
const QUIET: f64 = 1.0;

/// A whole run.
#[derive(Serialize)]
pub(crate) struct Report {
    netbench: &'static str,
    /// `release` or `debug`. Figures of a debug build say nothing.
    build: &'static str,
    machine: Machine,
    work: Work,
    concurrency: u32,
    pub(crate) rows: Vec<Row>,
}

/// One group. Everything but latency is per connection that completed.
#[derive(Clone, Serialize)]
pub(crate) struct Row {
    group: String,
    code_point: u16,
    server_tls: String,
    server_policy: &'static str,
    client_tls: String,
    connections_per_second: f64,
    server_cpu_us: f64,
    client_cpu_us: f64,
    to_server: PerConnection,
    to_client: PerConnection,
    hello_retry: bool,
    server: ServerReport,
    client: ClientReport,
}

/// One direction: the larger of what left one socket and what reached the other, because the last
/// close may leave after the client has reported, and the system may drop what was sent.
#[derive(Clone, Serialize)]
struct PerConnection {
    bytes: f64,
    datagrams: f64,
}

impl Row {
    pub(crate) fn new(plan: &Plan, server: ServerReport, client: ClientReport) -> Self {
        let per_connection = |sum: f64| sum / client.completed.max(1) as f64;
        let larger = |a: u64, b: u64| per_connection(a.max(b) as f64);
        let (s, c) = (&server.traffic, &client.traffic);
        Self {
            group: plan.group.to_string(),
            code_point: plan.group.0,
            server_tls: plan.server.provider.clone(),
            server_policy: plan.server.policy.name(),
            client_tls: plan.client.provider.clone(),
            connections_per_second: client.completed as f64 / (client.elapsed_us / 1e6).max(1e-9),
            server_cpu_us: per_connection(server.cpu_us),
            client_cpu_us: per_connection(client.cpu_us),
            to_server: PerConnection {
                bytes: larger(c.sent_bytes, s.received_bytes),
                datagrams: larger(c.sent_datagrams, s.received_datagrams),
            },
            to_client: PerConnection {
                bytes: larger(s.sent_bytes, c.received_bytes),
                datagrams: larger(s.sent_datagrams, c.received_datagrams),
            },
            hello_retry: client.hello_retries > 0,
            server,
            client,
        }
    }

    /// Whether every connection did what it should, at both ends.
    pub(crate) fn is_complete(&self) -> bool {
        self.client.failed == 0 && self.server.failed == 0
    }

    fn gbit_per_second(&self, bytes: u64) -> f64 {
        bytes as f64 * 8.0 / 1e3 / self.client.elapsed_us.max(1.0)
    }
}

impl Report {
    pub(crate) fn new(work: Work, concurrency: u32, machine: Machine) -> Self {
        Self {
            netbench: env!("CARGO_PKG_VERSION"),
            build: if cfg!(debug_assertions) {
                "debug"
            } else {
                "release"
            },
            machine,
            work,
            concurrency,
            rows: Vec::new(),
        }
    }

    pub(crate) fn print_head(&self) {
        let machine = &self.machine;
        let pinned = match (machine.server_core, machine.client_core) {
            (Some(server), Some(client)) => {
                format!("server on core {server}, client on core {client}")
            }
            _ => "not pinned: there is only one core".to_owned(),
        };
        println!(
            "{}, {} cores, {}, load {}; {pinned}",
            machine.cpu, machine.cores, machine.kernel, machine.load
        );
        if machine.load > QUIET {
            println!("other work on this machine may disturb these figures");
        }
        if cfg!(debug_assertions) {
            println!("debug build: these figures say nothing, use --release");
        }
        println!("{}\n", self.describe());
    }

    fn describe(&self) -> String {
        match self.work {
            Work::RequestResponse { request, response } => format!(
                "connect, send {request} B, receive {response} B, close; {}; full handshakes",
                match self.concurrency {
                    1 => "sequential".to_owned(),
                    many => format!("{many} at once"),
                }
            ),
            Work::Bulk { bytes } => format!("one stream of {bytes} bytes from server to client"),
        }
    }

    fn column_heads(&self) -> String {
        match self.work {
            Work::RequestResponse { .. } => format!(
                "{:<19}{:>8}{:>10}{:>10}{:>12}{:>12}{:>14}{:>14}{:>7}",
                "group",
                "conn/s",
                "p50 µs",
                "p99 µs",
                "server CPU",
                "client CPU",
                "B/dgrams up",
                "B/dgrams down",
                "retry"
            ),
            Work::Bulk { .. } => format!(
                "{:<19}{:>10}{:>12}{:>14}{:>14}{:>12}{:>8}",
                "group", "Gbit/s", "seconds", "server CPU s", "client CPU s", "datagrams", "lost"
            ),
        }
    }

    /// Prints the table.
    pub(crate) fn print_rows(&self) {
        println!("{}", self.column_heads());
        for row in &self.rows {
            self.print_row(row);
        }
        self.print_foot();
    }

    fn print_row(&self, row: &Row) {
        println!("{}", self.format_row(row));
        for (end, failed, first) in [
            ("client", row.client.failed, &row.client.first_error),
            ("server", row.server.failed, &row.server.first_error),
        ] {
            if failed > 0 {
                let first = first.as_deref().unwrap_or("unknown");
                eprintln!(
                    "netbench: {}: {failed} connections failed at the {end}, the first: {first}",
                    row.group
                );
            }
        }
    }

    fn format_row(&self, row: &Row) -> String {
        match self.work {
            Work::RequestResponse { .. } => format!(
                "{:<19}{:>8.0}{:>10.0}{:>10.0}{:>12.1}{:>12.1}{:>14}{:>14}{:>7}",
                row.group,
                row.connections_per_second,
                row.client.handshake.p50_us,
                row.client.handshake.p99_us,
                row.server_cpu_us,
                row.client_cpu_us,
                row.to_server.format(),
                row.to_client.format(),
                if row.hello_retry { "yes" } else { "no" },
            ),
            Work::Bulk { bytes } => format!(
                "{:<19}{:>10.2}{:>12.3}{:>14.3}{:>14.3}{:>12.0}{:>8}",
                row.group,
                row.gbit_per_second(bytes),
                row.client.elapsed_us / 1e6,
                row.server.cpu_us / 1e6,
                row.client.cpu_us / 1e6,
                row.to_client.datagrams,
                row.server.losses.packets_lost,
            ),
        }
    }

    fn print_foot(&self) {
        println!();
        for line in self.providers() {
            println!("{line}");
        }
        match self.work {
            Work::RequestResponse { .. } => {
                println!(
                    "p50, p99: from connect() to handshake complete; CPU µs, bytes, datagrams: per connection"
                );
                println!(
                    "\nserver memory, MiB  {:>10}{:>15}{:>10}",
                    "warmed up", "after 1,000", "at end"
                );
                for row in &self.rows {
                    println!("{}", format_memory(&row.group, &row.server));
                }
            }
            Work::Bulk { .. } => println!("Every byte was compared with what was sent."),
        }
    }

    /// Who did the handshakes: one line for each combination, with its groups.
    fn providers(&self) -> Vec<String> {
        let mut found: Vec<(String, Vec<&str>)> = Vec::new();
        for row in &self.rows {
            let who = format!(
                "server {} ({}), client {} (exactly the group), {}",
                row.server_tls, row.server_policy, row.client_tls, row.client.suite
            );
            match found.iter_mut().find(|(known, _)| *known == who) {
                Some((_, groups)) => groups.push(&row.group),
                None => found.push((who, vec![&row.group])),
            }
        }
        found
            .into_iter()
            .map(|(who, groups)| match groups.len() {
                all if all == self.rows.len() => who,
                _ => format!("{}: {who}", groups.join(", ")),
            })
            .collect()
    }

    /// Writes the report so far; a reader never sees half of it.
    pub(crate) fn write_json(&self, path: &Path) -> Result<(), Failure> {
        let mut part = path.as_os_str().to_owned();
        part.push(".part");
        let text = serde_json::to_string_pretty(self)?;
        fs::write(&part, text + "\n")
            .and_then(|()| fs::rename(&part, path))
            .map_err(|error| {
                format!(
                    "cannot write {}: {error}; choose another --json path",
                    path.display()
                )
                .into()
            })
    }
}

impl PerConnection {
    fn format(&self) -> String {
        format!("{:.0}/{:.1}", self.bytes, self.datagrams)
    }
}

fn format_memory(group: &str, server: &ServerReport) -> String {
    let mib = |kib: u64| format!("{:.1}", kib as f64 / 1024.0);
    format!(
        "{group:<19}{:>11}{:>15}{:>10}",
        mib(server.rss_at_start_kib),
        server
            .rss_after_1000_kib
            .map_or_else(|| "-".to_owned(), mib),
        mib(server.rss_at_end_kib),
    )
}

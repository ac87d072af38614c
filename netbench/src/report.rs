//! What was measured, as a table and as JSON.

use std::fs;
use std::io::{self, Write};
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

    fn is_measured(&self) -> bool {
        self.client.completed > 0
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

    /// Prints where and what is measured.
    pub(crate) fn print_head(&self, out: &mut impl Write) -> io::Result<()> {
        let machine = &self.machine;
        let pinned = match (machine.server_core, machine.client_core) {
            (Some(server), Some(client)) => {
                format!("server on core {server}, client on core {client}")
            }
            _ => "not pinned: there is only one core".to_owned(),
        };
        writeln!(
            out,
            "{}, {} cores, {}, load {}; {pinned}",
            machine.cpu, machine.cores, machine.kernel, machine.load
        )?;
        if machine.load > QUIET {
            writeln!(out, "other work on this machine may disturb these figures")?;
        }
        if cfg!(debug_assertions) {
            writeln!(out, "debug build: these figures say nothing, use --release")?;
        }
        writeln!(out, "{}\n", self.describe())
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

    fn column_heads(&self) -> Vec<String> {
        let heads: &[&str] = match self.work {
            Work::RequestResponse { .. } => &[
                "group",
                "conn/s",
                "p50 µs",
                "p99 µs",
                "server CPU",
                "client CPU",
                "B/dgrams up",
                "B/dgrams down",
                "retry",
            ],
            Work::Bulk { .. } => &[
                "group",
                "Gbit/s",
                "seconds",
                "server CPU s",
                "client CPU s",
                "datagrams",
                "lost",
            ],
        };
        heads.iter().map(|&head| head.to_owned()).collect()
    }

    /// Prints the table and what it means, as far as anything was measured.
    pub(crate) fn print_rows(&self, out: &mut impl Write) -> io::Result<()> {
        let rows: Vec<&Row> = self.rows.iter().filter(|row| row.is_measured()).collect();
        if rows.is_empty() {
            return Ok(());
        }
        let mut table = vec![self.column_heads()];
        table.extend(rows.iter().map(|row| self.cells(row)));
        print_table(out, &table)?;
        self.print_foot(out, &rows)
    }

    /// What failed at which end, a line each.
    pub(crate) fn failures(&self) -> Vec<String> {
        let ends = |row: &Row| {
            [
                ("client", row.client.failed, row.client.first_error.clone()),
                ("server", row.server.failed, row.server.first_error.clone()),
            ]
        };
        let mut lines = Vec::new();
        for row in &self.rows {
            for (end, failed, first) in ends(row) {
                if failed > 0 {
                    let first = first.as_deref().unwrap_or("unknown");
                    lines.push(format!(
                        "{}: {failed} connections failed at the {end}, the first: {first}",
                        row.group
                    ));
                }
            }
        }
        lines
    }

    fn cells(&self, row: &Row) -> Vec<String> {
        match self.work {
            Work::RequestResponse { .. } => vec![
                row.group.clone(),
                format!("{:.0}", row.connections_per_second),
                format!("{:.0}", row.client.handshake.p50_us),
                format!("{:.0}", row.client.handshake.p99_us),
                format!("{:.1}", row.server_cpu_us),
                format!("{:.1}", row.client_cpu_us),
                row.to_server.format(),
                row.to_client.format(),
                if row.hello_retry { "yes" } else { "no" }.to_owned(),
            ],
            Work::Bulk { bytes } => vec![
                row.group.clone(),
                format!("{:.2}", row.gbit_per_second(bytes)),
                format!("{:.3}", row.client.elapsed_us / 1e6),
                format!("{:.3}", row.server.cpu_us / 1e6),
                format!("{:.3}", row.client.cpu_us / 1e6),
                format!("{:.0}", row.to_client.datagrams),
                row.server.losses.packets_lost.to_string(),
            ],
        }
    }

    fn print_foot(&self, out: &mut impl Write, rows: &[&Row]) -> io::Result<()> {
        writeln!(out)?;
        for line in providers(rows) {
            writeln!(out, "{line}")?;
        }
        match self.work {
            Work::RequestResponse { .. } => {
                writeln!(
                    out,
                    "p50, p99: from connect() to handshake complete; CPU µs, bytes, datagrams: per connection\n"
                )?;
                print_table(out, &memory(rows))
            }
            Work::Bulk { .. } => writeln!(out, "Every byte was compared with what was sent."),
        }
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

/// Who did the handshakes: one line for each combination, with its groups.
fn providers(rows: &[&Row]) -> Vec<String> {
    let mut found: Vec<(String, Vec<&str>)> = Vec::new();
    for row in rows {
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
            all if all == rows.len() => who,
            _ => format!("{}: {who}", groups.join(", ")),
        })
        .collect()
}

/// The table of the server's memory.
fn memory(rows: &[&Row]) -> Vec<Vec<String>> {
    let mib = |kib: u64| format!("{:.1}", kib as f64 / 1024.0);
    let heads = ["server memory, MiB", "warmed up", "after 1,000", "at end"];
    let cells = |row: &&Row| {
        let server = &row.server;
        vec![
            row.group.clone(),
            mib(server.rss_at_start_kib),
            server
                .rss_after_1000_kib
                .map_or_else(|| "-".to_owned(), mib),
            mib(server.rss_at_end_kib),
        ]
    };
    let mut table = vec![heads.map(str::to_owned).to_vec()];
    table.extend(rows.iter().map(cells));
    table
}

/// Prints columns as wide as their widest cell: names to the left, figures to the right.
fn print_table(out: &mut impl Write, table: &[Vec<String>]) -> io::Result<()> {
    let width = |column: usize| {
        let cells = table.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    for row in table {
        for (column, cell) in row.iter().enumerate() {
            let width = width(column);
            match column {
                0 => write!(out, "{cell:<width$}")?,
                _ => write!(out, "  {cell:>width$}")?,
            }
        }
        writeln!(out)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;

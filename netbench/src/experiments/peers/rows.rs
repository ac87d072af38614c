//! The rows of the table, the stacks of its columns, and the goals.

use hybriq::{Backend, Group};

use crate::report::results::{Better, CellResult, Results, Summary};
use crate::scenario::axes::Stack;

/// A column: a stack with its TLS library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Contender {
    pub(super) name: &'static str,
    pub(super) stack: Stack,
    pub(super) provider: Backend,
}

pub(super) const CONTENDERS: [Contender; 8] = [
    contender("hybriq, rustls", Stack::Hybriq, Backend::Rustls),
    contender("hybriq, s2n-tls", Stack::Hybriq, Backend::S2nTls),
    contender("s2n-quic, rustls", Stack::S2nQuic, Backend::Rustls),
    contender("s2n-quic, s2n-tls", Stack::S2nQuic, Backend::S2nTls),
    contender("quiche", Stack::Quiche, Backend::Rustls),
    contender("quinn", Stack::Quinn, Backend::Rustls),
    contender("noq", Stack::Noq, Backend::Rustls),
    contender("TCP+TLS", Stack::TcpTls, Backend::Rustls),
];

const fn contender(name: &'static str, stack: Stack, provider: Backend) -> Contender {
    Contender {
        name,
        stack,
        provider,
    }
}

impl Contender {
    pub(super) fn is_ours(self) -> bool {
        self.stack == Stack::Hybriq
    }

    /// Returns true for the other QUIC stacks, to which goals refer.
    pub(super) fn is_peer(self) -> bool {
        !self.is_ours() && self.stack != Stack::TcpTls
    }

    fn has(self, cell: &CellResult) -> bool {
        cell.cell.driver == self.stack && cell.cell.provider == self.provider
    }
}

/// Source of a row's figures.
#[derive(Clone, Copy, Debug)]
pub(super) enum Figure {
    /// Metric by its name, and the factor to the row's unit.
    Metric(&'static str, f64),
    /// Bytes that the server holds for each connection, without those that its allocator keeps.
    IdleServer,
    /// Those of the client.
    IdleClient,
}

/// A row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spec {
    pub(super) title: &'static str,
    pub(super) unit: &'static str,
    /// Name of the part that measures it.
    pub(super) part: &'static str,
    pub(super) group: Group,
    pub(super) figure: Figure,
    pub(super) better: Better,
    pub(super) digits: usize,
    /// Factor of ours to the best peer's that we want.
    pub(super) goal: f64,
}

const PQ: Group = Group::X25519MLKEM768;

const fn spec(
    (title, unit): (&'static str, &'static str),
    part: &'static str,
    figure: Figure,
    (better, goal): (Better, f64),
    digits: usize,
) -> Spec {
    Spec {
        title,
        unit,
        part,
        group: PQ,
        figure,
        better,
        digits,
        goal,
    }
}

use Better::{Higher, Lower};
use Figure::{IdleClient, IdleServer, Metric};

pub(super) const ROWS: [Spec; 17] = [
    spec(
        ("server CPU per connection, one at a time", "µs"),
        "connect-1",
        Metric("server_cpu_us", 1.0),
        (Lower, 0.78),
        0,
    ),
    spec(
        ("server CPU per connection, 64 at once", "µs"),
        "connect-64",
        Metric("server_cpu_us", 1.0),
        (Lower, 0.78),
        0,
    ),
    spec(
        ("server CPU per connection, 256 at once", "µs"),
        "connect-256",
        Metric("server_cpu_us", 1.0),
        (Lower, 0.78),
        0,
    ),
    Spec {
        group: Group::X25519,
        ..spec(
            ("server CPU per connection, 64 at once, X25519", "µs"),
            "connect-64",
            Metric("server_cpu_us", 1.0),
            (Lower, 0.80),
            0,
        )
    },
    spec(
        ("client CPU per connection, 64 at once", "µs"),
        "connect-64",
        Metric("client_cpu_us", 1.0),
        (Lower, 0.80),
        0,
    ),
    spec(
        ("connections/s, 64 at once", "1/s"),
        "connect-64",
        Metric("connections_per_second", 1.0),
        (Higher, 1.3),
        0,
    ),
    spec(
        ("connections/s, 256 at once", "1/s"),
        "connect-256",
        Metric("connections_per_second", 1.0),
        (Higher, 1.5),
        0,
    ),
    spec(
        ("handshake p50, 64 at once", "ms"),
        "connect-64",
        Metric("handshake_p50_us", 1e-3),
        (Lower, 0.9),
        1,
    ),
    spec(
        ("handshake p50, one at a time", "µs"),
        "connect-1",
        Metric("handshake_p50_us", 1.0),
        (Lower, 0.8),
        0,
    ),
    spec(
        ("bulk down, 1 stream", "Gbit/s"),
        "download",
        Metric("goodput_bits_per_second", 1e-9),
        (Higher, 1.6),
        2,
    ),
    spec(
        ("bulk up, 1 stream", "Gbit/s"),
        "upload",
        Metric("goodput_bits_per_second", 1e-9),
        (Higher, 1.6),
        2,
    ),
    spec(
        ("bulk down, 100 streams", "Gbit/s"),
        "download-100",
        Metric("goodput_bits_per_second", 1e-9),
        (Higher, 1.8),
        2,
    ),
    spec(
        ("requests/s, 1 in flight, 100 B", "1/s"),
        "request-1",
        Metric("requests_per_second", 1.0),
        (Higher, 1.2),
        0,
    ),
    spec(
        ("requests/s, 100 in flight, 100 B", "1/s"),
        "request-100",
        Metric("requests_per_second", 1.0),
        (Higher, 1.9),
        0,
    ),
    spec(
        ("requests/s, 100 in flight, 1 kB", "1/s"),
        "request-100-1k",
        Metric("requests_per_second", 1.0),
        (Higher, 1.3),
        0,
    ),
    spec(
        ("server memory per idle connection", "B"),
        "held",
        IdleServer,
        (Lower, 0.45),
        0,
    ),
    spec(
        ("client memory per idle connection", "B"),
        "held",
        IdleClient,
        (Lower, 0.45),
        0,
    ),
];

impl Spec {
    /// Returns a contender's figure, and true if other work disturbed it.
    pub(super) fn of(&self, results: &Results, who: Contender) -> Option<(Summary, bool)> {
        let cells = results.cells.iter();
        let mut own = cells.filter(|cell| who.has(cell) && cell.cell.group == self.group);
        let first = own.next()?;
        match self.figure {
            Figure::Metric(name, factor) => {
                let summary = first.summary.get(name)?;
                Some((scaled(*summary, factor), first.disturbed))
            }
            // Memory that is held is the same with other work on the machine.
            Figure::IdleServer => Some((idle(first, own.next()?, End::Server)?, false)),
            Figure::IdleClient => Some((idle(first, own.next()?, End::Client)?, false)),
        }
    }
}

fn scaled(summary: Summary, factor: f64) -> Summary {
    Summary {
        median: summary.median * factor,
        low: summary.low * factor,
        high: summary.high * factor,
        n: summary.n,
    }
}

#[derive(Clone, Copy)]
enum End {
    Client,
    Server,
}

/// Returns the bytes of each connection by which a cell holds more than another.
fn idle(few: &CellResult, many: &CellResult, end: End) -> Option<Summary> {
    let held = |cell: &CellResult| cell.cell.params.get("held").copied();
    let more = held(many)?
        .checked_sub(held(few)?)
        .filter(|more| *more > 0)?;
    let turns = few.repetitions.iter().zip(&many.repetitions);
    let turns = turns.filter(|(few, many)| few.error.is_none() && many.error.is_none());
    let bytes: Vec<f64> = turns
        .map(|(few, many)| {
            let (few, many) = match end {
                End::Client => (&few.client, &many.client),
                End::Server => (&few.server, &many.server),
            };
            let kib = many.rss_at_start_kib as f64 - few.rss_at_start_kib as f64;
            kib * 1024.0 / more as f64
        })
        .collect();
    Summary::of(&bytes)
}

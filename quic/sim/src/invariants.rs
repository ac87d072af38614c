//! Invariants that hold for an end whatever its peer does: limits on everything that it holds and
//! sends.
//!
//! A [`Ledger`] is told what one end received and sent. [`Ledger::check`] compares it, and the
//! tables of the connection, with [`Bounds`] and with the constants of
//! [`hybriq_proto::wire::limits`]. An [`Attack`](super::adversary::Attack) does this after every
//! step; your own test harness can use it in the same way.

use std::{collections::BTreeMap, fmt, net::SocketAddr, time::Duration};

use hybriq_proto::{connection::Connection, stats::EndpointStats, wire::limits};

/// Promises of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Invariant {
    /// The bytes held are in proportion to the bytes received.
    Memory,
    /// The bytes sent since the last acknowledgement are at most the windows of the paths.
    Windows,
    /// An address that has proved nothing gets at most three times what arrived from it (RFC 9000
    /// §8.1).
    Amplification,
    /// Small datagrams, such as those with only an ACK frame, are in proportion to what was
    /// received.
    Acknowledgements,
    /// No table has more entries than its limit.
    Tables,
    /// Few timers expire while nothing is received.
    Timers,
    /// No timer lies in the past after it was handled.
    Overdue,
    /// The work for one datagram is limited: events, and calls that transmit.
    Work,
    /// Nothing outside of connections outlives its time.
    Leftovers,
}

/// Limits of the invariants that have no constant in [`limits`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes held for each byte received.
    pub held_per_byte: u64,
    /// Bytes that may be held in any case, in addition to 256 for each piece that streams may be
    /// in: the records of a full window, and tables at their limits.
    pub held_always: u64,
    /// Bytes of small datagrams for each byte received.
    pub small_per_byte: u64,
    /// Timers in each second without a datagram, not counting those that send or detect a loss.
    pub timers_per_second: u64,
    /// Timers in any period, however short.
    pub timers_always: u64,
    /// Events, and calls that transmit, for one datagram or timer.
    pub work: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            held_per_byte: 2,
            held_always: 1024 * 1024,
            small_per_byte: 5,
            timers_per_second: 100,
            timers_always: 20,
            work: 1024,
        }
    }
}

/// An invariant that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Violation {
    /// The invariant.
    pub invariant: Invariant,
    /// Numbers that contradict it.
    pub details: String,
    /// Seed, character and step of the attack, for reports.
    pub place: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            invariant,
            details,
            place,
        } = self;
        write!(f, "{place}: {invariant:?} does not hold: {details}")
    }
}

impl std::error::Error for Violation {}

/// Smallest size of a datagram that counts towards the windows: larger than an ACK frame alone.
const LARGE: u64 = 600;

/// Largest number of bytes that a piece of a stream costs in addition to its data.
const PIECE: u64 = 256;

/// Size of the largest datagrams that are tried by default.
const FULL: u64 = 1452;

/// Traffic with one address.
#[derive(Clone, Copy, Debug, Default)]
struct Traffic {
    received: u64,
    sent: u64,
    /// True if the address may be validated.
    answered: bool,
    /// Bytes of large datagrams since the last acknowledgement.
    unacknowledged: u64,
}

/// Bytes that one end received and sent, and the times.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    bounds: Bounds,
    addresses: BTreeMap<SocketAddr, Traffic>,
    received: u64,
    small: u64,
    /// Largest window since the last acknowledgement.
    window: u64,
    /// Largest window of any path at any time.
    widest: u64,
    /// Challenges answered since the last acknowledgement.
    answers: u64,
    /// Number of probe timeouts at the last acknowledgement, and in total.
    ptos: (u64, u64),
    quiet: Quiet,
}

/// Time without a received datagram.
#[derive(Clone, Copy, Debug, Default)]
struct Quiet {
    time: Duration,
    timers: u64,
    /// Large datagrams that timers caused to be sent.
    released: u64,
    /// Packets lost before, and in total: each may need a timer.
    losses: (u64, u64),
}

impl Ledger {
    /// Creates an empty ledger.
    pub fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            ..Self::default()
        }
    }

    /// Notes a datagram from an address.
    pub fn on_received(&mut self, from: SocketAddr, bytes: usize) {
        self.received += bytes as u64;
        self.addresses.entry(from).or_default().received += bytes as u64;
        self.quiet = Quiet {
            losses: (self.quiet.losses.1, self.quiet.losses.1),
            ..Quiet::default()
        };
    }

    /// Notes a datagram to an address.
    pub fn on_sent(&mut self, to: SocketAddr, bytes: usize) {
        let bytes = bytes as u64;
        let traffic = self.addresses.entry(to).or_default();
        traffic.sent += bytes;
        if bytes > LARGE {
            traffic.unacknowledged += bytes;
            self.quiet.released += 1;
        } else {
            self.small += bytes;
        }
    }

    /// Notes that the peer acknowledged something for the first time: windows open again.
    pub fn on_acknowledged(&mut self) {
        for traffic in self.addresses.values_mut() {
            traffic.unacknowledged = 0;
        }
        self.window = 0;
        self.answers = 0;
        self.ptos.0 = self.ptos.1;
    }

    /// Notes that the peer answered a challenge from an address, or did its handshake there: the
    /// address may be validated.
    pub fn on_answered(&mut self, address: SocketAddr) {
        self.answers += 1;
        let traffic = self.addresses.entry(address).or_default();
        if !traffic.answered {
            // Bytes that it got earlier count towards its proof, not towards a window.
            traffic.answered = true;
            traffic.unacknowledged = 0;
        }
    }

    /// Notes time in which nothing was received, and the timers that expired in it.
    pub fn on_quiet(&mut self, time: Duration, timers: u64) {
        self.quiet.time += time;
        self.quiet.timers += timers;
    }

    /// Checks what a connection holds and what it sent. `held` is the number of bytes by which its
    /// memory has grown since the beginning, if it is counted.
    ///
    /// # Errors
    /// The first invariant that does not hold. Its place is empty.
    pub fn check(&mut self, connection: &Connection, held: Option<u64>) -> Result<(), Violation> {
        let bounds = connection.table_bounds();
        self.check_memory(held, PIECE * bounds.stream_pieces as u64)?;
        let stats = connection.stats();
        self.window = self.window.max(stats.congestion_window);
        self.widest = self.widest.max(self.window);
        self.ptos.1 = stats.ptos;
        self.quiet.losses.1 = stats.packets_lost;
        for ((name, entries), (_, most)) in connection.tables().by_label().zip(bounds.by_label()) {
            holds(Invariant::Tables, name, entries, most)?;
        }
        if connection.is_closed() {
            return Ok(());
        }
        let mut answered = (0_u64, 0_u64);
        for (address, traffic) in &self.addresses {
            if traffic.answered {
                answered.0 += u64::from(traffic.unacknowledged > 0);
                answered.1 += traffic.unacknowledged;
            } else {
                let most = limits::AMPLIFICATION_FACTOR * traffic.received;
                if traffic.sent > most {
                    let to = format!("bytes to {address}");
                    holds(Invariant::Amplification, &to, traffic.sent, most)?;
                }
            }
        }
        // A path that was left keeps its window, and the path before it keeps its data in flight.
        // An answered full challenge allows more of them, and a timeout allows two datagrams.
        let other = if answered.0 > 1 { self.widest } else { 0 };
        let windows = self.window + other;
        let probes = limits::PROBE_BYTES + 2 * limits::MIN_DATAGRAM as u64 * self.answers;
        let timeouts = 1 + self.ptos.1 - self.ptos.0;
        let most = windows + probes + 2 * timeouts * FULL;
        holds(Invariant::Windows, "bytes without an ACK", answered.1, most)?;
        let most = self.bounds.small_per_byte * self.received + self.window + 4096;
        let what = "bytes of small datagrams";
        holds(Invariant::Acknowledgements, what, self.small, most)
    }

    fn check_memory(&self, held: Option<u64>, pieces: u64) -> Result<(), Violation> {
        let most = pieces + self.bounds.held_always + self.bounds.held_per_byte * self.received;
        holds(Invariant::Memory, "bytes held", held.unwrap_or(0), most)
    }

    /// Checks the timers that expired since the last datagram.
    ///
    /// # Errors
    /// There were too many.
    pub fn check_timers(&self) -> Result<(), Violation> {
        let seconds = self.quiet.time.as_secs_f64() * self.bounds.timers_per_second as f64;
        let (before, lost) = self.quiet.losses;
        let useful = 2 * self.quiet.released + lost.saturating_sub(before);
        let most = self.bounds.timers_always + seconds as u64 + useful;
        let what = format!("timers in {:?}", self.quiet.time);
        holds(Invariant::Timers, &what, self.quiet.timers, most)
    }

    /// Checks the work for one datagram or timer, in calls of the connection's methods.
    ///
    /// # Errors
    /// There were too many.
    pub fn check_work(&self, calls: u64) -> Result<(), Violation> {
        holds(Invariant::Work, "calls", calls, self.bounds.work)
    }

    /// Checks what an endpoint holds outside of connections.
    ///
    /// # Errors
    /// Something outlived its time.
    pub fn check_endpoint(&self, stats: &EndpointStats) -> Result<(), Violation> {
        let counts = (stats.early_clients, stats.partial_hellos);
        let hellos = limits::PARTIAL_HELLOS as u64;
        holds(Invariant::Tables, "partial ClientHellos", counts.1, hellos)?;
        if self.quiet.time > limits::PARTIAL_HELLO_LIFETIME {
            let what = "clients without a connection";
            holds(Invariant::Leftovers, what, counts.0 + counts.1, 0)?;
        }
        Ok(())
    }
}

/// Returns an error if a number is larger than its limit.
pub(super) fn holds(
    invariant: Invariant,
    what: &str,
    number: u64,
    most: u64,
) -> Result<(), Violation> {
    if number <= most {
        return Ok(());
    }
    Err(Violation {
        invariant,
        details: format!("{number} {what}, at most {most}"),
        place: String::new(),
    })
}

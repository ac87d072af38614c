//! The largest datagram that a path carries: DPLPMTUD (RFC 8899, RFC 9000 §14.3).

use std::time::{Duration, Instant};

use crate::wire::{limits, packet::PacketNumber};

#[cfg(test)]
mod tests;

const BASE: u16 = limits::MIN_DATAGRAM as u16;

/// Number of losses of one size that show that the path does not carry it (`MAX_PROBES`, RFC 8899
/// §5.1.2).
const TRIES: u8 = 3;

/// Gain in bytes that is too small to search for.
const GRAIN: u16 = 20;

/// Time until a finished search is repeated (`PMTU_RAISE_TIMER`, RFC 8899 §5.1.1).
const RAISE_AFTER: Duration = Duration::from_secs(600);

/// Number of full datagrams lost, with no later one received, after which the path is suspected to
/// be a black hole for them. A link that loses a tenth of its packets loses four of them by chance
/// about once in 100 MB.
const SUSPICIOUS: u32 = 6;

/// Time until a size is tried again after a black hole, doubled after each, up to [`RAISE_AFTER`].
const HOLD_OFF: Duration = Duration::from_secs(10);

/// Difference in bytes up to which a datagram still says something about full ones.
const NEARLY: u16 = 32;

/// UDP payload sizes typical of links, over IPv6 and IPv4: the smallest MTU of IPv6, GTP and VPN
/// tunnels, PPPoE, Ethernet, FDDI, jumbo frames, and a loopback of 64 KiB.
const TYPICAL: [u16; 13] = [
    1232, 1352, 1372, 1392, 1432, 1452, 1472, 4304, 8952, 8972, 16_336, 32_720, 65_487,
];

/// Finds the largest datagram of one path, with separate probe datagrams.
///
/// ```text
///           start            nothing larger is worth a probe, or may pass
///   Fixed ────────▶ Searching ───────────────────────────────────────────▶ Found
///                       ▲  ▲                                                 │
///                       │  └───────────────── after RAISE_AFTER ─────────────┤
///                       └── after HOLD_OFF ── Found at 1200 ◀── black hole ──┘
/// ```
///
/// ICMP messages are not read: only acknowledgements count. A connection that never fills a
/// datagram needs no larger ones, so a search begins with the first full one, or with the first
/// message that takes half of one. There is no timer, only the times of reported packets: a path
/// that is not used is not probed.
#[derive(Debug)]
pub struct Mtu {
    size: u16,
    most: u16,
    state: State,
    /// True if a full datagram was sent since the last search ended.
    filled: bool,
    suspicion: Option<Suspicion>,
    /// Largest packet number among full datagrams that arrived.
    passed: Option<PacketNumber>,
    black_holes: u32,
}

/// Datagram sizes that both ends allow.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct MtuRange {
    /// Size of a datagram in bytes at first.
    pub size: u16,
    /// Largest size in bytes; `None` if the size does not change.
    pub most: Option<u16>,
    /// Largest datagram in bytes that the peer accepts.
    pub peer: u16,
}

/// Number of MTU probes on all paths, and what their loss showed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MtuCounts {
    /// Probes sent.
    pub sent: u64,
    /// Probes lost.
    pub lost: u64,
    /// Number of times that a path stopped carrying a size that it had carried.
    pub black_holes: u64,
}

/// Conclusion about the datagram size from a lost packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Learned {
    /// The loss says nothing.
    Nothing,
    /// The packet was a probe.
    ProbeLost,
    /// Full datagrams no longer arrive.
    BlackHole,
}

#[derive(Debug)]
enum State {
    /// The search has not begun, or never will.
    Fixed,
    Searching(Search),
    /// The search is over; `None` if there is no larger size to try.
    Found {
        again_at: Option<Instant>,
    },
}

#[derive(Clone, Copy, Debug)]
struct Search {
    /// Size being tried.
    candidate: u16,
    /// Smallest size that did not pass; `None` if there was none.
    refused: Option<u16>,
    /// Number of times the candidate was lost.
    losses: u8,
    probe: Option<PacketNumber>,
}

/// Full datagrams lost in a row.
#[derive(Clone, Copy, Debug)]
struct Suspicion {
    since: Instant,
    lost: u32,
}

impl Mtu {
    /// Creates the state of a path with full datagrams of `size` bytes until [`Mtu::start`].
    pub const fn new(size: u16) -> Self {
        Self {
            size,
            most: size,
            state: State::Fixed,
            filled: false,
            suspicion: None,
            passed: None,
            black_holes: 0,
        }
    }

    /// Starts with datagrams of `size` bytes, and searches for larger ones up to `most`, once the
    /// handshake is confirmed.
    pub fn start(&mut self, size: u16, most: u16) {
        self.size = size.max(BASE);
        self.most = most.max(self.size);
        self.filled = false;
        self.search();
    }

    /// Notes that a datagram of this many bytes was sent.
    #[inline]
    pub const fn on_sent(&mut self, bytes: usize) {
        if bytes >= self.size as usize {
            self.filled = true;
        }
    }

    /// Notes that the application sends a message that must fit into one datagram.
    #[inline]
    pub const fn on_message(&mut self, bytes: usize) {
        if bytes > self.size as usize / 2 {
            self.filled = true;
        }
    }

    /// Limits the search to a size that can be sent from this end.
    pub fn set_most(&mut self, bytes: u16) {
        self.most = self.most.min(bytes.max(self.size));
        self.search();
    }

    /// Returns the bytes of a full datagram.
    pub const fn size(&self) -> u16 {
        self.size
    }

    /// Returns the bytes of the probe that is due.
    #[inline]
    pub fn probe(&self, now: Instant) -> Option<u16> {
        match &self.state {
            State::Searching(search) if self.filled => {
                search.probe.is_none().then_some(search.candidate)
            }
            State::Found { again_at } if self.filled => {
                again_at.filter(|again| *again <= now).map(|_| self.most)
            }
            _ => None,
        }
    }

    /// Notes that the due probe was sent in this packet.
    pub fn on_probe_sent(&mut self, pn: PacketNumber) {
        if matches!(self.state, State::Found { .. }) {
            self.search();
        }
        if let State::Searching(search) = &mut self.state {
            search.probe = Some(pn);
        }
    }

    /// Returns true if the search was started.
    pub const fn is_started(&self) -> bool {
        !matches!(self.state, State::Fixed)
    }

    /// Forgets the probe in flight, because the path is left and no answer is expected.
    pub const fn on_left(&mut self) {
        self.suspicion = None;
        if let State::Searching(search) = &mut self.state {
            search.probe = None;
        }
    }

    /// Notes that a 1-RTT packet arrived.
    #[inline]
    pub fn on_acked(&mut self, pn: PacketNumber, size: u16, time_sent: Instant) {
        if let State::Searching(search) = &self.state {
            if search.probe == Some(pn) {
                self.size = search.candidate;
                self.follow(search.refused, time_sent);
            }
        }
        if size.saturating_add(NEARLY) > self.size {
            self.passed = self.passed.max(Some(pn));
            self.suspicion = None;
        }
    }

    /// Notes that a 1-RTT packet was declared lost, which means that a later one arrived. Packets
    /// are reported in the order of their numbers, after those that the same ACK frame
    /// acknowledged.
    pub fn on_lost(
        &mut self,
        pn: PacketNumber,
        size: u16,
        time_sent: Instant,
        rtt: Duration,
    ) -> Learned {
        match &mut self.state {
            State::Fixed => return Learned::Nothing,
            State::Searching(search) if search.probe == Some(pn) => {
                search.probe = None;
                search.losses += 1;
                if search.losses >= TRIES {
                    let refused = Some(search.candidate);
                    self.follow(refused, time_sent);
                }
                return Learned::ProbeLost;
            }
            State::Searching(_) | State::Found { .. } => {}
        }
        let is_full = size <= self.size && size.saturating_add(NEARLY) > self.size;
        if self.size == BASE || !is_full || self.passed.is_some_and(|passed| passed > pn) {
            return Learned::Nothing;
        }
        let suspicion = self.suspicion.get_or_insert(Suspicion {
            since: time_sent,
            lost: 0,
        });
        suspicion.lost += 1;
        // An overflowing queue loses many packets at once, so full datagrams must be lost over more
        // than a round trip while others arrive.
        let lasts = time_sent.saturating_duration_since(suspicion.since) > rtt;
        if suspicion.lost >= SUSPICIOUS && lasts {
            self.on_black_hole(time_sent);
            return Learned::BlackHole;
        }
        Learned::Nothing
    }

    fn on_black_hole(&mut self, now: Instant) {
        let hold_off = HOLD_OFF.saturating_mul(1 << self.black_holes.min(6));
        self.black_holes = self.black_holes.saturating_add(1);
        self.size = BASE;
        self.filled = false;
        self.suspicion = None;
        self.state = State::Found {
            again_at: Some(now + hold_off.min(RAISE_AFTER)),
        };
    }

    /// Starts a search with the largest size, which most paths carry.
    fn search(&mut self) {
        self.state = if self.size < self.most {
            State::Searching(Search {
                candidate: self.most,
                refused: None,
                losses: 0,
                probe: None,
            })
        } else {
            State::Found { again_at: None }
        };
    }

    fn follow(&mut self, refused: Option<u16>, now: Instant) {
        if let Some(candidate) = self.next_candidate(refused) {
            self.state = State::Searching(Search {
                candidate,
                refused,
                losses: 0,
                probe: None,
            });
        } else {
            self.filled = false;
            self.state = State::Found {
                again_at: (self.size < self.most).then(|| now + RAISE_AFTER),
            };
        }
    }

    /// Returns the next size to try: the median of the remaining typical link sizes, or the middle
    /// of the remaining range if there are none.
    fn next_candidate(&self, refused: Option<u16>) -> Option<u16> {
        let refused = refused?;
        let open = refused.saturating_sub(self.size);
        if open <= GRAIN {
            return None;
        }
        let from = TYPICAL.partition_point(|size| *size <= self.size);
        let to = TYPICAL.partition_point(|size| *size < refused);
        let typical = TYPICAL.get(from..to).unwrap_or_default();
        let middle = typical.get(typical.len() / 2).copied();
        middle.or(Some(self.size + open / 2))
    }
}

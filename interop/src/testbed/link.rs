//! The link between the hosts.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
    fs::File,
    io::{self, Read as _, Write as _},
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use hybriq_sim::{
    Chance, Rng,
    link::{Direction, Fate, Offer, Passage, Settings, flip},
};
use tokio::{io::unix::AsyncFd, task::JoinHandle, time::Instant};

use super::{
    Failure,
    capture::{Capture, Captured},
    hosts::Hosts,
    packet::{self, Udp},
};
use crate::runner::Role;

/// Conditions of the link.
#[derive(Clone, Debug, Default)]
pub(super) struct Conditions {
    /// From the client to the server.
    pub(super) up: Settings,
    /// From the server to the client.
    pub(super) down: Settings,
    /// Changes of the client's address, as by a NAT.
    pub(super) rebinding: Option<Rebinding>,
    /// Datagrams of the client that are lost, counted from 0.
    pub(super) client_losses: Vec<usize>,
    /// Datagrams that are lost, counted from 0 over both ends.
    pub(super) losses: Vec<usize>,
    /// Chance of a datagram to be lost, but never more than [`IN_A_ROW`] one after another, as on the runner's
    /// links.
    pub(super) loss: Chance,
    /// Chance of one of a datagram's first bytes to change, with the same limit: often it is one of the header.
    pub(super) corruption: Chance,
    /// Chance that a datagram loses its end.
    pub(super) truncate: Chance,
    /// Chance that a former datagram of the same end follows.
    pub(super) replay: Chance,
    /// What is kept of the datagrams.
    pub(super) capturing: Capturing,
    pub(super) seed: u64,
}

/// What is kept of the datagrams that pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Capturing {
    #[default]
    Everything,
    /// For long transfers whose contents nobody looks at.
    Nothing,
}

/// Regular change of the address at which a client is seen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rebinding {
    /// Time of the first change.
    pub(super) first: Duration,
    /// Time between changes.
    pub(super) every: Duration,
    /// Part that changes.
    pub(super) part: Part,
}

/// Part of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Port,
    /// The port changes too.
    Address,
}

/// The link, which ends with it.
pub(super) struct Link {
    task: JoinHandle<()>,
    captures: Arc<Mutex<Captures>>,
}

/// Packets at both sides of the link.
#[derive(Clone, Debug, Default)]
pub(super) struct Captures {
    pub(super) client: Capture,
    pub(super) server: Capture,
}

impl Captures {
    fn at(&mut self, side: Role) -> &mut Capture {
        match side {
            Role::Client => &mut self.client,
            Role::Server => &mut self.server,
        }
    }
}

impl Link {
    /// Joins the hosts.
    ///
    /// # Errors
    /// The devices cannot be made.
    pub(super) fn join(hosts: &Hosts, conditions: Conditions) -> Result<Self, Failure> {
        let client = register(hosts.device(Role::Client)?)?;
        let server = register(hosts.device(Role::Server)?)?;
        let captures = Arc::new(Mutex::new(Captures::default()));
        let relay = Relay::new(conditions, captures.clone());
        let task = tokio::spawn(relay.run(client, server));
        Ok(Self { task, captures })
    }

    /// Ends the link. Returns what passed at both sides.
    pub(super) async fn end(mut self) -> Captures {
        self.task.abort();
        // The devices are gone once the task is.
        let _ = (&mut self.task).await;
        let mut captures = self.captures.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *captures)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A packet on its way.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct OnTheWay {
    due: Duration,
    number: u64,
    from_client: bool,
    packet: Vec<u8>,
}

struct Relay {
    start: Instant,
    directions: [Direction; 2],
    conditions: Conditions,
    /// Datagrams that each end sent.
    sent: [usize; 2],
    nat: Nat,
    on_the_way: BinaryHeap<Reverse<OnTheWay>>,
    number: u64,
    rng: Rng,
    losses: [Mishap; 2],
    corruptions: [Mishap; 2],
    /// Datagrams that each end sent lately, for replays.
    former: [VecDeque<Vec<u8>>; 2],
    captures: Arc<Mutex<Captures>>,
}

/// Datagrams that are lost or corrupted one after another at most.
const IN_A_ROW: u8 = 3;

/// Bytes of a datagram's beginning, one of which is changed.
const FIRST_BYTES: usize = 51;

/// Something that happens to datagrams by chance, but to few in a row.
#[derive(Clone, Copy, Debug, Default)]
struct Mishap {
    in_a_row: u8,
}

impl Mishap {
    /// Returns true if it happens to the next datagram.
    fn happens(&mut self, chance: Chance, rng: &mut Rng) -> bool {
        let happens = rng.happens(chance) && self.in_a_row < IN_A_ROW;
        self.in_a_row = if happens { self.in_a_row + 1 } else { 0 };
        happens
    }
}

/// Datagrams of an end that are kept for replays.
const FORMER: usize = 2000;

impl Relay {
    fn new(conditions: Conditions, captures: Arc<Mutex<Captures>>) -> Self {
        let Conditions { up, down, seed, .. } = &conditions;
        Self {
            start: Instant::now(),
            directions: Direction::pair(up.clone(), down.clone(), *seed),
            nat: Nat::new(conditions.rebinding),
            rng: Rng::nth(*seed, 2),
            losses: Default::default(),
            corruptions: Default::default(),
            former: Default::default(),
            conditions,
            sent: [0; 2],
            on_the_way: BinaryHeap::new(),
            number: 0,
            captures,
        }
    }

    async fn run(mut self, client: AsyncFd<File>, server: AsyncFd<File>) {
        let (mut up, mut down) = (vec![0; 65_536], vec![0; 65_536]);
        loop {
            let next = self.on_the_way.peek().map(|Reverse(next)| next.due);
            let due = async {
                match next {
                    Some(due) => tokio::time::sleep_until(self.start + due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                read = read(&client, &mut up) => match read {
                    Ok(len) => self.take(Role::Client, up.get(..len).unwrap_or_default()),
                    Err(_) => return,
                },
                read = read(&server, &mut down) => match read {
                    Ok(len) => self.take(Role::Server, down.get(..len).unwrap_or_default()),
                    Err(_) => return,
                },
                () = due => {}
            }
            self.deliver(&client, &server);
        }
    }

    fn capture(&self, side: Role, from: Role, packet: &[u8]) {
        if self.conditions.capturing == Capturing::Nothing {
            return;
        }
        let mut captures = self.captures.lock().unwrap_or_else(PoisonError::into_inner);
        captures.at(side).0.push(Captured {
            at: self.start.elapsed(),
            from,
            packet: packet.to_vec(),
        });
    }

    /// Takes a packet that a host sent. Hosts also look for neighbours, routers and names that are not there: only
    /// the server's datagrams and TCP pass.
    fn take(&mut self, from: Role, packet: &[u8]) {
        match Udp::find(packet) {
            Some(udp) if udp.is_of_server(from) => self.take_datagram(from, packet, &udp),
            None if packet::is_tcp(packet) => {
                let bytes = packet.len() as u64;
                if let Some(passage) = self.passage(from, bytes, false) {
                    self.send(passage.due, from, packet.to_vec());
                }
            }
            _ => {}
        }
    }

    /// Returns how a packet passes the link now; `None` if it is lost.
    fn passage(&mut self, from: Role, bytes: u64, ecn_capable: bool) -> Option<Passage> {
        let now = self.start.elapsed();
        let offer = Offer {
            now,
            bytes,
            ecn_capable,
        };
        match self.directions[usize::from(from == Role::Server)]
            .offer(offer)
            .fate
        {
            Fate::Passed(passage) => Some(passage),
            Fate::Lost(_) => None,
        }
    }

    fn send(&mut self, due: Duration, from: Role, packet: Vec<u8>) {
        self.on_the_way.push(Reverse(OnTheWay {
            due,
            number: self.number,
            from_client: from == Role::Client,
            packet,
        }));
        self.number += 1;
    }

    fn take_datagram(&mut self, from: Role, packet: &[u8], udp: &Udp) {
        self.capture(from, from, packet);
        let side = usize::from(from == Role::Server);
        let (number, of_both) = (self.sent[side], self.sent[0] + self.sent[1]);
        self.sent[side] += 1;
        let bytes = udp.payload(packet).len() as u64;
        let Some(passage) = self.passage(from, bytes, matches!(udp.ecn, 1 | 2)) else {
            return;
        };
        let is_listed = from == Role::Client && self.conditions.client_losses.contains(&number);
        let is_lost = self.losses[side].happens(self.conditions.loss, &mut self.rng);
        if is_lost || is_listed || self.conditions.losses.contains(&of_both) {
            return;
        }
        let mut packet = packet.to_vec();
        self.corrupt(side, &mut packet, udp);
        if let Some(bit) = passage.flip {
            let payload = udp.payload_mut(&mut packet);
            let bits = payload.len() as u64 * 8;
            flip(payload, bit % bits.max(1));
            packet::set_checksums(&mut packet, udp);
        }
        if passage.marked {
            packet::mark(&mut packet, udp);
        }
        if self.rng.happens(self.conditions.truncate) {
            let len = self.rng.below(bytes.max(1)) as usize;
            packet::truncate(&mut packet, udp, len);
        }
        for _ in 0..passage.copies {
            self.send(passage.due, from, packet.clone());
        }
        if self.conditions.replay != Chance::default() {
            let former = &mut self.former[side];
            if former.len() == FORMER {
                former.pop_front();
            }
            former.push_back(packet);
            if self.rng.happens(self.conditions.replay) {
                let which = self.rng.below(former.len() as u64) as usize;
                if let Some(packet) = former.get(which).cloned() {
                    self.send(passage.due, from, packet);
                }
            }
        }
    }

    /// Changes a byte by chance, as the runner's link does it.
    fn corrupt(&mut self, side: usize, packet: &mut [u8], udp: &Udp) {
        let payload = udp.payload_mut(packet);
        // A client would end its attempt at a changed one, because it is not authenticated.
        let is_version_negotiation = payload.first().is_some_and(|first| first & 0x80 != 0)
            && payload.get(1..5) == Some(&[0; 4]);
        let chance = self.conditions.corruption;
        if is_version_negotiation || !self.corruptions[side].happens(chance, &mut self.rng) {
            return;
        }
        let at = self.rng.below(payload.len().clamp(1, FIRST_BYTES) as u64) as usize;
        let change = 1 + self.rng.below(255) as u8;
        if let Some(byte) = payload.get_mut(at) {
            *byte ^= change;
        }
        packet::set_checksums(packet, udp);
    }

    /// Hands over what is due.
    fn deliver(&mut self, client: &AsyncFd<File>, server: &AsyncFd<File>) {
        let now = self.start.elapsed();
        while let Some(Reverse(next)) = self.on_the_way.peek() {
            if next.due > now {
                return;
            }
            let Some(Reverse(mut next)) = self.on_the_way.pop() else {
                return;
            };
            let Some(udp) = Udp::find(&next.packet) else {
                let device = if next.from_client { server } else { client };
                let _ = device.get_ref().write(&next.packet);
                continue;
            };
            let (from, to, device) = if next.from_client {
                let seen = self.nat.outside(now, udp.source);
                packet::set_source(&mut next.packet, &udp, seen);
                (Role::Client, Role::Server, server)
            } else {
                let Some(inside) = self.nat.inside(now, udp.destination) else {
                    // No machine has this address any longer.
                    continue;
                };
                packet::set_destination(&mut next.packet, &udp, inside);
                (Role::Server, Role::Client, client)
            };
            self.capture(to, from, &next.packet);
            // A full device loses the packet, as a network card does.
            let _ = device.get_ref().write(&next.packet);
        }
    }
}

/// Has the runtime watch a device.
fn register(device: File) -> io::Result<AsyncFd<File>> {
    #[expect(unsafe_code, reason = "tokio asks for a promise about the descriptor")]
    // SAFETY: the file owns its descriptor, and nothing replaces it while it is watched.
    let watched = unsafe { AsyncFd::register(device) };
    watched.map_err(Into::into)
}

async fn read(device: &AsyncFd<File>, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        let mut ready = device.readable().await?;
        if let Ok(read) = ready.try_io(|device| device.get_ref().read(buffer)) {
            return read;
        }
    }
}

/// Translation of the client's addresses.
struct Nat {
    rebinding: Option<Rebinding>,
    /// Addresses of the client, and the number of the change at which each was last translated.
    known: VecDeque<SocketAddr>,
}

impl Nat {
    const fn new(rebinding: Option<Rebinding>) -> Self {
        Self {
            rebinding,
            known: VecDeque::new(),
        }
    }

    /// Returns the number of changes so far.
    fn changes(&self, now: Duration) -> u16 {
        let since = |Rebinding { first, every, .. }: Rebinding| {
            let since = now.checked_sub(first)?;
            Some(1 + (since.as_millis() / every.as_millis().max(1)) as u16)
        };
        self.rebinding.and_then(since).unwrap_or_default()
    }

    fn translated(&self, changes: u16, mut inside: SocketAddr) -> SocketAddr {
        let Some(Rebinding { part, .. }) = self.rebinding else {
            return inside;
        };
        // Port numbers from 1024, so that none is reserved.
        let port = u32::from(inside.port()) + u32::from(changes) * 7;
        inside.set_port((1024 + (port - 1024) % 64_512) as u16);
        match (part, inside) {
            (Part::Port, _) => {}
            (Part::Address, SocketAddr::V4(address)) => {
                let ip = u32::from(*address.ip()) + u32::from(changes);
                inside.set_ip(std::net::Ipv4Addr::from(ip).into());
            }
            (Part::Address, SocketAddr::V6(address)) => {
                let ip = u128::from(*address.ip()) + u128::from(changes);
                inside.set_ip(std::net::Ipv6Addr::from(ip).into());
            }
        }
        inside
    }

    /// Returns the address at which the server sees a client.
    fn outside(&mut self, now: Duration, inside: SocketAddr) -> SocketAddr {
        if !self.known.contains(&inside) {
            self.known.push_back(inside);
        }
        self.translated(self.changes(now), inside)
    }

    /// Returns the client that is seen at an address now.
    fn inside(&self, now: Duration, outside: SocketAddr) -> Option<SocketAddr> {
        let changes = self.changes(now);
        let mut known = self.known.iter().copied();
        known.find(|&inside| self.translated(changes, inside) == outside)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_third_is_lost_and_never_more_than_three_in_a_row() {
        let (mut mishap, mut rng) = (Mishap::default(), Rng::nth(7, 1));
        let lost: Vec<_> = (0..10_000)
            .map(|_| mishap.happens(hybriq_sim::per_mille(300), &mut rng))
            .collect();
        let sum = lost.iter().filter(|lost| **lost).count();
        assert!((2_800..3_050).contains(&sum), "{sum}");
        let mut rows = lost.split(|lost| !lost).map(<[bool]>::len);
        assert_eq!(rows.by_ref().max(), Some(usize::from(IN_A_ROW)));
    }

    #[test]
    fn a_nat_forgets_what_it_knew() {
        for part in [Part::Port, Part::Address] {
            let mut nat = Nat::new(Some(Rebinding {
                first: Duration::from_secs(2),
                every: Duration::from_secs(5),
                part,
            }));
            let inside: SocketAddr = "192.0.2.2:65535".parse().expect("an address");
            let first = nat.outside(Duration::from_secs(1), inside);
            assert_eq!(first, inside);
            let second = nat.outside(Duration::from_secs(6), inside);
            assert_ne!(second, first);
            assert_eq!(second.ip() == first.ip(), part == Part::Port);
            assert_eq!(nat.inside(Duration::from_secs(6), second), Some(inside));
            assert_eq!(nat.inside(Duration::from_secs(6), first), None);
            assert_eq!(nat.outside(Duration::from_millis(6999), inside), second);
            assert_ne!(nat.outside(Duration::from_secs(7), inside), second);
        }
        let mut nat = Nat::new(None);
        let inside: SocketAddr = "192.0.2.2:4000".parse().expect("an address");
        assert_eq!(nat.outside(Duration::from_mins(1), inside), inside);
        assert_eq!(nat.inside(Duration::ZERO, inside), Some(inside));
    }
}

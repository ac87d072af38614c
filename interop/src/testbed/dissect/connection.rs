//! One connection of a capture.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{
    Frame, Kind, Opened, Packet, frames, handshake,
    keys::{KeyLog, Keys, Suite, Version},
};
use crate::{
    runner::Role,
    witness::{ClientHello, Cursor, ServerHello, client_hellos, server_hellos},
};

/// Bytes of an authentication tag.
const TAG: usize = 16;

/// Facts about a connection.
#[derive(Clone, Debug, Default)]
pub(in crate::testbed) struct Facts {
    pub(in crate::testbed) client_hellos: Vec<ClientHello>,
    pub(in crate::testbed) server_hellos: Vec<ServerHello>,
    /// Cipher suites that the client offers, by number.
    pub(in crate::testbed) offered_suites: Vec<u16>,
    /// Cipher suite of the connection, by number.
    pub(in crate::testbed) suite: Option<u16>,
    /// True if the server's handshake has a certificate.
    pub(in crate::testbed) has_certificate: bool,
    /// Bytes of the server's CRYPTO data in Handshake packets.
    pub(in crate::testbed) server_handshake_bytes: u64,
    /// Bidirectional streams that the server allows at first.
    pub(in crate::testbed) server_streams: Option<u64>,
}

/// Bytes of a CRYPTO stream.
#[derive(Default)]
struct Stream(BTreeMap<u64, Vec<u8>>);

impl Stream {
    fn insert(&mut self, offset: u64, data: &[u8]) {
        let known = self.0.entry(offset).or_default();
        if known.len() < data.len() {
            *known = data.to_vec();
        }
    }

    /// Returns the bytes before the first gap.
    fn prefix(&self) -> Vec<u8> {
        let mut prefix = Vec::new();
        for (&offset, data) in &self.0 {
            let Some(known) = prefix.len().checked_sub(offset as usize) else {
                break;
            };
            prefix.extend(data.iter().skip(known));
        }
        prefix
    }
}

/// A connection while the capture is read.
pub(super) struct Connection {
    version: &'static Version,
    /// Initial keys, which a Retry and another version replace: all are tried.
    initial: Vec<[Keys; 2]>,
    /// Ids of each end, to which the other sends.
    ids: [HashSet<Vec<u8>>; 2],
    /// CRYPTO data of Initial and Handshake packets, by end and kind.
    crypto: HashMap<(usize, Kind), Stream>,
    random: Option<[u8; 32]>,
    suite: Option<Suite>,
    handshake: Option<[Keys; 2]>,
    early: Option<Keys>,
    /// 1-RTT keys of each end, by phase.
    application: [Vec<Keys>; 2],
    largest: HashMap<(usize, Kind), u64>,
    facts: Facts,
}

const fn index(role: Role) -> usize {
    match role {
        Role::Client => 0,
        Role::Server => 1,
    }
}

/// Reads the first packet of a datagram, or of what is left of one.
pub(super) fn read<'a>(
    from: Role,
    bytes: &'a [u8],
    connections: &mut Vec<Connection>,
    log: &KeyLog,
) -> Option<(Packet, &'a [u8])> {
    if bytes.first()? & 0x80 == 0 {
        return Some((read_short(from, bytes, connections), &[]));
    }
    let mut cursor = Cursor::new(bytes);
    let first = cursor.byte()?;
    let number = u32::from_be_bytes(cursor.take(4)?.try_into().ok()?);
    let to_id = cursor.prefixed8()?.to_vec();
    let from_id = cursor.prefixed8()?.to_vec();
    let mut packet = Packet {
        kind: Kind::VersionNegotiation,
        version: Some(number),
        connection: None,
        to_id,
        from_id,
        token: Vec::new(),
        opened: None,
    };
    let Some(version) = Version::of(number) else {
        // The end of a packet of an unknown version is not known.
        return (number == 0).then_some((packet, &[]));
    };
    packet.kind = match ((first >> 4) + 4 - version.shift) & 3 {
        0 => Kind::Initial,
        1 => Kind::ZeroRtt,
        2 => Kind::Handshake,
        _ => Kind::Retry,
    };
    if packet.kind == Kind::Initial {
        let len = usize::try_from(cursor.varint()?).ok()?;
        packet.token = cursor.take(len)?.to_vec();
    }
    let len = match packet.kind {
        Kind::Retry => cursor.rest().len(),
        _ => usize::try_from(cursor.varint()?).ok()?,
    };
    let number_at = bytes.len() - cursor.rest().len();
    let (bytes, rest) = bytes.split_at_checked(number_at + len)?;
    if packet.kind == Kind::Retry {
        let token = bytes.get(number_at..bytes.len().checked_sub(16)?)?;
        packet.token = token.to_vec();
    }
    packet.connection = find(from, &packet, version, connections);
    if let Some(at) = packet.connection {
        let connection = connections.get_mut(at)?;
        connection.version = version;
        connection.read_long(from, &mut packet, bytes, number_at, log);
    }
    Some((packet, rest))
}

/// Finds the connection of a packet with a long header, or begins one.
fn find(
    from: Role,
    packet: &Packet,
    version: &'static Version,
    connections: &mut Vec<Connection>,
) -> Option<usize> {
    let (sender, receiver) = (index(from), 1 - index(from));
    // Clients may have empty ids, which many connections share: the newest is meant.
    let by_sender = connections.iter().rposition(|connection| {
        !packet.from_id.is_empty() && connection.ids[sender].contains(&packet.from_id)
    });
    let by_receiver = connections
        .iter()
        .rposition(|connection| connection.ids[receiver].contains(&packet.to_id));
    let known = by_sender.or(by_receiver);
    if known.is_none() && from == Role::Client && packet.kind == Kind::Initial {
        let mut connection = Connection::new(version, Keys::initial(version, &packet.to_id)?);
        connection.ids[receiver].insert(packet.to_id.clone());
        connections.push(connection);
        return Some(connections.len() - 1);
    }
    known
}

/// Reads a packet with a short header: of the connection whose keys open it.
fn read_short(from: Role, bytes: &[u8], connections: &mut [Connection]) -> Packet {
    let mut packet = Packet {
        kind: Kind::OneRtt,
        version: None,
        connection: None,
        to_id: Vec::new(),
        from_id: Vec::new(),
        token: Vec::new(),
        opened: None,
    };
    for (at, connection) in connections.iter_mut().enumerate().rev() {
        if let Some((to_id, opened)) = connection.open_short(from, bytes) {
            packet.connection = Some(at);
            packet.to_id = to_id;
            packet.opened = Some(opened);
            break;
        }
    }
    packet
}

impl Connection {
    fn new(version: &'static Version, initial: [Keys; 2]) -> Self {
        Self {
            version,
            initial: vec![initial],
            ids: Default::default(),
            crypto: HashMap::new(),
            random: None,
            suite: None,
            handshake: None,
            early: None,
            application: Default::default(),
            largest: HashMap::new(),
            facts: Facts::default(),
        }
    }

    pub(super) fn into_facts(mut self) -> Facts {
        let hellos = |connection: &Self, role| {
            let stream = connection.crypto.get(&(index(role), Kind::Initial));
            stream.map(Stream::prefix).unwrap_or_default()
        };
        self.facts.client_hellos = client_hellos(&hellos(&self, Role::Client));
        self.facts.server_hellos = server_hellos(&hellos(&self, Role::Server));
        if let Some(stream) = self.crypto.get(&(index(Role::Server), Kind::Handshake)) {
            let bytes = stream.prefix();
            self.facts.server_handshake_bytes = bytes.len() as u64;
            self.facts.has_certificate = handshake::has_certificate(&bytes);
            self.facts.server_streams = handshake::streams(&bytes);
        }
        self.facts
    }

    fn read_long(
        &mut self,
        from: Role,
        packet: &mut Packet,
        bytes: &[u8],
        number_at: usize,
        log: &KeyLog,
    ) {
        let end = index(from);
        if packet.kind == Kind::Retry {
            if let Some(keys) = Keys::initial(self.version, &packet.from_id) {
                self.initial.push(keys);
            }
            self.ids[end].insert(packet.from_id.clone());
            return;
        }
        self.make_keys(log);
        packet.opened = match packet.kind {
            Kind::Initial => self.open_initial(end, bytes, number_at, &packet.to_id),
            Kind::ZeroRtt => {
                let early = self.early.take();
                let opened = early
                    .as_ref()
                    .and_then(|keys| self.open((end, Kind::OneRtt), keys, bytes, number_at));
                self.early = early;
                opened
            }
            _ => {
                let keys = self.handshake.take();
                let of_end = keys.as_ref().and_then(|keys| keys.get(end));
                let opened = of_end
                    .and_then(|keys| self.open((end, Kind::Handshake), keys, bytes, number_at));
                self.handshake = keys;
                opened
            }
        };
        if let Some(opened) = &packet.opened {
            self.ids[end].insert(packet.from_id.clone());
            let crypto = self.crypto.entry((end, packet.kind)).or_default();
            for frame in &opened.frames {
                if let Frame::Crypto { offset, data } = frame {
                    crypto.insert(*offset, data);
                }
            }
            if packet.kind == Kind::Initial {
                self.on_initial();
            }
            self.make_keys(log);
        }
    }

    fn open_initial(
        &mut self,
        end: usize,
        bytes: &[u8],
        number_at: usize,
        to_id: &[u8],
    ) -> Option<Opened> {
        let all = std::mem::take(&mut self.initial);
        let try_all = |connection: &mut Self, all: &[[Keys; 2]]| {
            all.iter().find_map(|keys| {
                connection.open((end, Kind::Initial), keys.get(end)?, bytes, number_at)
            })
        };
        let opened = try_all(self, &all);
        self.initial = all;
        if opened.is_some() {
            return opened;
        }
        // Another version: keys come from the first id that the client chose.
        let first: Vec<_> = self.ids[1]
            .iter()
            .cloned()
            .chain([to_id.to_vec()])
            .collect();
        for id in first {
            let keys = Keys::initial(self.version, &id)?;
            let opened = try_all(self, std::slice::from_ref(&keys));
            if opened.is_some() {
                self.initial.push(keys);
                return opened;
            }
        }
        None
    }

    /// Takes what the hellos tell.
    fn on_initial(&mut self) {
        let of = |end: Role| {
            self.crypto
                .get(&(index(end), Kind::Initial))
                .map(Stream::prefix)
        };
        if let Some(hello) = of(Role::Client).filter(|_| self.random.is_none()) {
            let mut cursor = Cursor::new(&hello);
            let mut read = || -> Option<([u8; 32], Vec<u16>)> {
                cursor.take(4 + 2)?;
                let random = cursor.take(32)?.try_into().ok()?;
                cursor.prefixed8()?;
                let len = cursor.take(2)?;
                let len = usize::from(len[0]) << 8 | usize::from(len[1]);
                let suites = cursor.take(len)?.chunks_exact(2);
                let suites = suites.map(|two| u16::from_be_bytes([two[0], two[1]]));
                Some((random, suites.collect()))
            };
            if let Some((random, suites)) = read() {
                self.random = Some(random);
                self.facts.offered_suites = suites;
            }
        }
        if let Some(hello) = of(Role::Server).filter(|_| self.suite.is_none()) {
            let mut cursor = Cursor::new(&hello);
            let mut read = || -> Option<u16> {
                cursor.take(4 + 2 + 32)?;
                cursor.prefixed8()?;
                let suite = cursor.take(2)?;
                Some(u16::from_be_bytes([suite[0], suite[1]]))
            };
            if let Some(number) = read() {
                self.facts.suite = Some(number);
                self.suite = Suite::of(number);
            }
        }
    }

    /// Makes keys for which the log has secrets by now.
    fn make_keys(&mut self, log: &KeyLog) {
        let Some(random) = self.random else {
            return;
        };
        let keys = |suite, label: &str| {
            let secret = log.secret(label, &random)?.to_vec();
            Keys::new(self.version, suite, secret)
        };
        if self.early.is_none() {
            // Early data has the suite of the session before: the length of the secret tells which, but
            // for ChaCha20.
            let secret = log.secret("CLIENT_EARLY_TRAFFIC_SECRET", &random);
            let suite = match secret.map(<[u8]>::len) {
                Some(48) => Suite::Aes256,
                _ => Suite::Aes128,
            };
            self.early = keys(suite, "CLIENT_EARLY_TRAFFIC_SECRET");
        }
        let Some(suite) = self.suite else {
            return;
        };
        if self.handshake.is_none() {
            let client = keys(suite, "CLIENT_HANDSHAKE_TRAFFIC_SECRET");
            let server = keys(suite, "SERVER_HANDSHAKE_TRAFFIC_SECRET");
            self.handshake = client.zip(server).map(|(client, server)| [client, server]);
        }
        for (end, label) in ["CLIENT_TRAFFIC_SECRET_0", "SERVER_TRAFFIC_SECRET_0"]
            .iter()
            .enumerate()
        {
            if self.application[end].is_empty() {
                let first = keys(suite, label);
                self.application[end].extend(first);
            }
        }
    }

    fn open(
        &mut self,
        space: (usize, Kind),
        keys: &Keys,
        bytes: &[u8],
        number_at: usize,
    ) -> Option<Opened> {
        let (first, truncated, len) = keys.unmask(bytes, number_at)?;
        let expected = self.largest.get(&space).map_or(0, |largest| largest + 1);
        let number = expand_number(truncated, len, expected);
        let payload = keys.open(bytes, number_at, (first, truncated, len), number)?;
        let largest = self.largest.entry(space).or_default();
        *largest = number.max(*largest);
        Some(Opened {
            number,
            phase: false,
            len: payload.len() + TAG,
            frames: frames::read(&payload),
        })
    }

    /// Opens a 1-RTT packet.
    fn open_short(&mut self, from: Role, bytes: &[u8]) -> Option<(Vec<u8>, Opened)> {
        let end = index(from);
        let space = (end, Kind::OneRtt);
        let to = &self.ids[1 - end];
        let mut lengths: Vec<_> = to.iter().map(Vec::len).collect();
        lengths.sort_unstable();
        lengths.dedup();
        let expected = self.largest.get(&space).map_or(0, |largest| largest + 1);
        let keys = &mut self.application[end];
        for id_len in lengths {
            let number_at = 1 + id_len;
            let Some((first, truncated, len)) = keys.first()?.unmask(bytes, number_at) else {
                continue;
            };
            let number = expand_number(truncated, len, expected);
            // The current phase, the one before, and the next.
            if let Some(next) = keys.last().and_then(Keys::updated) {
                keys.push(next);
            }
            let opened = keys.iter().enumerate().rev().find_map(|(phase, keys)| {
                let unmasked = (first, truncated, len);
                Some((phase, keys.open(bytes, number_at, unmasked, number)?))
            });
            let used = opened.as_ref().map_or(0, |(phase, _)| *phase);
            // The next phase is kept once a packet used it.
            if used + 1 < keys.len() {
                keys.pop();
            }
            let Some((phase, payload)) = opened else {
                continue;
            };
            let largest = self.largest.entry(space).or_default();
            *largest = number.max(*largest);
            let frames = frames::read(&payload);
            for frame in &frames {
                if let Frame::NewConnectionId(id) = frame {
                    self.ids[end].insert(id.clone());
                }
            }
            let to_id = bytes.get(1..number_at).unwrap_or_default().to_vec();
            return Some((
                to_id,
                Opened {
                    number,
                    phase: phase % 2 == 1,
                    len: payload.len() + TAG,
                    frames,
                },
            ));
        }
        None
    }
}

/// Returns the whole number of a packet (RFC 9000 Appendix A.3).
fn expand_number(truncated: u64, len: usize, expected: u64) -> u64 {
    let window = 1 << (8 * len);
    let half = window / 2;
    let candidate = (expected & !(window - 1)) | truncated;
    if candidate + half <= expected {
        candidate + window
    } else if candidate > expected + half && candidate >= window {
        candidate - window
    } else {
        candidate
    }
}

#[cfg(test)]
mod tests {
    use super::expand_number;

    /// The example of RFC 9000 Appendix A.3, and ends of the range.
    #[test]
    fn packet_numbers_are_expanded() {
        assert_eq!(expand_number(0x9b32, 2, 0xa82f_30eb), 0xa82f_9b32);
        assert_eq!(expand_number(0, 1, 0), 0);
        assert_eq!(expand_number(0xff, 1, 0x100), 0xff);
        assert_eq!(expand_number(0x01, 1, 0xff), 0x101);
    }
}

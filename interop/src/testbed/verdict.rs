//! What a capture must show: the checks of the runner, and of a post-quantum handshake.

use std::{collections::HashSet, time::Duration};

use super::dissect::{Dissection, Facts, Frame, Kind, Packet};
use crate::{
    ServerHello,
    runner::Role::{Client, Server},
};

/// A finished run, whose files have arrived.
pub(super) struct Evidence {
    /// Groups that the server had, by name; empty for its default.
    pub(super) groups: &'static str,
    /// Packets at the client's side of the link.
    pub(super) client: Dissection,
    /// Packets at the server's side, behind the NAT.
    pub(super) server: Dissection,
    /// Bytes of the files.
    pub(super) bytes: usize,
}

/// Checks a run. Returns what was measured, or why it failed.
pub(super) type Check = fn(&Evidence) -> Result<String, String>;

const V1: u32 = 1;
const V2: u32 = 0x6b33_43cf;
const CHACHA20: u16 = 0x1303;

fn demand(holds: bool, otherwise: impl Into<String>) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise.into()) }
}

/// Returns the handshakes that a server answered, as ids that it chose.
fn handshakes(run: &Evidence) -> usize {
    let answers = run.client.packets(Server);
    let answers = answers.filter(|(_, packet)| packet.kind == Kind::Initial);
    let ids: HashSet<_> = answers.map(|(_, packet)| &packet.from_id).collect();
    ids.len()
}

fn count(run: &Evidence, kind: Kind) -> usize {
    let all = run.client.packets(Server).chain(run.client.packets(Client));
    all.filter(|(_, packet)| packet.kind == kind).count()
}

/// Exactly so many handshakes, and no Retry.
fn expect_handshakes(run: &Evidence, expected: usize) -> Result<(), String> {
    let found = handshakes(run);
    demand(
        found == expected,
        format!("{found} handshakes instead of {expected}"),
    )
}

pub(super) fn one_handshake(run: &Evidence) -> Result<String, String> {
    expect_handshakes(run, 1)?;
    Ok(String::new())
}

pub(super) fn handshake(run: &Evidence) -> Result<String, String> {
    expect_handshakes(run, 1)?;
    demand(count(run, Kind::Retry) == 0, "a Retry was sent")?;
    let versions = run.client.packets(Client).chain(run.client.packets(Server));
    let mut versions = versions.filter_map(|(_, packet)| packet.version);
    demand(
        versions.all(|version| version == V1),
        "another version than 1",
    )?;
    Ok(String::new())
}

pub(super) fn long_rtt(run: &Evidence) -> Result<String, String> {
    let hellos = run.client.frames(Client).filter(|(_, packet, frame)| {
        packet.kind == Kind::Initial && matches!(frame, Frame::Crypto { offset: 0, .. })
    });
    let hellos = hellos.count();
    demand(hellos > 1, "the ClientHello was not repeated")?;
    expect_handshakes(run, 1)?;
    Ok(format!("{hellos} ClientHellos"))
}

fn connections(run: &Evidence) -> Result<&[Facts], String> {
    let connections = &run.client.connections[..];
    demand(!connections.is_empty(), "no connection")?;
    Ok(connections)
}

pub(super) fn chacha20(run: &Evidence) -> Result<String, String> {
    for connection in connections(run)? {
        let offered = &connection.offered_suites;
        // RFC 8701: values that are reserved so that nobody relies on their absence.
        let real = offered.iter().filter(|suite| *suite & 0x0f0f != 0x0a0a);
        let all: Vec<_> = real.collect();
        demand(all == [&CHACHA20], format!("offered {offered:04x?}"))?;
        demand(
            connection.suite == Some(CHACHA20),
            "another suite was chosen",
        )?;
    }
    one_handshake(run)
}

pub(super) fn multiplexing(run: &Evidence) -> Result<String, String> {
    expect_handshakes(run, 1)?;
    let streams = run
        .client
        .frames(Client)
        .filter_map(|(_, _, frame)| match frame {
            // RFC 9000 §2.1: bidirectional, begun by the client.
            Frame::Stream { id, .. } if id.trailing_zeros() >= 2 => Some(id),
            _ => None,
        });
    let streams: HashSet<_> = streams.collect();
    demand(streams.len() == 1999, format!("{} streams", streams.len()))?;
    Ok(String::new())
}

pub(super) fn retry(run: &Evidence) -> Result<String, String> {
    let mut retries = run
        .client
        .packets(Server)
        .filter(|(_, packet)| packet.kind == Kind::Retry);
    let (_, retry) = retries.next().ok_or("no Retry was sent")?;
    let initials = run
        .client
        .packets(Client)
        .filter(|(_, packet)| packet.kind == Kind::Initial);
    let initials: Vec<_> = initials.map(|(_, packet)| packet).collect();
    let answers: Vec<_> = initials
        .iter()
        .filter(|packet| !packet.token.is_empty())
        .collect();
    demand(!answers.is_empty(), "no Initial packet with a token")?;
    let same = answers.iter().all(|packet| packet.token == retry.token);
    demand(same, "the token is not that of the Retry")?;
    let number = |packet: &Packet| packet.opened.as_ref().map(|opened| opened.number);
    let before = initials.iter().filter(|packet| packet.token.is_empty());
    let last = before.filter_map(|packet| number(packet)).max();
    let first = answers.iter().filter_map(|packet| number(packet)).min();
    demand(first > last, "packet numbers began again after the Retry")?;
    Ok(String::new())
}

pub(super) fn resumption(run: &Evidence) -> Result<String, String> {
    expect_handshakes(run, 2)?;
    let [first, second] = connections(run)? else {
        return Err("not two connections".to_owned());
    };
    demand(
        first.has_certificate,
        "the first handshake has no certificate",
    )?;
    demand(
        !second.has_certificate,
        "the second handshake has a certificate",
    )?;
    Ok(String::new())
}

pub(super) fn zero_rtt(run: &Evidence) -> Result<String, String> {
    expect_handshakes(run, 2)?;
    let bytes = |kind: Kind| -> usize {
        let frames = run.client.frames(Client);
        let of_kind = frames.filter(move |(_, packet, _)| packet.kind == kind);
        of_kind
            .map(|(_, _, frame)| match frame {
                Frame::Stream { len, .. } => *len,
                _ => 0,
            })
            .sum()
    };
    let (early, late) = (bytes(Kind::ZeroRtt), bytes(Kind::OneRtt));
    demand(early > 0, "no stream data in 0-RTT packets")?;
    demand(
        late <= 5000,
        format!("{late} bytes of requests in 1-RTT packets"),
    )?;
    Ok(format!("{early} B in 0-RTT packets"))
}

pub(super) fn key_update(run: &Evidence) -> Result<String, String> {
    expect_handshakes(run, 1)?;
    for (end, name) in [(Client, "client"), (Server, "server")] {
        let mut packets = run.client.packets(end);
        let updated = packets.any(|(_, packet)| packet.opened.as_ref().is_some_and(|it| it.phase));
        demand(updated, format!("the {name} did not change its keys"))?;
    }
    Ok(String::new())
}

pub(super) fn ecn(run: &Evidence) -> Result<String, String> {
    expect_handshakes(run, 1)?;
    for (end, name) in [(Client, "client"), (Server, "server")] {
        let of_end = run
            .client
            .datagrams
            .iter()
            .filter(|datagram| datagram.from == end);
        let marks: Vec<_> = of_end.map(|datagram| datagram.udp.ecn).collect();
        let marked = marks.iter().filter(|mark| matches!(mark, 1 | 2)).count();
        demand(marked > 0, format!("the {name} marks nothing"))?;
        demand(!marks.contains(&3), format!("the {name} sends CE"))?;
        let mut frames = run.client.frames(end);
        let tells = frames.any(|(_, _, frame)| *frame == Frame::Ack { with_ecn: true });
        demand(tells, format!("the {name} sends no counts of ECN"))?;
    }
    Ok(String::new())
}

pub(super) fn amplification(run: &Evidence) -> Result<String, String> {
    expect_handshakes(run, 1)?;
    let bytes = connections(run)?
        .first()
        .map_or(0, |it| it.server_handshake_bytes);
    demand(
        bytes >= 7500,
        format!("a handshake of {bytes} bytes needs no limit"),
    )?;
    let (mut received, mut sent) = (0, 0);
    for datagram in &run.server.datagrams {
        if datagram.from == Client {
            received += datagram.len;
            let proves = |packet: &Packet| packet.kind == Kind::Handshake;
            if datagram.packets.iter().any(proves) {
                return Ok(format!("{sent} B for {received} B"));
            }
        } else {
            sent += datagram.len;
            demand(
                sent <= 3 * received,
                format!("{sent} bytes were sent for {received}"),
            )?;
        }
    }
    Err("the client's address was never validated".to_owned())
}

pub(super) fn fifty_handshakes(run: &Evidence) -> Result<String, String> {
    let found = handshakes(run);
    demand(found >= 50, format!("{found} handshakes instead of 50"))?;
    let last = run.client.datagrams.last().map(|datagram| datagram.at);
    Ok(format!("{:.0} s", last.unwrap_or_default().as_secs_f64()))
}

pub(super) fn ipv6(run: &Evidence) -> Result<String, String> {
    let mut datagrams = run.client.datagrams.iter();
    demand(
        datagrams.all(|datagram| datagram.udp.source.is_ipv6()),
        "not all by IPv6",
    )?;
    one_handshake(run)
}

pub(super) fn version_2(run: &Evidence) -> Result<String, String> {
    let versions = |end, kind| -> HashSet<u32> {
        let packets = run.client.packets(end);
        let of_kind = packets.filter(move |(_, packet)| packet.kind == kind);
        of_kind.filter_map(|(_, packet)| packet.version).collect()
    };
    let first = run
        .client
        .packets(Client)
        .next()
        .and_then(|(_, packet)| packet.version);
    demand(
        first == Some(V1),
        "the client does not begin with version 1",
    )?;
    let only_v2 = HashSet::from([V2]);
    // Before it has the whole ClientHello a server acknowledges in version 1.
    demand(
        versions(Server, Kind::Initial).contains(&V2),
        "the server does not answer in version 2",
    )?;
    for end in [Client, Server] {
        let found = versions(end, Kind::Handshake);
        demand(
            found == only_v2,
            "Handshake packets of another version than 2",
        )?;
    }
    Ok(String::new())
}

/// The server's first packet on each new path challenges it, and every challenge is answered.
pub(super) fn rebinding(run: &Evidence) -> Result<String, String> {
    let mut paths = Vec::new();
    let mut challenged = HashSet::new();
    for datagram in &run.server.datagrams {
        if datagram.from == Server && !paths.contains(&datagram.udp.destination) {
            let frames = datagram
                .packets
                .iter()
                .filter_map(|packet| packet.opened.as_ref());
            let mut frames = frames.flat_map(|opened| &opened.frames);
            let has_challenge = frames.any(|frame| matches!(frame, Frame::PathChallenge(_)));
            demand(
                paths.is_empty() || has_challenge,
                "the first packet on a new path has no PATH_CHALLENGE",
            )?;
            paths.push(datagram.udp.destination);
        }
    }
    demand(paths.len() > 1, "the client's address did not change")?;
    for (_, _, frame) in run.server.frames(Server) {
        if let Frame::PathChallenge(data) = frame {
            challenged.insert(*data);
        }
    }
    let answers = run
        .server
        .frames(Client)
        .filter_map(|(_, _, frame)| match frame {
            Frame::PathResponse(data) => Some(*data),
            _ => None,
        });
    let answers: HashSet<_> = answers.collect();
    demand(answers.is_subset(&challenged), "an answer to no challenge")?;
    demand(!answers.is_empty(), "no challenge was answered")?;
    Ok(format!("{} paths", paths.len()))
}

/// The client moves to the server's other address, and uses another connection id there.
pub(super) fn migration(run: &Evidence) -> Result<String, String> {
    let mut addresses = Vec::new();
    let mut ids: Vec<HashSet<&[u8]>> = Vec::new();
    for (datagram, packet) in run.client.packets(Client) {
        let to = datagram.udp.destination;
        let at = addresses
            .iter()
            .position(|known| *known == to)
            .unwrap_or_else(|| {
                addresses.push(to);
                ids.push(HashSet::new());
                addresses.len() - 1
            });
        if packet.kind == Kind::OneRtt && packet.opened.is_some() {
            ids[at].insert(&packet.to_id);
        }
    }
    let [first, second, ..] = &ids[..] else {
        return Err("the client stays at the first address".to_owned());
    };
    demand(
        first.is_disjoint(second),
        "a connection id is used on both paths",
    )?;
    let last = run
        .server
        .datagrams
        .iter()
        .rfind(|datagram| datagram.from == Server);
    let from = last.map(|datagram| datagram.udp.source);
    demand(
        from != addresses.first().copied(),
        "the server sends from its first address",
    )?;
    Ok(String::new())
}

pub(super) fn goodput(run: &Evidence) -> Result<String, String> {
    let first = run.client.datagrams.first().map(|datagram| datagram.at);
    let last = run
        .client
        .datagrams
        .iter()
        .rfind(|datagram| datagram.from == Server);
    let time = last
        .map(|datagram| datagram.at)
        .zip(first)
        .map(|(last, first)| last.saturating_sub(first));
    let time = time.ok_or("no datagrams")?;
    Ok(format!(
        "{:.0} kbit/s",
        run.bytes as f64 * 8.0 / time.as_secs_f64() / 1000.0
    ))
}

/// The files arrived: broken packets may have begun connections that never came to be.
pub(super) fn arrived(run: &Evidence) -> Result<String, String> {
    let found = handshakes(run);
    demand(found >= 1, "no handshake")?;
    Ok(String::new())
}

/// Returns the last ServerHello, and if a HelloRetryRequest was before it.
fn key_exchange(run: &Evidence) -> Result<(ServerHello, bool), String> {
    let connection = connections(run)?.first().ok_or("no connection")?;
    let hellos = &connection.server_hellos;
    let hello = hellos.last().ok_or("no ServerHello")?;
    Ok((*hello, hellos.iter().any(|hello| hello.retry)))
}

/// Checks the key exchange that the hellos show.
fn post_quantum_group(run: &Evidence) -> Result<String, String> {
    let (ServerHello { group, .. }, retried) = key_exchange(run)?;
    demand(
        group.is_post_quantum(),
        format!("{group} is not post-quantum"),
    )?;
    Ok(if retried {
        format!("{group} after HelloRetryRequest")
    } else {
        group.to_string()
    })
}

/// Returns the first datagrams that the client sent, before any arrived from the server.
fn first_datagrams(run: &Evidence) -> usize {
    let datagrams = run.client.datagrams.iter();
    datagrams
        .take_while(|datagram| datagram.from == Client)
        .count()
}

/// One handshake with a post-quantum group, whose ClientHello needs two Initial packets.
pub(super) fn post_quantum(run: &Evidence) -> Result<String, String> {
    expect_handshakes(run, 1)?;
    demand(count(run, Kind::Retry) == 0, "a Retry was sent")?;
    let group = post_quantum_group(run)?;
    demand(
        first_datagrams(run) >= 2,
        "the ClientHello does not take two datagrams",
    )?;
    Ok(group)
}

/// The same with a Retry.
pub(super) fn post_quantum_retry(run: &Evidence) -> Result<String, String> {
    retry(run)?;
    post_quantum_group(run)
}

/// One handshake with the server's only group. Returns it, and true if a HelloRetryRequest was sent.
fn only_group(run: &Evidence) -> Result<(String, bool), String> {
    expect_handshakes(run, 1)?;
    let (ServerHello { group, .. }, retried) = key_exchange(run)?;
    let group = group.to_string();
    demand(group == run.groups, format!("{group} was chosen"))?;
    Ok((group, retried))
}

/// One handshake with the group that both ends have, without a HelloRetryRequest.
pub(super) fn group(run: &Evidence) -> Result<String, String> {
    let (group, retried) = only_group(run)?;
    demand(!retried, "a HelloRetryRequest was sent")?;
    Ok(group)
}

/// One handshake with the server's only group, after a HelloRetryRequest.
pub(super) fn hello_retry(run: &Evidence) -> Result<String, String> {
    let (group, retried) = only_group(run)?;
    demand(retried, "no HelloRetryRequest was sent")?;
    Ok(group)
}

/// Time that a handshake may take with one probe timeout of a client that knows no round trip: thrice 333 ms
/// (RFC 9002 §6.2.2), some round trips of 30 ms, and the work.
const ONE_PROBE: Duration = Duration::from_millis(1300);

/// One handshake with a post-quantum group, where datagrams were lost: that costs one probe timeout.
pub(super) fn post_quantum_with_loss(run: &Evidence) -> Result<String, String> {
    expect_handshakes(run, 1)?;
    let group = post_quantum_group(run)?;
    let done = run
        .client
        .packets(Client)
        .find(|(_, packet)| packet.kind == Kind::OneRtt && packet.opened.is_some());
    let at = done
        .map(|(datagram, _)| datagram.at)
        .ok_or("no 1-RTT packet")?;
    let first = run
        .client
        .datagrams
        .first()
        .map_or(at, |datagram| datagram.at);
    let time = at.saturating_sub(first);
    let text = format!("{group}, {} ms", time.as_millis());
    demand(time <= ONE_PROBE, format!("more than one probe: {text}"))?;
    Ok(text)
}

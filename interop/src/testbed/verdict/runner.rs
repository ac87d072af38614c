//! The checks of the public runner.

use std::collections::HashSet;

use super::{Evidence, V1, V2, connections, count, demand, expect_handshakes, handshakes};
use crate::{
    runner::Role::{Client, Server},
    testbed::dissect::{Frame, Kind, Packet},
};

const CHACHA20: u16 = 0x1303;
/// Streams that a server may allow at first, so that it must allow more during the run.
const MOST_STREAMS: u64 = 1000;
/// Bytes that a client may send in 1-RTT packets where its requests are to be early data: half of them.
const MOST_LATE: usize = 5000;

pub(in crate::testbed) fn one_handshake(run: &Evidence) -> Result<String, String> {
    expect_handshakes(run, 1)?;
    Ok(String::new())
}

pub(in crate::testbed) fn handshake(run: &Evidence) -> Result<String, String> {
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

pub(in crate::testbed) fn long_rtt(run: &Evidence) -> Result<String, String> {
    let hellos = run.client.frames(Client).filter(|(_, packet, frame)| {
        packet.kind == Kind::Initial && matches!(frame, Frame::Crypto { offset: 0, .. })
    });
    let hellos = hellos.count();
    demand(hellos > 1, "the ClientHello was not repeated")?;
    expect_handshakes(run, 1)?;
    Ok(format!("{hellos} ClientHellos"))
}

pub(in crate::testbed) fn chacha20(run: &Evidence) -> Result<String, String> {
    for connection in connections(run)? {
        let offered = &connection.offered_suites;
        // RFC 8701: values that are reserved so that nobody relies on their absence. 00ff is a signal of old TLS.
        let real = offered.iter();
        let real = real.filter(|suite| *suite & 0x0f0f != 0x0a0a && **suite != 0x00ff);
        let all: Vec<_> = real.collect();
        let offered = format!("the client offers {offered:04x?} instead of 1303 alone");
        demand(all == [&CHACHA20], offered)?;
        demand(
            connection.suite == Some(CHACHA20),
            "another suite was chosen",
        )?;
    }
    one_handshake(run)
}

pub(in crate::testbed) fn multiplexing(run: &Evidence) -> Result<String, String> {
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
    let allowed = connections(run)?.first().and_then(|it| it.server_streams);
    let allowed = allowed.ok_or("the server's limit of streams is not to be seen")?;
    demand(
        allowed <= MOST_STREAMS,
        format!("the server allows {allowed} streams at once"),
    )?;
    Ok(format!("{allowed} streams at first"))
}

pub(in crate::testbed) fn retry(run: &Evidence) -> Result<String, String> {
    expect_handshakes(run, 1)?;
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

pub(in crate::testbed) fn resumption(run: &Evidence) -> Result<String, String> {
    expect_handshakes(run, 2)?;
    let [first, second] = connections(run)? else {
        return Err("not two connections".to_owned());
    };
    demand(
        first.has_certificate,
        "the first handshake has no certificate",
    )?;
    demand(
        second.server_handshake_bytes > 0,
        "the second handshake cannot be read: no key log has its secrets",
    )?;
    demand(
        !second.has_certificate,
        "the second handshake has a certificate",
    )?;
    Ok(String::new())
}

pub(in crate::testbed) fn zero_rtt(run: &Evidence) -> Result<String, String> {
    expect_handshakes(run, 2)?;
    let bytes = |kind: Kind| -> usize {
        let packets = run.client.packets(Client);
        let of_kind = packets.filter(|(_, packet)| packet.kind == kind);
        of_kind
            .filter_map(|(_, packet)| Some(packet.opened.as_ref()?.len))
            .sum()
    };
    let mut frames = run.client.frames(Client);
    let asks_early = frames.any(|(_, packet, frame)| {
        packet.kind == Kind::ZeroRtt && matches!(frame, Frame::Stream { len: 1.., .. })
    });
    demand(asks_early, "no stream data in 0-RTT packets")?;
    let (early, late) = (bytes(Kind::ZeroRtt), bytes(Kind::OneRtt));
    demand(late <= MOST_LATE, format!("{late} bytes in 1-RTT packets"))?;
    Ok(format!("{early} B in 0-RTT packets"))
}

pub(in crate::testbed) fn key_update(run: &Evidence) -> Result<String, String> {
    expect_handshakes(run, 1)?;
    for (end, name) in [(Client, "client"), (Server, "server")] {
        let mut packets = run.client.packets(end);
        let updated = packets.any(|(_, packet)| packet.opened.as_ref().is_some_and(|it| it.phase));
        demand(updated, format!("the {name} did not change its keys"))?;
    }
    Ok(String::new())
}

pub(in crate::testbed) fn ecn(run: &Evidence) -> Result<String, String> {
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

pub(in crate::testbed) fn amplification(run: &Evidence) -> Result<String, String> {
    expect_handshakes(run, 1)?;
    let bytes = connections(run)?
        .first()
        .map_or(0, |it| it.server_handshake_bytes);
    demand(
        bytes >= 7500,
        format!("a handshake of {bytes} bytes needs no limit"),
    )?;
    demand(
        count(run, Kind::VersionNegotiation) == 0,
        "a Version Negotiation was sent",
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

pub(in crate::testbed) fn fifty_handshakes(run: &Evidence) -> Result<String, String> {
    expect_handshakes(run, 50)?;
    let last = run.client.datagrams.last().map(|datagram| datagram.at);
    Ok(format!("{:.0} s", last.unwrap_or_default().as_secs_f64()))
}

pub(in crate::testbed) fn ipv6(run: &Evidence) -> Result<String, String> {
    let mut datagrams = run.client.datagrams.iter();
    demand(
        datagrams.all(|datagram| datagram.udp.source.is_ipv6()),
        "not all by IPv6",
    )?;
    one_handshake(run)
}

pub(in crate::testbed) fn version_2(run: &Evidence) -> Result<String, String> {
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

/// The server's first packet on each new path challenges it, and each of these challenges is answered. Returns the
/// number of paths.
fn paths(run: &Evidence) -> Result<usize, String> {
    let mut paths = Vec::new();
    let mut challenges = HashSet::new();
    for datagram in run.server.datagrams.iter().filter(|it| it.from == Server) {
        let path = (datagram.udp.source, datagram.udp.destination);
        if paths.contains(&path) {
            continue;
        }
        let opened = datagram.packets.iter().filter_map(|it| it.opened.as_ref());
        let mut frames = opened.flat_map(|opened| &opened.frames);
        let challenge = frames.find_map(|frame| match frame {
            Frame::PathChallenge(data) => Some(*data),
            _ => None,
        });
        if !paths.is_empty() {
            let none = "the first packet on a new path has no PATH_CHALLENGE";
            challenges.insert(challenge.ok_or(none)?);
        }
        paths.push(path);
    }
    let answers = run.client.frames(Client);
    let answers = answers.filter_map(|(_, _, frame)| match frame {
        Frame::PathResponse(data) => Some(*data),
        _ => None,
    });
    let answers: HashSet<_> = answers.collect();
    let open = challenges.difference(&answers).count();
    demand(open == 0, format!("{open} challenges were not answered"))?;
    Ok(paths.len())
}

pub(in crate::testbed) fn port_rebinding(run: &Evidence) -> Result<String, String> {
    expect_handshakes(run, 1)?;
    let paths = paths(run)?;
    demand(paths > 1, "the client's address did not change")?;
    Ok(format!("{paths} paths"))
}

pub(in crate::testbed) fn address_rebinding(run: &Evidence) -> Result<String, String> {
    let sent = run.server.datagrams.iter().filter(|it| it.from == Server);
    let addresses: HashSet<_> = sent.map(|it| it.udp.destination.ip()).collect();
    demand(addresses.len() > 1, "the client's address did not change")?;
    port_rebinding(run)
}

/// The client moves to the server's other address, and uses another connection id there.
pub(in crate::testbed) fn migration(run: &Evidence) -> Result<String, String> {
    expect_handshakes(run, 1)?;
    paths(run)?;
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

pub(in crate::testbed) fn goodput(run: &Evidence) -> Result<String, String> {
    expect_handshakes(run, 1)?;
    let packets = run.client.packets(Server);
    let packets = packets.filter(|(_, packet)| packet.kind == Kind::OneRtt);
    let times: Vec<_> = packets.map(|(datagram, _)| datagram.at).collect();
    let time = times.first().zip(times.last());
    let time = time.map(|(first, last)| last.saturating_sub(*first));
    let time = time
        .filter(|time| !time.is_zero())
        .ok_or("no time passed")?;
    Ok(format!(
        "{:.0} kbit/s",
        run.bytes as f64 * 8.0 / time.as_secs_f64() / 1000.0
    ))
}

/// The files arrived: broken packets may have begun connections that never came to be.
pub(in crate::testbed) fn arrived(run: &Evidence) -> Result<String, String> {
    let found = handshakes(run);
    demand(found >= 1, "no handshake")?;
    Ok(String::new())
}

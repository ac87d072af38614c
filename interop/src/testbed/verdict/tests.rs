//! Each check passes with what it wants, and fails without.

use std::{net::SocketAddr, time::Duration};

use hybriq::Group;

use super::*;
use crate::{
    ServerHello,
    runner::Role::{self, Client, Server},
    testbed::{
        dissect::{Datagram, Frame, Opened, Packet},
        packet::{self, Udp},
    },
};

/// A datagram of IPv4 from 10.0.0.1:9 to 10.0.0.2:443, with two bytes of payload.
const V4: [u8; 30] = [
    0x45, 0, 0, 30, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 9, 1, 187, 0, 10, 0, 0,
    0, 0,
];
const CLIENT: &str = "10.0.0.1:9";
const SERVER: &str = "10.0.0.2:443";
const PREFERRED: &str = "10.0.0.2:444";

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

fn udp(source: &str, destination: &str) -> Udp {
    let mut bytes = V4.to_vec();
    let udp = Udp::find(&bytes).expect("a datagram");
    packet::set_source(&mut bytes, &udp, address(source));
    packet::set_destination(&mut bytes, &udp, address(destination));
    Udp::find(&bytes).expect("a datagram")
}

fn packet_of(kind: Kind, number: u64, frames: Vec<Frame>) -> Packet {
    Packet {
        kind,
        version: (kind != Kind::OneRtt).then_some(V1),
        connection: Some(0),
        to_id: vec![1],
        from_id: vec![2],
        token: Vec::new(),
        opened: Some(Opened {
            number,
            phase: false,
            len: 100,
            frames,
        }),
    }
}

fn crypto() -> Frame {
    Frame::Crypto {
        offset: 0,
        data: vec![0; 1000],
    }
}

fn stream(id: u64) -> Frame {
    Frame::Stream {
        id,
        offset: 0,
        len: 10,
        fin: true,
        uni: Vec::new(),
    }
}

/// Data of a unidirectional stream.
fn uni(id: u64, offset: u64, data: &[u8]) -> Frame {
    Frame::Stream {
        id,
        offset,
        len: data.len(),
        fin: false,
        uni: data.to_vec(),
    }
}

/// A run, to be spoiled.
fn run() -> Evidence {
    Evidence {
        groups: "X25519MLKEM768",
        client: Dissection::default(),
        server: Dissection::default(),
        bytes: 1_000_000,
    }
    .sent(0, Client, packet_of(Kind::Initial, 0, vec![crypto()]))
    .sent(0, Client, packet_of(Kind::Initial, 1, vec![crypto()]))
    .sent(40, Server, packet_of(Kind::Initial, 0, vec![crypto()]))
    .sent(50, Client, packet_of(Kind::Handshake, 0, vec![]))
    .sent(51, Client, packet_of(Kind::OneRtt, 0, vec![stream(0)]))
    .sent(90, Server, packet_of(Kind::OneRtt, 0, vec![stream(0)]))
    .sent(1090, Server, packet_of(Kind::OneRtt, 1, vec![stream(0)]))
    .with_facts(Facts {
        server_hellos: vec![hello(Group::X25519MLKEM768, false)],
        offered_suites: vec![0x1303],
        suite: Some(0x1303),
        has_certificate: true,
        server_handshake_bytes: 9000,
        server_streams: Some(100),
        ..Facts::default()
    })
}

fn hello(group: Group, retry: bool) -> ServerHello {
    ServerHello {
        group,
        retry,
        resumed: false,
    }
}

impl Evidence {
    fn sent(self, at: u64, from: Role, packet: Packet) -> Self {
        let (source, destination) = match from {
            Client => (CLIENT, SERVER),
            Server => (SERVER, CLIENT),
        };
        self.over(at, from, (source, destination), packet)
    }

    fn over(mut self, at: u64, from: Role, (from_ip, to_ip): (&str, &str), packet: Packet) -> Self {
        let datagram = Datagram {
            at: Duration::from_millis(at),
            from,
            udp: udp(from_ip, to_ip),
            len: 1200,
            mark: Vec::new(),
            packets: vec![packet],
        };
        self.client.datagrams.push(datagram.clone());
        self.server.datagrams.push(datagram);
        self
    }

    fn with_facts(mut self, facts: Facts) -> Self {
        self.client.connections.push(facts);
        self
    }

    fn with_fact(mut self, change: impl FnOnce(&mut Facts)) -> Self {
        change(&mut self.client.connections[0]);
        self
    }

    /// Changes all datagrams at both sides.
    fn changed(mut self, change: impl Fn(&mut Datagram)) -> Self {
        for side in [&mut self.client, &mut self.server] {
            side.datagrams.iter_mut().for_each(&change);
        }
        self
    }

    /// Changes all packets of one end.
    fn with_packets(self, from: Role, change: impl Fn(&mut Packet)) -> Self {
        self.changed(|datagram| {
            if datagram.from == from {
                datagram.packets.iter_mut().for_each(&change);
            }
        })
    }
}

#[track_caller]
fn passes(check: Check, run: &Evidence) {
    if let Err(reason) = check(run) {
        panic!("{reason}");
    }
}

/// Demands that a run fails for a reason.
#[track_caller]
fn fails(check: Check, run: &Evidence, reason: &str) {
    let found = check(run).expect_err(reason);
    assert!(found.contains(reason), "{found}");
}

fn other_version(packet: &mut Packet) {
    packet.version = packet.version.map(|_| V2);
}

fn retried() -> Packet {
    Packet {
        token: vec![7; 8],
        opened: None,
        ..packet_of(Kind::Retry, 0, Vec::new())
    }
}

#[test]
fn handshakes_are_counted_and_have_version_1() {
    for check in [
        one_handshake,
        handshake,
        ipv4,
        chacha20,
        goodput,
        post_quantum,
    ] {
        passes(check, &run());
        let mut second = packet_of(Kind::Initial, 0, vec![crypto()]);
        second.from_id = vec![9];
        fails(check, &run().sent(2000, Server, second), "2 handshakes");
        fails(check, &run().with_packets(Server, other_version), "version");
    }
    fails(handshake, &run().sent(1, Server, retried()), "a Retry");
    fails(
        handshake,
        &run().with_packets(Client, other_version),
        "version",
    );
}

/// Stands for `ipv6` in a list, which wants other addresses.
fn ipv4(run: &Evidence) -> Result<String, String> {
    fails(ipv6, run, "not all by IPv6");
    one_handshake(run)
}

#[test]
fn a_long_round_trip_needs_a_second_client_hello() {
    passes(long_rtt, &run());
    let mut once = run();
    once.client.datagrams.remove(0);
    fails(long_rtt, &once, "not repeated");
}

#[test]
fn chacha20_is_offered_alone() {
    let offers = |suites: Vec<u16>| run().with_fact(|facts| facts.offered_suites = suites);
    passes(chacha20, &offers(vec![0x1a1a, 0x1303, 0x00ff]));
    fails(chacha20, &offers(vec![0x1303, 0x1301]), "instead of 1303");
    let chosen = run().with_fact(|facts| facts.suite = Some(0x1301));
    fails(chacha20, &chosen, "another suite");
}

#[test]
fn all_streams_are_seen_and_few_are_allowed_at_first() {
    let streams = |count: u64| {
        let frames = (0..count).map(|number| stream(number * 4)).collect();
        run().sent(60, Client, packet_of(Kind::OneRtt, 1, frames))
    };
    passes(multiplexing, &streams(1999));
    fails(multiplexing, &streams(1998), "1998 streams");
    let allows = |limit| streams(1999).with_fact(|facts| facts.server_streams = limit);
    fails(multiplexing, &allows(Some(1001)), "allows 1001");
    fails(multiplexing, &allows(None), "not to be seen");
}

#[test]
fn a_retry_is_answered_with_its_token_and_higher_numbers() {
    let answered = |number, token: Vec<u8>| {
        let answer = Packet {
            token,
            ..packet_of(Kind::Initial, number, vec![crypto()])
        };
        run().sent(1, Server, retried()).sent(2, Client, answer)
    };
    for check in [retry, post_quantum_retry] {
        passes(check, &answered(2, vec![7; 8]));
        fails(check, &answered(2, vec![8; 8]), "not that of the Retry");
        fails(check, &answered(1, vec![7; 8]), "began again");
        fails(check, &answered(2, Vec::new()), "no Initial packet");
        fails(check, &run(), "no Retry");
    }
}

/// Two connections.
fn two() -> Evidence {
    let mut second = packet_of(Kind::Initial, 0, vec![crypto()]);
    second.from_id = vec![9];
    run().sent(2000, Server, second).with_facts(Facts {
        server_handshake_bytes: 400,
        ..Facts::default()
    })
}

#[test]
fn a_resumed_session_has_no_certificate() {
    passes(resumption, &two());
    fails(resumption, &run(), "1 handshakes");
    let none = two().with_fact(|facts| facts.has_certificate = false);
    fails(resumption, &none, "first handshake has no");
    let mut again = two();
    again.client.connections[1].has_certificate = true;
    fails(resumption, &again, "second handshake has a");
    let mut unread = two();
    unread.client.connections[1].server_handshake_bytes = 0;
    fails(resumption, &unread, "cannot be read");
}

#[test]
fn an_error_that_closes_a_connection_is_found() {
    let close = |code| packet_of(Kind::OneRtt, 9, vec![Frame::Close { code }]);
    assert_eq!(closed(&run()), None);
    let well = run().sent(2000, Client, close(0));
    assert_eq!(closed(&well.sent(2001, Client, close(0x100))), None);
    let badly = run().sent(2000, Server, close(0xb));
    let badly = badly.sent(2001, Client, close(1));
    assert_eq!(
        closed(&badly),
        Some("the server closes with 0xb".to_owned())
    );
}

#[test]
fn requests_are_early_data() {
    let early = packet_of(Kind::ZeroRtt, 0, vec![stream(0)]);
    passes(zero_rtt, &two().sent(2001, Client, early.clone()));
    fails(zero_rtt, &two(), "no stream data");
    let mut late = packet_of(Kind::OneRtt, 1, vec![stream(0)]);
    late.opened.as_mut().expect("contents").len = 4901;
    let run = two().sent(2001, Client, early).sent(2002, Client, late);
    fails(zero_rtt, &run, "5001 bytes");
}

#[test]
fn both_ends_change_their_keys() {
    let phase = |packet: &mut Packet| {
        if let Some(opened) = &mut packet.opened {
            opened.phase = packet.kind == Kind::OneRtt;
        }
    };
    passes(
        key_update,
        &run()
            .with_packets(Client, phase)
            .with_packets(Server, phase),
    );
    fails(key_update, &run().with_packets(Client, phase), "the server");
    fails(key_update, &run().with_packets(Server, phase), "the client");
}

#[test]
fn both_ends_mark_and_count() {
    let ack = || vec![Frame::Ack { with_ecn: true }];
    let counted = |ends: &[Role]| {
        ends.iter().fold(run(), |run, &end| {
            run.sent(2000, end, packet_of(Kind::OneRtt, 9, ack()))
        })
    };
    let marked = |run: Evidence, marks: [u8; 2]| {
        run.changed(|datagram| datagram.udp.ecn = marks[usize::from(datagram.from == Server)])
    };
    let both = || counted(&[Client, Server]);
    passes(ecn, &marked(both(), [2, 1]));
    fails(ecn, &marked(both(), [0, 2]), "the client marks nothing");
    fails(ecn, &marked(both(), [2, 0]), "the server marks nothing");
    let ce = marked(both(), [2, 2]);
    fails(
        ecn,
        &ce.sent(3000, Server, packet_of(Kind::OneRtt, 10, ack()))
            .changed(|datagram| {
                if datagram.at == Duration::from_secs(3) {
                    datagram.udp.ecn = 3;
                }
            }),
        "sends CE",
    );
    fails(
        ecn,
        &marked(counted(&[Client]), [2, 2]),
        "the server sends no counts",
    );
    fails(
        ecn,
        &marked(counted(&[Server]), [2, 2]),
        "the client sends no counts",
    );
}

#[test]
fn a_server_sends_thrice_what_it_received() {
    passes(amplification, &run());
    let small = run().with_fact(|facts| facts.server_handshake_bytes = 7499);
    fails(amplification, &small, "needs no limit");
    let much = |len| {
        run().changed(|datagram| {
            if datagram.from == Server {
                datagram.len = len;
            }
        })
    };
    passes(amplification, &much(7200));
    fails(amplification, &much(7201), "7201 bytes were sent for 2400");
    let never = run().with_packets(Client, |packet| packet.kind = Kind::Initial);
    fails(amplification, &never, "never validated");
    let other = packet_of(Kind::VersionNegotiation, 0, Vec::new());
    fails(
        amplification,
        &run().sent(3000, Server, other),
        "Version Negotiation",
    );
}

#[test]
fn fifty_handshakes_are_neither_more_nor_less() {
    let many = |count: u8| {
        (0..count - 1).fold(run(), |run, number| {
            let mut answer = packet_of(Kind::Initial, 0, vec![crypto()]);
            answer.from_id = vec![100, number];
            run.sent(2000, Server, answer)
        })
    };
    passes(fifty_handshakes, &many(50));
    fails(fifty_handshakes, &many(49), "49 handshakes");
    fails(fifty_handshakes, &many(51), "51 handshakes");
    // An answer that was lost counts.
    let mut lost = many(51);
    lost.client.datagrams.pop();
    fails(fifty_handshakes, &lost, "51 handshakes");
}

#[test]
fn version_2_follows_version_1() {
    let good = || {
        let answer = packet_of(Kind::Handshake, 0, Vec::new());
        let upgraded = run()
            .sent(45, Server, answer)
            .with_packets(Server, other_version);
        upgraded.with_packets(Client, |packet| {
            if packet.kind == Kind::Handshake {
                packet.version = Some(V2);
            }
        })
    };
    passes(version_2, &good());
    let begins = good().with_packets(Client, other_version);
    fails(version_2, &begins, "does not begin");
    let stays = good().with_packets(Server, |packet| {
        if packet.kind == Kind::Initial {
            packet.version = Some(V1);
        }
    });
    fails(version_2, &stays, "does not answer");
    for end in [Client, Server] {
        let mixed = good().sent(60, end, packet_of(Kind::Handshake, 1, Vec::new()));
        fails(version_2, &mixed, "Handshake packets");
    }
}

/// A run whose client is seen at another address, with a challenge that is answered.
fn moved(to: &str, challenge: Frame, answer: Frame) -> Evidence {
    run()
        .over(
            2000,
            Server,
            (SERVER, to),
            packet_of(Kind::OneRtt, 5, vec![challenge]),
        )
        .sent(2010, Client, packet_of(Kind::OneRtt, 5, vec![answer]))
}

#[test]
fn each_new_path_is_challenged_at_once() {
    let (challenge, answer) = (Frame::PathChallenge([1; 8]), Frame::PathResponse([1; 8]));
    let (port, ip) = ("10.0.0.1:16", "10.0.0.9:9");
    passes(
        port_rebinding,
        &moved(port, challenge.clone(), answer.clone()),
    );
    passes(
        address_rebinding,
        &moved(ip, challenge.clone(), answer.clone()),
    );
    fails(
        address_rebinding,
        &moved(port, challenge.clone(), answer.clone()),
        "address did not change",
    );
    fails(port_rebinding, &run(), "address did not change");
    fails(
        port_rebinding,
        &moved(port, Frame::Ping, answer),
        "no PATH_CHALLENGE",
    );
    let other = Frame::PathResponse([2; 8]);
    fails(
        port_rebinding,
        &moved(port, challenge, other),
        "1 challenges were not",
    );
}

#[test]
fn a_client_that_moves_takes_another_id() {
    let moves = |id: u8, last: &str| {
        let mut probe = packet_of(Kind::OneRtt, 6, vec![Frame::PathResponse([1; 8])]);
        probe.to_id = vec![id];
        let challenge = packet_of(Kind::OneRtt, 6, vec![Frame::PathChallenge([1; 8])]);
        run()
            .over(2000, Client, (CLIENT, PREFERRED), probe)
            .over(2010, Server, (PREFERRED, CLIENT), challenge)
            .over(
                2020,
                Server,
                (last, CLIENT),
                packet_of(Kind::OneRtt, 7, Vec::new()),
            )
    };
    passes(migration, &moves(3, PREFERRED));
    fails(migration, &moves(1, PREFERRED), "used on both paths");
    fails(migration, &moves(3, SERVER), "from its first address");
    fails(migration, &run(), "stays at the first");
}

#[test]
fn goodput_is_of_the_time_between_the_servers_packets() {
    assert_eq!(goodput(&run()), Ok("8000 kbit/s".to_owned()));
    let at_once = run().changed(|datagram| datagram.at = Duration::ZERO);
    fails(goodput, &at_once, "no time");
}

#[test]
fn groups_are_read_from_the_hellos() {
    let hellos = |hellos: &[ServerHello]| {
        let hellos = hellos.to_vec();
        run().with_fact(|facts| facts.server_hellos = hellos)
    };
    let (pq, classical) = (Group::X25519MLKEM768, Group::X25519);
    let retried = hellos(&[hello(pq, true), hello(pq, false)]);
    passes(group, &run());
    fails(group, &retried, "a HelloRetryRequest was sent");
    passes(hello_retry, &retried);
    fails(hello_retry, &run(), "no HelloRetryRequest");
    let other = hellos(&[hello(classical, false)]);
    fails(group, &other, "X25519 was chosen");
    fails(hello_retry, &other, "X25519 was chosen");
    fails(post_quantum, &other, "not post-quantum");
    fails(post_quantum_with_loss, &other, "not post-quantum");
    let mut small = run();
    small.client.datagrams.remove(1);
    fails(post_quantum, &small, "two datagrams");
}

#[test]
fn losses_cost_one_probe() {
    let delayed = |by: u64| {
        run().changed(|datagram| {
            if !datagram.at.is_zero() {
                datagram.at += Duration::from_millis(by);
            }
        })
    };
    passes(post_quantum_with_loss, &delayed(1000));
    fails(
        post_quantum_with_loss,
        &delayed(1300),
        "more than one probe",
    );
}

#[test]
fn without_packets_nothing_passes() {
    let nothing = || Evidence {
        groups: "X25519",
        client: Dissection::default(),
        server: Dissection::default(),
        bytes: 1,
    };
    for check in [
        one_handshake,
        handshake,
        long_rtt,
        chacha20,
        multiplexing,
        retry,
        resumption,
        zero_rtt,
        key_update,
        ecn,
        amplification,
        fifty_handshakes,
        ipv6,
        version_2,
        port_rebinding,
        address_rebinding,
        migration,
        goodput,
        arrived,
        group,
        hello_retry,
        post_quantum,
        post_quantum_retry,
        post_quantum_with_loss,
    ] {
        assert!(check(&nothing()).is_err());
    }
}

#[test]
fn entries_of_dynamic_tables_are_counted() {
    // A capacity of 220 (RFC 9204 §4.3.1), and two entries, whose parts come in any order, and twice.
    let client = [
        uni(6, 0, b"\x02\x3f\xbd\x01"),
        uni(6, 4, b"\x41"),
        uni(6, 4, b"\x41x\x01y\x41"),
        uni(6, 9, b"x\x01z"),
        uni(2, 0, b"\0\x04\0"),
    ];
    let server = uni(7, 0, b"\x02\x3f\xbd\x01\x41x\x01y");
    let both = run().sent(60, Client, packet_of(Kind::OneRtt, 9, client.to_vec()));
    let one_way = qpack(&both);
    assert_eq!(one_way, Err("the server inserts no entry".to_owned()));
    let both = both.sent(61, Server, packet_of(Kind::OneRtt, 9, vec![server]));
    assert_eq!(qpack(&both), Ok("2 and 1 entries".to_owned()));
    let more = uni(7, 8, b"\x80\0");
    let both = both.sent(62, Server, packet_of(Kind::OneRtt, 10, vec![more]));
    assert_eq!(qpack(&both), Ok("2 and 2 entries".to_owned()));
    // The name of an entry that is not there.
    let wrong = uni(7, 10, b"\x85\0");
    let both = both.sent(63, Server, packet_of(Kind::OneRtt, 11, vec![wrong]));
    assert!(qpack(&both).is_err_and(|text| text.contains("encoder stream")));
}

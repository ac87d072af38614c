//! Tests of the simulator itself: nodes do what they promise, and the ledger notices violations.

mod dual_queue;
mod impair;
mod links;
mod timeline;

use std::{net::SocketAddr, time::Duration};

use hybriq_tls::Side;

use super::{
    Datagram, Network, PacketKind, Rng, SERVER_ADDRESS, adversary, ms, one_in, packets, per_mille,
    world::{
        ledger::Ledger,
        trace::{Stage, Trace},
    },
};

const CLIENT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 9);

pub(crate) fn numbered(toward: Side, number: u32, len: usize) -> Datagram {
    let mut payload = vec![0; len.max(4)];
    payload[..4].copy_from_slice(&number.to_be_bytes());
    datagram(toward, payload)
}

fn datagram(toward: Side, payload: Vec<u8>) -> Datagram {
    let (source, destination) = if toward.is_server() {
        (CLIENT, SERVER_ADDRESS)
    } else {
        (SERVER_ADDRESS, CLIENT)
    };
    Datagram::new(source, destination, payload)
}

/// Sends numbered datagrams of 1,000 bytes a millisecond apart; returns what arrived, with its
/// time.
fn run(network: Network, toward: Side, count: u32) -> Vec<(Duration, u32)> {
    let sent = (0..count).map(|number| {
        let at = ms(number.into());
        (at, numbered(toward, number, 1000))
    });
    let came = deliver(network, toward, sent);
    let number =
        |datagram: &Datagram| u32::from_be_bytes(datagram.payload[..4].try_into().unwrap());
    came.iter()
        .map(|(at, datagram)| (*at, number(datagram)))
        .collect()
}

/// Sends datagrams at their times; returns what arrived, with its time.
pub(crate) fn deliver(
    mut network: Network,
    toward: Side,
    sent: impl IntoIterator<Item = (Duration, Datagram)>,
) -> Vec<(Duration, Datagram)> {
    let mut came = Vec::new();
    let mut until = |network: &mut Network, end: Duration| {
        while let Some(at) = network.next_timeout().filter(|&at| at < end) {
            while let Some((side, datagram)) = network.poll_delivery(at) {
                assert_eq!(side, toward);
                came.push((at, datagram));
            }
        }
    };
    for (at, datagram) in sent {
        until(&mut network, at);
        network.send(at, toward, datagram);
    }
    until(&mut network, Duration::MAX);
    assert!(network.is_quiet());
    came
}

fn numbers(came: &[(Duration, u32)]) -> Vec<u32> {
    came.iter().map(|&(_, number)| number).collect()
}

#[test]
fn a_perfect_network_changes_nothing() {
    let came = run(Network::new(1), Side::Server, 3);
    assert_eq!(came, [(ms(0), 0), (ms(1), 1), (ms(2), 2)]);
}

#[test]
fn delays_of_nodes_add_up_in_both_directions() {
    for side in [Side::Server, Side::Client] {
        let came = run(Network::new(1).delay(ms(50)).delay(ms(7)), side, 2);
        assert_eq!(came, [(ms(57), 0), (ms(58), 1)]);
    }
}

#[test]
fn the_way_back_passes_the_nodes_in_reverse() {
    // Five thousand bytes a second: the first datagram passes, then the queue is full.
    let network = || Network::new(1).drop_nth([0]).bandwidth(40_000, 500);
    assert_eq!(numbers(&run(network(), Side::Server, 2)), [1]);
    assert_eq!(numbers(&run(network(), Side::Client, 2)), [] as [u32; 0]);
}

#[test]
fn the_named_datagrams_are_lost() {
    let came = run(Network::new(1).drop_nth([0, 3]), Side::Client, 6);
    assert_eq!(numbers(&came), [1, 2, 4, 5]);
}

#[test]
fn a_node_towards_one_end_leaves_the_other_direction_alone() {
    let network = || Network::new(1).toward(Side::Server, super::DropNth::new([0]));
    assert_eq!(numbers(&run(network(), Side::Server, 2)), [1]);
    assert_eq!(numbers(&run(network(), Side::Client, 2)), [0, 1]);
}

#[test]
fn a_closure_picks_what_is_lost() {
    let network = Network::new(1).drop_if(|datagram, _| datagram.payload[3] % 2 == 1);
    assert_eq!(numbers(&run(network, Side::Server, 5)), [0, 2, 4]);
}

#[test]
fn loss_follows_its_chance_and_its_seed() {
    let lost = |seed| 10_000 - run(Network::new(seed).loss(one_in(20)), Side::Server, 10_000).len();
    let few = 10_000 - run(Network::new(1).loss(per_mille(5)), Side::Server, 10_000).len();
    assert!((25..80).contains(&few), "{few}");
    assert!((400..600).contains(&lost(1)), "{}", lost(1));
    assert_eq!(lost(1), lost(1));
    assert_ne!(lost(1), lost(2));
    assert_eq!(
        run(Network::new(1).loss(one_in(0)), Side::Server, 100).len(),
        100
    );
    assert!(run(Network::new(1).loss(one_in(1)), Side::Server, 100).is_empty());
}

#[test]
fn reordering_and_jitter_lose_nothing() {
    let network = Network::new(3).reorder(one_in(4), ms(5)).jitter(ms(3));
    let came = run(network, Side::Server, 100);
    let mut sorted = numbers(&came);
    assert!(!sorted.is_sorted());
    sorted.sort_unstable();
    assert_eq!(sorted, (0..100).collect::<Vec<_>>());
}

#[test]
fn a_duplicate_comes_later() {
    let came = run(
        Network::new(1).duplicate(one_in(1), ms(10)),
        Side::Server,
        1,
    );
    assert_eq!(came, [(ms(0), 0), (ms(10), 0)]);
}

#[test]
fn corruption_flips_exactly_one_bit() {
    let mut network = Network::new(1).corrupt(one_in(1));
    let sent = numbered(Side::Server, 0, 100);
    network.send(ms(0), Side::Server, sent.clone());
    let (_, came) = network.poll_delivery(ms(0)).unwrap();
    let flipped: u32 = sent
        .payload
        .iter()
        .zip(&came.payload)
        .map(|(a, b)| (a ^ b).count_ones())
        .sum();
    assert_eq!(flipped, 1);
}

#[test]
fn what_is_larger_than_the_mtu_is_lost() {
    assert_eq!(run(Network::new(1).mtu(1000), Side::Server, 2).len(), 2);
    assert!(run(Network::new(1).mtu(999), Side::Server, 2).is_empty());
}

#[test]
fn a_link_sends_at_its_rate() {
    // A datagram of 1,000 bytes takes 2 ms.
    let came = run(
        Network::new(1).bandwidth(4_000_000, 100_000),
        Side::Server,
        3,
    );
    assert_eq!(came, [(ms(2), 0), (ms(4), 1), (ms(6), 2)]);
}

#[test]
fn swapped_datagrams_change_places() {
    let network = Network::new(1).toward(Side::Server, adversary::Swap::new(1));
    assert_eq!(numbers(&run(network, Side::Server, 4)), [0, 2, 1, 3]);
}

#[test]
fn a_replayed_datagram_may_claim_another_origin() {
    let spoofed = SocketAddr::from(([203, 0, 113, 9], 1));
    let node = adversary::Replay::new(0, ms(5)).from(spoofed);
    let mut network = Network::new(1).toward(Side::Server, node);
    network.send(ms(0), Side::Server, numbered(Side::Server, 7, 10));
    let (_, first) = network.poll_delivery(ms(0)).unwrap();
    let (_, second) = network.poll_delivery(ms(5)).unwrap();
    assert_eq!((first.source, second.source), (CLIENT, spoofed));
    assert_eq!(first.payload, second.payload);
}

#[test]
fn generators_of_one_seed_are_independent() {
    let mut drawn: Vec<_> = (0..1000).map(|index| Rng::nth(5, index).draw()).collect();
    drawn.sort_unstable();
    drawn.dedup();
    assert_eq!(drawn.len(), 1000);
    let mut rng = Rng::new(9);
    assert!((0..1000).all(|_| rng.below(7) < 7));
}

/// Returns a long-header packet of `len` bytes with one-byte ids.
fn long(kind: u8, dcid: u8, scid: u8, len: usize) -> Vec<u8> {
    let mut packet = vec![0xc0 | kind << 4, 0, 0, 0, 1, 1, dcid, 1, scid];
    if kind == 0 {
        packet.push(0);
    }
    let payload = len - packet.len() - 2;
    packet.extend((payload as u16 | 0x4000).to_be_bytes());
    packet.resize(len, 0);
    packet
}

fn kinds(bytes: &[u8]) -> Vec<PacketKind> {
    packets(bytes).iter().map(|packet| packet.kind).collect()
}

#[test]
fn coalesced_packets_are_told_apart() {
    let bytes = [long(0, 1, 2, 100), long(2, 1, 2, 50), vec![0x40; 30]].concat();
    assert_eq!(
        kinds(&bytes),
        [
            PacketKind::Initial,
            PacketKind::Handshake,
            PacketKind::OneRtt
        ]
    );
    assert_eq!(packets(&bytes)[1].range, 100..150);
    assert_eq!(
        kinds(&bytes[..120]),
        [PacketKind::Initial, PacketKind::Unknown]
    );
    assert_eq!(kinds(&[0; 10]), [PacketKind::Unknown]);
    let greased = kinds(&[0; 30]);
    assert_eq!(greased, [PacketKind::OneRtt], "without the QUIC bit");
}

#[test]
fn the_ledger_notices_amplification() {
    let mut ledger = Ledger::default();
    ledger.on_server_received(&datagram(Side::Server, long(0, 1, 2, 1200)));
    for _ in 0..3 {
        ledger
            .on_sent(Side::Client, &datagram(Side::Client, long(0, 2, 3, 1200)))
            .unwrap();
    }
    let more = datagram(Side::Client, long(2, 2, 3, 20));
    assert!(
        ledger
            .on_sent(Side::Client, &more)
            .unwrap_err()
            .contains("not validated")
    );
    ledger.on_server_received(&datagram(Side::Server, long(2, 3, 2, 40)));
    ledger.on_sent(Side::Client, &more).unwrap();
}

#[test]
fn the_ledger_knows_that_a_challenge_is_answered_from_anywhere() {
    let reached = datagram(Side::Client, vec![0x40; 35]);
    let more = datagram(Side::Client, vec![0x40; 1200]);
    let mut answer = datagram(Side::Server, vec![0x40; 1200]);
    answer.source = SocketAddr::from(([203, 0, 113, 2], 1126));
    for hostile in [false, true] {
        let mut ledger = Ledger::default();
        ledger.hostile_clients = hostile;
        ledger.on_server_received(&datagram(Side::Server, vec![0x40; 29]));
        ledger.on_sent(Side::Client, &reached).unwrap();
        ledger.on_client_received(&reached);
        ledger.on_server_received(&answer);
        assert_eq!(ledger.on_sent(Side::Client, &more).is_ok(), hostile);
    }
    let mut ledger = Ledger::default();
    ledger.hostile_clients = true;
    ledger.on_server_received(&datagram(Side::Server, vec![0x40; 29]));
    ledger.on_server_received(&answer);
    let nobody = ledger.on_sent(Side::Client, &more);
    assert!(nobody.is_err(), "no client is there");
}

#[test]
fn the_ledger_notices_a_small_initial_of_a_client() {
    let small = datagram(Side::Server, long(0, 1, 2, 1199));
    assert!(Ledger::default().on_sent(Side::Server, &small).is_err());
}

#[test]
fn the_ledger_notices_a_second_source_connection_id() {
    let mut ledger = Ledger::default();
    ledger.on_server_received(&datagram(Side::Server, long(0, 1, 2, 1200)));
    ledger
        .on_sent(Side::Client, &datagram(Side::Client, long(0, 2, 3, 60)))
        .unwrap();
    ledger
        .on_sent(Side::Client, &datagram(Side::Client, long(2, 2, 3, 60)))
        .unwrap();
    assert!(
        ledger
            .on_sent(Side::Client, &datagram(Side::Client, long(2, 2, 4, 60)))
            .is_err()
    );
}

#[test]
fn the_ledger_notices_bytes_that_are_no_packet() {
    let mut bytes = long(0, 1, 2, 1200);
    bytes.extend([0; 7]);
    assert!(
        Ledger::default()
            .on_sent(Side::Server, &datagram(Side::Server, bytes))
            .is_err()
    );
}

#[test]
fn a_bounded_trace_keeps_the_beginning_and_the_end() {
    let mut trace = Trace::default();
    trace.keep_at_most(1000);
    for number in 0..100_000 {
        let datagram = numbered(Side::Server, number, 1000);
        trace.push(ms(number.into()), Stage::Sent, Side::Server, &datagram);
        assert!(trace.records().len() <= 1000);
    }
    let at = |index: usize| trace.records()[index].at;
    assert_eq!((at(0), at(59)), (ms(0), ms(59)));
    let kept = trace.records().len();
    assert_eq!((at(kept - 1), at(kept - 400)), (ms(99_999), ms(99_600)));
    let more = 100_000 - 120;
    assert!(trace.to_string().contains(&format!("… {more} more …")));
}

//! The first datagrams of a post-quantum handshake on the wire.

use hybriq::{Backend, Group, KeyExchange, tls::Side};
use hybriq_proto::wire::packet::{Cid, PacketNumber};
use hybriq_sim::{
    Ask, DelayNth, DropNth, Initial, InitialFrame, Network, PacketKind, Progress, World, join, ms,
};

use crate::support::{
    LIMIT, PTO, RTT, answered_after, check, client, exchange, only, pair, plain, server,
    server_with_large_certificate, world,
};

/// The only client's address.
fn address(world: &World) -> std::net::SocketAddr {
    world.client_host(0).address
}

fn initials(world: &World, writer: Side) -> Vec<(std::time::Duration, Initial)> {
    world.trace().initials(writer, address(world))
}

fn hello_of(initials: &[(std::time::Duration, Initial)]) -> Vec<u8> {
    join(initials.iter().map(|(_, initial)| initial))
}

#[test]
fn a_post_quantum_client_hello_leaves_in_two_full_datagrams_at_once() {
    for group in [Group::X25519MLKEM768, Group::SECP384R1MLKEM1024] {
        let (client, server) = (client(Backend::Rustls, only(group)), pair().1);
        let world = exchange(plain(1), &client, &server);
        let first: Vec<_> = world
            .trace()
            .sent(Side::Server)
            .filter(|record| record.at.is_zero())
            .collect();
        assert_eq!(
            first.iter().map(|record| record.size).collect::<Vec<_>>(),
            [1200, 1200]
        );

        let sent = initials(&world, Side::Client);
        let share =
            |index: usize| -> usize { sent[index].1.crypto().map(|(_, data)| data.len()).sum() };
        assert!(
            share(0).abs_diff(share(1)) <= 1,
            "{} and {} bytes",
            share(0),
            share(1)
        );
        let len = u32::from_be_bytes(hello_of(&sent)[..4].try_into().unwrap()) & 0xff_ffff;
        assert_eq!(
            share(0) + share(1),
            len as usize + 4,
            "the two carry the whole ClientHello"
        );
    }
}

#[test]
fn a_classical_client_hello_takes_one_datagram() {
    let client = client(Backend::Rustls, only(Group::X25519));
    let world = exchange(plain(1), &client, &pair().1);
    let first = world
        .trace()
        .sent(Side::Server)
        .filter(|record| record.at.is_zero());
    assert_eq!(first.count(), 1);
}

#[test]
fn one_byte_there_and_back_takes_nine_datagrams_at_most() {
    for (client, server) in [
        pair(),
        (
            client(Backend::S2nTls, KeyExchange::default()),
            server(Backend::S2nTls, KeyExchange::default()),
        ),
    ] {
        let world = exchange(plain(1), &client, &server);
        let count = world.trace().datagrams();
        assert!(count <= 9, "{count} datagrams");
    }
}

#[test]
fn a_pto_sends_both_halves_of_a_client_hello_again() {
    let (client, server) = pair();
    let network = plain(1).toward(Side::Server, DropNth::new([0, 1]));
    let world = exchange(network, &client, &server);
    let again: Vec<_> = initials(&world, Side::Client)
        .into_iter()
        .filter(|&(at, _)| at == PTO)
        .collect();
    assert_eq!(again.len(), 2, "both datagrams go again, and at once");
    let whole = hello_of(&initials(&world, Side::Client));
    assert_eq!(hello_of(&again), whole);
    assert_eq!(answered_after(&world), 2 * RTT + PTO);
}

#[test]
fn whatever_is_sent_again_covers_every_byte_of_the_client_hello() {
    let (client, server) = pair();
    for lost in [
        vec![0],
        vec![1],
        vec![0, 1],
        vec![0, 1, 2],
        vec![1, 2],
        vec![0, 1, 2, 3],
    ] {
        let network = plain(1).toward(Side::Server, DropNth::new(lost.clone()));
        let world = exchange(network, &client, &server);
        let sent = initials(&world, Side::Client);
        let whole = hello_of(&sent);
        let arrived: Vec<_> = sent
            .iter()
            .enumerate()
            .filter(|(place, _)| !lost.contains(place))
            .map(|(_, (_, initial))| initial)
            .collect();
        assert_eq!(join(arrived), whole, "lost {lost:?}");
    }
}

/// Holds the second half of the ClientHello back.
fn late_second_half() -> Network {
    plain(1).toward(Side::Server, DelayNth::new([1], RTT))
}

#[test]
fn a_partial_client_hello_is_acknowledged_within_a_millisecond_and_not_padded() {
    let (client, server) = pair();
    let mut world = world(late_second_half(), &client, &server, Ask::one_byte());
    world.run_for(RTT / 2 + ms(10));
    let stats = world.server().stats();
    assert_eq!(
        (stats.partial_hellos, stats.connections),
        (1, 0),
        "no connection for half a hello"
    );

    let answers: Vec<_> = world.trace().sent(Side::Client).collect();
    let [answer] = answers[..] else {
        panic!("{} answers to half a ClientHello", answers.len())
    };
    let waited = answer.at.saturating_sub(RTT / 2);
    assert!(
        waited > ms(0) && waited <= ms(1),
        "acknowledged after {waited:?}"
    );
    assert!(
        answer.size < 100,
        "an acknowledgement of {} bytes",
        answer.size
    );
    let (_, ack) = &initials(&world, Side::Server)[0];
    assert_eq!(
        ack.frames,
        [InitialFrame::Ack(vec![
            PacketNumber::ZERO..=PacketNumber::ZERO
        ])]
    );
    world.run(LIMIT);
    check(&world);
}

#[test]
fn a_second_half_that_comes_in_time_saves_the_acknowledgement() {
    let (client, server) = pair();
    let network = plain(1).toward(Side::Server, DelayNth::new([1], ms(1) / 2));
    let world = exchange(network, &client, &server);
    let first = &initials(&world, Side::Server)[0].1;
    assert!(
        first.crypto().next().is_some(),
        "the first answer carries the ServerHello"
    );
}

#[test]
fn one_source_connection_id_answers_from_the_first_acknowledgement_on() {
    let (client, server) = pair();
    let world = exchange(late_second_half(), &client, &server);
    let ids: Vec<Cid> = world
        .trace()
        .sent(Side::Client)
        .flat_map(|record| &record.packets)
        .filter(|packet| packet.kind != PacketKind::OneRtt)
        .map(|packet| packet.scid)
        .collect();
    assert!(
        ids.len() > 2 && ids.iter().all(|id| *id == ids[0]),
        "{ids:?}"
    );
}

/// Proves: rfc9000 8.1 all-bytes-of-a-datagram-count
#[test]
fn the_server_may_send_three_times_both_halves() {
    for backend in Backend::ALL {
        let (client, server) = (pair().0, server_with_large_certificate(backend));
        let world = exchange(plain(1), &client, &server);
        let flight: usize = world
            .trace()
            .sent(Side::Client)
            .filter(|record| record.at == RTT / 2)
            .map(|record| record.size)
            .sum();
        assert!(
            (3601..=7200).contains(&flight),
            "a first flight of {flight} bytes"
        );
        assert_eq!(
            answered_after(&world),
            2 * RTT,
            "no round trip was lost to the limit"
        );
    }
}

#[test]
fn the_servers_flight_is_coalesced() {
    let (client, server) = pair();
    let world = exchange(plain(1), &client, &server);
    let flight: Vec<_> = world
        .trace()
        .sent(Side::Client)
        .filter(|record| record.at == RTT / 2)
        .collect();
    let mixed = flight
        .iter()
        .any(|record| record.has(PacketKind::Initial) && record.has(PacketKind::Handshake));
    assert!(mixed, "an Initial shares a datagram with Handshake packets");
    assert!(flight.len() <= 3, "{} datagrams", flight.len());
}

#[test]
fn the_servers_acknowledgements_alone_are_not_padded() {
    let (client, server) = pair();
    for place in 0..4 {
        let network = plain(1).toward(Side::Server, DelayNth::new([place], 2 * PTO));
        let world = exchange(network, &client, &server);
        for (at, initial) in initials(&world, Side::Server) {
            let only_acks = initial
                .frames
                .iter()
                .all(|frame| matches!(frame, InitialFrame::Ack(_) | InitialFrame::Padding(_)));
            assert!(
                !only_acks || initial.size < 200,
                "{} bytes at {at:?}",
                initial.size
            );
        }
    }
}

/// Proves: rfc9000 14.1 server-initials-are-full
#[test]
fn what_the_server_wants_acknowledged_in_an_initial_fills_its_datagram() {
    let (client, server) = pair();
    for mask in 0..64_usize {
        let lost = (0..6).filter(move |place| mask >> place & 1 == 1);
        let world = exchange(plain(1).drop_nth(lost), &client, &server);
        for (at, initial) in initials(&world, Side::Server) {
            let eliciting = initial
                .frames
                .iter()
                .any(|frame| matches!(frame, InitialFrame::Crypto { .. } | InitialFrame::Ping));
            assert!(
                !eliciting || initial.datagram_size >= 1200,
                "{at:?}: {initial:?}"
            );
        }
    }
}

#[test]
fn a_resumed_handshake_still_exchanges_post_quantum_keys() {
    let world = crate::support::resumed_exchange();
    let client = world.client(1);
    assert_eq!(
        client.progress(),
        Progress::Done,
        "{:?}",
        client.close_reason()
    );
    let second = client.handshake.clone().unwrap();
    assert!(second.resumed, "the second connection is resumed");
    assert_eq!(second.key_exchange.group, Group::X25519MLKEM768);
}

//! Bounds on what strangers can make an endpoint store.

mod restart;
mod tokens;

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use hybriq_tls::{Backend, ClientOptions, Identity, PrivateKeyDer, ServerOptions, Side};

use super::{Arrival, Endpoint, Local, Routed, Setup, hello::table::Crypto};
use crate::{
    config::TransportConfig,
    forge::{InitialFrame, build_initial, join, open_initials},
    owners::cids::{CidGenerator as _, RandomCids, ResetKey, TOKENS},
    stats::DropReason,
    testing::{SystemRandom, pn},
    wire::{limits, packet::Cid},
};

fn arrival(port: u16) -> Arrival {
    Arrival {
        peer: SocketAddr::from(([192, 0, 2, 1], port)),
        local: Local::default(),
        ecn: None,
    }
}

fn server() -> Endpoint {
    server_with(&server_options())
}

fn early_server() -> Endpoint {
    server_with(&server_options().accept_early_data())
}

fn server_options() -> ServerOptions {
    let made = rcgen::generate_simple_self_signed(["server.test".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    ServerOptions::new(Identity::from_der(vec![made.cert.der().clone()], key)).alpn(["test"])
}

fn server_with(options: &ServerOptions) -> Endpoint {
    let setup = Setup {
        provider: Backend::Rustls.server(options).unwrap(),
        transport: Arc::new(TransportConfig::new()),
    };
    Endpoint::new(0, Box::new(SystemRandom::new()), Some(setup))
}

/// The bytes of a ClientHello, and the id that its client chose for itself.
fn client_hello(now: Instant) -> (Vec<u8>, Cid) {
    let setup = Setup {
        provider: Backend::Rustls
            .client(&ClientOptions::new().alpn(["test"]))
            .unwrap(),
        transport: Arc::new(TransportConfig::new()),
    };
    let mut endpoint = Endpoint::new(0, Box::new(SystemRandom::new()), None);
    let (_, mut connection) = endpoint
        .connect(now, &setup, arrival(443).peer, "server.test")
        .unwrap();
    let mut out = vec![0; 65_536];
    let transmit = connection.poll_transmit(now, &mut out, 10).unwrap();
    let datagrams = out[..transmit.size].chunks(transmit.segment_size.unwrap());
    let dcid = Cid::new(&out[6..14]).unwrap();
    let initials: Vec<_> = datagrams
        .flat_map(|datagram| open_initials(datagram, &dcid, Side::Client))
        .collect();
    (join(&initials), initials[0].scid)
}

fn whole_hello(bytes: &[u8], dcid: Cid, scid: Cid) -> [Vec<u8>; 2] {
    let (head, tail) = bytes.split_at(bytes.len() / 2);
    let packet = |number, offset, data: &[u8]| {
        let frame = InitialFrame::Crypto {
            offset,
            data: data.to_vec(),
        };
        build_initial(dcid, scid, number, &[frame])
    };
    [
        packet(pn(0), 0, head),
        packet(pn(1), head.len() as u64, tail),
    ]
}

/// Proves: security 9 incoming-queue-is-capped
#[test]
fn clients_that_wait_for_a_decision_are_bounded() {
    let now = Instant::now();
    let mut endpoint = server();
    let (bytes, scid) = client_hello(now);
    let mut waiting = Vec::new();
    let offer = |endpoint: &mut Endpoint, index: u64| {
        let dcid = Cid::from(index.to_be_bytes());
        let [mut head, mut tail] = whole_hello(&bytes, dcid, scid);
        let first = endpoint.on_datagram(now, &arrival(1), &mut head);
        assert!(matches!(first, Routed::Consumed), "{first:?}");
        match endpoint.on_datagram(now, &arrival(1), &mut tail) {
            Routed::Incoming(incoming) => Some(*incoming),
            Routed::Dropped(_) => None,
            other => panic!("{other:?}"),
        }
    };
    let unproven = limits::WAITING_INCOMING as u64 / 2;
    for index in 0..unproven {
        waiting.push(offer(&mut endpoint, index).expect("there is room"));
    }
    let dcid = Cid::from((1_u64 << 40).to_be_bytes());
    let [mut head, _] = whole_hello(&bytes, dcid, scid);
    let first = endpoint.on_datagram(now, &arrival(1), &mut head);
    assert!(matches!(first, Routed::Consumed), "{first:?}");
    let stats = endpoint.stats();
    assert_eq!(stats.retries_sent, 1, "the rest is for proven addresses");
    assert_eq!(
        (stats.waiting_incoming, stats.partial_hellos),
        (unproven, 0)
    );

    endpoint.ignore(waiting.pop().unwrap());
    assert!(offer(&mut endpoint, 1 << 41).is_some());
}

#[test]
fn the_backlog_is_what_was_asked_for_within_its_bounds() {
    let now = Instant::now();
    // Half of the places, without a proof of the address.
    for (asked, allowed) in [(0, 1), (3, 2), (usize::MAX, limits::WAITING_INCOMING / 2)] {
        let mut endpoint = server();
        endpoint.set_accept_backlog(asked);
        let (bytes, scid) = client_hello(now);
        let mut waiting = Vec::new();
        for index in 0..limits::WAITING_INCOMING as u64 + 2 {
            let dcid = Cid::from(index.to_be_bytes());
            for mut datagram in whole_hello(&bytes, dcid, scid) {
                let routed = endpoint.on_datagram(now, &arrival(1), &mut datagram);
                if let Routed::Incoming(incoming) = routed {
                    waiting.push(incoming);
                }
            }
        }
        assert_eq!(waiting.len(), allowed);
    }
}

#[test]
fn dropped_datagrams_are_counted_by_reason() {
    let now = Instant::now();
    let mut endpoint = server();
    let forgotten = endpoint.new_cid();
    let mut take = |bytes: &[u8]| {
        endpoint.on_datagram(now, &arrival(1), &mut bytes.to_vec());
        endpoint.stats().drops
    };
    assert_eq!(take(&[]).malformed, 1);
    assert_eq!(take(&[0xc0]).malformed, 2);
    // A short header that belongs to no connection, too small for a stateless reset.
    let short = take(&[&[0x40], forgotten.as_bytes(), &[0; 12]].concat());
    assert_eq!(short.unknown_connection, 1, "{short:?}");
    // A version that nobody speaks, too small for an answer.
    let unknown = [0xc0, 9, 9, 9, 9, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0];
    assert_eq!(take(&unknown).unknown_version, 1);
    let (bytes, scid) = client_hello(now);
    let [head, _] = whole_hello(&bytes, Cid::from([7; 8]), scid);
    let mut damaged = head.clone();
    *damaged.last_mut().unwrap() ^= 1;
    assert_eq!(take(&damaged).useless_hello, 1);
    // Early data for a server that accepts none.
    let mut early = vec![0xd0, 0, 0, 0, 1, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0x44, 0x00];
    early.resize(17 + 1024, 0);
    let drops = take(&early);
    assert_eq!(drops.too_early, 1, "{drops:?}");
    let sum: u64 = drops.by_label().map(|(_, count)| count).sum();
    assert_eq!((sum, endpoint.stats().datagrams_dropped), (6, 6));
}

/// A datagram from port 0, from a group or from all hosts can never be answered: the system would
/// refuse to send the answer, and whoever sends such a datagram wants just this.
#[test]
fn datagrams_from_impossible_sources_are_dropped_before_anything_is_spent() {
    let now = Instant::now();
    let mut endpoint = server();
    let (bytes, scid) = client_hello(now);
    let [hello, _] = whole_hello(&bytes, Cid::from([7; 8]), scid);
    let mut unknown_version = vec![0; limits::MIN_DATAGRAM];
    unknown_version[..15].copy_from_slice(&[0xc0, 9, 9, 9, 9, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0]);
    let forgotten = endpoint.new_cid();
    let stranger = [&[0x40], forgotten.as_bytes(), &[0; 100]].concat();
    let handshake = {
        let mut packet = vec![0xe0, 0, 0, 0, 1, forgotten.as_bytes().len() as u8];
        packet.extend_from_slice(forgotten.as_bytes());
        packet.extend_from_slice(&[0, 0x40, 100]);
        packet.resize(packet.len() + 100, 0);
        packet
    };
    let datagrams = [hello, unknown_version, stranger, handshake];
    let sources = [
        "192.0.2.1:0",
        "0.0.0.0:5",
        "224.0.0.1:5",
        "255.255.255.255:5",
        "[2001:db8::1]:0",
        "[::]:5",
        "[ff02::1]:5",
        "[::ffff:0.0.0.0]:5",
        "[::ffff:224.0.0.1]:5",
    ];
    let mut out = vec![0; 65_536];
    for source in sources {
        for datagram in &datagrams {
            let arrival = Arrival {
                peer: source.parse().unwrap(),
                ..arrival(1)
            };
            let mut datagram = datagram.clone();
            let routed = endpoint.on_datagram(now, &arrival, &mut datagram);
            assert!(
                matches!(routed, Routed::Dropped(DropReason::ImpossibleSource)),
                "{source}: {routed:?}"
            );
            let later = now + Duration::from_secs(1);
            assert!(endpoint.poll_transmit(later, &mut out).is_none());
        }
    }
    let stats = endpoint.stats();
    let dropped = (sources.len() * datagrams.len()) as u64;
    assert_eq!(stats.drops.impossible_source, dropped);
    assert_eq!((stats.partial_hellos, stats.stateless_resets), (0, 0));
    for mut datagram in datagrams {
        let routed = endpoint.on_datagram(now, &arrival(1), &mut datagram);
        assert!(matches!(routed, Routed::Consumed), "{routed:?}");
    }
}

/// Each reset costs a MAC, and strangers send as many packets as they like.
#[test]
fn reset_tokens_are_computed_for_resets_that_are_sent_alone() {
    let now = Instant::now();
    let mut endpoint = server();
    let forgotten = endpoint.new_cid();
    let stranger = [&[0x40], forgotten.as_bytes(), &[0; 100]].concat();
    let before = TOKENS.get();
    for _ in 0..10_000 {
        endpoint.on_datagram(now, &arrival(1), &mut stranger.clone());
    }
    let (computed, sent) = (TOKENS.get() - before, endpoint.stats().stateless_resets);
    assert!((1..100).contains(&sent), "{sent}");
    assert_eq!(computed as u64, sent);
}

#[test]
fn answers_to_strangers_are_bounded() {
    let now = Instant::now();
    let mut endpoint = server();
    let mut datagram = vec![0; limits::MIN_DATAGRAM];
    datagram[..15].copy_from_slice(&[0xc0, 9, 9, 9, 9, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0]);
    for _ in 0..limits::WAITING_ANSWERS {
        let routed = endpoint.on_datagram(now, &arrival(1), &mut datagram);
        assert!(matches!(routed, Routed::Consumed), "{routed:?}");
    }
    let routed = endpoint.on_datagram(now, &arrival(1), &mut datagram);
    assert!(
        matches!(routed, Routed::Dropped(DropReason::Overload)),
        "{routed:?}"
    );
    let mut out = vec![0; 2048];
    let answers = std::iter::from_fn(|| endpoint.poll_transmit(now, &mut out));
    assert_eq!(answers.count(), limits::WAITING_ANSWERS);
}

/// The first byte contains the index of the worker, which is hidden from anyone without the key.
///
/// Proves: rfc9000 5.1 ids-tell-nothing
#[test]
fn ids_of_one_worker_look_like_any() {
    let mut endpoint = server();
    let key = ResetKey::generate(&mut SystemRandom::new());
    let generator = RandomCids::default().keyed(&key).expect("a key");
    endpoint.set_cid_generator(generator);
    endpoint.set_reset_key(key);
    endpoint.set_workers(4);
    let firsts: std::collections::HashSet<u8> = (0..1000)
        .map(|_| endpoint.issue().0.as_bytes()[0])
        .collect();
    assert!(firsts.len() > 200, "{}", firsts.len());
    let mut bytes = [0; 8];
    let plain = RandomCids::default();
    for worker in [0, 1, 255] {
        for key in [[1; 32], [2; 32]] {
            let keyed = plain.keyed(&ResetKey::from_secret(key)).expect("a key");
            keyed.generate(worker, &mut bytes);
            assert_eq!(keyed.worker(&bytes), Some(worker));
            bytes[7] ^= 1;
        }
    }
}

#[test]
fn a_packet_with_an_id_of_another_worker_is_foreign() {
    let now = Instant::now();
    let mut endpoint = server();
    let mut datagram = vec![0x40; 40];
    datagram[1] = 3;
    let routed = endpoint.on_datagram(now, &arrival(1), &mut datagram);
    assert!(matches!(routed, Routed::Foreign(3, _)), "{routed:?}");
    endpoint.set_workers(3);
    for own in [0, 3] {
        datagram[1] = own;
        let routed = endpoint.on_datagram(now, &arrival(1), &mut datagram);
        // The datagram may be the reset for a connection of any worker, besides being answered with
        // one.
        assert!(matches!(routed, Routed::Stray(_)), "{routed:?}");
        assert!(matches!(
            endpoint.on_stray(&mut datagram),
            Routed::Dropped(_)
        ));
    }
    assert_eq!(endpoint.stats().stateless_resets, 2);
    endpoint.set_workers(1);
    let routed = endpoint.on_datagram(now, &arrival(1), &mut datagram);
    assert!(matches!(routed, Routed::Consumed), "{routed:?}");
}

#[test]
fn a_client_hello_holds_its_bound_and_not_a_byte_more() {
    let mut crypto = Crypto::default();
    assert!(
        crypto
            .insert(limits::PARTIAL_HELLO_BYTES as u64 - 1, &[0])
            .is_ok()
    );
    assert!(
        crypto
            .insert(limits::PARTIAL_HELLO_BYTES as u64, &[0])
            .is_err()
    );
}

/// Proves: security 5 hellos-in-pieces-are-bounded
#[test]
fn the_pieces_of_partial_hellos_count_for_what_they_take() {
    let now = Instant::now();
    let mut endpoint = server();
    for index in 0..limits::PARTIAL_HELLOS as u64 {
        let pieces = (0..limits::CRYPTO_PIECES as u64).map(|piece| InitialFrame::Crypto {
            offset: 1 + 2 * piece,
            data: vec![0],
        });
        let frames: Vec<_> = pieces.collect();
        let dcid = Cid::from(index.to_be_bytes());
        let mut datagram = build_initial(dcid, Cid::EMPTY, pn(0), &frames);
        let routed = endpoint.on_datagram(now, &arrival(1), &mut datagram);
        assert!(matches!(routed, Routed::Consumed), "{routed:?}");
    }
    let held = endpoint.stats().partial_hellos as usize;
    let most = limits::PARTIAL_HELLOS_BYTES / (limits::CRYPTO_PIECES * 256);
    assert!(held <= most, "{held} of {most}");
}

/// Proves: security 5 hellos-in-pieces-are-bounded
#[test]
fn partial_hellos_are_bounded_in_bytes_too() {
    let now = Instant::now();
    let mut endpoint = server();
    let piece = vec![0; 1100];
    let frame = |offset| InitialFrame::Crypto {
        offset,
        data: piece.clone(),
    };
    let per_hello = 2 * 10 * piece.len() + 2 * 256;
    let fit = limits::PARTIAL_HELLOS_BYTES / per_hello;
    for index in 0..fit as u64 + 20 {
        let dcid = Cid::from(index.to_be_bytes());
        for number in 0..10 {
            // Without its first byte it never becomes complete.
            let offset = 1 + number * piece.len() as u64;
            let mut datagram = build_initial(dcid, Cid::EMPTY, pn(number), &[frame(offset)]);
            let routed = endpoint.on_datagram(now, &arrival(1), &mut datagram);
            assert!(matches!(routed, Routed::Consumed), "{routed:?}");
        }
    }
    let held = endpoint.stats().partial_hellos as usize;
    assert!((fit - 1..=fit + 1).contains(&held), "{held} of {fit}");
}

/// A 0-RTT packet, as far as it can be read without keys.
fn zero_rtt(dcid: Cid, len: usize) -> Vec<u8> {
    let mut packet = vec![0xd0, 0, 0, 0, 1, dcid.len() as u8];
    packet.extend_from_slice(dcid.as_bytes());
    packet.push(0);
    let rest = (len - packet.len() - 2) as u16;
    packet.extend_from_slice(&(0x4000 | rest).to_be_bytes());
    packet.resize(len, 0);
    packet
}

fn kept_of(endpoint: &mut Endpoint, dcid: Cid, peer: SocketAddr) -> usize {
    let kept = endpoint.early.take(&(dcid, peer));
    kept.map_or(0, |kept| kept.packets.len())
}

/// Proves: security 5 early-packets-are-bounded
#[test]
fn early_packets_of_strangers_are_bounded() {
    let now = Instant::now();
    let mut endpoint = early_server();
    let one = Cid::from(7_u64.to_be_bytes());
    for _ in 0..100 {
        let mut packet = zero_rtt(one, 1200);
        endpoint.on_datagram(now, &arrival(1), &mut packet);
    }
    let packets = limits::EARLY_BYTES / 1500;
    let kept = kept_of(&mut endpoint, one, arrival(1).peer);
    assert!((packets..=packets + 2).contains(&kept), "{kept} packets");
    assert_eq!(endpoint.early.bytes, 0);

    let clients = 2 * limits::ALL_EARLY_BYTES / 1456;
    for index in 0..clients as u64 {
        let mut packet = zero_rtt(Cid::from(index.to_be_bytes()), 1200);
        endpoint.on_datagram(now, &arrival(1), &mut packet);
        assert!(endpoint.early.bytes <= limits::ALL_EARLY_BYTES);
    }
    assert_eq!(
        kept_of(&mut endpoint, Cid::from([0; 8]), arrival(1).peer),
        0
    );
    let last = Cid::from((clients as u64 - 1).to_be_bytes());
    assert_eq!(
        kept_of(&mut endpoint, last, arrival(1).peer),
        1,
        "the oldest gave way"
    );
}

/// Proves: security 5 early-packets-are-bounded
#[test]
fn early_packets_that_are_too_large_leave_no_trace() {
    let now = Instant::now();
    let mut endpoint = early_server();
    for index in 0..20_000_u64 {
        let id = Cid::from(index.to_be_bytes());
        endpoint.on_datagram(
            now,
            &arrival(1),
            &mut zero_rtt(id, limits::EARLY_BYTES - 100),
        );
    }
    assert_eq!(endpoint.early.clients(), 0);
}

/// Proves: security 5 early-packets-are-bounded
#[test]
fn early_packets_are_forgotten_although_no_more_come() {
    let now = Instant::now();
    let mut endpoint = early_server();
    for index in 0..100_u64 {
        let id = Cid::from(index.to_be_bytes());
        endpoint.on_datagram(now, &arrival(1), &mut zero_rtt(id, 1000));
    }
    let timeout = endpoint.next_timeout().unwrap();
    assert_eq!(timeout, now + limits::EARLY_LIFETIME);
    endpoint.on_timeout(timeout);
    assert_eq!((endpoint.early.clients(), endpoint.early.bytes), (0, 0));
    assert_eq!(endpoint.next_timeout(), None);
}

#[test]
fn early_packets_are_forgotten_after_a_while_and_with_their_client() {
    let now = Instant::now();
    let mut endpoint = early_server();
    let id = |index: u64| Cid::from(index.to_be_bytes());
    endpoint.on_datagram(now, &arrival(1), &mut zero_rtt(id(1), 100));
    let later = now + 2 * limits::EARLY_LIFETIME;
    endpoint.on_datagram(later, &arrival(1), &mut zero_rtt(id(2), 100));
    assert_eq!(kept_of(&mut endpoint, id(1), arrival(1).peer), 0);
    assert_eq!(kept_of(&mut endpoint, id(2), arrival(1).peer), 1);

    let (bytes, scid) = client_hello(now);
    let [mut head, mut tail] = whole_hello(&bytes, id(3), scid);
    endpoint.on_datagram(later, &arrival(1), &mut head);
    endpoint.on_datagram(later, &arrival(1), &mut zero_rtt(id(3), 100));
    assert_ne!(endpoint.early.bytes, 0);
    let Routed::Incoming(incoming) = endpoint.on_datagram(later, &arrival(1), &mut tail) else {
        panic!("the ClientHello is whole");
    };
    endpoint.refuse(*incoming);
    assert_eq!(endpoint.early.bytes, 0);
}

/// A client that fills its window with 0-RTT packets could not resend the missing part of its
/// ClientHello (see `early_packets::FEW`).
#[test]
fn half_a_hello_before_many_early_packets_is_not_acknowledged() {
    for (early, acknowledged) in [(0, true), (3, true), (4, false), (8, false)] {
        let now = Instant::now();
        let mut endpoint = early_server();
        let dcid = Cid::from([3; 8]);
        let (bytes, scid) = client_hello(now);
        let [mut head, _lost] = whole_hello(&bytes, dcid, scid);
        endpoint.on_datagram(now, &arrival(1), &mut head);
        for _ in 0..early {
            endpoint.on_datagram(now, &arrival(1), &mut zero_rtt(dcid, 1200));
        }
        let later = now + limits::PARTIAL_HELLO_ACK_DELAY;
        let answer = endpoint.poll_transmit(later, &mut [0; 1500]);
        assert_eq!(answer.is_some(), acknowledged, "{early} early packets");
    }
}

#[test]
fn a_server_without_early_data_keeps_no_early_packets() {
    let mut endpoint = server();
    let dcid = Cid::from([9; 8]);
    let mut datagram = zero_rtt(dcid, 1200);
    let routed = endpoint.on_datagram(Instant::now(), &arrival(1), &mut datagram);
    assert!(matches!(routed, Routed::Dropped(_)));
    assert_eq!(endpoint.early.bytes, 0);
}

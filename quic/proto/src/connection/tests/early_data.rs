//! Tests of 0-RTT between two connections (RFC 9001 §4.6).

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use hybriq_tls::{Backend, EarlyDataPolicy, EarlyDataStatus, KeyExchange};

use super::{
    Event, Pair, Setup, client_address, client_setup, retry::retry, server_address, server_options,
};
use crate::{
    config::{DatagramConfig, TransportConfig},
    forge::Forge,
    owners::{
        datagrams::{DatagramEvent, SendError},
        streams::{Direction, ReadError, StreamEvent, StreamId},
    },
    testing::{MemoryServers, pn, pns},
    wire::{
        error::{By, Code, ConnectionError},
        frame::{Encode, FrameType, FrameWriter, NewToken, PathResponse, RetireConnectionId},
        packet::{Cid, Header, Kind, Space},
        params::Params,
    },
};

fn server() -> Setup {
    let options = server_options().accept_early_data();
    Setup {
        provider: Backend::Rustls.server(&options).unwrap(),
        transport: Arc::new(TransportConfig::new()),
    }
}

/// Connects a client with a ticket of the first server to the second.
fn come_again(first: &Setup, second: &Setup) -> Pair {
    let mut client = client_setup(KeyExchange::default(), Backend::Rustls);
    let transport = TransportConfig::new().early_data(EarlyDataPolicy::On);
    client.transport = Arc::new(MemoryServers::new().of(transport));
    let mut pair = Pair::between(&client, first.clone());
    pair.run();
    let mut pair = Pair::between(&client, second.clone());
    assert_eq!(pair.client.events(), [Event::EarlyDataReady]);
    pair
}

fn again() -> Pair {
    let server = server();
    come_again(&server, &server)
}

fn ask(pair: &mut Pair, bytes: usize) -> StreamId {
    let streams = pair.client.connection().streams();
    let id = streams.open(Direction::Bidi).unwrap();
    assert_eq!(streams.write(id, &vec![7; bytes]), Ok(bytes));
    streams.finish(id).unwrap();
    id
}

/// Delivers the client's first flight to the server, which does not answer yet.
fn deliver_flight(pair: &mut Pair) {
    for mut datagram in pair.client.transmit(pair.now) {
        pair.server
            .receive(pair.now, client_address(), &mut datagram);
    }
}

/// Proves: rfc9001 4.9.3 0rtt-keys-are-discarded
#[test]
fn both_ends_drop_their_0_rtt_keys() {
    let mut pair = again();
    ask(&mut pair, 100);
    deliver_flight(&mut pair);
    let keys = |side: &mut super::Side| side.connection().handshake.keys().zero_rtt().is_some();
    assert!(keys(&mut pair.client) && keys(&mut pair.server));
    assert_eq!(pair.server.connection().timers.zero_rtt_until, None);
    while !pair.client.events().contains(&Event::HandshakeComplete) {
        assert!(pair.step());
    }
    assert!(!keys(&mut pair.client));
    assert!(keys(&mut pair.server), "0-RTT packets may be on their way");
    while pair.server.connection().timers.zero_rtt_until.is_none() {
        assert!(pair.step());
    }
    let until = pair.server.connection().timers.zero_rtt_until.unwrap();
    let server = pair.server.connection();
    // Without a measured round trip: three times a little more than a second.
    assert!(until > pair.now && until < pair.now + Duration::from_secs(4));
    assert!(server.next_timeout().is_some_and(|at| at <= until));
    server.on_timeout(until);
    assert!(!keys(&mut pair.server));
    assert_eq!(
        pair.server.connection().early_data(),
        EarlyDataStatus::Accepted
    );
}

/// The client drops the first acknowledgement if it overtakes the handshake, and may have filled its
/// window.
#[test]
fn a_lost_flight_is_sent_again_with_the_acknowledgement_of_early_data() {
    let mut pair = again();
    ask(&mut pair, 5000);
    deliver_flight(&mut pair);
    assert!(!pair.server.transmit(pair.now).is_empty());
    let server = pair.server.connection();
    assert!(!server.acks.is_pending(Space::Data));
    let timeout = server.next_timeout().unwrap();
    server.on_timeout(timeout);
    assert!(server.acks.received.data().is_ack_due(timeout));
    assert!(!pair.server.transmit(timeout).is_empty());
    let server = pair.server.connection();
    assert!(!server.acks.is_pending(Space::Data));
}

/// Proves: rfc9000 12.4 frames-in-wrong-packets-close
/// Proves: rfc9001 8.3 crypto-in-0rtt-closes
#[test]
fn frames_that_answer_close_the_connection_in_0_rtt() {
    type Fill = Box<dyn Fn(&mut FrameWriter<'_>)>;
    fn frame(frame: impl Encode + 'static) -> Fill {
        Box::new(move |out| assert!(out.write(&frame)))
    }
    let forbidden: [(FrameType, Fill); 6] = [
        (
            FrameType::ACK,
            Box::new(|out| {
                out.ack(0, std::iter::once(pns(0..=0)), None);
            }),
        ),
        (
            FrameType::CRYPTO,
            Box::new(|out| {
                out.crypto(0, 4, |bytes| bytes.copy_from_slice(&[5, 0, 0, 0]));
            }),
        ),
        (
            FrameType::NEW_TOKEN,
            Box::new(|out| assert!(out.write(&NewToken { token: b"t" }))),
        ),
        (
            FrameType::RETIRE_CONNECTION_ID,
            frame(RetireConnectionId { sequence: 0 }),
        ),
        (FrameType::PATH_RESPONSE, frame(PathResponse([0; 8]))),
        (
            FrameType::HANDSHAKE_DONE,
            Box::new(|out| assert!(out.handshake_done())),
        ),
    ];
    for (frame_type, fill) in forbidden {
        let mut pair = again();
        deliver_flight(&mut pair);
        let client = pair.client.connection();
        assert_eq!(client.handshake.kind_of(Space::Data), Kind::ZeroRtt);
        let mut datagram = client.forge(Space::Data, |_| (), 0, fill);
        pair.server
            .receive(pair.now, client_address(), &mut datagram);
        match pair.server.close_reason() {
            Some(ConnectionError::Transport {
                by: By::Local,
                code: Code::PROTOCOL_VIOLATION,
                frame,
                ..
            }) => assert_eq!(frame, Some(frame_type)),
            reason => panic!("frame {frame_type:?}: {reason:?}"),
        }
    }
}

/// Proves: rfc9001 4.6.2 rejected-0rtt-resets-streams
/// Proves: rfc9001 4.6.2 rejected-0rtt-is-not-read
/// Proves: rfc9000 17.2.3 0rtt-numbers-are-not-reused
#[test]
fn what_was_refused_never_was_but_its_packet_numbers() {
    let mut pair = come_again(&server(), &server());
    let id = ask(&mut pair, 5000);
    deliver_flight(&mut pair);
    let used = pair.client.connection().recovery.next_number(Space::Data);
    assert!(used >= pn(4));
    pair.step();
    let events = pair.client.events();
    let order = [Event::EarlyDataRejected, Event::HandshakeComplete];
    assert_eq!(events, order);
    let client = pair.client.connection();
    assert_eq!(client.early_data(), EarlyDataStatus::Rejected);
    assert_eq!(client.stats().bytes_in_flight, 0);
    assert_eq!(client.recovery.next_number(Space::Data), used);
    assert_eq!(client.streams().totals().opened, 0);
    pair.run();
    let opened = Event::Stream(StreamEvent::Opened(Direction::Bidi));
    assert!(!pair.server.events().contains(&opened), "nothing by itself");
    assert_eq!(ask(&mut pair, 10), id, "ids begin anew");
    pair.run();
    assert!(pair.server.events().contains(&opened));
    assert!(!pair.server.connection().streams().is_early(id));
}

/// Proves: rfc9000 17.2.3 0rtt-numbers-are-not-reused
/// Proves: rfc9000 17.2.5.3 numbers-go-on-after-retry
#[test]
fn a_retry_repeats_early_data_under_new_numbers() {
    let mut pair = again();
    let id = ask(&mut pair, 3000);
    let before = pair.client.transmit(pair.now).len();
    let used = pair.client.connection().recovery.next_number(Space::Data);
    let mut datagram = retry(&mut pair, Cid::from(*b"retry id"));
    pair.client
        .receive(pair.now, server_address(), &mut datagram);
    assert_eq!(pair.client.transmit(pair.now).len(), before);
    let client = pair.client.connection();
    let first = client.recovery.outstanding(Space::Data).count() as u64;
    let next = client.recovery.next_number(Space::Data);
    assert!(next >= used.saturating_add(first), "{used} {first} {next}");
    let delivery = client.streams().delivery(id).unwrap();
    assert_eq!((delivery.sent, delivery.lost), (3000, 0));
    assert_eq!(client.early_data(), EarlyDataStatus::Offered);
}

/// Proves: rfc9000 7.4.1 client-checks-reduced-limits
/// Proves: rfc9221 3 remembered-limit-for-0rtt
#[test]
fn a_server_that_accepts_and_allows_less_is_at_fault() {
    type Raise = fn(&mut Params);
    let raises: [(&str, Raise); 3] = [
        ("initial_max_data", |params| params.initial_max_data += 1),
        ("initial_max_streams_uni", |params| {
            params.initial_max_streams_uni += 1;
        }),
        ("max_datagram_frame_size", |params| {
            params.max_datagram_frame_size += 1;
        }),
    ];
    for (name, raise) in raises {
        let mut pair = again();
        deliver_flight(&mut pair);
        raise(pair.client.connection().opening.remembered_mut().unwrap());
        pair.step();
        match pair.client.close_reason() {
            Some(ConnectionError::Transport {
                by: By::Local,
                code: Code::PROTOCOL_VIOLATION,
                reason,
                ..
            }) => assert_eq!(
                std::str::from_utf8(&reason).unwrap(),
                format!("0-RTT was accepted with a lower {name} than before")
            ),
            reason => panic!("{name}: {reason:?}"),
        }
    }
}

fn received(pair: &mut Pair) -> Vec<Bytes> {
    let datagrams = pair.server.connection().datagrams();
    std::iter::from_fn(|| datagrams.recv()).collect()
}

/// Returns a server that accepts datagrams of this number of bytes.
fn server_with_datagrams(receive_buffer: usize) -> Setup {
    let config = DatagramConfig::new().receive_buffer(receive_buffer);
    Setup {
        transport: Arc::new(TransportConfig::new().datagrams(config)),
        ..server()
    }
}

/// Proves: rfc9221 3 remembered-limit-for-0rtt
/// Proves: rfc9221 5 datagrams-are-in-0rtt-and-1rtt-only
#[test]
fn datagrams_go_in_0_rtt_packets_that_the_remembered_limit_allows() {
    let mut pair = again();
    let client = pair.client.connection();
    let most = client.max_datagram_size().unwrap();
    // Long header with two ids, packet number, tag, type of the frame.
    assert_eq!(most, 1200 - (7 + 8 + 8 + 2) - 4 - 16 - 1);
    let sent: Vec<_> = [most, 5, most, 700]
        .map(|len| vec![len as u8; len].into())
        .into();
    for data in &sent {
        assert_eq!(client.send_datagram(Bytes::clone(data)), Ok(()));
    }
    let more = vec![0; most + 1].into();
    assert_eq!(client.send_datagram(more), Err(SendError::TooLarge(most)));
    ask(&mut pair, 3000);
    deliver_flight(&mut pair);
    assert_eq!(received(&mut pair), sent);
    pair.run();
    let client = pair.client.connection();
    let stats = client.stats().datagram_frames;
    assert_eq!((stats.sent, stats.acknowledged), (4, 4));
    assert!(
        client.max_datagram_size().unwrap() > most,
        "a shorter header"
    );
}

/// Proves: rfc9221 3 remembered-limit-for-0rtt
#[test]
fn no_datagram_goes_in_0_rtt_where_none_is_remembered() {
    let server = server_with_datagrams(0);
    let mut pair = come_again(&server, &server);
    let client = pair.client.connection();
    // The client learns nothing in time.
    client.agreed.params = Some(Box::new(Params {
        max_datagram_frame_size: 1200,
        ..Params::default()
    }));
    client.take_limits();
    assert_eq!(client.max_datagram_size(), None);
    let data = Bytes::from_static(b"early");
    assert_eq!(client.send_datagram(data), Err(SendError::Unsupported));
}

/// Proves: rfc9221 3 remembered-limit-for-0rtt
/// Proves: rfc9001 4.6.2 rejected-0rtt-is-not-read
#[test]
fn refused_datagrams_are_counted_and_not_sent_again() {
    for (bytes, takes) in [(0, false), (1 << 16, true)] {
        let mut pair = come_again(&server(), &server_with_datagrams(bytes));
        let client = pair.client.connection();
        for _ in 0..30 {
            let data = vec![3; 1000].into();
            assert_eq!(client.send_datagram(data), Ok(()));
        }
        let data = vec![3; 1000].into();
        while client.send_datagram_within(&data).is_ok() {}
        let queued = client.send_datagram_within(&data);
        assert_eq!(queued, Err(SendError::Full));
        deliver_flight(&mut pair);
        let early = pair.client.connection().stats().datagram_frames;
        assert!((3..30).contains(&early.sent), "{early:?}");
        pair.step();
        let events = pair.client.events();
        let writable = Event::Datagram(DatagramEvent::Writable);
        assert!(events.contains(&Event::EarlyDataRejected) && events.contains(&writable));
        let client = pair.client.connection();
        let stats = client.stats().datagram_frames;
        assert_eq!((stats.sent, stats.lost), (early.sent, early.sent));
        assert!(stats.dropped_unsent + stats.sent > 30, "{stats:?}");
        assert!(!client.datagrams().has_pending());
        pair.run();
        assert!(received(&mut pair).is_empty());
        let client = pair.client.connection();
        assert_eq!(client.max_datagram_size().is_some(), takes);
        let sent = client.send_datagram(Bytes::from_static(b"now"));
        assert_eq!(sent.is_ok(), takes);
        pair.run();
        assert_eq!(received(&mut pair).len(), usize::from(takes));
    }
}

#[test]
fn early_datagrams_do_not_survive_a_retry() {
    let mut pair = again();
    let data = Bytes::from_static(b"early");
    assert_eq!(pair.client.connection().send_datagram(data), Ok(()));
    pair.client.transmit(pair.now);
    let mut datagram = retry(&mut pair, Cid::from(*b"retry id"));
    pair.client
        .receive(pair.now, server_address(), &mut datagram);
    let stats = pair.client.connection().stats().datagram_frames;
    assert_eq!((stats.sent, stats.lost), (1, 1));
}

#[test]
fn a_remembered_reset_stream_at_is_used_early() {
    let mut pair = again();
    let streams = pair.client.connection().streams();
    let id = streams.open(Direction::Uni).unwrap();
    assert_eq!(streams.write(id, &[7; 100]), Ok(100));
    assert_eq!(streams.reset_at(id, 9, 40), Ok(()));
    deliver_flight(&mut pair);
    let streams = pair.server.connection().streams();
    assert_eq!(streams.accept(Direction::Uni), Some(id));
    let mut buffer = [0; 100];
    let mut read = 0;
    let end = loop {
        match streams.read(id, &mut buffer) {
            Ok(bytes) if bytes > 0 => read += bytes,
            end => break end,
        }
    };
    assert_eq!(end, Err(ReadError::Reset(9)));
    assert!(read >= 40, "{read}");
}

/// Proves: rfc9000 7.4.1 0rtt-uses-remembered-parameters
/// Proves: rfc9000 7.4.1 some-parameters-are-not-remembered
#[test]
fn a_client_goes_by_what_it_remembers_until_it_sends_1_rtt_packets() {
    let server = server();
    let mut pair = come_again(&server, &server);
    let client = pair.client.connection();
    assert!(client.agreed.params.is_none() && client.cids().reset_tokens().next().is_none());
    // The client learns nothing in time.
    client.agreed.params = Some(Box::new(Params {
        initial_max_streams_bidi: 1_000,
        ..Params::default()
    }));
    client.take_limits();
    let mut opened = 0;
    while client.streams().open(Direction::Bidi).is_some() {
        opened += 1;
    }
    assert_eq!(opened, server.transport.streams.max_bidi);
}

#[test]
fn early_data_proves_no_address() {
    let mut pair = again();
    ask(&mut pair, 3000);
    deliver_flight(&mut pair);
    let server = pair.server.connection();
    assert!(server.streams().totals().bytes_received >= 3000);
    assert!(
        server.paths.active().credit() < 1 << 20,
        "{}",
        server.paths.active().credit()
    );
}

#[test]
fn a_server_knows_which_streams_came_early() {
    let mut pair = again();
    let early = ask(&mut pair, 100);
    pair.run();
    let late = ask(&mut pair, 100);
    pair.run();
    let streams = pair.server.connection().streams();
    assert!(streams.is_early(early) && !streams.is_early(late));
}

#[test]
fn a_late_0_rtt_packet_is_dropped_quietly() {
    let mut pair = again();
    ask(&mut pair, 100);
    deliver_flight(&mut pair);
    let client = pair.client.connection();
    let ping = |out: &mut FrameWriter<'_>| assert!(out.ping());
    let mut early = client.forge(Space::Data, |_| (), 0, ping);
    let mut late = client.forge(Space::Data, |_| (), 0, ping);
    pair.run();
    let now = pair.now;
    let accepted = |pair: &mut Pair, datagram: &mut [u8]| {
        let before = pair.server.connection().stats().packets_received;
        pair.server.receive(now, client_address(), datagram);
        pair.server.connection().stats().packets_received - before
    };
    assert_eq!(accepted(&mut pair, &mut early), 1, "it was overtaken");
    let much_later = pair.now + Duration::from_secs(10);
    pair.server.connection().on_timeout(much_later);
    assert_eq!(accepted(&mut pair, &mut late), 0);
    assert_eq!(pair.server.close_reason(), None);
}

/// Proves: rfc9001 6.6 integrity-limit-closes
#[test]
fn forged_0_rtt_packets_count_for_the_integrity_limit() {
    let mut pair = again();
    deliver_flight(&mut pair);
    let client = pair.client.connection();
    let ping = |out: &mut FrameWriter<'_>| assert!(out.ping());
    let mut datagram = client.forge(Space::Data, |_| (), 0, ping);
    *datagram.last_mut().unwrap() ^= 1;
    let keys = pair.server.connection().handshake.keys_mut();
    keys.one_rtt_mut().unwrap().leave_failures(3);
    let mut forge = || {
        pair.server
            .receive(pair.now, client_address(), &mut datagram.clone());
        pair.server.close_reason()
    };
    assert_eq!([forge(), forge()], [None, None]);
    match forge() {
        Some(ConnectionError::Transport { code, .. }) => {
            assert_eq!(code, Code::AEAD_LIMIT_REACHED);
        }
        reason => panic!("{reason:?}"),
    }
}

/// Proves: rfc9001 6.6 update-before-confidentiality-limit
#[test]
fn a_client_whose_0_rtt_keys_are_spent_waits_for_others() {
    let mut pair = again();
    let keys = pair.client.connection().handshake.keys_mut();
    keys.leave_zero_rtt(2);
    let id = ask(&mut pair, 8000);
    deliver_flight(&mut pair);
    let client = pair.client.connection();
    assert!(client.handshake.keys().zero_rtt().is_none());
    let early = client.recovery.outstanding(Space::Data).count();
    assert_eq!(early, 2);
    pair.run();
    assert_eq!(
        pair.client.connection().early_data(),
        EarlyDataStatus::Accepted
    );
    let streams = pair.server.connection().streams();
    assert!(streams.is_early(id));
    assert!(streams.totals().bytes_received >= 8000);
}

/// Proves: rfc9001 5.6 server-never-uses-0rtt-keys
#[test]
fn a_client_drops_0_rtt_packets() {
    let mut pair = again();
    deliver_flight(&mut pair);
    let server = pair.server.connection();
    assert_eq!(server.handshake.kind_of(Space::Data), Kind::OneRtt);
    let client = pair.client.connection();
    let (ours, theirs) = (
        client.cids().local().next().unwrap(),
        *client.cids.peer.active(),
    );
    let turn = |header: &mut Header<'_>| {
        if let Header::Long { dcid, scid, .. } = header {
            (*dcid, *scid) = (ours, theirs);
        }
    };
    let mut datagram = client.forge(Space::Data, turn, 0, |out| assert!(out.ping()));
    pair.client
        .receive(pair.now, server_address(), &mut datagram);
    let stats = pair.client.connection().stats();
    assert_eq!((stats.packets_received, stats.packets_dropped), (0, 1));
}

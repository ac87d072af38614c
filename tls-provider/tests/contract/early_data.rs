//! 0-RTT (RFC 8446 §4.2.10 and §8, RFC 9001 §4.6).

use bytes::BytesMut;
use hybriq_tls::{
    ClientHello, ClientOptions, ClientStart, EarlyDataPolicy, EarlyDataStatus, KeyExchange, Level,
    Provider, ServerOptions, ServerStart, Side, Status, Suite,
};

use crate::support::{
    ALPN, CLIENT_PARAMS, CONTENDERS, Contender, End, HOST, Pair, SERVER_PARAMS, Slices,
    client_start, options, pairings, providers, server_start,
};

const CONTEXT: &[u8] = b"limits of today";

/// Pairings of providers that both have it.
fn early_pairings() -> impl Iterator<Item = (&'static Contender, &'static Contender)> {
    pairings().filter(|(client, server)| client.early_data && server.early_data)
}

fn early_options() -> (ClientOptions, ServerOptions) {
    let (client, server) = options();
    (client, server.accept_early_data())
}

/// Conditions of one handshake at both ends.
#[derive(Clone, Copy)]
struct Starts<'a> {
    client: EarlyDataPolicy,
    server: EarlyDataPolicy,
    context: &'a [u8],
    name: &'a str,
}

const ON: Starts<'static> = Starts {
    client: EarlyDataPolicy::On,
    server: EarlyDataPolicy::On,
    context: CONTEXT,
    name: HOST,
};

fn client_end(client: &dyn Provider, starts: Starts<'_>) -> End {
    let start = ClientStart {
        early_data: starts.client,
        ..client_start(starts.name)
    };
    End::new(client.session(start.into()).expect("a session"))
}

fn server_end(server: &dyn Provider, starts: Starts<'_>) -> End {
    let start = ServerStart {
        early_data: starts.server,
        early_context: starts.context,
        ..server_start(None)
    };
    End::new(server.session(start.into()).expect("a session"))
}

fn pair(client: &dyn Provider, server: &dyn Provider, starts: Starts<'_>) -> Pair {
    Pair {
        client: client_end(client, starts),
        server: server_end(server, starts),
    }
}

/// Returns the outcome of the early data, which must be the same at both ends.
#[track_caller]
fn outcome(pair: &Pair) -> EarlyDataStatus {
    let status = pair.client.session.early_data();
    assert_eq!(status, pair.server.session.early_data());
    let accepted = status == EarlyDataStatus::Accepted;
    for end in [&pair.client, &pair.server] {
        assert_eq!(end.session.negotiated().early_data, accepted);
    }
    status
}

/// One handshake from beginning to end.
#[track_caller]
fn connect(client: &dyn Provider, server: &dyn Provider, starts: Starts<'_>) -> EarlyDataStatus {
    outcome(&pair(client, server, starts).complete())
}

#[test]
fn a_second_handshake_has_early_data_with_equal_secrets() {
    for pairing in early_pairings() {
        let (client, server) = providers(pairing, &early_options());
        assert_eq!(connect(&*client, &*server, ON), EarlyDataStatus::None);

        let mut pair = pair(&*client, &*server, ON);
        assert_eq!(pair.client.session.early_data(), EarlyDataStatus::Offered);
        assert_eq!(pair.client.session.remembered_params(), Some(SERVER_PARAMS));
        assert_eq!(
            pair.client.session.remembered_alpn(),
            Some(ALPN[0].as_bytes())
        );
        pair.client.drive().expect("a first flight");
        let early = pair.client.secret(Level::ZeroRtt, Side::Client);
        let early = early.expect("a secret in the first flight").clone();
        let hello = &pair.client.outbox.crypto.initial;
        let hello = ClientHello::parse(hello)
            .expect("well-formed")
            .expect("whole")
            .0;
        assert!(hello.wants_early_data() && hello.has_ticket());

        let pair = pair.complete();
        assert_eq!(outcome(&pair), EarlyDataStatus::Accepted);
        let taken = pair.server.secret(Level::ZeroRtt, Side::Client);
        let taken = taken.expect("the server's secret");
        assert_eq!(early.as_bytes(), taken.as_bytes());
        assert_eq!(early.suite(), taken.suite());
        assert_eq!(pair.client.session.remembered_params(), Some(SERVER_PARAMS));
        assert!(pair.server.session.remembered_params().is_none());
        let negotiated = pair.server.session.negotiated();
        assert!(negotiated.resumed && negotiated.group.expect("a group").is_post_quantum());
        assert_eq!(pair.server.session.peer_params(), Some(CLIENT_PARAMS));
    }
}

#[test]
fn every_connection_brings_tickets_for_two_more() {
    for pairing in early_pairings() {
        let (client, server) = providers(pairing, &early_options());
        connect(&*client, &*server, ON);
        let pairs = [pair(&*client, &*server, ON), pair(&*client, &*server, ON)];
        for pair in pairs {
            assert_eq!(outcome(&pair.complete()), EarlyDataStatus::Accepted);
        }
        for _ in 0..20 {
            assert_eq!(connect(&*client, &*server, ON), EarlyDataStatus::Accepted);
        }
    }
}

/// Proves: rfc9001 9.2 replayed-0rtt-is-refused
#[test]
fn a_first_flight_that_was_recorded_is_not_accepted_again() {
    for pairing in early_pairings() {
        let (client, server) = providers(pairing, &early_options());
        connect(&*client, &*server, ON);
        let mut first = pair(&*client, &*server, ON);
        first.client.drive().expect("a first flight");
        let recorded = first.client.outbox.crypto.initial.clone();
        assert_eq!(outcome(&first.complete()), EarlyDataStatus::Accepted);
        for _ in 0..3 {
            let mut replayed = server_end(&*server, ON);
            replayed.inbox.initial.extend_from_slice(&recorded);
            assert_eq!(replayed.drive().expect("an answer"), Status::NeedsPeer);
            assert_eq!(replayed.session.early_data(), EarlyDataStatus::Rejected);
            assert!(replayed.secret(Level::ZeroRtt, Side::Client).is_none());
            assert!(!replayed.session.negotiated().resumed, "a full handshake");
        }
    }
}

/// Proves: rfc9001 9.2 replayed-0rtt-is-refused
#[test]
fn of_two_copies_at_once_one_is_accepted() {
    for pairing in early_pairings() {
        let (client, server) = providers(pairing, &early_options());
        connect(&*client, &*server, ON);
        let mut flight = client_end(&*client, ON);
        flight.drive().expect("a first flight");
        let recorded = &flight.outbox.crypto.initial;
        let answer = || {
            let mut end = server_end(&*server, ON);
            end.inbox.initial.extend_from_slice(recorded);
            end.drive().expect("an answer");
            end.session.early_data() == EarlyDataStatus::Accepted
        };
        let accepted: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(answer)).collect();
            threads
                .into_iter()
                .map(|thread| usize::from(thread.join().expect("an answer")))
                .sum()
        });
        assert_eq!(accepted, 1);
    }
}

#[test]
fn without_both_ends_wanting_it_there_is_none() {
    for pairing in early_pairings() {
        let off = Starts {
            client: EarlyDataPolicy::Off,
            ..ON
        };
        let (client, server) = providers(pairing, &early_options());
        connect(&*client, &*server, ON);
        let pair = pair(&*client, &*server, off).complete();
        assert_eq!(outcome(&pair), EarlyDataStatus::None);
        assert!(pair.client.session.remembered_params().is_none());
        assert!(pair.client.session.remembered_alpn().is_none());
        assert!(pair.client.session.negotiated().resumed);

        let (client, server) = providers(pairing, &options());
        connect(&*client, &*server, ON);
        assert_eq!(connect(&*client, &*server, ON), EarlyDataStatus::None);
    }
}

#[test]
fn a_server_may_refuse_it_for_one_handshake() {
    for pairing in early_pairings() {
        let (client, server) = providers(pairing, &early_options());
        connect(&*client, &*server, ON);
        let refuse = Starts {
            server: EarlyDataPolicy::Off,
            ..ON
        };
        let pair = pair(&*client, &*server, refuse).complete();
        assert_eq!(outcome(&pair), EarlyDataStatus::Rejected);
        assert!(pair.client.session.negotiated().resumed);
        assert!(pair.client.session.remembered_params().is_some());
        assert_eq!(connect(&*client, &*server, ON), EarlyDataStatus::Accepted);
    }
}

/// Proves: rfc9000 7.4.1 server-keeps-what-0rtt-used
#[test]
fn early_data_is_refused_where_it_relies_on_what_has_changed() {
    for pairing in early_pairings() {
        let (client, server) = providers(pairing, &early_options());
        connect(&*client, &*server, ON);
        for context in [&b"limits of tomorrow"[..], b"", b"limits of toda"] {
            let changed = Starts { context, ..ON };
            let pair = pair(&*client, &*server, changed).complete();
            assert_eq!(outcome(&pair), EarlyDataStatus::Rejected);
            assert!(pair.client.session.negotiated().resumed);
            // The new tickets are those of the new limits.
            assert_eq!(
                connect(&*client, &*server, changed),
                EarlyDataStatus::Accepted
            );
        }
    }
}

#[test]
fn early_data_of_another_application_protocol_is_refused() {
    for pairing in early_pairings() {
        let (client_options, server_options) = early_options();
        let tickets = hybriq_tls::Tickets::new();
        let server_options = server_options.tickets(tickets);
        let client_options = client_options.alpn(["one", "two"]);
        let (client, first) = providers(
            pairing,
            &(client_options, server_options.clone().alpn(["one", "two"])),
        );
        let second = (pairing.1.server)(&server_options.alpn(["two"])).expect("a server");
        assert_eq!(connect(&*client, &*first, ON), EarlyDataStatus::None);
        let pair = pair(&*client, &*second, ON).complete();
        assert_eq!(pair.client.session.remembered_alpn(), Some(&b"one"[..]));
        assert_eq!(outcome(&pair), EarlyDataStatus::Rejected);
        assert_eq!(
            pair.client.session.negotiated().alpn.as_deref(),
            Some(&b"two"[..])
        );
    }
}

#[test]
fn early_data_of_another_cipher_suite_is_refused() {
    for pairing in early_pairings() {
        let (client_options, server_options) = early_options();
        let server_options = server_options.tickets(hybriq_tls::Tickets::new());
        let suites = |list: &[Suite]| server_options.clone().suites(list.to_vec());
        let (client, first) = providers(
            pairing,
            &(client_options, suites(&[Suite::Aes128GcmSha256])),
        );
        let second = suites(&[Suite::ChaCha20Poly1305Sha256]);
        let second = (pairing.1.server)(&second).expect("a server");
        assert_eq!(connect(&*client, &*first, ON), EarlyDataStatus::None);
        assert_eq!(connect(&*client, &*second, ON), EarlyDataStatus::Rejected);
    }
}

#[test]
fn early_data_is_refused_by_a_hello_retry_request() {
    use hybriq_tls::Group;
    for pairing in early_pairings() {
        let (client_options, server_options) = early_options();
        let server_options = server_options.tickets(hybriq_tls::Tickets::new());
        let only = |group| {
            server_options
                .clone()
                .key_exchange(KeyExchange::Exactly(vec![group]))
        };
        let (client, first) = providers(pairing, &(client_options, only(Group::X25519MLKEM768)));
        let second = only(Group::SECP256R1MLKEM768);
        let second = (pairing.1.server)(&second).expect("a server");
        assert_eq!(connect(&*client, &*first, ON), EarlyDataStatus::None);
        let pair = pair(&*client, &*second, ON).complete();
        assert_eq!(outcome(&pair), EarlyDataStatus::Rejected);
        let negotiated = pair.client.session.negotiated();
        assert!(negotiated.hello_retry && negotiated.resumed);
    }
}

#[test]
fn a_ticket_of_another_name_brings_no_early_data() {
    let authority = crate::support::Authority::new("root");
    let options = (
        ClientOptions::new().alpn(ALPN).trust(authority.trust()),
        ServerOptions::new(authority.issue(&[HOST, "other.test"]))
            .alpn(ALPN)
            .accept_early_data(),
    );
    for pairing in early_pairings() {
        let (client, server) = providers(pairing, &options);
        connect(&*client, &*server, ON);
        let other = Starts {
            name: "other.test",
            ..ON
        };
        assert_eq!(connect(&*client, &*server, other), EarlyDataStatus::None);
    }
}

#[test]
fn a_server_that_forgot_the_ticket_refuses() {
    for pairing in early_pairings() {
        let options = early_options();
        let (client, server) = providers(pairing, &options);
        connect(&*client, &*server, ON);
        let restarted = (pairing.1.server)(&options.1).expect("a server");
        let pair = pair(&*client, &*restarted, ON).complete();
        assert_eq!(outcome(&pair), EarlyDataStatus::Rejected);
        assert!(!pair.client.session.negotiated().resumed);
    }
}

/// Proves: rfc9001 8.3 no-end-of-early-data
#[test]
fn end_of_early_data_is_refused() {
    for pairing in early_pairings() {
        let (client, server) = providers(pairing, &early_options());
        connect(&*client, &*server, ON);
        let mut pair = pair(&*client, &*server, ON);
        pair.turn(Slices::Whole).expect("a first flight");
        let failure = pair
            .turn_with(Side::Server, Level::Handshake, &[5, 0, 0, 0])
            .expect_err("no such message in QUIC");
        assert_eq!((failure.side, failure.error.code()), (Side::Server, 0x0a));
    }
}

#[test]
fn first_flights_byte_by_byte_have_early_data_too() {
    for pairing in early_pairings() {
        let (client, server) = providers(pairing, &early_options());
        connect(&*client, &*server, ON);
        let mut pair = pair(&*client, &*server, ON);
        pair.run(Slices::Of(7)).expect("a handshake");
        pair.assert_agree();
        assert_eq!(outcome(&pair), EarlyDataStatus::Accepted);
    }
}

#[test]
fn sessions_with_early_data_that_take_turns_keep_their_secrets_apart() {
    for pairing in early_pairings() {
        let (client, server) = providers(pairing, &early_options());
        connect(&*client, &*server, ON);
        let mut pairs = [pair(&*client, &*server, ON), pair(&*client, &*server, ON)];
        for _ in 0..4 {
            for pair in &mut pairs {
                pair.turn(Slices::Whole).expect("a turn");
            }
        }
        for pair in &pairs {
            pair.assert_agree();
            assert_eq!(outcome(pair), EarlyDataStatus::Accepted);
        }
    }
}

#[test]
fn no_changed_first_flight_is_accepted() {
    for pairing in early_pairings() {
        let (client, server) = providers(pairing, &early_options());
        connect(&*client, &*server, ON);
        let mut flight = client_end(&*client, ON);
        flight.drive().expect("a first flight");
        let hello = flight.outbox.crypto.initial.clone();
        // The end is the ticket, its age and the binder.
        for at in hello.len() - 80..hello.len() {
            let mut changed = BytesMut::from(&hello[..]);
            changed[at] ^= 0x10;
            let mut end = server_end(&*server, ON);
            end.inbox.initial = changed;
            let _ = end.drive();
            assert_ne!(
                end.session.early_data(),
                EarlyDataStatus::Accepted,
                "byte {at}"
            );
            assert!(end.secret(Level::ZeroRtt, Side::Client).is_none());
        }
    }
}

#[test]
fn a_provider_says_whether_it_has_early_data() {
    for contender in CONTENDERS {
        let (client, server) = early_options();
        let client = (contender.client)(&client).expect("a client");
        assert_eq!(client.supports_early_data(), contender.early_data);
        match (contender.server)(&server) {
            Ok(server) => assert!(contender.early_data && server.supports_early_data()),
            Err(error) => {
                assert!(!contender.early_data);
                assert!(error.to_string().contains("0-RTT"), "{error}");
            }
        }
    }
}

/// Clients of a library without it resume and connect as usual.
#[test]
fn early_data_of_one_end_alone_changes_nothing() {
    for pairing in pairings().filter(|(_, server)| server.early_data) {
        let (client, server) = providers(pairing, &early_options());
        let first = pair(&*client, &*server, ON).complete();
        assert!(!first.client.session.negotiated().resumed);
        let second = pair(&*client, &*server, ON).complete();
        assert!(second.client.session.negotiated().resumed);
        assert_eq!(
            outcome(&second) == EarlyDataStatus::Accepted,
            pairing.0.early_data
        );
    }
    for pairing in pairings().filter(|(_, server)| !server.early_data) {
        let (client, server) = providers(pairing, &options());
        connect(&*client, &*server, ON);
        assert_eq!(connect(&*client, &*server, ON), EarlyDataStatus::None);
    }
}

/// Proves: rfc9001 4.6.1 early-data-size-is-fixed
#[test]
fn a_ticket_that_limits_early_data_is_a_protocol_violation() {
    for pairing in pairings() {
        for size in [0_u32, 16_384] {
            let (client, server) = providers(pairing, &options());
            let mut client = Pair::new(&*client, &*server).complete().client;
            let mut ticket = vec![4, 0, 0, 25, 0, 0, 0x1c, 0x20, 1, 2, 3, 4, 1, 9];
            ticket.extend([0, 3, b'A', b'B', b'C', 0, 8, 0, 42, 0, 4]);
            ticket.extend(size.to_be_bytes());
            ticket[3] = u8::try_from(ticket.len() - 4).expect("short");
            client.inbox.one_rtt.extend_from_slice(&ticket);
            let error = client.drive().expect_err("a violation");
            assert_eq!(error.code(), 0x0a, "{error}");
        }
    }
}

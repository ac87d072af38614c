//! Protocols, suites, reports, and sessions as values.

use hybriq_tls::{ClientHello, Group, PerLevel, Secret, Side, SignatureScheme, Status, Suite};

use crate::support::{
    CLIENT_PARAMS, CONTENDERS, End, HOST, Pair, Slices, client_start, options, pairings,
    server_start,
};

#[test]
fn defaults_negotiate_a_hybrid_group_and_equal_secrets() {
    for pairing in pairings() {
        let pair = Pair::of(pairing, &options()).complete();
        for end in [&pair.client, &pair.server] {
            let negotiated = end.session.negotiated();
            assert_eq!(negotiated.group, Some(Group::X25519MLKEM768));
            assert_eq!(negotiated.suite, Some(Suite::Aes128GcmSha256));
            assert_eq!(negotiated.signature_scheme, Some(SignatureScheme(0x0403)));
            assert_eq!(negotiated.client_signature_scheme, None);
            assert_eq!(negotiated.alpn.as_deref(), Some(&b"h3"[..]));
            assert_eq!(negotiated.server_name.as_deref(), Some(HOST));
            assert!(!negotiated.hello_retry && !negotiated.resumed && !negotiated.early_data);
        }
    }
}

#[test]
fn every_suite_gives_equal_secrets_of_its_hash_length() {
    for (suite, len) in [
        (Suite::Aes128GcmSha256, 32),
        (Suite::Aes256GcmSha384, 48),
        (Suite::ChaCha20Poly1305Sha256, 32),
    ] {
        let mut ran = 0;
        for (client, server) in pairings() {
            let (client_options, server_options) = options();
            let options = (client_options.suites(vec![suite]), server_options);
            if (client.client)(&options.0).is_err() {
                continue;
            }
            let pair = Pair::of((client, server), &options).complete();
            let lengths = |secrets: &[Secret]| secrets.iter().all(|s| s.as_bytes().len() == len);
            assert!(lengths(&pair.client.secrets) && lengths(&pair.server.secrets));
            assert_eq!(pair.client.session.negotiated().suite, Some(suite));
            assert_eq!(pair.server.session.negotiated().suite, Some(suite));
            ran += 1;
        }
        assert!(CONTENDERS.len() < 2 || ran >= 1, "{suite} ran nowhere");
    }
}

/// Proves: rfc9001 8.1 no-application-protocol-closes
#[test]
fn a_client_without_a_common_protocol_is_refused_with_alert_120() {
    for pairing in pairings() {
        let none: [&str; 0] = [];
        for (ours, peer) in [
            (&["h3"][..], &["hq-interop"][..]),
            (&none, &["h3"]),
            (&["h3"], &none),
        ] {
            let (client, server) = options();
            let options = (client.alpn(ours), server.alpn(peer));
            let mut pair = Pair::of(pairing, &options);
            let failure = pair.run(Slices::Whole).expect_err("no common protocol");
            failure.assert(Side::Server, 120);
            assert_eq!(
                pair.server.sent,
                PerLevel::default(),
                "refused before any work"
            );
        }
    }
}

#[test]
fn no_protocols_on_both_sides_connect() {
    for pairing in pairings() {
        let none: [&str; 0] = [];
        let (client, server) = options();
        let pair = Pair::of(pairing, &(client.alpn(none), server.alpn(none))).complete();
        assert_eq!(pair.client.session.negotiated().alpn, None);
    }
}

#[test]
fn the_servers_first_protocol_wins() {
    for pairing in pairings() {
        let (client, server) = options();
        let options = (
            client.alpn(["one", "two", "three"]),
            server.alpn(["four", "three", "two"]),
        );
        let pair = Pair::of(pairing, &options).complete();
        for end in [&pair.client, &pair.server] {
            assert_eq!(
                end.session.negotiated().alpn.as_deref(),
                Some(&b"three"[..])
            );
        }
    }
}

#[test]
fn protocol_names_that_cannot_be_sent_are_refused() {
    for contender in CONTENDERS {
        let long = [b'x'; 256];
        for name in [&b""[..], &long] {
            let (client, server) = options();
            assert!((contender.client)(&client.alpn([name])).is_err());
            assert!((contender.server)(&server.alpn([name])).is_err());
        }
        // One byte works or is refused, but never gets lost on the way.
        let (client, server) = options();
        let options = (client.alpn(["x"]), server.alpn(["x"]));
        if (contender.client)(&options.0).is_ok() {
            let pair = Pair::of((contender, contender), &options).complete();
            assert_eq!(
                pair.client.session.negotiated().alpn.as_deref(),
                Some(&b"x"[..])
            );
        }
    }
}

#[test]
fn an_address_that_a_client_sends_is_no_server_name() {
    let literal = b"192.168.10.1";
    assert_eq!(literal.len(), HOST.len());
    for (client, server) in pairings() {
        let (client_options, server_options) = options();
        let client = (client.client)(&client_options).expect("a client");
        let server = (server.server)(&server_options).expect("a server");
        let session = client
            .session(client_start(HOST).into())
            .expect("a session");
        let mut client = End::new(session);
        client.drive().expect("a ClientHello");
        let mut flight = client.outbox.crypto.initial.clone();
        let place = flight
            .windows(HOST.len())
            .position(|bytes| bytes == HOST.as_bytes())
            .expect("the name");
        flight[place..place + HOST.len()].copy_from_slice(literal);
        let (hello, _) = ClientHello::parse(&flight)
            .expect("well-formed")
            .expect("whole");
        assert_eq!(hello.server_name(), None);
        let session = server
            .session(server_start(Some(&hello)).into())
            .expect("a session");
        let mut server = End::new(session);
        server.inbox.initial.extend_from_slice(&flight);
        server.drive().expect("an answer");
        assert!(!server.outbox.crypto.handshake.is_empty());
        assert_eq!(server.session.negotiated().server_name, None);
    }
}

#[test]
fn a_session_starts_from_a_client_hello_that_the_transport_read() {
    for (client, server) in pairings() {
        let (client_options, server_options) = options();
        let client = (client.client)(&client_options).expect("a client");
        let server = (server.server)(&server_options).expect("a server");
        let session = client
            .session(client_start(HOST).into())
            .expect("a session");
        let mut client = End::new(session);
        client.drive().expect("a ClientHello");
        let flight = &client.outbox.crypto.initial;
        let (hello, len) = ClientHello::parse(flight)
            .expect("well-formed")
            .expect("whole");
        assert_eq!(len, flight.len());
        assert_eq!(hello.server_name(), Some(HOST));
        assert_eq!(hello.alpn().collect::<Vec<_>>(), [b"h3"]);
        assert_eq!(hello.transport_params(), Some(CLIENT_PARAMS));
        assert!(hello.supports_tls13() && hello.offers_post_quantum());
        assert!(!hello.has_ticket() && !hello.wants_early_data());
        assert!(hello.signature_schemes().contains(&0x0403));

        let session = server
            .session(server_start(Some(&hello)).into())
            .expect("a session");
        let mut pair = Pair {
            client,
            server: End::new(session),
        };
        pair.run(Slices::Whole).expect("a handshake");
        pair.assert_agree();
    }
}

#[test]
fn the_first_flight_of_a_client_carries_a_post_quantum_share() {
    for client in CONTENDERS {
        let client = (client.client)(&options().0).expect("a client");
        let session = client
            .session(client_start(HOST).into())
            .expect("a session");
        let mut end = End::new(session);
        end.drive().expect("a ClientHello");
        let (hello, _) = ClientHello::parse(&end.outbox.crypto.initial)
            .expect("well-formed")
            .expect("whole");
        let shares = hello.key_shares().iter();
        let first = shares.map(|share| (share.group, share.len)).next();
        assert_eq!(first, Some((Group::X25519MLKEM768, 1216)));
        assert_eq!(hello.cipher_suites().first(), Some(&0x1301));
    }
}

#[test]
fn a_session_moves_to_another_thread_in_the_middle() {
    for pairing in pairings() {
        let mut pair = Pair::of(pairing, &options());
        pair.client.drive().expect("a ClientHello");
        let mut pair = std::thread::spawn(move || {
            pair.server.inbox.initial = pair.client.outbox.crypto.initial.split();
            pair.server.drive().expect("a server flight");
            pair
        })
        .join()
        .expect("the thread");
        pair.run(Slices::Whole).expect("a handshake");
        pair.assert_agree();
    }
}

#[test]
fn sessions_that_take_turns_on_one_thread_keep_their_secrets_apart() {
    for pairing in pairings() {
        let options = options();
        let mut pairs = [Pair::of(pairing, &options), Pair::of(pairing, &options)];
        for _ in 0..4 {
            for pair in &mut pairs {
                pair.turn(Slices::Whole).expect("a turn");
            }
        }
        for pair in &pairs {
            pair.assert_agree();
        }
        let [first, second] = pairs.map(|pair| pair.client.secrets);
        assert_ne!(first[0].as_bytes(), second[0].as_bytes());
    }
}

#[test]
fn driving_a_complete_session_again_changes_nothing() {
    for pairing in pairings() {
        let mut pair = Pair::of(pairing, &options()).complete();
        for end in [&mut pair.client, &mut pair.server] {
            assert_eq!(end.drive().expect("still complete"), Status::Complete);
            assert!(end.outbox.secrets.is_empty() && end.outbox.exporter.is_none());
            assert_eq!(end.outbox.crypto, PerLevel::default());
        }
    }
}

#[test]
fn a_provider_of_one_side_makes_no_session_of_the_other() {
    for contender in CONTENDERS {
        let (client_options, server_options) = options();
        let client = (contender.client)(&client_options).expect("a client");
        let server = (contender.server)(&server_options).expect("a server");
        assert_eq!(client.name(), contender.name);
        assert!(client.session(server_start(None).into()).is_err());
        assert!(server.session(client_start(HOST).into()).is_err());
        for name in ["", "not a name", "a..b"] {
            assert!(
                client.session(client_start(name).into()).is_err(),
                "`{name}`"
            );
        }
    }
}

#[test]
fn secrets_and_keys_are_never_printed() {
    for pairing in pairings() {
        let pair = Pair::of(pairing, &options()).complete();
        for secret in &pair.client.secrets {
            let shown = format!("{secret:?}");
            let bytes = format!("{:?}", secret.as_bytes());
            assert!(!shown.contains(bytes.trim_matches(['[', ']'])) && shown.contains("Secret"));
        }
    }
}

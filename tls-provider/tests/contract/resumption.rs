//! Session tickets.

use std::sync::Arc;

use hybriq_tls::{
    ClientHello, ClientOptions, ClientStart, Provider, ServerOptions, ServerStart, Status,
    issued_ticket,
};

use crate::support::{
    End, HOST, Pair, Slices, client_start, options, pairings, providers, server_start,
};

#[track_caller]
fn resumed(client: &dyn Provider, server: &dyn Provider) -> bool {
    let pair = Pair::new(client, server).complete();
    let negotiated = pair.client.session.negotiated();
    assert_eq!(negotiated.resumed, pair.server.session.negotiated().resumed);
    assert!(
        negotiated.group.expect("a group").is_post_quantum(),
        "resumption keeps the exchange"
    );
    assert_eq!(negotiated.signature_scheme.is_none(), negotiated.resumed);
    assert_eq!(negotiated.alpn.as_deref(), Some(&b"h3"[..]));
    negotiated.resumed
}

#[test]
fn the_second_handshake_is_resumed_and_the_third() {
    for pairing in pairings() {
        let (client, server) = providers(pairing, &options());
        assert!(!resumed(&*client, &*server));
        assert!(
            resumed(&*client, &*server),
            "{} to {}",
            pairing.0.name,
            pairing.1.name
        );
        // rustls uses a ticket once and s2n-tls issues none on a resumed connection.
        let third = resumed(&*client, &*server);
        assert!(third || (pairing.0.name, pairing.1.name) == ("rustls", "s2n-tls"));
    }
}

#[test]
fn the_ticket_comes_with_the_completion_of_the_server() {
    for pairing in pairings() {
        let (client, server) = providers(pairing, &options());
        let mut pair = Pair::new(&*client, &*server);
        let mut turns = 0;
        while pair.server.status != Status::Complete {
            pair.turn(Slices::Whole).expect("a turn");
            turns += 1;
            assert!(turns < 5);
        }
        // The session can go: what it had to say is said.
        assert!(pair.server.sent.one_rtt > 0, "no ticket");
        let Pair { mut client, server } = pair;
        drop(server);
        assert_eq!(client.drive().expect("a ticket is taken"), Status::Complete);
        assert!(client.inbox.one_rtt.is_empty());
    }
}

#[test]
fn a_client_brings_the_ticket_back_that_the_server_issued() {
    for pairing in pairings() {
        let (client, server) = providers(pairing, &options());
        let mut pair = Pair::new(&*client, &*server);
        while pair.server.status != Status::Complete {
            pair.turn(Slices::Whole).expect("a turn");
        }
        let issued = issued_ticket(&pair.client.inbox.one_rtt).map(<[u8]>::to_vec);
        assert!(issued.is_some(), "{} issued none", pairing.1.name);
        pair.client.drive().expect("a ticket is taken");

        let mut next = Pair::new(&*client, &*server);
        next.client.drive().expect("a ClientHello");
        let hello = ClientHello::parse(&next.client.outbox.crypto.initial)
            .expect("well-formed")
            .expect("whole")
            .0;
        assert_eq!(hello.ticket(), issued.as_deref(), "{}", pairing.0.name);
        assert!(next.complete().server.session.negotiated().resumed);
    }
}

#[test]
fn a_ticket_belongs_to_a_server_name() {
    use crate::support::{ALPN, Authority};
    let authority = Authority::new("root");
    let options = (
        ClientOptions::new().alpn(ALPN).trust(authority.trust()),
        ServerOptions::new(authority.issue(&[HOST, "other.test"])).alpn(ALPN),
    );
    for pairing in pairings() {
        let (client, server) = providers(pairing, &options);
        assert!(!resumed(&*client, &*server));
        let other = Pair::named(&*client, &*server, "other.test").complete();
        assert!(!other.client.session.negotiated().resumed);
        assert!(resumed(&*client, &*server));
    }
}

#[test]
fn a_client_may_ask_for_a_full_handshake() {
    for pairing in pairings() {
        let (client, server) = providers(pairing, &options());
        assert!(!resumed(&*client, &*server));
        let start = ClientStart {
            resume: false,
            ..client_start(HOST)
        };
        let session = client.session(start.into()).expect("a session");
        let answer = server
            .session(server_start(None).into())
            .expect("a session");
        let pair = Pair {
            client: End::new(session),
            server: End::new(answer),
        }
        .complete();
        assert!(!pair.client.session.negotiated().resumed);
        assert!(resumed(&*client, &*server), "the ticket is still there");
    }
}

#[test]
fn resumption_can_be_switched_off_at_either_end() {
    for pairing in pairings() {
        let (client, server) = options();
        for options in [
            (client.clone().without_resumption(), server.clone()),
            (client.clone(), server.clone().without_tickets()),
        ] {
            let (client, server) = providers(pairing, &options);
            assert!(!resumed(&*client, &*server));
            assert!(!resumed(&*client, &*server));
        }
        let (client, server) = providers(pairing, &(client, server.without_tickets()));
        let pair = Pair::new(&*client, &*server).complete();
        assert_eq!(pair.server.sent.one_rtt, 0);
    }
}

#[test]
fn a_ticket_of_another_server_leads_to_a_full_handshake() {
    for pairing in pairings() {
        let options = options();
        let (client, server) = providers(pairing, &options);
        let other = (pairing.1.server)(&options.1).expect("a server with other ticket keys");
        assert!(!resumed(&*client, &*server));
        assert!(!resumed(&*client, &*other));
    }
}

/// Servers with the same secret are one, also in different processes; a rotation loses no ticket.
#[test]
fn tickets_of_a_secret_are_known_to_every_server_of_the_fleet() {
    use hybriq_tls::Tickets;
    for pairing in pairings() {
        let (client_options, server) = options();
        let machine = |tickets: &Tickets| {
            let options = server.clone().tickets(tickets.clone());
            (pairing.1.server)(&options).expect("a server")
        };
        let fresh = || (pairing.0.client)(&client_options).expect("a client");
        let client = fresh();
        let [one, two, stranger] = [[1; 32], [1; 32], [2; 32]].map(Tickets::from_secret);
        let [first, second, other] = [&one, &two, &stranger].map(machine);
        assert!(!resumed(&*client, &*first));
        assert!(resumed(&*client, &*second), "{}", pairing.1.name);

        let client = fresh();
        assert!(!resumed(&*client, &*first));
        assert!(!resumed(&*client, &*other));

        // The second machine knows the next secret before the first uses it.
        let client = fresh();
        two.also_accept([3; 32]);
        one.rotate_to([3; 32]);
        let [first, second] = [&one, &two].map(machine);
        assert!(!resumed(&*client, &*first));
        assert!(resumed(&*client, &*second), "{}", pairing.1.name);
        // A ticket from before the rotation.
        let client = fresh();
        assert!(!resumed(&*client, &*second));
        assert!(resumed(&*client, &*first), "{}", pairing.1.name);
    }
}

#[test]
fn a_ticket_does_not_replace_the_certificate_that_another_server_requires() {
    use hybriq_tls::{ClientAuth, Tickets};
    let trust = crate::support::Authority::new("clients").trust();
    for pairing in pairings() {
        for early_data in [false, true] {
            if early_data && !pairing.1.early_data {
                continue;
            }
            let (client, server) = options();
            let server = with_early_data(early_data, server.tickets(Tickets::new()));
            let strict = server
                .clone()
                .client_auth(ClientAuth::Required(trust.clone()));
            let (client, open) = providers(pairing, &(client, server));
            let strict = (pairing.1.server)(&strict).expect("a server");
            assert!(!resumed(&*client, &*open));
            Pair::new(&*client, &*strict).fail();
        }
    }
}

/// A handshake between ends that bind tickets to these contexts; the client learns about `moved`
/// during it.
#[track_caller]
fn resumed_within(
    (client, server): (&dyn Provider, &dyn Provider),
    [ours, theirs]: [&[u8]; 2],
    moved: Option<&[u8]>,
) -> bool {
    let client = client.session(
        ClientStart {
            resumption_context: ours,
            ..client_start(HOST)
        }
        .into(),
    );
    let server = server.session(
        ServerStart {
            resumption_context: theirs,
            ..server_start(None)
        }
        .into(),
    );
    let mut pair = Pair {
        client: End::new(client.expect("a session")),
        server: End::new(server.expect("a session")),
    };
    pair.turn(Slices::Whole).expect("a turn");
    if let Some(moved) = moved {
        pair.client.session.set_resumption_context(moved);
    }
    let pair = pair.complete();
    let resumed = pair.client.session.negotiated().resumed;
    assert_eq!(pair.server.session.negotiated().resumed, resumed);
    resumed
}

/// Both kinds of tickets, where the server has both.
fn kinds() -> impl Iterator<Item = (Arc<dyn Provider>, Arc<dyn Provider>)> {
    pairings().flat_map(|pairing| {
        let possible = [false, true]
            .into_iter()
            .filter(move |early| pairing.1.early_data || !early);
        possible.map(move |early| {
            println!("{} to {}, 0-RTT: {early}", pairing.0.name, pairing.1.name);
            let (client, server) = options();
            providers(pairing, &(client, with_early_data(early, server)))
        })
    })
}

fn with_early_data(early: bool, server: ServerOptions) -> ServerOptions {
    if early {
        return server.accept_early_data();
    }
    server
}

/// Proves: rfc9369 5 tickets-are-of-one-version
#[test]
fn a_client_uses_a_ticket_only_in_the_context_it_came_in() {
    for (client, server) in kinds() {
        let ends = (&*client, &*server);
        // The server would take each of them.
        let within = |ours| resumed_within(ends, [ours, b"a"], None);
        assert!(!within(b"a"));
        assert!(!within(b"b"));
        assert!(within(b"b"), "the ticket of the handshake before");
    }
}

/// Proves: rfc9369 5 tickets-are-of-one-version
#[test]
fn a_server_takes_a_ticket_only_in_the_context_it_issued_it_in() {
    for (client, server) in kinds() {
        let ends = (&*client, &*server);
        // The client would use each of them.
        let within = |theirs| resumed_within(ends, [b"same", theirs], None);
        assert!(!within(b"a"));
        assert!(within(b"a"));
        assert!(!within(b"b"), "a ticket of another context");
        assert!(within(b"b"));
        assert!(!within(b""), "a ticket of another context");
    }
}

/// Proves: rfc9369 5 tickets-are-of-one-version
#[test]
fn a_ticket_is_of_the_context_that_the_client_moved_to() {
    for (client, server) in kinds() {
        let ends = (&*client, &*server);
        assert!(!resumed_within(ends, [b"a", b"b"], Some(b"b")));
        assert!(!resumed_within(ends, [b"a", b"b"], Some(b"b")));
        assert!(resumed_within(ends, [b"b", b"b"], None));
    }
}

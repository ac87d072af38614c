//! The first session of a chain of tickets: if it was made classically, no end resumes it that
//! requires a post-quantum exchange.

use std::sync::Arc;

use hybriq_tls::{
    ClientOptions, ClientStart, EarlyDataPolicy, EarlyDataStatus, KeyExchange, Lineage, Negotiated,
    Provider, ServerOptions, ServerStart, Tickets,
};

use crate::support::{Contender, End, HOST, Pair, client_start, options, pairings, server_start};

/// A client, and servers of each policy that know each other's tickets.
struct Ends {
    client: Arc<dyn Provider>,
    prefer: Arc<dyn Provider>,
    require: Arc<dyn Provider>,
    classical: Arc<dyn Provider>,
    /// True if clients continue the chain: s2n-tls issues no ticket on a resumed connection, and
    /// rustls uses a ticket once.
    renews: bool,
}

fn ends(pairing: (&Contender, &Contender), options: &(ClientOptions, ServerOptions)) -> Ends {
    println!("{} to {}", pairing.0.name, pairing.1.name);
    let tickets = Tickets::new();
    let server = |policy| {
        let options = options.1.clone().tickets(tickets.clone());
        (pairing.1.server)(&options.key_exchange(policy)).expect("a server")
    };
    Ends {
        client: (pairing.0.client)(&options.0).expect("a client"),
        prefer: server(KeyExchange::PreferPostQuantum),
        require: server(KeyExchange::RequirePostQuantum),
        classical: server(KeyExchange::OnlyClassical),
        renews: pairing.1.name != "s2n-tls",
    }
}

/// One handshake: what it agreed on, and what became of early data.
#[track_caller]
fn connect(client: &dyn Provider, server: &dyn Provider) -> (Negotiated, EarlyDataStatus) {
    let early = ClientStart {
        early_data: EarlyDataPolicy::On,
        ..client_start(HOST)
    };
    let accepting = ServerStart {
        early_data: EarlyDataPolicy::On,
        ..server_start(None)
    };
    let pair = Pair {
        client: End::new(client.session(early.into()).expect("a session")),
        server: End::new(server.session(accepting.into()).expect("a session")),
    }
    .complete();
    let [client, server] = [&pair.client, &pair.server].map(|end| end.session.negotiated());
    assert_eq!(client.lineage, server.lineage);
    assert_eq!(client.resumed, server.resumed);
    assert_eq!(client.group, server.group);
    (client, pair.client.session.early_data())
}

#[track_caller]
fn expect(
    client: &dyn Provider,
    server: &dyn Provider,
    (resumed, post_quantum, lineage): (bool, bool, Lineage),
) -> EarlyDataStatus {
    let (negotiated, early) = connect(client, server);
    assert_eq!(negotiated.resumed, resumed, "resumed");
    assert_eq!(
        negotiated.group.expect("a group").is_post_quantum(),
        post_quantum,
        "the group"
    );
    assert_eq!(negotiated.lineage, Some(lineage));
    early
}

use Lineage::{Classical, PostQuantum};

#[test]
fn a_full_handshake_is_its_own_lineage() {
    for pairing in pairings() {
        let ends = ends(pairing, &options());
        expect(&*ends.client, &*ends.prefer, (false, true, PostQuantum));
        let ends = self::ends(pairing, &options());
        expect(&*ends.client, &*ends.classical, (false, false, Classical));
    }
}

#[test]
fn a_post_quantum_session_resumes_where_that_is_required() {
    for pairing in pairings() {
        let ends = ends(pairing, &options());
        expect(&*ends.client, &*ends.prefer, (false, true, PostQuantum));
        expect(&*ends.client, &*ends.require, (true, true, PostQuantum));
        let ends = self::ends(pairing, &options());
        expect(&*ends.client, &*ends.require, (false, true, PostQuantum));
        expect(&*ends.client, &*ends.require, (true, true, PostQuantum));
    }
}

#[test]
fn a_classical_session_is_refused_where_post_quantum_is_required() {
    for pairing in pairings() {
        let ends = ends(pairing, &options());
        expect(&*ends.client, &*ends.classical, (false, false, Classical));
        expect(&*ends.client, &*ends.require, (false, true, PostQuantum));
        // The new session is a post-quantum one.
        expect(&*ends.client, &*ends.require, (true, true, PostQuantum));
    }
}

#[test]
fn a_classical_session_stays_one_however_often_it_is_resumed() {
    for pairing in pairings() {
        let ends = ends(pairing, &options());
        expect(&*ends.client, &*ends.classical, (false, false, Classical));
        // The exchange of the resumed handshake is post-quantum, what it goes back to is not.
        expect(&*ends.client, &*ends.prefer, (true, true, Classical));
        if ends.renews {
            expect(&*ends.client, &*ends.prefer, (true, true, Classical));
        }
        expect(&*ends.client, &*ends.require, (false, true, PostQuantum));
    }
}

#[test]
fn a_post_quantum_session_stays_one_over_a_classical_resumption() {
    for pairing in pairings() {
        let ends = ends(pairing, &options());
        expect(&*ends.client, &*ends.prefer, (false, true, PostQuantum));
        expect(&*ends.client, &*ends.classical, (true, false, PostQuantum));
        if ends.renews {
            expect(&*ends.client, &*ends.require, (true, true, PostQuantum));
        }
    }
}

#[test]
fn no_early_data_of_a_classical_session_is_accepted_where_post_quantum_is_required() {
    for pairing in pairings().filter(|(_, server)| server.early_data) {
        let (client, server) = options();
        let ends = ends(pairing, &(client, server.accept_early_data()));
        let offered = |status| {
            if pairing.0.early_data {
                status
            } else {
                EarlyDataStatus::None
            }
        };
        expect(&*ends.client, &*ends.classical, (false, false, Classical));
        let early = expect(&*ends.client, &*ends.require, (false, true, PostQuantum));
        assert_eq!(early, offered(EarlyDataStatus::Rejected));
        let early = expect(&*ends.client, &*ends.require, (true, true, PostQuantum));
        assert_eq!(early, offered(EarlyDataStatus::Accepted));
    }
}

#[test]
fn early_data_of_a_classical_session_is_accepted_where_it_may_be() {
    for pairing in pairings().filter(|(client, server)| client.early_data && server.early_data) {
        let (client, server) = options();
        let client = client.key_exchange(KeyExchange::OnlyClassical);
        let ends = ends(pairing, &(client, server.accept_early_data()));
        expect(&*ends.client, &*ends.prefer, (false, false, Classical));
        let early = expect(&*ends.client, &*ends.prefer, (true, false, Classical));
        assert_eq!(early, EarlyDataStatus::Accepted);
    }
}

#[test]
fn servers_without_tickets_in_common_resume_nothing_of_each_other() {
    for pairing in pairings() {
        let options = options();
        let (mine, other) = (ends(pairing, &options), ends(pairing, &options));
        expect(&*mine.client, &*mine.prefer, (false, true, PostQuantum));
        expect(&*mine.client, &*other.prefer, (false, true, PostQuantum));
    }
}

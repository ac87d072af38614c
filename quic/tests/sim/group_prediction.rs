//! Fewer round trips: a client begins with the key share that its server will choose.

use std::sync::{Arc, Mutex, OnceLock};

use Group as G;
use hybriq::{
    Backend, ClientConfig, Group, Identity, KeyExchange, Profile, ServerConfig, Trust,
    memory::ServerMemory,
    tls::{CertificateDer, PrivateKeyDer, SupportedGroups},
};
use hybriq_proto::endpoint::Setup;
use hybriq_sim::{Answer, Ask, Echo, Progress, World};

use crate::support::{LIMIT, plain, transport};

fn identity() -> &'static (Identity, CertificateDer<'static>) {
    static MADE: OnceLock<(Identity, CertificateDer<'static>)> = OnceLock::new();
    MADE.get_or_init(|| {
        let names = SERVERS.iter().map(|(name, _)| *name).chain(["localhost"]);
        let names: Vec<String> = names.map(str::to_owned).collect();
        let made = rcgen::generate_simple_self_signed(names).unwrap();
        let root = made.cert.der().clone();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        (Identity::from_der(vec![root.clone()], key), root)
    })
}

fn server() -> ServerConfig {
    ServerConfig::new(identity().0.clone())
        .alpn(["sim"])
        .transport(transport())
}

fn client() -> ClientConfig {
    ClientConfig::new()
        .alpn(["sim"])
        .trust(Trust::roots_der([identity().1.clone()]))
        .transport(transport())
        .without_resumption()
}

/// Groups of the first ClientHello of a connection: those offered, and those of its shares.
type Hello = (Vec<Group>, Vec<Group>);

/// Servers of several names behind one address.
struct Net {
    world: World,
    hellos: Arc<Mutex<Vec<Hello>>>,
}

impl Net {
    fn new(seed: u64, server: &ServerConfig) -> Self {
        let mut net = Self {
            world: World::new(plain(seed), server.setup().unwrap()),
            hellos: Arc::default(),
        };
        net.change(server);
        net
    }

    fn change(&mut self, server: &ServerConfig) {
        let (hellos, setup): (_, Setup) = (self.hellos.clone(), server.setup().unwrap());
        self.world.server_mut().on_incoming(move |incoming| {
            let hello = incoming.client_hello();
            let shares = hello.key_shares().iter().map(|share| share.group);
            let hello = (hello.groups().to_vec(), shares.collect());
            hellos.lock().unwrap().push(hello);
            Answer::Accept(Some(setup.clone()), Box::new(Echo::new()))
        });
    }

    /// One more client connects. Returns the group, and whether the server had to ask for its share.
    #[track_caller]
    fn visit(&mut self, client: &ClientConfig, name: &str) -> (Group, bool) {
        self.world.set_server_name(name);
        let index = self
            .world
            .connect(&client.setup().unwrap(), Ask::one_byte());
        self.world.run(LIMIT);
        self.world.forget_trace();
        let peer = self.world.client(index);
        assert_eq!(peer.progress(), Progress::Done, "{:?}", peer.close_reason());
        let exchange = peer.handshake.as_ref().unwrap().key_exchange;
        (exchange.group, exchange.hello_retry)
    }

    fn last_hello(&self) -> Hello {
        self.hellos.lock().unwrap().last().unwrap().clone()
    }
}

fn only(group: Group) -> KeyExchange {
    KeyExchange::Exactly(vec![group])
}

/// Servers with different policies, by name. The last three are classical.
const SERVERS: [(&str, Group); 8] = [
    ("a.test", G::X25519MLKEM768),
    ("b.test", G::SECP256R1MLKEM768),
    ("c.test", G::SECP384R1MLKEM1024),
    ("d.test", G::MLKEM1024),
    ("e.test", G::MLKEM768),
    ("f.test", G::X25519),
    ("g.test", G::SECP256R1),
    ("h.test", G::SECP384R1),
];

fn mixed() -> ServerConfig {
    SERVERS.into_iter().fold(server(), |server, (name, group)| {
        server.key_exchange_for(name, only(group))
    })
}

#[test]
fn after_first_contact_no_server_asks_for_another_share() {
    let mut net = Net::new(1, &mixed());
    let client = client();
    let usual = KeyExchange::default().groups();
    let mut retries = Vec::new();
    for round in 0..12 {
        for (name, group) in SERVERS {
            let (chosen, retry) = net.visit(&client, name);
            assert_eq!(chosen, group);
            let (offered, shares) = net.last_hello();
            assert_eq!(offered, usual, "{name}: the offer never changes");
            assert!(shares[0].is_post_quantum(), "{name}: {shares:?}");
            if retry {
                retries.push((round, name));
            }
        }
    }
    let first: Vec<_> = retries.iter().filter(|(round, _)| *round == 0).collect();
    // The usual hello has shares of X25519MLKEM768 and of X25519.
    assert_eq!(first.len(), SERVERS.len() - 2, "{first:?}");
    assert_eq!(
        retries.len(),
        first.len(),
        "none of 88 later ones: {retries:?}"
    );
}

#[test]
fn without_prediction_every_connection_costs_the_round_trip() {
    let mut net = Net::new(2, &mixed());
    let client = client().without_group_prediction();
    for _ in 0..3 {
        for (name, group) in SERVERS {
            let usual = [G::X25519MLKEM768, G::X25519];
            assert_eq!(net.visit(&client, name), (group, !usual.contains(&group)));
            assert_eq!(net.last_hello().1, usual);
        }
    }
}

/// s2n-tls always begins with the shares of its first post-quantum group and its first curve, so that
/// servers that take one of them never ask, and others always do.
#[test]
fn s2n_tls_begins_with_the_shares_of_its_policy() {
    let mut net = Net::new(3, &mixed());
    let client = client().tls(Backend::S2nTls);
    for _ in 0..3 {
        for (name, group) in SERVERS {
            if [G::MLKEM1024, G::MLKEM768].contains(&group) {
                continue;
            }
            let usual = [G::X25519MLKEM768, G::SECP256R1];
            assert_eq!(net.visit(&client, name), (group, !usual.contains(&group)));
            assert_eq!(net.last_hello().1, usual);
        }
    }
    let cannot = client.clone().group_hint("c.test", G::SECP384R1MLKEM1024);
    let problems = cannot.check().unwrap_err().to_string();
    assert!(problems.contains("use rustls"), "{problems}");
    assert!(cannot.setup().is_err());
    client
        .group_hint("a.test", G::X25519MLKEM768)
        .check()
        .unwrap();
    // Not told to add what the profile would refuse.
    let strict = ClientConfig::new()
        .profile(Profile::Cnsa2)
        .tls(Backend::S2nTls);
    let problems = strict.group_hint("a.test", G::X25519).check().unwrap_err();
    let problems = problems.to_string();
    assert!(problems.contains("the profile forbids it"), "{problems}");
}

#[test]
fn a_server_that_changes_its_policy_asks_once() {
    let client = client();
    let mut net = Net::new(4, &server());
    net.visit(&client, "localhost");
    for group in [
        G::SECP384R1MLKEM1024,
        G::SECP256R1,
        G::MLKEM1024,
        G::SECP384R1,
        G::X25519MLKEM768,
    ] {
        net.change(&server().key_exchange(only(group)));
        let retries: Vec<bool> = (0..4).map(|_| net.visit(&client, "localhost").1).collect();
        // A post-quantum first share stays next to the classical one.
        let knows = group == G::X25519MLKEM768;
        assert_eq!(
            retries,
            [!knows, false, false, false],
            "{group}: {:?}",
            net.last_hello()
        );
    }
}

/// A server that was classical once is offered a post-quantum share for ever, and takes it as soon as
/// it can, without another round trip.
#[test]
fn a_classical_choice_takes_no_post_quantum_share_away() {
    let client = client();
    let mut net = Net::new(5, &server().key_exchange(only(G::SECP256R1)));
    assert_eq!(net.visit(&client, "localhost"), (G::SECP256R1, true));
    assert_eq!(net.visit(&client, "localhost"), (G::SECP256R1, false));
    assert_eq!(net.last_hello().1, [G::X25519MLKEM768, G::SECP256R1]);
    net.change(&server());
    assert_eq!(net.visit(&client, "localhost"), (G::X25519MLKEM768, false));
    // A server that requires post-quantum groups sees nothing unusual either.
    net.change(&server().key_exchange(KeyExchange::RequirePostQuantum));
    assert_eq!(net.visit(&client, "localhost"), (G::X25519MLKEM768, false));
    assert_eq!(net.last_hello().1, [G::X25519MLKEM768, G::X25519]);
}

#[test]
fn a_group_that_the_policy_does_not_have_is_not_predicted() {
    let mut net = Net::new(6, &mixed());
    let memory = ServerMemory::new();
    let wide = client().server_memory(memory.clone());
    net.visit(&wide, "d.test");
    assert_eq!(
        memory.get("d.test").unwrap().port(4433).group,
        Some(G::MLKEM1024)
    );
    let groups = vec![G::SECP256R1MLKEM768, G::X25519];
    let narrow = wide.key_exchange(KeyExchange::Exactly(groups));
    net.change(&server());
    net.visit(&narrow, "d.test");
    assert_eq!(net.last_hello().1, [G::SECP256R1MLKEM768]);
    // Where the policy begins with a classical group, a stronger share may replace it.
    let weak = client().key_exchange(KeyExchange::Exactly(vec![G::X25519, G::MLKEM1024]));
    let weak = weak.group_hint("d.test", G::MLKEM1024);
    net.change(&mixed());
    assert_eq!(net.visit(&weak, "d.test"), (G::MLKEM1024, false));
}

#[test]
fn a_hint_saves_the_first_round_trip() {
    let mut net = Net::new(7, &mixed());
    for (name, group) in SERVERS {
        let hinted = client().group_hint(name.to_uppercase(), group);
        hinted.check().unwrap();
        assert_eq!(net.visit(&hinted, name), (group, false));
        assert!(net.last_hello().1[0].is_post_quantum());
    }
    // What a server did counts more than what somebody says.
    let wrong = client().group_hint("c.test", G::MLKEM1024);
    assert!(net.visit(&wrong, "c.test").1);
    assert!(!net.visit(&wrong, "c.test").1);
    let unknown = client()
        .key_exchange(only(G::X25519MLKEM768))
        .group_hint("c.test", G::MLKEM1024);
    let problems = unknown.check().unwrap_err().to_string();
    assert!(problems.contains("key_exchange"), "{problems}");
}

#[test]
fn the_dns_saves_the_first_round_trip_and_cannot_weaken_the_offer() {
    let mut net = Net::new(8, &mixed());
    for (name, group) in SERVERS {
        // An unknown code point first, as servers may send it (RFC 8701).
        let value = [0x0a0a, group.0].map(u16::to_be_bytes).concat();
        let groups = SupportedGroups::from_wire(&value).unwrap();
        assert_eq!(
            net.visit(&client().dns_groups(name, &groups), name),
            (group, false)
        );
        assert!(net.last_hello().1[0].is_post_quantum());
    }
    // A forged record: the server still gets what it prefers.
    net.change(&server());
    let forged: SupportedGroups = "23".parse().unwrap();
    let misled = client().dns_groups("a.test", &forged);
    assert_eq!(net.visit(&misled, "a.test"), (G::X25519MLKEM768, false));
    let useless: SupportedGroups = "65535".parse().unwrap();
    assert_eq!(
        net.visit(&client().dns_groups("b.test", &useless), "b.test")
            .0,
        G::X25519MLKEM768
    );
    assert_eq!(net.last_hello().1, [G::X25519MLKEM768, G::X25519]);
}

/// Each connection may get a hint of its own, without losing the sessions that it shares.
#[test]
fn a_clone_with_a_hint_resumes_the_sessions_of_the_original() {
    let mut net = Net::new(9, &server());
    let original = ClientConfig::new()
        .alpn(["sim"])
        .trust(Trust::roots_der([identity().1.clone()]))
        .transport(transport());
    net.visit(&original, "localhost");
    let clone = original.clone().group_hint("a.test", G::MLKEM1024);
    net.visit(&clone, "localhost");
    let last = net.world.server().peers().len() - 1;
    assert!(net.world.accepted(last).handshake.as_ref().unwrap().resumed);
}

#[test]
fn the_group_of_a_server_outlives_the_process() {
    let mut net = Net::new(10, &mixed());
    let memory = ServerMemory::new();
    let before = client().server_memory(memory.clone());
    for (name, _) in SERVERS {
        net.visit(&before, name);
    }
    let read = ServerMemory::from_bytes(&memory.to_bytes()).unwrap();
    let after = client().server_memory(read);
    for (name, group) in SERVERS {
        assert_eq!(net.visit(&after, name), (group, false));
    }
}

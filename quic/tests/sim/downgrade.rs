//! The downgrade alarm: a server that was post-quantum and no longer is
//! (draft-sheffer-tls-pqc-continuity).

use std::{
    net::IpAddr,
    sync::{Arc, OnceLock},
    time::{Duration, SystemTime},
};

use hybriq::{
    Backend, ClientConfig, ConnectionError, Group, Identity, KeyExchange, ServerConfig, Trust,
    error::{Alert, By, Code},
    fleet::Tickets,
    memory::{Continuity, Downgrade, OriginRecord, ServerMemory},
    tls::PrivateKeyDer,
};
use hybriq_proto::{config::ServerTerms, endpoint::Setup};
use hybriq_sim::{Answer, Ask, Echo, Peer, Progress, World, ms};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

use crate::support::{LIMIT, plain, transport};

const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The time of the stores, which is the system's.
#[expect(
    clippy::disallowed_methods,
    reason = "the configuration takes the wall clock when it is built"
)]
fn now() -> SystemTime {
    SystemTime::now()
}

/// Returns what is remembered of the server's port.
fn known(memory: &ServerMemory) -> Option<OriginRecord> {
    Some(memory.get("localhost")?.port(4433))
}

/// A certificate of ML-DSA and one of ECDSA, both signed by themselves.
fn identities() -> &'static [(Identity, hybriq::tls::CertificateDer<'static>); 2] {
    static MADE: OnceLock<[(Identity, hybriq::tls::CertificateDer<'static>); 2]> = OnceLock::new();
    MADE.get_or_init(|| {
        [&rcgen::PKCS_ML_DSA_44, &rcgen::PKCS_ECDSA_P256_SHA256].map(|algorithm| {
            let key = KeyPair::generate_for(algorithm).unwrap();
            let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
            // Libraries find a root by its name.
            let name = format!("{algorithm:?}");
            params.distinguished_name.push(DnType::CommonName, name);
            let root = params.self_signed(&key).unwrap().der().clone();
            let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
            (Identity::from_der(vec![root.clone()], key), root)
        })
    })
}

/// Kind of a server's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chain {
    MlDsa,
    Ecdsa,
}

fn server(chain: Chain, policy: KeyExchange) -> ServerConfig {
    let [ml_dsa, ecdsa] = identities();
    let (identity, _) = if chain == Chain::MlDsa { ml_dsa } else { ecdsa };
    ServerConfig::new(identity.clone())
        .alpn(["sim"])
        .transport(transport())
        .key_exchange(policy)
}

fn post_quantum() -> ServerConfig {
    server(Chain::MlDsa, KeyExchange::default())
}

fn client(backend: Backend, continuity: Continuity) -> ClientConfig {
    let roots = identities().each_ref().map(|(_, root)| root.clone());
    ClientConfig::new()
        .alpn(["sim"])
        .tls(backend)
        .trust(Trust::roots_der(roots))
        .transport(transport())
        .continuity(continuity)
}

/// A network with a server that changes.
struct Net {
    world: World,
    clients: usize,
}

impl Net {
    fn new(seed: u64) -> Self {
        let world = World::new(plain(seed), post_quantum().setup().unwrap());
        Self { world, clients: 0 }
    }

    /// One more client goes to the server, which has this setup now.
    fn visit(&mut self, client: &ClientConfig, server: &Setup) -> &Peer {
        self.visit_with(client, server, Ask::one_byte())
    }

    fn visit_with(&mut self, client: &ClientConfig, server: &Setup, app: Ask) -> &Peer {
        let server = server.clone();
        self.world
            .server_mut()
            .on_incoming(move |_| Answer::Accept(Some(server.clone()), Box::new(Echo::new())));
        let index = self.world.connect(&client.setup().unwrap(), app);
        self.world.run(LIMIT);
        self.clients += 1;
        self.world.client(index)
    }

    /// One more client goes to a server that it has to accept.
    #[track_caller]
    fn accept(&mut self, client: &ClientConfig, server: &ServerConfig) -> &Peer {
        let peer = self.visit(client, &server.setup().unwrap());
        assert_eq!(peer.progress(), Progress::Done, "{:?}", peer.close_reason());
        assert_eq!(peer.handshake.as_ref().unwrap().downgrade, None);
        peer
    }

    /// One more client goes to a server that it has to refuse.
    #[track_caller]
    fn refuse(&mut self, client: &ClientConfig, server: &ServerConfig) -> Downgrade {
        refused(self.visit(client, &server.setup().unwrap()))
    }
}

#[track_caller]
fn refused(peer: &Peer) -> Downgrade {
    assert_ne!(peer.progress(), Progress::Done, "{:?}", peer.handshake);
    match peer.close_reason() {
        Some(ConnectionError::Downgraded(downgrade)) => *downgrade,
        other => panic!("not refused: {other:?}"),
    }
}

/// A classical group without and with a HelloRetryRequest, a classical certificate, and both.
fn downgrades() -> [(&'static str, ServerConfig); 5] {
    let only = |group| KeyExchange::Exactly(vec![group]);
    let classical = KeyExchange::OnlyClassical;
    [
        ("group", server(Chain::MlDsa, classical.clone())),
        (
            "group by retry",
            server(Chain::MlDsa, only(Group::SECP384R1)),
        ),
        ("certificate", server(Chain::Ecdsa, KeyExchange::default())),
        ("both", server(Chain::Ecdsa, classical)),
        (
            "both by retry",
            server(Chain::Ecdsa, only(Group::SECP384R1)),
        ),
    ]
}

/// Compares a downgrade with what a name of [`downgrades`] says.
#[track_caller]
fn matches(name: &str, downgrade: Downgrade) {
    assert_eq!(downgrade.group.is_some(), name != "certificate", "{name}");
    assert!(!downgrade.session, "{name}");
    let certificates = name == "certificate" || name.starts_with("both");
    assert_eq!(downgrade.certificates, certificates, "{name}");
}

#[test]
fn every_downgrade_of_a_full_handshake_is_refused() {
    for backend in Backend::ALL {
        let mut net = Net::new(1);
        for (name, after) in downgrades() {
            let client = client(backend, Continuity::Refuse).without_resumption();
            net.accept(&client, &post_quantum());
            matches(name, net.refuse(&client, &after));
            // The refusal changes nothing: the next one is refused as well.
            matches(name, net.refuse(&client, &after));
            net.accept(&client, &post_quantum());
            // The server is told why, and never gets an answer to its Finished.
            let accepted = net.world.accepted(net.clients - 2);
            let alert = if name == "certificate" {
                Alert::CERTIFICATE_UNKNOWN
            } else {
                Alert::HANDSHAKE_FAILURE
            };
            let Some(ConnectionError::Transport {
                by, code, reason, ..
            }) = accepted.close_reason()
            else {
                panic!("{name}: {:?}", accepted.close_reason());
            };
            assert_eq!((*by, *code), (By::Peer, Code::crypto(alert.0)), "{name}");
            assert!(reason.starts_with(b"this server's "), "{name}");
            assert_eq!(accepted.complete_at, None, "{name}");
        }
    }
}

#[test]
fn every_downgrade_of_a_full_handshake_is_reported() {
    for backend in Backend::ALL {
        let mut net = Net::new(2);
        for (name, after) in downgrades() {
            let client = client(backend, Continuity::Report).without_resumption();
            net.accept(&client, &post_quantum());
            // A report does not end the alarm.
            for _ in 0..2 {
                let peer = net.visit(&client, &after.setup().unwrap());
                assert_eq!(peer.progress(), Progress::Done);
                matches(name, peer.handshake.as_ref().unwrap().downgrade.unwrap());
            }
        }
    }
}

/// Every certificate of the chain counts, not the server's own alone.
#[test]
fn one_classical_signature_above_the_leaf_is_caught() {
    let key = || KeyPair::generate_for(&rcgen::PKCS_ML_DSA_44).unwrap();
    let params = |name: &str| {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params
    };
    let authority = |name: &str| {
        let mut params = params(name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
    };
    let old = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
    let old = CertifiedIssuer::self_signed(authority("old root"), old).unwrap();
    let between = CertifiedIssuer::signed_by(authority("between"), key(), &old).unwrap();
    let own = key();
    let leaf = params("leaf").signed_by(&own, &between).unwrap();
    let chain = vec![leaf.der().clone(), between.der().clone()];
    let identity = Identity::from_der(chain, PrivateKeyDer::Pkcs8(own.serialize_der().into()));
    let after = ServerConfig::new(identity)
        .alpn(["sim"])
        .transport(transport());
    let roots = [identities()[0].1.clone(), old.der().clone()];
    for backend in Backend::ALL {
        let mut net = Net::new(19);
        let client = client(backend, Continuity::Refuse)
            .trust(Trust::roots_der(roots.clone()))
            .without_resumption();
        net.accept(&client, &post_quantum());
        matches("certificate", net.refuse(&client, &after));
    }
}

/// A session that began with a downgrade is no way around the alarm: the next visit reports it too.
#[test]
fn a_downgrade_is_reported_although_the_client_could_resume_its_session() {
    for backend in Backend::ALL {
        for (name, after) in downgrades() {
            let mut net = Net::new(18);
            let client = client(backend, Continuity::Report);
            let after = after.setup().unwrap();
            net.accept(&client, &post_quantum().without_tickets());
            for _ in 0..3 {
                let peer = net.visit(&client, &after);
                let handshake = peer.handshake.as_ref().unwrap();
                assert!(!handshake.resumed, "{backend} {name}");
                matches(name, handshake.downgrade.unwrap_or_default());
            }
        }
    }
}

#[test]
fn nothing_is_remembered_and_nothing_is_refused_unless_the_alarm_is_on() {
    let mut net = Net::new(3);
    let memory = ServerMemory::new();
    let off = client(Backend::Rustls, Continuity::Off).server_memory(memory.clone());
    let on = off.clone().continuity(Continuity::Refuse);
    net.accept(&off, &post_quantum());
    assert!(!known(&memory).unwrap().is_pinned(now()));
    for (_, after) in downgrades() {
        net.accept(&off, &after);
    }
    net.accept(&on, &post_quantum());
    assert!(known(&memory).unwrap().is_pinned(now()));
    for (name, after) in downgrades() {
        matches(name, net.refuse(&on, &after));
        net.accept(&off, &after);
    }
}

/// A classical server stays welcome: the alarm is about what was better before.
#[test]
fn a_server_that_never_was_post_quantum_is_not_refused() {
    let mut net = Net::new(4);
    for (_, classical) in downgrades() {
        let client = client(Backend::Rustls, Continuity::Refuse);
        for _ in 0..3 {
            net.accept(&client, &classical);
        }
    }
}

#[test]
fn a_classical_group_of_a_resumed_session_is_caught() {
    for backend in Backend::ALL {
        for continuity in [Continuity::Refuse, Continuity::Report] {
            let mut net = Net::new(5);
            let tickets = Tickets::new();
            let client = client(backend, continuity);
            let before = post_quantum().tls(backend).tickets(tickets.clone());
            let classical = server(Chain::MlDsa, KeyExchange::OnlyClassical);
            let after = classical.tls(backend).tickets(tickets).setup().unwrap();
            net.accept(&client, &before);
            assert!(
                net.accept(&client, &before)
                    .handshake
                    .as_ref()
                    .unwrap()
                    .resumed
            );
            let peer = net.visit(&client, &after);
            if continuity == Continuity::Refuse {
                assert!(refused(peer).group.is_some());
            } else {
                let handshake = peer.handshake.as_ref().unwrap();
                assert!(handshake.resumed, "{backend}");
                assert!(handshake.downgrade.unwrap().group.is_some());
            }
        }
    }
}

#[test]
fn a_classical_group_behind_0_rtt_data_is_caught() {
    for continuity in [Continuity::Refuse, Continuity::Report] {
        let mut net = Net::new(6);
        let tickets = Tickets::new();
        let client = client(Backend::Rustls, continuity).offer_early_data();
        let before = post_quantum().tickets(tickets.clone()).accept_early_data();
        let after = server(Chain::MlDsa, KeyExchange::OnlyClassical);
        let after = after.tickets(tickets).accept_early_data().setup().unwrap();
        net.accept(&client, &before);
        let peer = net.visit_with(&client, &after, Ask::one_byte().early());
        if continuity == Continuity::Refuse {
            let Some(ConnectionError::Downgraded(downgrade)) = peer.close_reason() else {
                panic!("{:?}", peer.close_reason());
            };
            assert!(downgrade.group.is_some());
        } else {
            let handshake = peer.handshake.as_ref().unwrap();
            assert_eq!(handshake.early_data, hybriq::tls::EarlyData::Accepted);
            assert!(handshake.downgrade.unwrap().group.is_some());
        }
    }
}

/// Sessions from before the server was post-quantum would bypass the alarm. They are no longer
/// used, although the server would resume them.
#[test]
fn sessions_that_began_classically_are_not_resumed_once_the_server_is_remembered() {
    for backend in Backend::ALL {
        for (chain, policy) in [
            (Chain::MlDsa, KeyExchange::OnlyClassical),
            (Chain::Ecdsa, KeyExchange::default()),
        ] {
            let mut net = Net::new(7);
            let old = Tickets::new();
            let client = client(backend, Continuity::Refuse);
            let before = server(chain, policy.clone()).tickets(old.clone());
            net.accept(&client, &before);
            // With other ticket keys: a full handshake, without a ticket to resume.
            net.accept(&client, &post_quantum().without_tickets());
            let peer = net.accept(&client, &post_quantum().tickets(old));
            assert!(
                !peer.handshake.as_ref().unwrap().resumed,
                "{backend} {chain:?}"
            );
            let downgrade = net.refuse(&client, &server(chain, policy));
            assert_eq!(downgrade.certificates, chain == Chain::Ecdsa);
        }
    }
}

#[test]
fn a_post_quantum_session_is_resumed_while_its_server_is_remembered() {
    for backend in Backend::ALL {
        let mut net = Net::new(8);
        let client = client(backend, Continuity::Refuse);
        let server = post_quantum().tls(backend);
        net.accept(&client, &server);
        for _ in 0..3 {
            let peer = net.accept(&client, &server);
            assert!(peer.handshake.as_ref().unwrap().resumed, "{backend}");
        }
    }
}

#[test]
fn the_alarm_ends_with_its_time() {
    for (_, after) in downgrades() {
        let mut net = Net::new(9);
        let client = client(Backend::Rustls, Continuity::Refuse)
            .without_resumption()
            .continuity_lifetime(10 * MINUTE);
        net.accept(&client, &post_quantum());
        net.world.run_for(9 * MINUTE);
        net.refuse(&client, &after);
        net.world.run_for(2 * MINUTE);
        net.accept(&client, &after);
        // It begins again when the server is post-quantum again.
        net.accept(&client, &post_quantum());
        net.refuse(&client, &after);
    }
}

#[test]
fn each_visit_prolongs_the_alarm() {
    let mut net = Net::new(10);
    let client = client(Backend::Rustls, Continuity::Refuse).continuity_lifetime(10 * MINUTE);
    let [(_, after), ..] = downgrades();
    for _ in 0..5 {
        net.accept(&client, &post_quantum());
        net.world.run_for(9 * MINUTE);
    }
    net.refuse(&client, &after);
}

#[test]
fn a_servers_commitment_lasts_longer_than_the_clients_memory_and_a_year_at_most() {
    let committed = |time| post_quantum().post_quantum_commitment(time);
    let ecdsa = server(Chain::Ecdsa, KeyExchange::default());
    for backend in Backend::ALL {
        for (promise, days) in [(30 * DAY, 30), (4000 * DAY, 365)] {
            let mut net = Net::new(11);
            let client = client(backend, Continuity::Refuse)
                .without_resumption()
                .continuity_lifetime(MINUTE);
            net.accept(&client, &committed(promise).tls(backend));
            net.world.run_for((days - 1) * DAY);
            assert!(net.refuse(&client, &ecdsa).certificates);
            // A shorter promise takes nothing back.
            net.accept(&client, &committed(MINUTE).tls(backend));
            assert!(net.refuse(&client, &ecdsa).certificates);
            net.world.run_for(2 * DAY);
            net.accept(&client, &ecdsa);
        }
    }
}

#[test]
fn a_server_withdraws_its_commitment_with_zero() {
    let mut net = Net::new(12);
    let ecdsa = server(Chain::Ecdsa, KeyExchange::default());
    let client = client(Backend::Rustls, Continuity::Refuse).without_resumption();
    net.accept(&client, &post_quantum().post_quantum_commitment(DAY));
    net.refuse(&client, &ecdsa);
    net.accept(
        &client,
        &post_quantum().post_quantum_commitment(Duration::ZERO),
    );
    net.accept(&client, &ecdsa);
    // That is about certificates only.
    let [(_, classical), ..] = downgrades();
    assert!(net.refuse(&client, &classical).group.is_some());
}

/// A server that promises what its own certificate is not, which `ServerConfig` refuses to be.
#[test]
fn a_commitment_with_a_classical_certificate_is_caught_at_once() {
    for continuity in [Continuity::Refuse, Continuity::Report] {
        let mut net = Net::new(13);
        let honest = server(Chain::Ecdsa, KeyExchange::default());
        let liar = Setup {
            transport: Arc::new(transport().server_terms(ServerTerms {
                commitment: Some(DAY),
                ..ServerTerms::NONE
            })),
            ..honest.setup().unwrap()
        };
        let client = client(Backend::Rustls, continuity);
        let peer = net.visit(&client, &liar);
        if continuity == Continuity::Refuse {
            assert!(refused(peer).certificates);
        } else {
            let downgrade = peer.handshake.as_ref().unwrap().downgrade;
            assert!(downgrade.unwrap().certificates);
        }
        // Nothing is remembered of it.
        net.accept(&client, &honest);
    }
}

#[test]
fn a_server_cannot_commit_itself_with_classical_certificates() {
    let classical = server(Chain::Ecdsa, KeyExchange::default()).post_quantum_commitment(DAY);
    let problems = classical.check().unwrap_err().to_string();
    assert!(problems.contains("ECDSA P-256"), "{problems}");
    assert!(classical.setup().is_err());
    let [(_, _), (second, _)] = identities();
    let mixed = post_quantum().add_identity(second.clone());
    mixed.check().unwrap();
    assert!(mixed.post_quantum_commitment(DAY).check().is_err());
    post_quantum().post_quantum_commitment(DAY).check().unwrap();
}

/// Only whoever has a certificate that the client trusts writes to the memory.
#[test]
fn a_handshake_that_fails_changes_nothing() {
    let mut net = Net::new(14);
    let memory = ServerMemory::new();
    let client = client(Backend::Rustls, Continuity::Refuse).server_memory(memory.clone());
    let stranger = client
        .clone()
        .trust(Trust::roots_der([identities()[1].1.clone()]));
    let ask = |net: &mut Net, client: &ClientConfig, server: &ServerConfig| {
        let peer = net.visit(client, &server.setup().unwrap());
        peer.progress() == Progress::Done
    };
    // The stranger does not trust ML-DSA's root: neither a group by retry nor a pin is written.
    let [_, (_, by_retry), ..] = downgrades();
    assert!(!ask(&mut net, &stranger, &by_retry));
    assert!(!ask(&mut net, &stranger, &post_quantum()));
    assert_eq!(known(&memory), None);
    // An attacker cannot undo what is written either.
    net.accept(&client, &post_quantum());
    let before = known(&memory);
    assert!(!ask(&mut net, &stranger, &by_retry));
    net.refuse(&client, &by_retry);
    assert_eq!(known(&memory), before);
}

#[test]
fn the_memory_outlives_the_process_in_a_file() {
    let path = std::env::temp_dir().join(format!("hybriq-servers-{}", std::process::id()));
    for (name, after) in downgrades() {
        let mut net = Net::new(15);
        let memory = ServerMemory::new();
        let config = client(Backend::Rustls, Continuity::Refuse).without_resumption();
        net.accept(
            &config.clone().server_memory(memory.clone()),
            &post_quantum(),
        );
        std::fs::write(&path, memory.to_bytes()).unwrap();
        let read = ServerMemory::from_bytes(&std::fs::read(&path).unwrap()).unwrap();
        let restarted = config.clone().server_memory(read);
        matches(name, net.refuse(&restarted, &after));
        // A process without the file knows nothing.
        net.accept(&config, &after);
    }
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_server_is_let_in_again_when_its_pin_is_removed() {
    let mut net = Net::new(16);
    let memory = ServerMemory::new();
    let client = client(Backend::Rustls, Continuity::Refuse)
        .without_resumption()
        .server_memory(memory.clone());
    let [.., (_, after)] = downgrades();
    net.accept(&client, &post_quantum());
    net.refuse(&client, &after);
    memory.unpin("LOCALHOST.", 4433);
    net.accept(&client, &after);
    net.accept(&client, &post_quantum());
    net.refuse(&client, &after);
    memory.forget("LOCALHOST.");
    net.accept(&client, &after);
}

/// Two connections that overlap: the one that ends later is compared with what the first one
/// revealed.
#[test]
fn a_pin_that_is_set_during_a_handshake_counts() {
    let mut net = Net::new(17);
    let client = client(Backend::Rustls, Continuity::Refuse).without_resumption();
    let [(_, classical), ..] = downgrades();
    let setups = [post_quantum(), classical].map(|server| server.setup().unwrap());
    net.world.server_mut().on_incoming(move |incoming| {
        let is_first = incoming.peer_address().ip() == IpAddr::from([10, 0, 0, 0]);
        let setup = setups[usize::from(!is_first)].clone();
        Answer::Accept(Some(setup), Box::new(Echo::new()))
    });
    let setup = client.setup().unwrap();
    let first = net.world.connect(&setup, Ask::one_byte());
    // The flight of ML-DSA with a large share needs two round trips of 100 ms.
    net.world.run_for(ms(150));
    let second = net.world.connect(&setup, Ask::one_byte());
    net.world.run(LIMIT);
    assert_eq!(net.world.client(first).progress(), Progress::Done);
    let second = net.world.client(second);
    assert!(refused(second).group.is_some(), "{:?}", second.handshake);
}

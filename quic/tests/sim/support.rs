//! Parts that the scenarios share: identities, setups, and checks of every finished exchange.

use std::{
    sync::{Arc, OnceLock},
    time::{Duration, Instant, SystemTime},
};

use hybriq::{
    Backend, ConnectionError, Group, Identity, KeyExchange, TransportConfig, Trust,
    error::By,
    fleet::Tickets,
    memory::ServerMemory,
    tls::{CertificateDer, PrivateKeyDer},
};
use hybriq_proto::{
    endpoint::Setup,
    remembered::{
        origin::{Origins, Prediction},
        server::{Epoch, Servers},
    },
};
use hybriq_sim::{App, Ask, Network, Progress, World, ms};
use hybriq_tls::{ClientOptions, EarlyDataPolicy, ServerOptions};

/// One way across the network of most scenarios.
pub(crate) const DELAY: Duration = ms(50);

/// There and back, which is also the initial RTT of every setup here.
pub(crate) const RTT: Duration = ms(100);

/// The probe timeout before the round trip was measured, and with the first sample of it:
/// RTT + 4 × RTT/2 (RFC 9002 §6.2.1).
pub(crate) const PTO: Duration = ms(300);

/// Long enough for everything.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);

struct Certificate {
    identity: Identity,
    root: CertificateDer<'static>,
}

fn certificate(names: Vec<String>) -> Certificate {
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let root = made.cert.der().clone();
    Certificate {
        identity: Identity::from_der(vec![root.clone()], key),
        root,
    }
}

fn small() -> &'static Certificate {
    static SMALL: OnceLock<Certificate> = OnceLock::new();
    SMALL.get_or_init(|| certificate(vec!["localhost".into()]))
}

/// A certificate so large that the server's flight needs more than 3,600 bytes.
fn large() -> &'static Certificate {
    static LARGE: OnceLock<Certificate> = OnceLock::new();
    LARGE.get_or_init(|| {
        let names = (0..60).map(|n| format!("a-rather-long-alternative-name-{n}.example.com"));
        certificate(names.chain(["localhost".into()]).collect())
    })
}

/// Small and equal initial round trips, so that timeouts can be computed.
pub(crate) fn transport() -> TransportConfig {
    TransportConfig::new()
        .initial_rtt(RTT)
        .handshake_timeout(Duration::from_secs(60))
}

fn setup(provider: Arc<dyn hybriq_tls::Provider>, transport: TransportConfig) -> Setup {
    Setup {
        provider,
        transport: Arc::new(transport),
    }
}

fn server_of(
    certificate: &Certificate,
    backend: Backend,
    policy: KeyExchange,
    transport: TransportConfig,
) -> Setup {
    let options = ServerOptions::new(certificate.identity.clone())
        .alpn(["sim"])
        .without_tickets()
        .key_exchange(policy);
    setup(backend.server(&options).unwrap(), transport)
}

/// A server with a policy.
pub(crate) fn server(backend: Backend, policy: KeyExchange) -> Setup {
    server_of(small(), backend, policy, transport())
}

/// A server with a transport configuration of its own.
pub(crate) fn server_with(transport: TransportConfig) -> Setup {
    server_of(small(), Backend::Rustls, KeyExchange::default(), transport)
}

/// A server whose certificate is large.
pub(crate) fn server_with_large_certificate(backend: Backend) -> Setup {
    server_of(large(), backend, KeyExchange::default(), transport())
}

/// A server with certificates of its own.
pub(crate) fn server_of_identity(
    backend: Backend,
    identity: Identity,
    transport: TransportConfig,
) -> Setup {
    let options = ServerOptions::new(identity).alpn(["sim"]).without_tickets();
    setup(backend.server(&options).unwrap(), transport)
}

/// A client that trusts this root.
pub(crate) fn client_of_root(root: CertificateDer<'static>, transport: TransportConfig) -> Setup {
    let options = client_options().trust(Trust::roots_der([root]));
    setup(Backend::Rustls.client(&options).unwrap(), transport)
}

fn client_options() -> ClientOptions {
    ClientOptions::new()
        .alpn(["sim"])
        .trust(Trust::roots_der([
            small().root.clone(),
            large().root.clone(),
        ]))
        .without_resumption()
}

/// A client with a policy.
pub(crate) fn client(backend: Backend, policy: KeyExchange) -> Setup {
    let options = client_options().key_exchange(policy);
    setup(backend.client(&options).unwrap(), transport())
}

/// A client with a transport configuration of its own.
pub(crate) fn client_with(transport: TransportConfig) -> Setup {
    setup(
        Backend::Rustls.client(&client_options()).unwrap(),
        transport,
    )
}

/// Exactly this group.
pub(crate) fn only(group: Group) -> KeyExchange {
    KeyExchange::Exactly(vec![group])
}

/// A client and a server that agree on X25519MLKEM768.
pub(crate) fn pair() -> (Setup, Setup) {
    (client_with(transport()), server_with(transport()))
}

/// A world with one client.
pub(crate) fn world(
    network: Network,
    client: &Setup,
    server: &Setup,
    app: impl App + 'static,
) -> World {
    let mut world = World::new(network, server.clone());
    world.connect(client, app);
    world
}

/// The usual network, and nothing lost.
pub(crate) fn plain(seed: u64) -> Network {
    Network::new(seed).delay(DELAY)
}

/// Runs one byte there and back to the end and checks it.
pub(crate) fn exchange(network: Network, client: &Setup, server: &Setup) -> World {
    let mut world = world(network, client, server, Ask::one_byte());
    world.run(LIMIT);
    check(&world);
    world
}

/// The client got what it asked for and closed; both ends saw the same.
pub(crate) fn check(world: &World) {
    let client = world.client(0);
    assert_eq!(
        client.progress(),
        Progress::Done,
        "{:?}",
        client.close_reason()
    );
    let by_us = ConnectionError::Application {
        by: By::Local,
        code: 0,
        reason: "".into(),
    };
    assert_eq!(client.close_reason(), Some(&by_us));
    assert_eq!(
        world.server().peers().len(),
        1,
        "the server has one connection"
    );
    let accepted = world.accepted(0);
    let by_peer = ConnectionError::Application {
        by: By::Peer,
        code: 0,
        reason: "".into(),
    };
    match accepted.close_reason() {
        // The one datagram that said so was lost, and nothing is sent to somebody who left.
        Some(ConnectionError::TimedOut) => {}
        reason => assert_eq!(reason, Some(&by_peer)),
    }
    let (ours, theirs) = (
        client.handshake.as_ref().unwrap(),
        accepted.handshake.as_ref().unwrap(),
    );
    assert_eq!(ours.key_exchange, theirs.key_exchange);
    assert_eq!(ours.suite, theirs.suite);
    assert_eq!(ours.alpn.as_deref(), Some(b"sim".as_slice()));
    assert_eq!(ours.alpn, theirs.alpn);
    let stats = world.server().stats();
    assert_eq!(
        (stats.connections, stats.partial_hellos),
        (0, 0),
        "something is left over"
    );
}

/// When the client had its answer.
pub(crate) fn answered_after(world: &World) -> Duration {
    world.client(0).done_at.expect("the client got its answer")
}

/// A client and a server with tickets; the client remembers servers, as every `ClientConfig` does.
pub(crate) fn resumable_pair(
    backend: Backend,
    client: TransportConfig,
    server: TransportConfig,
) -> (Setup, Setup) {
    let options = ServerOptions::new(small().identity.clone()).alpn(["sim"]);
    let server = setup(backend.server(&options).unwrap(), server);
    let trust = Trust::roots_der([small().root.clone()]);
    let options = ClientOptions::new().alpn(["sim"]).trust(trust);
    let client = remembering(client, &ServerMemory::new());
    (setup(backend.client(&options).unwrap(), client), server)
}

/// A transport of a client with this memory, which predicts no groups.
#[expect(
    clippy::disallowed_methods,
    reason = "the virtual time of a test begins with that of the clock"
)]
pub(crate) fn remembering(transport: TransportConfig, memory: &ServerMemory) -> TransportConfig {
    let mut origins = Origins::default();
    origins.set_prediction(Prediction::Off);
    let epoch = Epoch {
        instant: Instant::now(),
        time: SystemTime::now(),
    };
    transport.remember_servers(Servers::new(Arc::new(memory.clone()), origins, epoch))
}

/// A client that offers 0-RTT data and a server that takes it.
pub(crate) fn early_pair(client: TransportConfig, server: TransportConfig) -> (Setup, Setup) {
    (early_client(&["sim"], client), early_server("sim", server))
}

/// A client that offers 0-RTT data.
pub(crate) fn early_client(protocols: &[&str], transport: TransportConfig) -> Setup {
    let trust = Trust::roots_der([small().root.clone()]);
    let options = ClientOptions::new().alpn(protocols).trust(trust);
    setup(
        Backend::Rustls.client(&options).unwrap(),
        remembering(transport, &ServerMemory::new()).early_data(EarlyDataPolicy::On),
    )
}

fn early_options(protocol: &str) -> ServerOptions {
    ServerOptions::new(small().identity.clone())
        .alpn([protocol])
        .accept_early_data()
}

/// A server that takes 0-RTT data.
pub(crate) fn early_server(protocol: &str, transport: TransportConfig) -> Setup {
    let options = early_options(protocol);
    setup(Backend::Rustls.server(&options).unwrap(), transport)
}

/// The same with a policy, and tickets that others may have too.
pub(crate) fn early_server_of(protocol: &str, policy: KeyExchange, tickets: Tickets) -> Setup {
    let options = early_options(protocol)
        .key_exchange(policy)
        .tickets(tickets);
    setup(Backend::Rustls.server(&options).unwrap(), transport())
}

/// Two connections one after the other, with tickets.
pub(crate) fn resumed_exchange() -> World {
    let (client, server) = resumable_pair(Backend::Rustls, transport(), transport());
    let mut world = world(plain(1), &client, &server, Ask::one_byte());
    world.run(LIMIT);
    world.connect(&client, Ask::one_byte());
    world.run(LIMIT);
    world
}

/// A client that offers another protocol.
pub(crate) fn client_with_alpn(protocol: &str) -> Setup {
    let options = client_options().alpn([protocol]);
    setup(Backend::Rustls.client(&options).unwrap(), transport())
}

/// A client that trusts somebody else.
pub(crate) fn distrusting_client() -> Setup {
    let other = certificate(vec!["localhost".into()]).root;
    let options = client_options().trust(Trust::roots_der([other]));
    setup(Backend::Rustls.client(&options).unwrap(), transport())
}

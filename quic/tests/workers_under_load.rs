//! Endpoints with several workers under load, with both ways in which datagrams find their worker: by
//! the connection id in the system, and by addresses with hand-over between the workers.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod endpoint_support;

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use endpoint_support::{client_config, keep, server_config, soon};
use hybriq::{
    ClientConfig, Connection, ConnectionError, Endpoint, EndpointBuilder, EndpointError, Group,
    Identity, KeyExchange, ServerConfig, TransportConfig, Trust,
    fleet::{AddressValidation, ResetKey},
    memory::ServerMemory,
    tls::{CertificateDer, EarlyData, PrivateKeyDer},
};
use tokio::{
    net::UdpSocket,
    runtime::Runtime,
    sync::Barrier,
    task::{JoinHandle, JoinSet},
};

/// Number of workers of every server.
const WORKERS: usize = 4;

/// Way in which a datagram finds its worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Steering {
    /// The system reads the connection id, where it can.
    ById,
    /// The system takes the addresses, and workers pass on what is not theirs.
    ByAddress,
}

impl Steering {
    const BOTH: [Self; 2] = [Self::ById, Self::ByAddress];

    fn builder(self, config: ServerConfig) -> EndpointBuilder {
        let builder = Endpoint::builder().server(config).workers(WORKERS);
        match self {
            Self::ById => builder,
            Self::ByAddress => builder.without_steering(),
        }
    }

    /// Returns true if workers never receive datagrams of each other's connections.
    fn is_exact(self) -> bool {
        self == Self::ById && cfg!(target_os = "linux")
    }
}

/// Echoes on all streams of all connections.
fn serve(server: &Endpoint) -> JoinHandle<()> {
    let server = server.clone();
    tokio::spawn(async move {
        while let Some(incoming) = server.accept().await {
            tokio::spawn(async move {
                if let Ok(connection) = incoming.accept().await {
                    connection.clone().spawn(echo(connection));
                }
            });
        }
    })
}

async fn echo(connection: Connection) {
    while let Ok(Some((mut send, mut recv))) = connection.accept_bidi().await {
        connection.spawn(async move {
            if tokio::io::copy(&mut recv, &mut send).await.is_ok() {
                send.finish();
            }
        });
    }
}

/// Sends this much on a new stream, reads it back, and compares it.
async fn transfer(connection: &Connection, len: usize) -> Result<(), ConnectionError> {
    let data: Vec<u8> = (0..len)
        .map(|place| (place * 7 + place / 251) as u8)
        .collect();
    let (mut send, mut recv) = connection.open_bidi().await?;
    let write = async {
        let written = send.write_all(&data).await;
        send.finish();
        written
    };
    let (written, read) = tokio::join!(write, recv.read_to_end(len));
    match (written, read) {
        (Ok(()), Ok(read)) => {
            assert!(read == data, "the answer is not what was sent");
            Ok(())
        }
        _ => Err(connection.closed().await),
    }
}

/// Number of workers that have connections.
fn busy(server: &Endpoint) -> usize {
    let workers = server.worker_stats();
    workers.iter().filter(|it| it.connections > 0).count()
}

/// Waits for all tasks, each of which must have succeeded.
async fn all(mut tasks: JoinSet<()>) {
    while let Some(done) = soon(tasks.join_next()).await {
        done.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_move_while_they_transfer_lose_nothing() {
    for steering in Steering::BOTH {
        let server = steering.builder(server_config());
        let server = server.bind("127.0.0.1:0").unwrap();
        let serving = serve(&server);
        let address = server.local_address();
        let mut clients = JoinSet::new();
        for number in 0..12 {
            clients.spawn(async move {
                let client = Endpoint::client(client_config()).unwrap();
                let connections = [
                    client.connect(address, "localhost").await.unwrap(),
                    client.connect(address, "localhost").await.unwrap(),
                ];
                let transfers = async {
                    for _ in 0..8 {
                        let [first, second] = &connections;
                        let both = tokio::join!(transfer(first, 60_000), transfer(second, 60_000));
                        assert_eq!(both, (Ok(()), Ok(())), "client {number}");
                    }
                };
                // In the middle of transfers: the whole client, or one of its connections.
                let moves = async {
                    loop {
                        if number % 3 == 0 {
                            client.rebind("127.0.0.1:0").unwrap();
                            let seen = transfer(&connections[0], 10).await;
                            assert_eq!(seen, Ok(()), "client {number}");
                        } else {
                            let to = "127.0.0.1:0".parse().unwrap();
                            connections[0].migrate(to).await.unwrap();
                        }
                    }
                };
                tokio::select! {
                    () = transfers => {}
                    () = moves => {}
                }
            });
        }
        all(clients).await;
        let stats = server.stats();
        assert_eq!(
            stats.datagrams_passed_on > 0,
            !steering.is_exact(),
            "{stats:?}"
        );
        assert_eq!(stats.worker_failures, 0);
        serving.abort();
    }
}

/// Clients with early data among them: its packets come again after the Retry.
#[tokio::test(flavor = "multi_thread")]
async fn clients_that_all_prove_their_address_are_all_served() {
    const CLIENTS: usize = 24;
    for steering in Steering::BOTH {
        let config = server_config().accept_early_data();
        let builder = steering.builder(config);
        let server = builder
            .address_validation(AddressValidation::Always)
            .bind("127.0.0.1:0")
            .unwrap();
        let serving = serve(&server);
        let address = server.local_address();
        let mut clients = JoinSet::new();
        let together = Arc::new(Barrier::new(CLIENTS));
        for _ in 0..CLIENTS {
            let together = together.clone();
            clients.spawn(async move {
                let config = client_config().offer_early_data();
                // Another endpoint has no token of the first: it is sent away again.
                for _ in 0..2 {
                    together.wait().await;
                    let config = config.clone().server_memory(ServerMemory::new());
                    let client = Endpoint::client(config).unwrap();
                    let connection = match client.connect(address, "localhost").early().await {
                        Ok(early) => early.established().await.unwrap().0,
                        Err(connecting) => connecting.await.unwrap(),
                    };
                    assert_eq!(transfer(&connection, 20_000).await, Ok(()));
                    client.rebind("127.0.0.1:0").unwrap();
                    assert_eq!(transfer(&connection, 20_000).await, Ok(()));
                    connection.close(0, b"");
                }
            });
        }
        all(clients).await;
        let stats = server.stats();
        assert_eq!(stats.addresses_validated, 2 * CLIENTS as u64);
        assert_eq!(stats.tokens_rejected + stats.tokens_replayed, 0);
        assert!(stats.retries_sent >= 2 * CLIENTS as u64, "{stats:?}");
        serving.abort();
    }
}

/// Position of an attacker between a client and a server, who records what the client sends first.
struct Attacker {
    socket: Arc<UdpSocket>,
    recorded: Arc<Mutex<Vec<Vec<u8>>>>,
    holds: Arc<AtomicBool>,
}

impl Attacker {
    /// Passes the server's datagrams on. The client's are recorded, and not passed on before
    /// [`Attacker::release`].
    async fn between(server: SocketAddr) -> Self {
        let attacker = Self {
            socket: Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap()),
            recorded: Arc::default(),
            holds: Arc::new(AtomicBool::new(true)),
        };
        let socket = attacker.socket.clone();
        let (recorded, holds) = (attacker.recorded.clone(), attacker.holds.clone());
        tokio::spawn(async move {
            let mut buffer = vec![0; 65536];
            let mut client = None;
            while let Ok((len, from)) = socket.recv_from(&mut buffer).await {
                let datagram = &buffer[..len];
                if from == server {
                    if let Some(client) = client {
                        socket.send_to(datagram, client).await.unwrap();
                    }
                    continue;
                }
                client = Some(from);
                let is_held = {
                    let mut recorded = recorded.lock().unwrap();
                    let is_held = holds.load(Ordering::Relaxed);
                    if is_held {
                        recorded.push(datagram.to_vec());
                    }
                    is_held
                };
                if !is_held {
                    socket.send_to(datagram, server).await.unwrap();
                }
            }
        });
        attacker
    }

    fn address(&self) -> SocketAddr {
        self.socket.local_addr().unwrap()
    }

    /// Passes on what was recorded, and everything that follows.
    async fn release(&self, server: SocketAddr) {
        let recorded = {
            let recorded = self.recorded.lock().unwrap();
            self.holds.store(false, Ordering::Relaxed);
            recorded.clone()
        };
        for datagram in &recorded {
            self.socket.send_to(datagram, server).await.unwrap();
        }
    }

    /// Sends the recorded datagrams from other addresses, which leads them to other workers where
    /// the system chooses by address.
    async fn replay(&self, server: SocketAddr, times: usize) -> Vec<UdpSocket> {
        let recorded = self.recorded.lock().unwrap().clone();
        let mut sockets = Vec::new();
        for _ in 0..times {
            let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            for datagram in &recorded {
                socket.send_to(datagram, server).await.unwrap();
            }
            sockets.push(socket);
        }
        sockets
    }
}

/// Number of times that each early request was read.
type EarlyRequests = Arc<Mutex<BTreeMap<Vec<u8>, usize>>>;

/// Answers requests before the handshake is over, and counts those that came as early data.
fn serve_early(server: &Endpoint) -> (JoinHandle<()>, EarlyRequests) {
    let (server, requests) = (server.clone(), EarlyRequests::default());
    let counted = requests.clone();
    let serving = tokio::spawn(async move {
        while let Some(incoming) = server.accept().await {
            let requests = requests.clone();
            tokio::spawn(async move {
                let Ok(early) = incoming.accept().early().await else {
                    return;
                };
                while let Ok(Some((mut send, mut recv))) = early.accept_bidi().await {
                    let Ok(request) = recv.read_to_end(100).await else {
                        continue;
                    };
                    if recv.is_early() {
                        *requests.lock().unwrap().entry(request.clone()).or_default() += 1;
                    }
                    let _ = send.write_all(&request).await;
                    send.finish();
                }
            });
        }
    });
    (serving, counted)
}

/// A first flight with 0-RTT data that is sent many times, before the client's own or after it, gets
/// its data to an application once at most.
#[tokio::test(flavor = "multi_thread")]
async fn early_data_is_taken_once_by_all_workers_together() {
    const REPLAYS: usize = 12;
    for (steering, first) in [
        (Steering::ById, Sender::Client),
        (Steering::ById, Sender::Attacker),
        (Steering::ByAddress, Sender::Client),
        (Steering::ByAddress, Sender::Attacker),
    ] {
        // Nobody waits long for an answer that does not come.
        let transport = TransportConfig::new().initial_rtt(Duration::from_millis(5));
        let config = server_config().accept_early_data();
        let config = config.transport(transport.clone());
        let server = steering.builder(config).bind("127.0.0.1:0").unwrap();
        let (serving, requests) = serve_early(&server);
        let address = server.local_address();
        let mut accepted = 0;
        for number in 0..4_u8 {
            let config = client_config().offer_early_data();
            let client = Endpoint::client(config.transport(transport.clone())).unwrap();
            let connection = client.connect(address, "localhost").await.unwrap();
            assert_eq!(transfer(&connection, 50).await, Ok(()));
            connection.close(0, b"");

            let attacker = Attacker::between(address).await;
            let connecting = client.connect(attacker.address(), "localhost");
            let early = soon(connecting.early()).await.expect("there is a ticket");
            let request = [number; 20];
            let (mut send, mut recv) = early.open_bidi().await.unwrap();
            send.write_all(&request).await.unwrap();
            send.finish();
            // The ClientHello has two datagrams, and the early data follows.
            until(|| attacker.recorded.lock().unwrap().len() > 2).await;
            let before = server.stats();
            if first == Sender::Attacker {
                let _sockets = attacker.replay(address, REPLAYS).await;
                attacker.release(address).await;
                let _ = soon(early.established()).await;
            } else {
                attacker.release(address).await;
                let (connection, outcome) = soon(early.established()).await.unwrap();
                assert_eq!(outcome, EarlyData::Accepted);
                assert_eq!(soon(recv.read_to_end(100)).await.unwrap(), request);
                accepted += 1;
                let _sockets = attacker.replay(address, REPLAYS).await;
                assert_eq!(transfer(&connection, 50).await, Ok(()));
            }
            let copies = 2 * REPLAYS as u64;
            until(|| server.stats().datagrams_received >= before.datagrams_received + copies).await;
        }
        if steering == Steering::ByAddress {
            assert!(busy(&server) > 1, "the copies came to several workers");
        }
        server.close(0, b"");
        soon(server.idle()).await;
        soon(serving).await.unwrap();
        let requests = requests.lock().unwrap();
        assert!(requests.values().all(|times| *times == 1), "{requests:?}");
        assert!(requests.len() >= accepted, "{requests:?}");
    }
}

/// The one whose datagrams come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sender {
    Client,
    Attacker,
}

/// Waits for a condition.
async fn until(mut done: impl FnMut() -> bool) {
    soon(async {
        while !done() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_resumed_by_any_worker() {
    for steering in Steering::BOTH {
        let server = steering.builder(server_config());
        let server = server.bind("127.0.0.1:0").unwrap();
        let serving = serve(&server);
        let address = server.local_address();
        let config = client_config();
        let mut kept = Vec::new();
        for number in 0..400 {
            if number >= 24 && busy(&server) == WORKERS {
                break;
            }
            // Another endpoint has another address, and random ids: it comes to any worker.
            let client = Endpoint::client(config.clone()).unwrap();
            let connection = soon(client.connect(address, "localhost")).await.unwrap();
            // The ticket comes before the answer.
            assert_eq!(transfer(&connection, 50).await, Ok(()));
            assert_eq!(connection.handshake().resumed, number > 0, "{number}");
            kept.push((client, connection));
        }
        assert_eq!(busy(&server), WORKERS);
        serving.abort();
    }
}

/// A server that was restarted tells the clients of all workers, whichever worker their datagrams
/// come to.
#[tokio::test(flavor = "multi_thread")]
async fn clients_of_a_lost_server_are_reset_by_any_worker() {
    for steering in Steering::BOTH {
        let key = ResetKey::from_secret([7; 32]);
        let machine = Runtime::new().unwrap();
        let builder = || steering.builder(server_config()).reset_key(key.clone());
        let server = {
            let _guard = machine.enter();
            builder().bind("127.0.0.1:0").unwrap()
        };
        let address = server.local_address();
        machine.spawn({
            let server = server.clone();
            async move {
                while let Some(incoming) = server.accept().await {
                    let connection = incoming.accept().await.unwrap();
                    keep(&connection);
                    connection.clone().spawn(echo(connection));
                }
            }
        });
        let mut clients = Vec::new();
        for _ in 0..16 {
            let client = Endpoint::client(client_config()).unwrap();
            let connection = soon(client.connect(address, "localhost")).await.unwrap();
            assert_eq!(transfer(&connection, 5_000).await, Ok(()));
            clients.push((client, connection));
        }
        assert!(busy(&server) > 1);
        // All of them are in the middle of a transfer, and some have moved.
        let mut transfers = JoinSet::new();
        for (number, (client, connection)) in clients.iter().enumerate() {
            if number % 2 == 0 {
                client.rebind("127.0.0.1:0").unwrap();
            }
            let connection = connection.clone();
            transfers.spawn(async move {
                let end = loop {
                    if let Err(end) = transfer(&connection, 50_000).await {
                        break end;
                    }
                };
                assert_eq!(end, ConnectionError::Reset);
            });
        }
        machine.shutdown_background();
        soon(server.idle()).await;
        let restarted = loop {
            match builder().bind(address) {
                Ok(restarted) => break restarted,
                Err(EndpointError::InUse(_)) => tokio::task::yield_now().await,
                Err(error) => panic!("{error}"),
            }
        };
        all(transfers).await;
        // Counters are those of the workers' last turns.
        soon(async {
            while restarted.stats().stateless_resets < 16 {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
}

/// Two certificates for the same name, each with a policy of its own, and clients that trust both.
fn editions() -> ([ServerConfig; 2], [Vec<u8>; 2], ClientConfig) {
    let policies = [KeyExchange::PreferPostQuantum, KeyExchange::OnlyClassical];
    let made = policies.map(|policy| {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let chain = vec![CertificateDer::from(made.cert.der().to_vec())];
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let config = ServerConfig::new(Identity::from_der(chain, key));
        let config = config.alpn(["test"]).key_exchange(policy);
        (config, made.cert.der().to_vec())
    });
    let [(first, one), (second, two)] = made;
    let roots = [&one, &two].map(|der| CertificateDer::from(der.clone()));
    let client = ClientConfig::new()
        .alpn(["test"])
        .trust(Trust::roots_der(roots))
        .without_resumption();
    ([first, second], [one, two], client)
}

/// Returns the edition of the configuration that a server used: certificate and policy belong
/// together.
fn edition(connection: &Connection, certificates: &[Vec<u8>; 2]) -> usize {
    let shown = connection.peer_certificates();
    let is_shown = |der: &Vec<u8>| shown.first().is_some_and(|shown| shown.as_ref() == der);
    let edition = certificates.iter().position(is_shown).unwrap();
    let group = connection.handshake().key_exchange.group;
    let of_edition = [Group::X25519MLKEM768, Group::X25519][edition];
    assert_eq!(
        group, of_edition,
        "one edition's certificate, the other's policy"
    );
    edition
}

/// Four clients connect without a pause while the configuration changes; after each change every new
/// client gets the new one.
#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_changes_under_load_and_nobody_fails() {
    for steering in Steering::BOTH {
        let (configs, certificates, client_config) = editions();
        let certificates = Arc::new(certificates);
        let builder = steering.builder(configs[0].clone());
        let server = builder.bind("127.0.0.1:0").unwrap();
        let serving = serve(&server);
        let address = server.local_address();
        let over = Arc::new(AtomicBool::new(false));
        let visits = Arc::new(AtomicUsize::new(0));
        let mut load = JoinSet::new();
        for _ in 0..4 {
            let (over, visits) = (over.clone(), visits.clone());
            let (config, certificates) = (client_config.clone(), certificates.clone());
            load.spawn(async move {
                let old = Endpoint::client(config.clone()).unwrap();
                let old = old.connect(address, "localhost").await.unwrap();
                while !over.load(Ordering::Relaxed) {
                    let client = Endpoint::client(config.clone()).unwrap();
                    let connection = client.connect(address, "localhost").await.unwrap();
                    edition(&connection, &certificates);
                    assert_eq!(transfer(&connection, 1_000).await, Ok(()));
                    connection.close(0, b"");
                    // Connections of an older configuration continue.
                    assert_eq!(transfer(&old, 1_000).await, Ok(()));
                    visits.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for round in 1..=12 {
            let now = round % 2;
            server.set_server_config(configs[now].clone()).unwrap();
            let client = Endpoint::client(client_config.clone()).unwrap();
            let connecting = (0..4).map(|_| client.connect(address, "localhost"));
            for connecting in connecting.collect::<Vec<_>>() {
                let connection = soon(connecting).await.unwrap();
                assert_eq!(edition(&connection, &certificates), now, "round {round}");
            }
        }
        // Two changes at once come to all workers in the same order.
        let mut changes = JoinSet::new();
        for config in configs.clone() {
            let server = server.clone();
            changes.spawn(async move {
                for _ in 0..50 {
                    server.set_server_config(config.clone()).unwrap();
                }
            });
        }
        all(changes).await;
        let mut seen = Vec::new();
        for _ in 0..16 {
            let client = Endpoint::client(client_config.clone()).unwrap();
            let connection = soon(client.connect(address, "localhost")).await.unwrap();
            seen.push(edition(&connection, &certificates));
        }
        seen.dedup();
        assert_eq!(seen.len(), 1, "workers have different configurations");
        over.store(true, Ordering::Relaxed);
        all(load).await;
        assert!(visits.load(Ordering::Relaxed) > 0);
        assert_eq!(server.stats().worker_failures, 0);
        serving.abort();
    }
}

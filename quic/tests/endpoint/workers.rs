//! Endpoints with several workers over real sockets.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{
    collections::BTreeMap,
    net::UdpSocket,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use hybriq::{
    Connection, ConnectionError, Endpoint, EndpointBuilder, EndpointError, Workers,
    fleet::{AddressValidation, CidGenerator, Placement, QuicLb, RandomCids, ResetKey, Steering},
    tls::EarlyData,
    transport::SystemRandom,
};
use tokio::{runtime::Runtime, task::JoinHandle};

use crate::endpoint_support::{client, client_config, keep, server_config, soon};

/// Enough that with random ids or ports none of four workers goes without.
const CLIENTS: usize = 64;

fn builder() -> EndpointBuilder {
    Endpoint::builder().server(server_config()).workers(4)
}

/// Echoes on all streams of all connections.
fn serve(server: &Endpoint) -> JoinHandle<()> {
    let server = server.clone();
    tokio::spawn(async move {
        while let Some(incoming) = server.accept().await {
            tokio::spawn(async move {
                let Ok(connection) = incoming.accept().await else {
                    return;
                };
                connection.clone().spawn(echo(connection));
            });
        }
    })
}

async fn echo(connection: Connection) {
    while let Ok(Some((mut send, mut recv))) = connection.accept_bidi().await {
        if tokio::io::copy(&mut recv, &mut send).await.is_ok() {
            send.finish();
        }
    }
}

async fn ask(connection: &Connection) -> Result<Vec<u8>, ConnectionError> {
    let (mut send, mut recv) = soon(connection.open_bidi()).await?;
    let written = send.write_all(b"anybody there?").await;
    send.finish();
    let answer = soon(recv.read_to_end(100)).await;
    match (written, answer) {
        (Ok(()), Ok(answer)) => Ok(answer),
        _ => Err(connection.closed().await),
    }
}

async fn assert_alive(connection: &Connection) {
    assert_eq!(ask(connection).await.unwrap(), b"anybody there?");
}

/// Connects clients, each from a port of its own.
async fn visit(server: &Endpoint, count: usize) -> Vec<(Endpoint, Connection)> {
    let mut clients = Vec::new();
    for _ in 0..count {
        let client = client();
        let connection = soon(client.connect(server.local_address(), "localhost")).await;
        clients.push((client, connection.unwrap()));
    }
    clients
}

/// Number of workers that have connections.
fn busy(server: &Endpoint) -> usize {
    let workers = server.worker_stats();
    workers.iter().filter(|it| it.connections > 0).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn all_workers_serve_clients_wherever_they_run() {
    let places = [
        Placement::Runtime,
        Placement::Threads,
        Placement::PinnedThreads,
    ];
    for placement in places {
        for builder in [builder(), builder().without_steering()] {
            let server = builder.placement(placement).bind("127.0.0.1:0").unwrap();
            let serving = serve(&server);
            let clients = visit(&server, CLIENTS).await;
            for (_, connection) in &clients {
                assert_alive(connection).await;
            }
            assert_eq!(busy(&server), 4, "{placement:?}");
            let stats = server.stats();
            assert_eq!(stats.connections, CLIENTS as u64);
            assert_eq!(stats.datagrams_passed_on, 0, "nobody moved");
            server.close(7, b"bye");
            for (_, connection) in &clients {
                let closed = soon(connection.closed()).await;
                assert!(
                    matches!(closed, ConnectionError::Application { code: 7, .. }),
                    "{closed}"
                );
            }
            soon(server.idle()).await;
            soon(serving).await.unwrap();
        }
    }
}

/// A client that moves reaches its worker: the system finds it by the id, or the worker at the new
/// address passes the datagrams on.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_moves_reaches_its_worker() {
    let quic_lb = || {
        let random = &mut SystemRandom::new();
        QuicLb::encrypted(0, &[1, 2], 6, [9; 16], random).unwrap()
    };
    for (builder, by_id) in [
        (builder(), cfg!(target_os = "linux")),
        (
            builder().cid_generator(RandomCids::of_len(20)),
            cfg!(target_os = "linux"),
        ),
        (builder().without_steering(), false),
        // The system cannot decrypt ids.
        (builder().cid_generator(quic_lb()), false),
        (builder().workers(9), cfg!(target_os = "linux")),
    ] {
        let server = builder.bind("127.0.0.1:0").unwrap();
        let serving = serve(&server);
        let client = client();
        let mut connections = Vec::new();
        for _ in 0..8 {
            let connection = soon(client.connect(server.local_address(), "localhost")).await;
            connections.push(connection.unwrap());
        }
        for _ in 0..if by_id { 12 } else { 1 } {
            client.rebind("127.0.0.1:0").unwrap();
            for connection in &connections {
                assert_alive(connection).await;
            }
        }
        // A move leads to the same worker as before by chance, and counters are those of a worker's
        // last turn.
        soon(async {
            while !by_id && server.stats().datagrams_passed_on == 0 {
                client.rebind("127.0.0.1:0").unwrap();
                assert_alive(&connections[0]).await;
            }
        })
        .await;
        let stats = server.stats();
        assert_eq!(stats.datagrams_passed_on > 0, !by_id, "{stats:?}");
        assert_eq!(stats.connections, 8);
        serving.abort();
    }
}

/// The system finds workers by ids at the new address, too.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_moves_is_found_by_ids() {
    let server = builder().bind("127.0.0.1:0").unwrap();
    let serving = serve(&server);
    let now_at = server.rebind("127.0.0.1:0").unwrap();
    assert_eq!(server.local_address(), now_at);
    let client = client();
    let mut connections = Vec::new();
    for _ in 0..8 {
        let connection = soon(client.connect(server.local_address(), "localhost")).await;
        connections.push(connection.unwrap());
    }
    let before = server.stats().datagrams_passed_on;
    for _ in 0..6 {
        client.rebind("127.0.0.1:0").unwrap();
        for connection in &connections {
            assert_alive(connection).await;
        }
    }
    assert_eq!(server.stats().datagrams_passed_on, before);
    serving.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_prove_their_address_to_any_worker() {
    let server = builder()
        .address_validation(AddressValidation::Always)
        .bind("127.0.0.1:0")
        .unwrap();
    let serving = serve(&server);
    for (_, connection) in &visit(&server, 16).await {
        assert_alive(connection).await;
    }
    let before = server.stats();
    assert_eq!(before.addresses_validated, 16);
    // The second connection of a client comes with a token of the first.
    let client = client();
    for _ in 0..8 {
        let connection = soon(client.connect(server.local_address(), "localhost")).await;
        assert_alive(&connection.unwrap()).await;
    }
    let stats = server.stats();
    assert_eq!(stats.tokens_rejected + stats.tokens_replayed, 0);
    assert_eq!(stats.addresses_validated, 24);
    let retries = stats.retries_sent - before.retries_sent;
    let most = before.retries_sent / 16;
    assert!(
        retries <= most,
        "tokens are good for every worker: {stats:?}"
    );
    serving.abort();
}

// On one thread, so that the handshake is not over before the client asks for early data.
#[tokio::test]
async fn early_data_is_accepted_by_every_worker() {
    let server = Endpoint::builder()
        .server(server_config().accept_early_data())
        .workers(4)
        .bind("127.0.0.1:0")
        .unwrap();
    let serving = serve(&server);
    let client = Endpoint::client(client_config().offer_early_data()).unwrap();
    let mut accepted = 0;
    for visit in 0..12 {
        let connecting = client.connect(server.local_address(), "localhost");
        let connection = match connecting.early().await {
            Ok(early) => {
                let (connection, outcome) = soon(early.established()).await.unwrap();
                accepted += usize::from(outcome == EarlyData::Accepted);
                connection
            }
            Err(connecting) => {
                assert_eq!(visit, 0, "there is a ticket after the first visit");
                soon(connecting).await.unwrap()
            }
        };
        assert_alive(&connection).await;
    }
    assert_eq!(accepted, 11);
    serving.abort();
}

/// The reset of a lost connection has a random id, which leads the system to any worker.
#[tokio::test(flavor = "multi_thread")]
async fn a_reset_finds_its_connection_on_any_worker() {
    let key = ResetKey::from_secret([42; 32]);
    let machine = Runtime::new().unwrap();
    let server = {
        let _guard = machine.enter();
        let builder = Endpoint::builder().server(server_config());
        builder.reset_key(key.clone()).bind("127.0.0.1:0").unwrap()
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
    // A server may connect, too. Its workers share a port.
    let client = builder()
        .client(client_config())
        .bind("127.0.0.1:0")
        .unwrap();
    let mut connections = Vec::new();
    for _ in 0..8 {
        let connection = soon(client.connect(address, "localhost")).await.unwrap();
        assert_alive(&connection).await;
        connections.push(connection);
    }
    assert_eq!(busy(&client), 4);
    machine.shutdown_background();
    soon(server.idle()).await;
    let restarted = loop {
        // The old socket closes when its task is gone.
        let builder = Endpoint::builder().server(server_config());
        match builder.reset_key(key.clone()).bind(address) {
            Ok(restarted) => break restarted,
            Err(EndpointError::InUse(_)) => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    };
    for connection in &connections {
        // Not if a probe of the client was answered already.
        if let Ok(mut send) = connection.open_uni().await {
            let _ = send.write_all(&[0; 2000]).await;
        }
    }
    for connection in &connections {
        assert_eq!(soon(connection.closed()).await, ConnectionError::Reset);
    }
    drop(restarted);
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_of_a_client_have_ports_of_their_own() {
    let server = builder().bind("127.0.0.1:0").unwrap();
    let serving = serve(&server);
    let builder = || Endpoint::builder().client(client_config()).workers(3);
    for builder in [builder(), builder().zero_length_cids()] {
        let client = builder.bind("127.0.0.1:0").unwrap();
        for round in 0..2 {
            let mut connections = Vec::new();
            for _ in 0..3 {
                let connection = soon(client.connect(server.local_address(), "localhost")).await;
                connections.push(connection.unwrap());
            }
            let mut ports: Vec<_> = connections.iter().map(Connection::local_address).collect();
            ports.sort();
            ports.dedup();
            assert_eq!(ports.len(), 3, "{round}");
            for connection in &connections {
                assert_alive(connection).await;
                connection.close(0, b"");
            }
            soon(client.idle()).await;
            client.rebind("127.0.0.1:0").unwrap();
        }
    }
    let port = {
        let free = UdpSocket::bind("127.0.0.1:0").unwrap();
        free.local_addr().unwrap()
    };
    let shared = builder().zero_length_cids().bind(port).unwrap_err();
    assert!(matches!(shared, EndpointError::SharedPort), "{shared}");
    serving.abort();
}

/// Ids of another generator, which fails once, when it is told to.
#[derive(Clone, Debug)]
struct Failing {
    fails: Arc<AtomicBool>,
    ids: Arc<dyn CidGenerator>,
}

impl CidGenerator for Failing {
    fn len(&self) -> usize {
        self.ids.len()
    }

    fn generate(&self, worker: u8, cid: &mut [u8]) {
        assert!(
            !self.fails.swap(false, Ordering::Relaxed),
            "the generator was told to fail"
        );
        self.ids.generate(worker, cid);
    }

    fn worker(&self, cid: &[u8]) -> Option<u8> {
        self.ids.worker(cid)
    }

    fn keyed(&self, key: &ResetKey) -> Option<Arc<dyn CidGenerator>> {
        let ids = self.ids.keyed(key)?;
        let fails = self.fails.clone();
        Some(Arc::new(Self { fails, ids }))
    }

    fn steering(&self) -> Option<Steering> {
        self.ids.steering()
    }
}

/// Returns generators whose ids the system reads, nobody reads but the workers, and a load balancer
/// reads.
fn generators() -> [(EndpointBuilder, Arc<dyn CidGenerator>); 4] {
    let random = &mut SystemRandom::new();
    let clear = QuicLb::plaintext(0, &[1, 2], 6, random).unwrap();
    let encrypted = QuicLb::encrypted(0, &[1, 2], 6, [9; 16], random).unwrap();
    [
        (builder(), Arc::new(RandomCids::default())),
        (
            builder().without_steering(),
            Arc::new(RandomCids::default()),
        ),
        (builder(), Arc::new(clear)),
        (builder(), Arc::new(encrypted)),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_fails_loses_its_own_connections_and_goes_on() {
    let placements = [Placement::Runtime, Placement::Threads];
    let all = generators().into_iter().zip(placements.into_iter().cycle());
    for ((builder, ids), placement) in all {
        let fails = Arc::new(AtomicBool::new(false));
        let server = builder
            .placement(placement)
            .address_validation(AddressValidation::Always)
            .cid_generator(Failing {
                fails: fails.clone(),
                ids,
            })
            .bind("127.0.0.1:0")
            .unwrap();
        let serving = serve(&server);
        let clients = visit(&server, CLIENTS).await;
        for (_, connection) in &clients {
            assert_alive(connection).await;
        }
        assert_eq!(busy(&server), 4);
        fails.store(true, Ordering::Relaxed);
        // Its own first datagram makes a worker fail, and the next one finds the worker again.
        let last = visit(&server, 1).await;
        assert_alive(&last[0].1).await;
        let mut lost = 0;
        for (_, connection) in &clients {
            match ask(connection).await {
                Ok(answer) => assert_eq!(answer, b"anybody there?"),
                // The worker has the same reset key, and tells.
                Err(error) => {
                    assert_eq!(error, ConnectionError::Reset);
                    lost += 1;
                }
            }
        }
        assert!((1..CLIENTS / 2).contains(&lost), "{lost}");
        let stats = server.stats();
        assert_eq!(stats.worker_failures, 1);
        assert!(stats.addresses_validated > CLIENTS as u64, "{stats:?}");
        server.close(0, b"");
        soon(server.idle()).await;
        soon(serving).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sockets_of_somebody_else_are_used_as_they_are() {
    let inherited = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = inherited.local_addr().unwrap();
    let single = || Endpoint::builder().server(server_config());
    let server = single().bind_sockets([inherited]).unwrap();
    assert_eq!(server.local_address(), address);
    let serving = serve(&server);
    for (_, connection) in &visit(&server, 2).await {
        assert_alive(connection).await;
    }
    serving.abort();

    let alone = UdpSocket::bind("127.0.0.1:0").unwrap();
    let error = builder().bind_sockets([alone]).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("4 workers need 4 sockets"), "{text}");
    assert!(text.contains("SO_REUSEPORT"), "{text}");
    let error = single().bind_sockets([]).unwrap_err();
    assert!(error.to_string().contains("no socket"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn sockets_that_cannot_work_are_refused_with_the_reason() {
    let single = || Endpoint::builder().server(server_config());
    let pair = || Endpoint::builder().server(server_config()).workers(2);
    let bound = |shared: &[bool]| {
        let mut port = 0;
        let mut sockets = Vec::new();
        for shared in shared {
            let kind = (socket2::Domain::IPV4, socket2::Type::DGRAM);
            let socket = socket2::Socket::new(kind.0, kind.1, None).unwrap();
            if *shared {
                socket.set_reuse_port(true).unwrap();
            }
            socket.set_reuse_address(true).unwrap();
            let address = std::net::SocketAddr::from(([127, 0, 0, 1], port));
            socket.bind(&address.into()).unwrap();
            let socket = UdpSocket::from(socket);
            port = socket.local_addr().unwrap().port();
            sockets.push(socket);
        }
        sockets
    };
    let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let tcp = UdpSocket::from(std::os::fd::OwnedFd::from(tcp));
    let connected = UdpSocket::bind("127.0.0.1:0").unwrap();
    connected.connect("127.0.0.1:9").unwrap();
    let alone = UdpSocket::bind("127.0.0.1:0").unwrap();
    let clone = alone.try_clone().unwrap();
    for (builder, sockets, number, reason) in [
        (single(), vec![tcp], 0, "is not a UDP socket"),
        (single(), vec![connected], 0, "is connected"),
        (pair(), vec![alone, clone], 1, "is a clone of another one"),
        (pair(), bound(&[false, false]), 0, "without SO_REUSEPORT"),
    ] {
        let error = builder.bind_sockets(sockets).unwrap_err().to_string();
        let place = format!("socket {number} in the list");
        assert!(error.contains(&place) && error.contains(reason), "{error}");
    }
    let shared = Endpoint::builder().client(client_config()).workers(2);
    let shared = shared.zero_length_cids().bind_sockets(bound(&[true, true]));
    let error = shared.unwrap_err();
    assert!(matches!(error, EndpointError::SharedPort), "{error}");
    let server = pair().bind_sockets(bound(&[true, true])).unwrap();
    let serving = serve(&server);
    for (_, connection) in &visit(&server, 4).await {
        assert_alive(connection).await;
    }
    serving.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_in_use_is_not_shared_by_mistake() {
    let server = builder().bind("127.0.0.1:0").unwrap();
    let again = builder().bind(server.local_address()).unwrap_err();
    assert!(matches!(again, EndpointError::InUse(_)), "{again}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_of_a_connection_run_beside_its_worker() {
    let server = builder()
        .placement(Placement::Threads)
        .bind("127.0.0.1:0")
        .unwrap();
    let client = client();
    let connecting = client.connect(server.local_address(), "localhost");
    let accept = async { server.accept().await.unwrap().accept().await.unwrap() };
    let (accepted, connection) = soon(async { tokio::join!(accept, connecting) }).await;
    let connection = connection.unwrap();
    let name = || std::thread::current().name().map(str::to_owned);
    let (sender, receiver) = tokio::sync::oneshot::channel::<()>();
    let task = accepted.spawn(async move {
        // The task outlives its endpoint and all its connections.
        let _ = receiver.await;
        name()
    });
    connection.close(0, b"");
    soon(accepted.closed()).await;
    drop(accepted);
    soon(server.idle()).await;
    drop(server);
    sender.send(()).unwrap();
    assert_eq!(soon(task).await.unwrap().as_deref(), Some("hybriq-worker"));
}

/// A client is accepted on the thread of its worker, and served there.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_never_leaves_the_thread_of_its_worker() {
    let builders = [builder(), builder().without_steering()];
    for builder in builders.map(|builder| builder.placement(Placement::Threads)) {
        let server = builder.bind("127.0.0.1:0").unwrap();
        let (seen, mut threads) = tokio::sync::mpsc::unbounded_channel();
        let accepting = server.clone();
        let serving = tokio::spawn(async move {
            while let Some(incoming) = accepting.accept().await {
                let seen = seen.clone();
                incoming.spawn(|incoming| async move {
                    let here = || std::thread::current().id();
                    let first = here();
                    let connection = incoming.accept().await.unwrap();
                    let accepted = here();
                    let (mut send, mut recv) = connection.accept_bidi().await.unwrap().unwrap();
                    tokio::io::copy(&mut recv, &mut send).await.unwrap();
                    send.finish();
                    let beside = connection.spawn(async move { here() }).await.unwrap();
                    seen.send([first, accepted, here(), beside]).unwrap();
                    connection.closed().await;
                });
            }
        });
        let clients = visit(&server, CLIENTS).await;
        let mut workers = BTreeMap::new();
        for (_, connection) in &clients {
            assert_alive(connection).await;
            let [first, rest @ ..] = soon(threads.recv()).await.unwrap();
            assert_eq!(rest, [first; 3]);
            *workers.entry(format!("{first:?}")).or_insert(0) += 1;
        }
        assert_eq!(workers.len(), 4, "{workers:?}");
        assert_eq!(workers.values().sum::<usize>(), CLIENTS);
        server.close(0, b"");
        soon(server.idle()).await;
        soon(serving).await.unwrap();
    }
}

/// A task that drops the client refuses it, and one that never ran does so too.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_whose_task_ends_is_refused() {
    let server = builder().placement(Placement::Threads);
    let server = server.bind("127.0.0.1:0").unwrap();
    let client = client();
    let connecting = client.connect(server.local_address(), "localhost");
    let refuse = async {
        let incoming = server.accept().await.unwrap();
        incoming.spawn(|incoming| async { drop(incoming) }).await
    };
    let (refused, outcome) = soon(async { tokio::join!(refuse, connecting) }).await;
    refused.unwrap();
    let error = outcome.unwrap_err().to_string();
    assert!(error.contains("refused the connection"), "{error}");
    // Counters are those of the workers' last turns.
    soon(async {
        while server.stats().refused_by_application == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// Connections are spread, but those that a task next to a worker starts stay with that worker.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_stays_with_the_worker_of_its_task() {
    let server = builder().bind("127.0.0.1:0").unwrap();
    let serving = serve(&server);
    let client = Endpoint::builder()
        .client(client_config())
        .workers(3)
        .placement(Placement::Threads)
        .bind("127.0.0.1:0")
        .unwrap();
    let address = server.local_address();
    let first = soon(client.connect(address, "localhost")).await.unwrap();
    let task = first.spawn({
        let client = client.clone();
        async move {
            let mut more = Vec::new();
            for _ in 0..6 {
                more.push(client.connect(address, "localhost").await.unwrap());
            }
            more
        }
    });
    let more = soon(task).await.unwrap();
    let mut spread = Vec::new();
    for _ in 0..3 {
        spread.push(soon(client.connect(address, "localhost")).await.unwrap());
    }
    let counts = || -> Vec<_> {
        let stats = client.worker_stats().into_iter();
        stats.map(|stats| stats.connections).collect()
    };
    // Counters are those of the workers' last turns.
    soon(async {
        while counts().iter().sum::<u64>() < 10 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let mut counts = counts();
    counts.sort_unstable();
    assert_eq!(counts, [1, 1, 8]);
    drop((first, more, spread));
    serving.abort();
}

/// A worker without connections keeps its socket as long as another one has some.
#[tokio::test(flavor = "multi_thread")]
async fn sockets_are_closed_together_after_the_last_connection() {
    let server = builder().bind("127.0.0.1:0").unwrap();
    let address = server.local_address();
    let serving = serve(&server);
    let clients = visit(&server, 4).await;
    serving.abort();
    let _ = serving.await;
    drop(server);
    for (client, connection) in &clients {
        client.rebind("127.0.0.1:0").unwrap();
        assert_alive(connection).await;
    }
    for (client, connection) in clients {
        connection.close(0, b"");
        soon(client.idle()).await;
    }
    soon(async {
        while UdpSocket::bind(address).is_err() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn impossible_numbers_of_workers_are_refused() {
    for count in [0, 129] {
        let error = builder().workers(count).bind("127.0.0.1:0").unwrap_err();
        assert!(matches!(error, EndpointError::Workers(_)), "{error}");
        assert!(error.to_string().contains("1 to 128"), "{error}");
    }
    let cores = std::thread::available_parallelism().unwrap().get();
    let server = builder().workers(Workers::PerCore);
    let server = server.bind("127.0.0.1:0").unwrap();
    assert_eq!(server.worker_stats().len(), cores);
}

#[test]
fn workers_on_threads_need_no_runtime() {
    let server = builder().placement(Placement::Threads);
    let server = server.bind("127.0.0.1:0").unwrap();
    let error = builder().bind("127.0.0.1:0").unwrap_err();
    assert!(matches!(error, EndpointError::NoRuntime), "{error}");
    drop(server);
}

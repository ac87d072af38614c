//! A server that restarts while its clients transfer data, with real processes: this program is the
//! clients and the supervisor, and starts itself as the server.
//!
//! The whole proof, which takes about a minute:
//!
//! ```text
//! cargo test --release -p hybriq --test restart_processes -- --ignored --nocapture thousand
//! ```
#![cfg(any(target_os = "linux", target_os = "android"))]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(
    clippy::disallowed_methods,
    reason = "shows the time that a restart takes"
)]

use std::{
    fs, io,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use hybriq::{
    ClientConfig, Connection, ConnectionError, Endpoint, Identity, ServerConfig, TransportConfig,
    Trust, fleet::FleetKeys, tls::CertificateDer,
};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader, Lines},
    net::UnixStream,
    process::{Child, ChildStdin, ChildStdout, Command},
    task::JoinHandle,
};

/// Variable with the folder of the server's files. Without it, this program is no server.
const FOLDER: &str = "HYBRIQ_RESTART_FOLDER";

/// Variable with the number of the server's workers.
const WORKERS: &str = "HYBRIQ_RESTART_WORKERS";

/// Far more than anything here takes.
const PATIENCE: Duration = Duration::from_secs(120);

/// Time that a process has for its last connections.
const DEADLINE: Duration = Duration::from_secs(3600);

/// Pause of each connection after a block.
const PAUSE: Duration = Duration::from_millis(20);

async fn soon<T>(future: impl Future<Output = T>) -> T {
    let outcome = tokio::time::timeout(PATIENCE, Box::pin(future)).await;
    outcome.expect("it takes too long")
}

/// One process of the server: takes over or binds, serves until there is a successor, and ends with
/// its last connection. What it prints tells the supervisor how far it is.
#[test]
#[ignore = "it is the server of the other tests, and does nothing without them"]
fn server() {
    let Ok(folder) = std::env::var(FOLDER) else {
        return;
    };
    // Nobody reads what comes: the end says that the supervisor is gone.
    std::thread::spawn(|| {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        std::process::exit(1);
    });
    let workers: usize = std::env::var(WORKERS).unwrap().parse().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(Box::pin(serve(Path::new(&folder), workers)));
}

async fn serve(folder: &Path, workers: usize) {
    let path = folder.join("restart");
    let keys = FleetKeys::from_secret(&[7; 32]).unwrap();
    let identity = Identity::from_pem_files(folder.join("cert.pem"), folder.join("key.pem"));
    let config = ServerConfig::new(identity.unwrap())
        .alpn(["echo"])
        .transport(transport())
        .tickets(keys.tickets());
    let builder = Endpoint::builder()
        .server(config)
        .fleet_keys(&keys)
        .workers(workers);
    let server = builder.take_over_or_bind(&path, "127.0.0.1:0");
    let server = server.await.unwrap();
    println!("serving {} {}", server.generation(), server.local_address());
    let waiting = server.clone();
    let waits = tokio::spawn(async move {
        while waiting.hand_over(&path).await.is_ok() {
            println!("succeeded");
        }
    });
    while let Some(incoming) = server.accept().await {
        tokio::spawn(async move {
            let connection = incoming.accept().await?;
            while let Some((mut send, mut receive)) = connection.accept_bidi().await? {
                tokio::io::copy(&mut receive, &mut send).await?;
                send.finish();
            }
            Ok::<_, io::Error>(())
        });
    }
    let cut_off = server.drain(DEADLINE, 0, b"").await;
    waits.abort();
    let stats = server.stats();
    println!(
        "ended {cut_off} {} {} {} {}",
        stats.datagrams_forwarded,
        stats.forwards_dropped,
        stats.forwards_received,
        stats.refused_by_application
    );
}

fn transport() -> TransportConfig {
    TransportConfig::new().idle_timeout(Some(PATIENCE))
}

/// A running process of the server.
struct Process {
    child: Child,
    /// Closed with the supervisor, at which the process ends at once.
    _alive: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
    generation: u8,
    address: SocketAddr,
}

/// The last words of a process.
#[derive(Debug)]
struct Ended {
    cut_off: u64,
    forwarded: u64,
    dropped: u64,
    received: u64,
    refused: u64,
}

impl Process {
    async fn start(folder: &Path, workers: usize) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "server", "--ignored", "--nocapture"])
            .env(FOLDER, folder)
            .env(WORKERS, workers.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut process = Self {
            _alive: child.stdin.take(),
            child,
            lines,
            generation: 0,
            address: ([0, 0, 0, 0], 0).into(),
        };
        let words = process.line("serving").await;
        process.generation = words[0].parse().unwrap();
        process.address = words[1].parse().unwrap();
        process
    }

    /// Waits for a line that has this word, and returns the words behind it.
    async fn line(&mut self, word: &str) -> Vec<String> {
        loop {
            let line = soon(self.lines.next_line()).await.unwrap();
            let line = line.expect("the server ended");
            // The test harness may have begun the line.
            if let Some((_, rest)) = line.split_once(word) {
                return rest.split_whitespace().map(str::to_owned).collect();
            }
        }
    }

    /// Waits until the process has ended on its own.
    async fn end(mut self) -> Ended {
        let words = self.line("ended ").await;
        let numbers: Vec<u64> = words.iter().map(|word| word.parse().unwrap()).collect();
        assert!(soon(self.child.wait()).await.unwrap().success());
        let [cut_off, forwarded, dropped, received, refused] = numbers[..] else {
            panic!("{words:?}");
        };
        Ended {
            cut_off,
            forwarded,
            dropped,
            received,
            refused,
        }
    }

    async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }
}

/// Files of the server, which are removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("hybriq-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        fs::write(folder.join("cert.pem"), made.cert.pem()).unwrap();
        fs::write(folder.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
        fs::write(folder.join("cert.der"), made.cert.der()).unwrap();
        Self(folder)
    }

    fn client(&self) -> Endpoint {
        let root = CertificateDer::from(fs::read(self.0.join("cert.der")).unwrap());
        let config = ClientConfig::new()
            .alpn(["echo"])
            .transport(transport())
            .trust(Trust::roots_der([root]));
        Endpoint::client(config).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Observations of the clients.
#[derive(Default)]
struct Seen {
    done: AtomicBool,
    /// Bytes that came back as they were sent.
    bytes: AtomicU64,
    /// Connections that ended or brought something else.
    lost: AtomicU64,
    /// Connections made by clients that came and went meanwhile.
    visits: AtomicU64,
    /// Such clients that did not get in, or nothing back.
    refused: AtomicU64,
}

/// Sends a block over a new stream and reads it back.
async fn echo(connection: &Connection, block: &[u8]) -> io::Result<()> {
    let (mut send, mut receive) = connection.open_bidi().await?;
    let write = async {
        send.write_all(block).await?;
        send.finish();
        Ok::<_, io::Error>(())
    };
    let read = async { Ok(receive.read_to_end(1 << 20).await?) };
    let ((), back) = tokio::try_join!(write, read)?;
    if back == block {
        Ok(())
    } else {
        Err(io::Error::other("something else came back"))
    }
}

/// Connection that transfers data until the end. Returns the number of blocks now and then.
struct Transfer {
    blocks: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

impl Transfer {
    fn start(connection: Connection, number: u64, seen: Arc<Seen>) -> Self {
        let blocks = Arc::new(AtomicU64::new(0));
        let counted = blocks.clone();
        let task = tokio::spawn(async move {
            let mut round = number;
            while !seen.done.load(Ordering::Relaxed) {
                let block: Vec<u8> = (0..4096).map(|at| (at * 31 + round) as u8).collect();
                if let Err(error) = echo(&connection, &block).await {
                    eprintln!("connection {number} is lost: {error}");
                    seen.lost.fetch_add(1, Ordering::Relaxed);
                    return;
                }
                seen.bytes.fetch_add(4096, Ordering::Relaxed);
                counted.fetch_add(1, Ordering::Relaxed);
                round += 1;
                tokio::time::sleep(PAUSE).await;
            }
            connection.close(0, b"done");
        });
        Self { blocks, task }
    }
}

/// Connects again and again.
fn visit(client: Endpoint, address: SocketAddr, seen: Arc<Seen>) -> JoinHandle<()> {
    tokio::spawn(async move {
        while !seen.done.load(Ordering::Relaxed) {
            let visit = async {
                let connection = client.connect(address, "localhost").await?;
                echo(&connection, b"a visit").await?;
                connection.close(0, b"");
                Ok::<_, io::Error>(())
            };
            match visit.await {
                Ok(()) => seen.visits.fetch_add(1, Ordering::Relaxed),
                Err(error) => {
                    eprintln!("a visitor was turned away: {error}");
                    seen.refused.fetch_add(1, Ordering::Relaxed)
                }
            };
        }
    })
}

async fn connect(clients: &[Endpoint], address: SocketAddr, count: usize) -> Vec<Connection> {
    let mut connections = Vec::new();
    // Not all at once: nobody tests the server's limits here.
    for _ in 0..count.div_ceil(50) {
        let wanted = 50.min(count - connections.len());
        let connecting = clients.iter().cycle().take(wanted);
        let connecting: Vec<_> = connecting
            .map(|client| client.connect(address, "localhost"))
            .collect();
        for one in connecting {
            connections.push(soon(one).await.unwrap());
        }
    }
    connections
}

/// Restarts a server while connections of all of its processes transfer data. Returns what the
/// clients saw, and the last words of the processes.
async fn restart(
    (first, more): (usize, usize),
    restarts: usize,
    workers: usize,
) -> (Arc<Seen>, Vec<Ended>) {
    let folder = Folder::new(&format!("restart-{restarts}-{workers}"));
    let clients: Vec<_> = (0..4).map(|_| folder.client()).collect();
    let mut processes = vec![Process::start(&folder.0, workers).await];
    let (address, seen) = (processes[0].address, Arc::new(Seen::default()));
    let mut transfers = Vec::new();
    for connection in connect(&clients, address, first).await {
        let number = transfers.len() as u64;
        transfers.push(Transfer::start(connection, number, seen.clone()));
    }
    let visitors: Vec<_> = (0..2)
        .map(|_| visit(folder.client(), address, seen.clone()))
        .collect();
    for round in 1..=restarts {
        let began = Instant::now();
        let next = Process::start(&folder.0, workers).await;
        let taken = began.elapsed();
        assert_eq!(
            (usize::from(next.generation), next.address),
            (round, address)
        );
        processes.push(next);
        for connection in connect(&clients, address, more).await {
            let number = transfers.len() as u64;
            transfers.push(Transfer::start(connection, number, seen.clone()));
        }
        // Every connection has gone on after the restart.
        let blocks = |transfer: &Transfer| transfer.blocks.load(Ordering::Relaxed);
        let before: Vec<_> = transfers.iter().map(blocks).collect();
        for (transfer, before) in transfers.iter().zip(before) {
            soon(async {
                while blocks(transfer) < before + 2 && !transfer.task.is_finished() {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            })
            .await;
        }
        println!(
            "restart {round} in {} ms: {} connections, {} MB, {} visits, {} lost, {} refused",
            taken.as_millis(),
            transfers.len(),
            seen.bytes.load(Ordering::Relaxed) / 1_000_000,
            seen.visits.load(Ordering::Relaxed),
            seen.lost.load(Ordering::Relaxed),
            seen.refused.load(Ordering::Relaxed),
        );
    }
    seen.done.store(true, Ordering::Relaxed);
    for transfer in transfers {
        soon(transfer.task).await.unwrap();
    }
    for visitor in visitors {
        soon(visitor).await.unwrap();
    }
    let newest = processes.pop().unwrap();
    let mut ended = Vec::new();
    for process in processes {
        ended.push(process.end().await);
    }
    newest.kill().await;
    (seen, ended)
}

fn check(seen: &Seen, ended: &[Ended]) {
    for (generation, ended) in ended.iter().enumerate() {
        println!(
            "process {generation}: forwarded {}, had no room for {}, was forwarded {}",
            ended.forwarded, ended.dropped, ended.received
        );
        assert_eq!((ended.cut_off, ended.refused), (0, 0));
        assert!(
            ended.received > 0,
            "generation {generation} was forwarded to"
        );
    }
    assert!(ended.iter().skip(1).all(|ended| ended.forwarded > 0));
    assert!(seen.bytes.load(Ordering::Relaxed) > 0);
    assert!(seen.visits.load(Ordering::Relaxed) > 0);
    assert_eq!(seen.lost.load(Ordering::Relaxed), 0, "connections lost");
    assert_eq!(seen.refused.load(Ordering::Relaxed), 0, "clients refused");
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_transfer_data_while_the_server_restarts() {
    for workers in [1, 2] {
        let (seen, ended) = Box::pin(restart((30, 5), 3, workers)).await;
        check(&seen, &ended);
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "it takes a minute; its result stands in docs/restart.md"]
async fn a_thousand_connections_transfer_data_while_the_server_restarts_ten_times() {
    for workers in [1, 2] {
        println!("{workers} workers");
        let (seen, ended) = Box::pin(restart((1000, 20), 10, workers)).await;
        check(&seen, &ended);
    }
}

/// The newest process answers for one that was killed, and the older ones continue without the
/// newest.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_is_killed_takes_only_its_own_connections_along() {
    let folder = Folder::new("killed");
    let client = folder.client();
    let clients = std::slice::from_ref(&client);
    let first = Process::start(&folder.0, 1).await;
    let address = first.address;
    let mut of_first = connect(clients, address, 3).await;
    let second = Process::start(&folder.0, 1).await;
    let mut of_second = connect(clients, address, 3).await;
    let third = Process::start(&folder.0, 1).await;
    let mut of_third = connect(clients, address, 3).await;
    for connection in of_first.iter().chain(&of_second).chain(&of_third) {
        soon(echo(connection, b"three")).await.unwrap();
    }

    first.kill().await;
    for connection in of_first.drain(..) {
        assert!(soon(echo(&connection, b"one")).await.is_err());
        assert_eq!(connection.close_reason(), Some(ConnectionError::Reset));
    }
    for connection in of_second.iter().chain(&of_third) {
        soon(echo(connection, b"two")).await.unwrap();
    }

    third.kill().await;
    for connection in &of_second {
        soon(echo(connection, b"one")).await.unwrap();
    }
    // The second process answers for the newest as well.
    for connection in of_third.drain(..) {
        assert!(soon(echo(&connection, b"none")).await.is_err());
        assert_eq!(connection.close_reason(), Some(ConnectionError::Reset));
    }
    // The second process waits for a successor again, and one that says nothing is none.
    soon(async {
        while UnixStream::connect(folder.0.join("restart")).await.is_err() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let fourth = Process::start(&folder.0, 1).await;
    assert_eq!((fourth.address, fourth.generation), (address, 2));
    let of_fourth = connect(clients, address, 3).await;
    for connection in of_second.iter().chain(&of_fourth) {
        soon(echo(connection, b"again")).await.unwrap();
    }
    for connection in of_second.drain(..) {
        connection.close(0, b"");
    }
    let ended = second.end().await;
    assert_eq!(ended.cut_off, 0);
    fourth.kill().await;
}

//! A server restarts itself while clients transfer data.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hybriq::{Connection, Endpoint};
use rustix::process::{Pid, Signal, kill_process};
use socket2::{Domain, Socket, Type};
use tokio::task::JoinSet;

use crate::authority::Authority;
use crate::clients::{Count, ask, ask_until_asked_to_go, connect, endpoint, soon};
use crate::reloading::check;
use crate::server::{PROGRAM, Server, files};
use crate::systemd::{given, message, shared};

/// Connections that begin after each restart.
const MORE: usize = 5;

/// Pause of each connection after a request.
const PAUSE: Duration = Duration::from_millis(50);

/// A server that restarts itself. The first process is our child, the others are theirs.
struct Restarting {
    first: Server,
    later: Descendants,
}

/// Numbers of processes that nobody waits for.
struct Descendants(Vec<u32>);

impl Restarting {
    fn start(name: &str, authority: &Authority, health: SocketAddr) -> Self {
        let mut command = Command::new(PROGRAM);
        command.args(["--listen", "127.0.0.1:0", "--workers", "2"]);
        Self::run(command, name, authority, health)
    }

    /// Adds the options of a restart to a command.
    fn run(mut command: Command, name: &str, authority: &Authority, health: SocketAddr) -> Self {
        let secret = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-secret"));
        fs::write(&secret, [7; 32]).unwrap();
        // Short, as paths of sockets must be.
        let path = std::env::temp_dir().join(format!("hybriq-{name}-{}", std::process::id()));
        command.args(files(authority));
        command.args(["--health", &health.to_string()]);
        command.arg("--restart").arg(path);
        command.arg("--fleet-secret").arg(secret);
        Self {
            first: Server::run(command),
            later: Descendants(Vec::new()),
        }
    }

    /// Sends a signal to the newest process.
    fn signal(&self, signal: Signal) {
        match self.later.0.last() {
            Some(id) => kill_process(pid(*id), signal).unwrap(),
            None => self.first.signal(signal),
        }
    }

    /// Waits for a line of any process that begins like this, and returns the rest of it.
    fn says(&mut self, start: &str) -> String {
        loop {
            let line = self.first.says();
            assert!(!line.is_empty(), "all processes ended before: {start}");
            if let Some(rest) = line.strip_prefix(start) {
                return rest.to_owned();
            }
        }
    }

    /// Restarts, and waits until the new process serves and the old one knows.
    fn restart(&mut self) {
        self.signal(Signal::USR2);
        let id = self.says("started process ").parse().unwrap();
        self.later.0.push(id);
        let (mut listens, mut knows) = (false, false);
        while !(listens && knows) {
            let line = self.first.says();
            assert!(!line.is_empty(), "all processes ended");
            if let Some(address) = line.strip_prefix("listening on ") {
                assert_eq!(address.parse(), Ok(self.first.address));
                listens = true;
            }
            knows |= line == "succeeded: connections may stay for 3600 s";
        }
    }
}

impl Drop for Descendants {
    fn drop(&mut self) {
        // Otherwise they have ended.
        if std::thread::panicking() {
            for id in &self.0 {
                let _ = kill_process(pid(*id), Signal::KILL);
            }
        }
    }
}

fn pid(id: u32) -> Pid {
    Pid::from_raw(id.try_into().unwrap()).unwrap()
}

/// Holds a TCP port that several processes may share.
fn shared_port() -> TcpListener {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.set_reuse_port(true).unwrap();
    socket
        .bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into())
        .unwrap();
    socket.into()
}

/// Clients that transfer data until they are told to stop.
struct Load {
    clients: Vec<Endpoint>,
    server: SocketAddr,
    /// Requests that were answered, and clients that came and went.
    asked: Count,
    came: Count,
    done: Arc<AtomicBool>,
    tasks: JoinSet<Result<(), String>>,
    connections: u64,
}

impl Load {
    fn new(authority: &Authority, server: SocketAddr) -> Self {
        Self {
            clients: (0..4).map(|_| endpoint(authority.trust())).collect(),
            server,
            asked: Count::default(),
            came: Count::default(),
            done: Arc::default(),
            tasks: JoinSet::new(),
            connections: 0,
        }
    }

    /// Begins connections that transfer data.
    async fn connect(&mut self, count: usize) {
        let mut connections = Vec::new();
        while connections.len() < count {
            // Not all at once: nobody tests the limits of the server here.
            let together = (count - connections.len()).min(50);
            let clients = self.clients.iter().cycle().take(together);
            let connecting: Vec<_> = clients
                .map(|client| client.connect(self.server, "localhost"))
                .collect();
            for one in connecting {
                connections.push(soon(one).await.unwrap());
            }
        }
        for connection in connections {
            let (asked, done) = (self.asked.clone(), Arc::clone(&self.done));
            self.tasks.spawn(transfer(connection, asked, done));
            self.connections += 1;
        }
    }

    fn visit(&mut self) {
        let (came, done) = (self.came.clone(), Arc::clone(&self.done));
        let client = self.clients[0].clone();
        self.tasks.spawn(visit(client, self.server, came, done));
    }

    /// Waits until all go on, and new clients are served.
    async fn goes_on(&self) {
        self.asked.grows(self.connections).await;
        self.came.grows(4).await;
    }

    async fn end(&mut self) {
        self.done.store(true, Ordering::Relaxed);
        while let Some(outcome) = self.tasks.join_next().await {
            outcome.unwrap().unwrap();
        }
    }
}

/// Transfers data over one connection until all is done, whatever the server asks for.
async fn transfer(
    connection: Connection,
    asked: Count,
    done: Arc<AtomicBool>,
) -> Result<(), String> {
    let mut number = 0;
    while !done.load(Ordering::Relaxed) {
        ask(&connection, number).await?;
        asked.add();
        number += 1;
        tokio::time::sleep(PAUSE).await;
    }
    connection.close(0, b"done");
    Ok(())
}

/// Connects, asks and leaves, again and again.
async fn visit(
    client: Endpoint,
    server: SocketAddr,
    came: Count,
    done: Arc<AtomicBool>,
) -> Result<(), String> {
    while !done.load(Ordering::Relaxed) {
        let connection = connect(&client, server).await;
        let connection = connection.map_err(|error| error.to_string())?;
        ask(&connection, came.now()).await?;
        connection.close(0, b"done");
        came.add();
    }
    Ok(())
}

/// Restarts a server while this many connections transfer data, and some more after each restart.
async fn restart(name: &str, connections: usize, restarts: usize) {
    let authority = Authority::new(name);
    let port = shared_port();
    let health = port.local_addr().unwrap();
    let mut server = Restarting::start(name, &authority, health);
    let mut load = Load::new(&authority, server.first.address);
    load.connect(connections).await;
    load.visit();
    load.visit();
    for round in 1..=restarts {
        let polite = connect(&load.clients[1], load.server).await.unwrap();
        let polite = tokio::spawn(ask_until_asked_to_go(polite, Count::default()));
        server.restart();
        // Its process has a successor and asks its clients to go, but does not make them.
        soon(polite).await.unwrap().unwrap().close(0, b"done");
        assert_eq!(check(health, "/ready"), "HTTP/1.1 200 OK");
        load.connect(MORE).await;
        load.goes_on().await;
        let (asked, came) = (load.asked.now(), load.came.now());
        println!(
            "restart {round}: {} connections, {asked} requests, {came} visits",
            load.connections
        );
    }
    load.end().await;
    for _ in 0..restarts {
        assert_eq!(server.says("drained: "), "0 connections were cut off");
    }
    server.signal(Signal::TERM);
    server.says("draining for at most 30 s");
    assert_eq!(server.says("drained: "), "0 connections were cut off");
    assert!(server.first.ends().0.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_while_the_server_restarts_itself() {
    restart("restarting", 30, 3).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a minute; its result stands in quic/docs/production.md"]
async fn a_thousand_connections_lose_nothing_in_ten_restarts() {
    restart("restarting-1000", 1000, 10).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_successor_that_cannot_serve_changes_nothing() {
    let authority = Authority::new("restarting-fails");
    let port = shared_port();
    let mut server = Restarting::start("restarting-fails", &authority, port.local_addr().unwrap());
    let client = endpoint(authority.trust());
    let connection = connect(&client, server.first.address).await.unwrap();
    ask(&connection, 0).await.unwrap();
    authority.spoil();
    server.signal(Signal::USR2);
    let id = server.says("started process ");
    assert_eq!(
        server.says(&format!("process {id} ended: ")),
        "exit status: 1"
    );
    ask(&connection, 1).await.unwrap();
    authority.renew();
    let another = connect(&client, server.first.address).await.unwrap();
    ask(&another, 2).await.unwrap();
    // The next one can.
    server.restart();
    ask(&connection, 3).await.unwrap();
    connection.close(0, b"done");
    another.close(0, b"done");
    assert_eq!(server.says("drained: "), "0 connections were cut off");
    server.signal(Signal::TERM);
    assert!(server.first.ends().0.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn one_successor_is_started_at_a_time() {
    let authority = Authority::new("restarting-twice");
    let port = shared_port();
    let health = port.local_addr().unwrap();
    let mut server = Restarting::start("restarting-twice", &authority, health);
    // The new process waits for its certificate.
    let certificate = fs::read(&authority.cert).unwrap();
    fs::remove_file(&authority.cert).unwrap();
    let made = Command::new("mkfifo").arg(&authority.cert).status();
    assert!(made.unwrap().success());
    server.signal(Signal::USR2);
    let id = server.says("started process ");
    server.signal(Signal::USR2);
    let busy = server.says("not restarted: ");
    assert_eq!(busy, format!("process {id} is starting already"));
    server.later.0.push(id.parse().unwrap());
    fs::write(&authority.cert, certificate).unwrap();
    server.says("succeeded");
    server.signal(Signal::TERM);
    assert!(server.first.ends().0.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn systemd_learns_which_process_is_the_service() {
    let authority = Authority::new("restarting-systemd");
    let port = shared_port();
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("restarting-notify");
    let _ = fs::remove_file(&path);
    let notify = UnixDatagram::bind(&path).unwrap();
    let first = shared("127.0.0.1:0");
    let second = shared(&first.local_addr().unwrap().to_string());
    let mut command = given(first, second);
    command.env("NOTIFY_SOCKET", &path);
    let health = port.local_addr().unwrap();
    let mut server = Restarting::run(command, "restarting-systemd", &authority, health);
    assert_eq!(message(&notify), "READY=1\n");
    server.restart();
    // In any order: the new process is ready when it listens, and the old one knows it then.
    let mut told = [message(&notify), message(&notify)];
    told.sort();
    let newest = server.later.0[0];
    for number in 0..8 {
        let client = endpoint(authority.trust());
        let connection = connect(&client, server.first.address).await.unwrap();
        ask(&connection, number).await.unwrap();
        connection.close(0, b"done");
    }
    assert_eq!(
        told,
        [format!("MAINPID={newest}\n"), "READY=1\n".to_owned()]
    );
    server.signal(Signal::TERM);
    assert_eq!(message(&notify), "STOPPING=1\n");
    assert!(server.first.ends().0.success());
}

#[test]
fn a_restart_needs_keys_that_all_processes_share() {
    let output = Command::new(PROGRAM)
        .args([
            "--cert",
            "cert.pem",
            "--key",
            "key.pem",
            "--restart",
            "/run/echo/restart",
        ])
        .output()
        .unwrap();
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert!(complaint.contains("--fleet-secret"), "{complaint}");
}

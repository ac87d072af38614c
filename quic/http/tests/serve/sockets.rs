//! Servers on sockets from outside.

use std::{
    net::{SocketAddr, TcpListener, UdpSocket},
    os::fd::OwnedFd,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use axum::Router;
use http::StatusCode;
use hybriq::{
    Endpoint, EndpointError,
    fleet::{AddressValidation, CidGenerator, FleetKeys, ListenFds, RandomCids},
};
use hybriq_http::{BindError, Server, ServerBuilder};
use socket2::{Domain, Socket, Type};

use super::support::{Certificate, Http3, ask_over_tcp, get, soon};

/// Variable that tells the child process the port of UDP.
const PORT: &str = "HYBRIQ_TEST_HTTP_LISTEN_FDS";

/// The same, if the child has a socket that its server cannot use.
const UNUSED: &str = "unused";

/// The same, if the child has a UDP socket for each of two workers.
const WORKERS: &str = "workers";

fn tcp() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

fn udp() -> UdpSocket {
    UdpSocket::bind("127.0.0.1:0").unwrap()
}

/// Asks a server over each version. `Alt-Svc` names the port of UDP.
async fn ask_all(server: Server, over_tcp: &[SocketAddr]) {
    let (handle, address) = (server.handle(), server.local_address());
    let router = Router::new().route("/", axum::routing::get(async || "here"));
    let serving = tokio::spawn(server.serve(router));
    for &listener in over_tcp {
        for alpn in ["h2", "http/1.1"] {
            let response = ask_over_tcp(listener, alpn, None, get("/")).await.unwrap();
            assert_eq!(response.body(), "here");
            let expected = format!("h3=\":{}\"; ma=86400", address.port());
            assert_eq!(response.headers()["alt-svc"], expected);
        }
    }
    let mut client = Http3::connect(address).await;
    let response = client.ask(get("/")).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    soon(handle.shutdown(std::time::Duration::ZERO)).await;
    serving.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn sockets_from_outside_serve_all_versions() {
    let (first, second) = (tcp(), tcp());
    let addresses = [&first, &second].map(|it| it.local_addr().unwrap());
    let keys = FleetKeys::from_secret(&[1; 32]).unwrap();
    let builder = Server::builder()
        .fleet_keys(&keys)
        .cid_generator(RandomCids::of_len(12))
        .max_connections(10)
        .name("outside");
    let config = Certificate::shared().config();
    let server = builder.bind_sockets([udp()], [first, second], config);
    ask_all(server.unwrap(), &addresses).await;
}

/// Without clients over QUIC, the setting of the builder counts.
#[tokio::test]
async fn settings_reach_the_endpoint() {
    let builder = || Server::builder().max_connections(0);
    let config = Certificate::shared().config();
    let server = builder().bind("127.0.0.1:0", config.clone()).unwrap();
    let address = server.local_address();
    let serving = tokio::spawn(server.serve(Router::new()));
    let client = hybriq::Endpoint::client(super::client_config(&Certificate::shared())).unwrap();
    let refused = soon(client.connect(address, "localhost")).await;
    assert!(refused.is_err());
    serving.abort();
    let many = Server::builder().workers(1000);
    let error = many.bind("127.0.0.1:0", config).unwrap_err();
    assert!(
        matches!(error, BindError::Quic(EndpointError::Workers(1000))),
        "{error}"
    );
}

/// A generator that counts its ids.
#[derive(Debug)]
struct Counting(RandomCids, Arc<AtomicUsize>);

impl CidGenerator for Counting {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn generate(&self, worker: u8, cid: &mut [u8]) {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.generate(worker, cid);
    }

    fn worker(&self, cid: &[u8]) -> Option<u8> {
        self.0.worker(cid)
    }
}

/// The tokens of one server are those of another with its keys.
#[tokio::test]
async fn ids_and_tokens_are_those_of_the_fleet() {
    let (made, config) = (Arc::default(), Certificate::shared().config());
    let keys = FleetKeys::from_secret(&[9; 32]).unwrap();
    let builder = Server::builder().fleet_keys(&keys);
    let builder = builder.cid_generator(Counting(RandomCids::of_len(12), Arc::clone(&made)));
    let server = super::run_with(builder, config.clone(), Router::new());
    let client = Endpoint::client(super::client_config(&Certificate::shared())).unwrap();
    let connect = async |address| {
        let connection = soon(client.connect(address, "localhost")).await.unwrap();
        // The token has come before the answer.
        let (mut send, mut recv) = soon(connection.open_bidi()).await.unwrap();
        send.finish();
        let _ = soon(recv.read_chunk(1)).await;
        connection.close(0x100, b"");
    };
    connect(server.address()).await;
    assert!(made.load(Ordering::SeqCst) > 0);
    let other = Endpoint::builder().fleet_keys(&keys);
    let other = other.address_validation(AddressValidation::Always);
    let other = other
        .server(config.alpn([hybriq_h3::ALPN]))
        .bind("127.0.0.1:0");
    let other = other.unwrap();
    let _connection = {
        let accepted = async { other.accept().await.unwrap().accept().await };
        let (connection, accepted) =
            tokio::join!(client.connect(other.local_address(), "localhost"), accepted);
        (connection.unwrap(), accepted.unwrap())
    };
    let stats = other.stats();
    assert_eq!((stats.retries_sent, stats.addresses_validated), (0, 1));
}

#[tokio::test]
async fn unsuitable_sockets_are_refused_with_advice() {
    let config = || Certificate::shared().config();
    let refused = |builder: ServerBuilder, udp: Vec<UdpSocket>, tcp: Vec<TcpListener>| {
        let error = builder.bind_sockets(udp, tcp, config()).unwrap_err();
        assert_eq!(error.to_string().lines().count(), 1, "{error}");
        error
    };
    let error = refused(Server::builder(), vec![udp()], Vec::new());
    assert!(matches!(error, BindError::NoListener), "{error}");
    let error = refused(Server::builder().without_tcp(), vec![udp()], vec![tcp()]);
    assert!(matches!(error, BindError::UnusedListeners), "{error}");
    let error = refused(Server::builder(), Vec::new(), vec![tcp()]);
    assert!(
        matches!(error, BindError::Quic(EndpointError::NoSocket)),
        "{error}"
    );

    let other = TcpListener::from(OwnedFd::from(udp()));
    let error = refused(Server::builder(), vec![udp()], vec![tcp(), other]);
    assert!(
        matches!(error, BindError::Listener { number: 1, .. }),
        "{error}"
    );
    assert!(error.to_string().contains("is not a TCP socket"), "{error}");
    let (local, _) = std::os::unix::net::UnixStream::pair().unwrap();
    let error = refused(
        Server::builder(),
        vec![udp()],
        vec![TcpListener::from(OwnedFd::from(local))],
    );
    assert!(
        error.to_string().contains("no address of IPv4 or IPv6"),
        "{error}"
    );
    let silent = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    silent
        .bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into())
        .unwrap();
    let error = refused(Server::builder(), vec![udp()], vec![silent.into()]);
    assert!(error.to_string().contains("does not listen"), "{error}");

    let nothing = Server::builder().listen_fds(ListenFds::default(), config());
    let error = nothing.unwrap_err();
    assert!(
        matches!(error, BindError::Quic(EndpointError::NoSocket)),
        "{error}"
    );
}

/// Runs in the child process, which has the sockets.
#[tokio::test(flavor = "multi_thread")]
async fn in_the_child_process() {
    let Ok(port) = std::env::var(PORT) else {
        return;
    };
    let mut given = ListenFds::take().unwrap();
    let config = Certificate::shared().config();
    if port == UNUSED {
        let error = Server::builder().listen_fds(given, config).unwrap_err();
        assert!(matches!(error, BindError::ListenFds(_)), "{error}");
        return;
    }
    if port == WORKERS {
        let builder = Server::builder().without_tcp();
        let server = builder.listen_fds(given, config).unwrap();
        assert_eq!(server.handle().endpoint().worker_stats().len(), 2);
        return;
    }
    let [health] = <[_; 1]>::try_from(given.tcp_named("health").unwrap()).unwrap();
    let server = Server::builder().listen_fds(given, config).unwrap();
    assert_eq!(server.local_address().port().to_string(), port);
    // On the same port as UDP.
    let address = server.local_address();
    assert_ne!(health.local_addr().unwrap(), address);
    ask_all(server, &[address]).await;
}

#[test]
fn a_service_manager_passes_sockets_of_both_kinds() {
    let (udp, tcp) = one_port();
    let port = udp.local_addr().unwrap().port().to_string();
    pass(&port, udp, tcp, self::tcp().into());
}

#[test]
fn sockets_of_a_service_manager_that_nobody_uses_are_refused() {
    let (udp, tcp) = one_port();
    let (other, _) = std::os::unix::net::UnixStream::pair().unwrap();
    pass(UNUSED, udp, tcp, other.into());
}

#[test]
fn each_worker_has_a_socket_of_the_service_manager() {
    let address = udp().local_addr().unwrap();
    let [first, second] = [address; 2].map(|address| {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
        socket.set_reuse_port(true).unwrap();
        socket.bind(&address.into()).unwrap();
        OwnedFd::from(socket)
    });
    let (silent, _) = std::os::unix::net::UnixStream::pair().unwrap();
    pass_fds(WORKERS, 2, [first, second, silent.into()]);
}

fn one_port() -> (UdpSocket, TcpListener) {
    loop {
        let udp = udp();
        if let Ok(tcp) = TcpListener::bind(udp.local_addr().unwrap()) {
            return (udp, tcp);
        }
    }
}

/// Passes sockets to a child process as a service manager does, and waits for its end.
fn pass(port: &str, udp: UdpSocket, tcp: TcpListener, health: OwnedFd) {
    pass_fds(port, 3, [udp.into(), tcp.into(), health]);
}

/// The same for so many of these.
fn pass_fds(port: &str, count: usize, [first, second, third]: [OwnedFd; 3]) {
    let mut command = Command::new("sh");
    let take = "exec 3<&0 4>&1 5>&2 </dev/null >/dev/null 2>&1; \
         LISTEN_PID=$$ LISTEN_FDS=$COUNT LISTEN_FDNAMES=$NAMES exec \"$0\" \"$@\"";
    command
        .args(["-c", take])
        .arg(std::env::current_exe().unwrap());
    command.args(["--exact", "sockets::in_the_child_process"]);
    command.env(PORT, port).env("COUNT", count.to_string());
    let names = ["web", "web", "health"];
    command.env("NAMES", names[..count].join(":"));
    command.stdin(first).stdout(second).stderr(third);
    assert!(command.status().unwrap().success());
}

//! Servers on sockets from outside.

use std::{
    net::{SocketAddr, TcpListener, UdpSocket},
    os::fd::OwnedFd,
    process::{Command, Stdio},
};

use axum::Router;
use http::StatusCode;
use hybriq::{
    EndpointError,
    fleet::{FleetKeys, ListenFds, RandomCids},
};
use hybriq_http::{BindError, Server, ServerBuilder};
use socket2::{Domain, Socket, Type};

use super::support::{Certificate, Http3, ask_over_tcp, get, soon};

/// Variable that tells the child process the port of UDP.
const PORT: &str = "HYBRIQ_TEST_HTTP_LISTEN_FDS";

/// The same, if the child has a socket that its server cannot use.
const UNUSED: &str = "unused";

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
    let mut command = Command::new("sh");
    let take = "exec 3<&0 4>&1 5>&2 </dev/null >/dev/null 2>&1; \
         LISTEN_PID=$$ LISTEN_FDS=3 LISTEN_FDNAMES=web:web:health exec \"$0\" \"$@\"";
    command
        .args(["-c", take])
        .arg(std::env::current_exe().unwrap());
    command.args(["--exact", "sockets::in_the_child_process"]);
    command.env(PORT, port);
    command.stdin(Stdio::from(OwnedFd::from(udp)));
    command.stdout(Stdio::from(OwnedFd::from(tcp)));
    command.stderr(Stdio::from(health));
    assert!(command.status().unwrap().success());
}

//! Sockets of a service manager, passed to a process of its own.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod endpoint_support;

use std::{
    net::{SocketAddr, TcpListener, UdpSocket},
    os::fd::OwnedFd,
    process::{Command, Stdio},
};

use endpoint_support::{Pair, client, server_config};
use hybriq::{
    Endpoint,
    fleet::{ListenFds, ListenFdsError},
};
use socket2::{Domain, Socket, Type};

/// Variable that tells the child process the address.
const ADDRESS: &str = "HYBRIQ_TEST_LISTEN_FDS";

fn shared(address: SocketAddr) -> UdpSocket {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
    socket.set_reuse_port(true).unwrap();
    socket.bind(&address.into()).unwrap();
    socket.into()
}

/// Runs in the child process, which has the sockets.
#[tokio::test(flavor = "multi_thread")]
async fn in_the_child_process() {
    let Ok(address) = std::env::var(ADDRESS) else {
        return assert!(ListenFds::take().unwrap().is_empty());
    };
    let mut given = ListenFds::take().unwrap();
    assert_eq!(given.names().collect::<Vec<_>>(), ["quic", "quic", "web"]);
    assert!(matches!(ListenFds::take(), Err(ListenFdsError::Taken)));
    let sockets = given.udp_named("quic").unwrap();
    assert_eq!(sockets.workers(), 2);
    let server = Endpoint::builder()
        .server(server_config())
        .workers(sockets.workers())
        .bind_sockets(sockets)
        .unwrap();
    assert_eq!(server.local_address().to_string(), address);
    assert_eq!(given.tcp().unwrap().len(), 1);
    assert!(given.is_empty());
    let pair = Pair::of(server, client()).await;
    assert_eq!(pair.echo(b"hello").await, b"hello");
}

#[test]
fn a_service_manager_passes_sockets_to_one_process() {
    let first = shared("127.0.0.1:0".parse().unwrap());
    let address = first.local_addr().unwrap();
    let second = shared(address);
    let web = TcpListener::bind("127.0.0.1:0").unwrap();
    let program = std::env::current_exe().unwrap();
    for (pid, is_meant) in [("$$", true), ("1", false)] {
        // File descriptors 3 to 5, as systemd passes them.
        let take = format!(
            "exec 3<&0 4>&1 5>&2 </dev/null >/dev/null 2>&1; \
             LISTEN_PID={pid} LISTEN_FDS=3 LISTEN_FDNAMES=quic:quic:web exec \"$0\" \"$@\""
        );
        let mut command = Command::new("sh");
        command.args(["-c", &take]).arg(&program);
        command.args(["--exact", "in_the_child_process"]);
        if is_meant {
            command.env(ADDRESS, address.to_string());
        }
        let pass = |socket: OwnedFd| Stdio::from(socket);
        command.stdin(pass(first.try_clone().unwrap().into()));
        command.stdout(pass(second.try_clone().unwrap().into()));
        command.stderr(pass(web.try_clone().unwrap().into()));
        assert!(command.status().unwrap().success(), "LISTEN_PID={pid}");
    }
}

//! Sockets and messages as of systemd.

use std::net::UdpSocket;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rustix::process::Signal;
use socket2::{Domain, Socket, Type};

use crate::authority::Authority;
use crate::clients::{ask, connect, endpoint};
use crate::server::{PROGRAM, Server, files};

/// Opens a socket as a unit with `ReusePort=yes` does.
fn shared(address: &str) -> UdpSocket {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
    socket.set_reuse_port(true).unwrap();
    let address: std::net::SocketAddr = address.parse().unwrap();
    socket.bind(&address.into()).unwrap();
    socket.into()
}

fn message(socket: &UnixDatagram) -> String {
    let mut buffer = [0; 100];
    let length = socket.recv(&mut buffer).unwrap();
    String::from_utf8(buffer[..length].to_vec()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_takes_the_sockets_of_systemd_and_says_when_it_is_ready() {
    let authority = Authority::new("systemd");
    let first = shared("127.0.0.1:0");
    let address = first.local_addr().unwrap();
    let second = shared(&address.to_string());

    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("notify");
    let _ = std::fs::remove_file(&path);
    let notify = UnixDatagram::bind(&path).unwrap();

    // File descriptors 3 and 4, as systemd passes them to the process with this number.
    let mut command = Command::new("sh");
    let take =
        "exec 3<&0 4>&2 2>/dev/null </dev/null; LISTEN_PID=$$ LISTEN_FDS=2 exec \"$0\" \"$@\"";
    command.args(["-c", take, PROGRAM]).args(files(&authority));
    command.args(["--health", "127.0.0.1:0"]);
    command.env("NOTIFY_SOCKET", &path);
    command.stdin(Stdio::from(OwnedFd::from(first)));
    command.stderr(Stdio::from(OwnedFd::from(second)));
    let mut server = Server::run(command);
    assert_eq!(server.address, address);
    assert_eq!(message(&notify), "READY=1\n");

    // Enough clients for both of its workers.
    for number in 0..8 {
        let client = endpoint(authority.trust());
        let connection = connect(&client, address).await.unwrap();
        ask(&connection, number).await.unwrap();
    }
    server.signal(Signal::TERM);
    assert_eq!(message(&notify), "STOPPING=1\n");
    assert_eq!(server.says(), "draining for at most 30 s");
    assert_eq!(server.says(), "drained: 0 connections were cut off");
    assert!(server.ends().0.success());
}

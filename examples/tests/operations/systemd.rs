//! Sockets and messages as of systemd, and the units.

use std::fs;
use std::net::UdpSocket;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::Signal;
use socket2::{Domain, Socket, Type};

use crate::authority::Authority;
use crate::clients::{ask, connect, endpoint};
use crate::server::{PROGRAM, Server, files};

/// Opens a socket as a unit with `ReusePort=yes` does.
pub(crate) fn shared(address: &str) -> UdpSocket {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
    socket.set_reuse_port(true).unwrap();
    let address: std::net::SocketAddr = address.parse().unwrap();
    socket.bind(&address.into()).unwrap();
    socket.into()
}

/// Returns the server with these sockets as file descriptors 3 and 4, as systemd passes them to the
/// process with this number.
pub(crate) fn given(first: UdpSocket, second: UdpSocket) -> Command {
    let mut command = Command::new("sh");
    let take =
        "exec 3<&0 4>&2 2>/dev/null </dev/null; LISTEN_PID=$$ LISTEN_FDS=2 exec \"$0\" \"$@\"";
    command.args(["-c", take, PROGRAM]);
    command.stdin(Stdio::from(OwnedFd::from(first)));
    command.stderr(Stdio::from(OwnedFd::from(second)));
    command
}

pub(crate) fn message(socket: &UnixDatagram) -> String {
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

    let mut command = given(first, second);
    command
        .args(files(&authority))
        .args(["--health", "127.0.0.1:0"])
        .env("NOTIFY_SOCKET", &path);
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

fn unit(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("systemd");
    folder.join(format!("hybriq-server.{name}"))
}

/// Returns the value of a setting that stands there once.
fn setting(unit: &str, name: &str) -> String {
    let mut values = unit
        .lines()
        .filter_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    let value = values.next().unwrap().to_owned();
    assert_eq!(values.next(), None, "{name}");
    value
}

#[test]
fn systemd_accepts_the_units() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("units");
    fs::create_dir_all(&folder).unwrap();
    let copies = ["service", "socket"].map(|name| {
        let text = fs::read_to_string(unit(name)).unwrap();
        let copy = folder.join(format!("hybriq-server.{name}"));
        fs::write(
            &copy,
            text.replace("/usr/local/bin/reloading_server", PROGRAM),
        )
        .unwrap();
        copy
    });
    let mut analyze = Command::new("systemd-analyze");
    analyze.args(["verify", "--man=no"]).args(copies);
    match analyze.output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(
                output.status.success() && !said.contains("hybriq"),
                "{said}"
            );
        }
        Err(error) => {
            test_summary::skip(format!("systemd-analyze: {error}: apt-get install systemd"));
        }
    }
}

#[test]
fn the_unit_gives_options_that_the_server_has_and_time_to_drain() {
    let text = fs::read_to_string(unit("service")).unwrap();
    let command = setting(&text, "ExecStart");
    let options: Vec<_> = command.split(' ').skip(1).collect();
    // Options that do not exist fail before the help is printed.
    let status = Command::new(PROGRAM)
        .args(&options)
        .arg("--help")
        .output()
        .unwrap()
        .status;
    assert!(status.success(), "{command}");
    let drain = options.iter().position(|it| *it == "--drain").unwrap();
    let drain: u64 = options[drain + 1].parse().unwrap();
    assert!(setting(&text, "TimeoutStopSec").parse::<u64>().unwrap() >= drain + 5);
}

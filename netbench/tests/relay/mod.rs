//! A running `netbench link`, and sockets to measure it with.

use std::io::{BufRead, BufReader, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use quinn_udp::{EcnCodepoint, RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use serde_json::Value;

/// Longest time that anything may take before the test fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Relay {
    pub(crate) child: Child,
    pub(crate) stdout: BufReader<ChildStdout>,
    pub(crate) address: SocketAddr,
}

pub(crate) fn netbench() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_netbench"));
    command.arg("link");
    command
}

impl Relay {
    pub(crate) fn start(server: &UdpSocket, args: &[&str]) -> Self {
        Self::start_with(
            server,
            &[args, &["--json", "--until-eof"]].concat(),
            |line| {
                let line: Value = serde_json::from_str(line).unwrap();
                line["listening"].as_str().unwrap().to_owned()
            },
        )
    }

    pub(crate) fn start_in_words(server: &UdpSocket, args: &[&str]) -> Self {
        Self::start_with(server, args, |line| {
            let words = line.strip_prefix("listening on ").unwrap();
            words.split(',').next().unwrap().to_owned()
        })
    }

    fn start_with(server: &UdpSocket, args: &[&str], address: fn(&str) -> String) -> Self {
        let server = server.local_addr().unwrap();
        let mut child = netbench()
            .args(["--to", &server.to_string()])
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        Self {
            child,
            stdout,
            address: address(&line).parse().unwrap(),
        }
    }

    /// Ends it and returns its summary, which counts all that was sent before.
    pub(crate) fn stop(mut self) -> Value {
        drop(self.child.stdin.take());
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        assert!(self.child.wait().unwrap().success());
        serde_json::from_str(&line).unwrap()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn socket(address: &str) -> UdpSocket {
    let socket = UdpSocket::bind(address).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// The next datagram and its sender. `None`: there is none in time.
pub(crate) fn receive(socket: &UdpSocket) -> Option<(Vec<u8>, SocketAddr)> {
    let mut bytes = vec![0; 2048];
    let (len, from) = socket.recv_from(&mut bytes).ok()?;
    bytes.truncate(len);
    Some((bytes, from))
}

/// A datagram that no other number has.
pub(crate) fn numbered(n: u64, len: usize) -> Vec<u8> {
    n.to_be_bytes().into_iter().cycle().take(len).collect()
}

/// A socket that sees and sets ECN marks.
pub(crate) struct EcnSocket {
    pub(crate) io: UdpSocket,
    state: UdpSocketState,
}

impl EcnSocket {
    pub(crate) fn bind(address: &str) -> Self {
        let io = socket(address);
        let state = UdpSocketState::new(UdpSockRef::from(&io)).unwrap();
        Self { io, state }
    }

    pub(crate) fn send(
        &self,
        destination: SocketAddr,
        ecn: Option<EcnCodepoint>,
        contents: &[u8],
        segment_size: Option<usize>,
    ) {
        let transmit = Transmit {
            destination,
            ecn,
            contents,
            segment_size,
            src_ip: None,
        };
        let sent = self.state.try_send(UdpSockRef::from(&self.io), &transmit);
        sent.unwrap();
    }

    /// The next datagram, or several that came together.
    pub(crate) fn receive(&self) -> (Vec<u8>, SocketAddr, Option<EcnCodepoint>) {
        let mut bytes = vec![0; 1 << 16];
        let mut meta = [RecvMeta::default()];
        let start = Instant::now();
        loop {
            let mut slices = [IoSliceMut::new(&mut bytes)];
            let received = self
                .state
                .recv(UdpSockRef::from(&self.io), &mut slices, &mut meta);
            match received {
                Ok(_) => break,
                Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock),
            }
            assert!(start.elapsed() < PATIENCE, "nothing came");
            std::thread::yield_now();
        }
        let [meta] = meta;
        bytes.truncate(meta.len);
        (bytes, meta.addr, meta.ecn)
    }
}

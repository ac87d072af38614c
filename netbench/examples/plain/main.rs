//! Loads of `netbench run peers` in few lines for each stack, after its own documentation: what a stack
//! makes without netbench.
//!
//! ```sh
//! cargo run --release -p hybriq-netbench --features noq,quiche,quinn,s2n-quic --example plain -- quinn download
//! ```
//! `download` moves one stream from the server; `requests` has 100 requests of 100 bytes in flight. Server
//! and client have a core each. `netbench/docs/peers_at_their_best.md` compares the figures with netbench's.

#[cfg(feature = "quiche")]
mod quiche;
#[cfg(any(feature = "noq", feature = "quinn"))]
mod quinn;
#[cfg(feature = "s2n-quic")]
mod s2n_quic;

use std::error::Error;
use std::net::SocketAddr;
#[cfg(any(feature = "noq", feature = "quiche", feature = "quinn"))]
use std::net::UdpSocket;
use std::time::Instant;

use bytes::Bytes;
use rcgen::{CertifiedKey, generate_simple_self_signed};

type Failure = Box<dyn Error + Send + Sync>;

const ALPN: &[u8] = b"plain";
const NAME: &str = "localhost";
/// Maximum number of bytes written at once.
const CHUNK: usize = 64 << 10;
/// Number of requests in flight.
const IN_FLIGHT: u64 = 100;

/// Work of a client: requests, each on a stream of its own, and the responses. The first eight bytes of a
/// request say how long its response is.
#[derive(Clone, Copy)]
struct Load {
    requests: u64,
    request: usize,
    response: u64,
}

impl Load {
    fn named(name: &str) -> Option<Self> {
        let (requests, request, response) = match name {
            "download" => (1, 8, 2 << 30),
            "requests" => (500_000, 100, 100),
            _ => return None,
        };
        Some(Self {
            requests,
            request,
            response,
        })
    }

    /// Returns a smaller one, for the time before the measurement.
    fn warm_up(self) -> Self {
        Self {
            requests: self.requests.div_ceil(10),
            response: self.response.min(64 << 20),
            ..self
        }
    }

    fn message(self) -> Bytes {
        let mut message = vec![0; self.request];
        message[..8].copy_from_slice(&self.response.to_be_bytes());
        message.into()
    }
}

/// Returns the length of the response to a request.
fn asked(request: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(*request.first_chunk()?))
}

/// Returns what can be sent of a response of which so many bytes are left.
fn part(zeros: &Bytes, left: u64) -> Bytes {
    zeros.slice(..zeros.len().min(left as usize))
}

/// Certificate and key of the server.
struct Own(CertifiedKey<rcgen::KeyPair>);

/// Binds a socket, with the buffers that the system gives, as `netbench run` does.
#[cfg(any(feature = "noq", feature = "quiche", feature = "quinn"))]
fn bind() -> std::io::Result<UdpSocket> {
    UdpSocket::bind("127.0.0.1:0")
}

/// Keeps this thread on a core.
fn pin(core: usize) {
    let mut cores = rustix::thread::CpuSet::new();
    cores.set(core);
    // On a machine with one core the measurement is only slower.
    let _ = rustix::thread::sched_setaffinity(None, &cores);
}

/// A stack: starts a server on this thread, or runs loads against one.
trait Stack {
    /// Serves until the process ends, and reports its address.
    fn serve(own: &Own, started: impl FnOnce(SocketAddr)) -> Result<(), Failure>;

    /// Runs the loads one after another on one connection; `done` is told after each.
    fn load(
        own: &Own,
        server: SocketAddr,
        loads: [Load; 2],
        done: impl FnMut(),
    ) -> Result<(), Failure>;
}

fn measure<S: Stack>(name: &str, load: Load) -> Result<(), Failure> {
    let own = Own(generate_simple_self_signed([NAME.to_owned()])?);
    let (started, server) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let own = &own;
        scope.spawn(move || {
            pin(0);
            let served = S::serve(own, |address| {
                let _ = started.send(address);
            });
            eprintln!("the server ended: {served:?}");
            std::process::exit(1);
        });
        pin(1);
        let mut times = Vec::new();
        let done = || times.push(Instant::now());
        S::load(own, server.recv()?, [load.warm_up(), load], done)?;
        let [begun, ended] = times[..] else {
            return Err("the loads did not end".into());
        };
        let seconds = (ended - begun).as_secs_f64();
        if load.requests > 1 {
            println!("{name} {:.0} requests/s", load.requests as f64 / seconds);
        } else {
            println!("{name} {:.2} Gbit/s", load.response as f64 * 8e-9 / seconds);
        }
        // The server serves until the process ends.
        std::process::exit(0)
    })
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let usage = "usage: plain noq|quiche|quinn|s2n-quic download|requests (of the stacks built in)";
    let [stack, load] = &arguments[..] else {
        return Err(usage.into());
    };
    let load = Load::named(load).ok_or(usage)?;
    match stack.as_str() {
        #[cfg(feature = "noq")]
        "noq" => measure::<quinn::Noq>("noq", load),
        #[cfg(feature = "quiche")]
        "quiche" => measure::<quiche::Quiche>("quiche", load),
        #[cfg(feature = "quinn")]
        "quinn" => measure::<quinn::Quinn>("quinn", load),
        #[cfg(feature = "s2n-quic")]
        "s2n-quic" => measure::<s2n_quic::S2nQuic>("s2n-quic", load),
        _ => Err(usage.into()),
    }
}

/// Runs a future on this thread alone.
#[cfg(any(feature = "noq", feature = "quinn", feature = "s2n-quic"))]
fn run<T>(future: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(future)
}

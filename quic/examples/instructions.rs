//! Does a fixed amount of work in the core, to count the instructions that it takes.
//!
//! Two endpoints talk to each other over a lossless link in memory, in virtual time and with
//! seeded randomness: there are no sockets, no threads and no sleeps. The TLS libraries draw
//! their keys from the system, so two counts of the same build differ a little.
//!
//! ```text
//! cargo build --release -p hybriq --example instructions
//! export GLIBC_TUNABLES=glibc.cpu.x86_rep_movsb_threshold=1073741824:glibc.cpu.x86_rep_stosb_threshold=1073741824
//! valgrind --tool=callgrind --collect-atstart=no --toggle-collect='instructions::measured*' \
//!     target/release/examples/instructions handshakes 100 rustls
//! ```
//!
//! Without the tunables glibc copies with `rep movsb`, of which valgrind counts every byte.
//!
//! - `handshakes COUNT [rustls|s2n]`: full handshakes with X25519MLKEM768 and an ECDSA P-256
//!   certificate, one after the other. Each connection lives from its first packet until both
//!   ends have forgotten it. Both ends are counted.
//! - `bulk MIB [rustls|s2n]`: one stream over a connection that exists already, 1 Gbit/s and a
//!   round trip of 10 ms. Both ends are counted.
//!
//! With `qlog` as the last argument both ends log their connections, to nowhere. The thread that
//! writes is not counted.
//!
//! The command above counts [`measured`] alone. Without `--toggle-collect` valgrind counts the
//! set-up too, which cancels out in the difference of two runs with different amounts of work.

use std::{
    collections::VecDeque,
    env,
    error::Error,
    hint::black_box,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use hybriq::{
    TransportConfig,
    qlog::Qlog,
    tls::{Backend, ClientOptions, Identity, PrivateKeyDer, ServerOptions, Trust},
};
use hybriq_proto::{
    connection::{Connection, Event},
    endpoint::{Arrival, Endpoint, Local, Routed, Setup, Slot, SocketId, Transmit},
    stats::ConnectionStats,
    streams::{Direction, ReadError, StreamEvent, StreamId, Streams, WriteError},
};
use hybriq_sim::SeededRandom;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const CLIENT: &str = "10.0.0.1:50000";
const SERVER: &str = "192.0.2.1:4433";
const SERVER_NAME: &str = "localhost";
const GROUP: &str = "X25519MLKEM768";

/// One-way delay of the link.
const ONE_WAY: Duration = Duration::from_millis(5);

/// Nanoseconds that the link needs for a byte: 1 Gbit/s.
const NANOSECONDS_PER_BYTE: u64 = 8;

/// Maximum number of datagrams in one transmission.
const TRAIN: usize = 10;

/// Data that the application writes and reads at once.
static CHUNK: [u8; 16 * 1024] = [0; 16 * 1024];

/// Number of connections or mebibytes that come first and are not counted, because they pay for
/// lazy set-up.
const WARM_UP: usize = 2;

const USAGE: &str = "instructions handshakes|bulk COUNT|MIB [rustls|s2n] [qlog]";

/// Logs of the connections.
#[derive(Clone, Copy, PartialEq)]
enum Logs {
    Off,
    On,
}

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (arguments, logs) = match &arguments[..] {
        [others @ .., "qlog"] => (others, Logs::On),
        all => (all, Logs::Off),
    };
    let (mode, amount, backend) = match *arguments {
        [mode, amount] | [mode, amount, "rustls"] => (mode, amount, Backend::Rustls),
        #[cfg(all(unix, feature = "s2n-tls"))]
        [mode, amount, "s2n"] => (mode, amount, Backend::S2nTls),
        _ => return Err(USAGE.into()),
    };
    let amount: usize = amount.parse()?;
    let mut world = World::new(backend, logs)?;
    match mode {
        "handshakes" => {
            world.handshakes(WARM_UP)?;
            let sent = measured(|| world.handshakes(amount))?;
            println!("connections={amount} packets_sent={sent}");
        }
        "bulk" => {
            world.connect()?;
            world.transfer(WARM_UP << 20)?;
            let before = world.stats();
            measured(|| world.transfer(amount << 20))?;
            let after = world.stats();
            let difference = |count: fn(&ConnectionStats) -> u64| {
                count(&after.0) - count(&before.0) + count(&after.1) - count(&before.1)
            };
            println!(
                "mib={amount} data_packets_sent={} packets_sent={} datagrams_sent={} packets_lost={}",
                after.0.packets_sent - before.0.packets_sent,
                difference(|stats| stats.packets_sent),
                difference(|stats| stats.datagrams_sent),
                difference(|stats| stats.packets_lost),
            );
        }
        _ => return Err(USAGE.into()),
    }
    Ok(())
}

/// Runs the measured work.
#[inline(never)]
fn measured<T>(work: impl FnOnce() -> T) -> T {
    black_box(work())
}

/// A client, a server and the link between them.
struct World {
    now: Instant,
    client: Machine,
    server: Machine,
    to_client: OneWay,
    to_server: OneWay,
    setup: Setup,
}

impl World {
    #[expect(clippy::disallowed_methods, reason = "virtual time needs a base")]
    fn new(backend: Backend, logs: Logs) -> Result<Self> {
        let (client, server) = setups(backend, logs)?;
        Ok(Self {
            now: Instant::now(),
            client: Machine::new(CLIENT, 1, None)?,
            server: Machine::new(SERVER, 2, Some(server))?,
            to_client: OneWay::default(),
            to_server: OneWay::default(),
            setup: client,
        })
    }

    /// Makes `count` connections one after the other, and returns the number of packets sent.
    fn handshakes(&mut self, count: usize) -> Result<u64> {
        let mut sent = 0;
        for _ in 0..count {
            self.connect()?;
            let (client, server) = self.stats();
            sent += client.packets_sent + server.packets_sent;
            self.disconnect()?;
        }
        Ok(sent)
    }

    fn connect(&mut self) -> Result<()> {
        self.client.app.confirmed = false;
        self.server.app.confirmed = false;
        let server = self.server.address;
        let made = self
            .client
            .endpoint
            .connect(self.now, &self.setup, server, SERVER_NAME)?;
        self.client.connection = Some(made);
        self.run_until(|world| world.client.app.confirmed && world.server.app.confirmed)
    }

    fn disconnect(&mut self) -> Result<()> {
        let now = self.now;
        if let Some((_, connection)) = &mut self.client.connection {
            connection.close(now, 0, bytes::Bytes::new());
        }
        self.run_until(|world| {
            world.client.connection.is_none() && world.server.connection.is_none()
        })
    }

    /// Sends this number of bytes on a new stream from the client to the server.
    fn transfer(&mut self, bytes: usize) -> Result<()> {
        self.client.app.to_send = bytes;
        self.server.app.received = 0;
        self.server.app.ended = false;
        let Some((_, connection)) = &mut self.client.connection else {
            return Err("there is no connection".into());
        };
        let streams = connection.streams();
        self.client.app.stream = streams.open(Direction::Uni);
        self.client.app.write(streams)?;
        self.run_until(|world| world.server.app.ended)?;
        if self.server.app.received != bytes {
            return Err("the server received another number of bytes".into());
        }
        Ok(())
    }

    /// Returns the counters of the client's and the server's end.
    fn stats(&self) -> (ConnectionStats, ConnectionStats) {
        let of = |machine: &Machine| {
            let connection = machine.connection.as_ref();
            connection.map_or_else(ConnectionStats::default, |(_, it)| it.stats())
        };
        (of(&self.client), of(&self.server))
    }

    fn run_until(&mut self, done: impl Fn(&Self) -> bool) -> Result<()> {
        loop {
            self.server
                .turn(self.now, &mut self.to_server, &mut self.to_client)?;
            self.client
                .turn(self.now, &mut self.to_client, &mut self.to_server)?;
            if done(self) {
                return Ok(());
            }
            let next = [
                self.client.next_timeout(),
                self.server.next_timeout(),
                self.to_client.next_arrival(),
                self.to_server.next_arrival(),
            ];
            let next = next.into_iter().flatten().min();
            self.now = self.now.max(next.ok_or("nothing is left to happen")?);
        }
    }
}

/// Returns the client's and the server's setup: an ECDSA P-256 certificate, and no session tickets.
fn setups(backend: Backend, logs: Logs) -> Result<(Setup, Setup)> {
    let made = rcgen::generate_simple_self_signed([SERVER_NAME.to_owned()])?;
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der())?;
    let certificate = made.cert.der().clone();
    let server = ServerOptions::new(Identity::from_der(vec![certificate.clone()], key))
        .alpn(["count"])
        .without_tickets();
    let client = ClientOptions::new()
        .alpn(["count"])
        .trust(Trust::roots_der([certificate]))
        .without_resumption();
    let mut transport = TransportConfig::new().initial_rtt(2 * ONE_WAY);
    if logs == Logs::On {
        let endless = Qlog::writer(std::io::sink()).max_log_bytes(u64::MAX);
        transport = transport.sampler(Arc::new(endless.start()?));
    }
    let transport = Arc::new(transport);
    Ok((
        Setup {
            provider: backend.client(&client)?,
            transport: transport.clone(),
        },
        Setup {
            provider: backend.server(&server)?,
            transport,
        },
    ))
}

/// One end: an endpoint with at most one connection.
struct Machine {
    address: SocketAddr,
    endpoint: Endpoint,
    connection: Option<(Slot, Connection)>,
    app: App,
    buffer: Vec<u8>,
}

impl Machine {
    fn new(address: &str, seed: u64, server: Option<Setup>) -> Result<Self> {
        Ok(Self {
            address: address.parse()?,
            endpoint: Endpoint::new(0, Box::new(SeededRandom::new(seed)), server),
            connection: None,
            app: App::default(),
            buffer: vec![0; 65_536],
        })
    }

    fn local(&self) -> Local {
        Local {
            socket: SocketId(0),
            ip: Some(self.address.ip()),
        }
    }

    /// Takes what arrived, does what is due, and sends.
    fn turn(&mut self, now: Instant, from: &mut OneWay, to: &mut OneWay) -> Result<()> {
        while let Some(mut train) = from.receive(now) {
            let arrival = Arrival {
                peer: train.source,
                local: self.local(),
                ecn: train.transmit.ecn,
            };
            let size = train.transmit.size;
            let segment = train.transmit.segment_size.unwrap_or(size);
            for datagram in train.bytes.chunks_mut(segment) {
                self.receive(now, &arrival, datagram)?;
            }
            from.spare.push(train.bytes);
        }
        if self.endpoint.next_timeout().is_some_and(|at| at <= now) {
            self.endpoint.on_timeout(now);
        }
        if let Some((_, connection)) = &mut self.connection
            && connection.next_timeout().is_some_and(|at| at <= now)
        {
            connection.on_timeout(now);
        }
        self.send(now, to)
    }

    fn receive(&mut self, now: Instant, arrival: &Arrival, datagram: &mut [u8]) -> Result<()> {
        match self.endpoint.on_datagram(now, arrival, datagram) {
            Routed::Connection(slot, packets) => match &mut self.connection {
                Some((ours, connection)) if *ours == slot => {
                    connection.on_packets(now, arrival, packets);
                }
                _ => return Err("a datagram for a connection that is gone".into()),
            },
            Routed::Incoming(incoming) => {
                self.connection = Some(self.endpoint.accept(now, *incoming, None)?);
            }
            Routed::Foreign(..)
            | Routed::Earlier(..)
            | Routed::Stray(_)
            | Routed::Consumed
            | Routed::Dropped(_) => {}
        }
        Ok(())
    }

    fn send(&mut self, now: Instant, to: &mut OneWay) -> Result<()> {
        while let Some((slot, connection)) = &mut self.connection {
            let alive = self.endpoint.service(*slot, connection);
            let mut quiet = true;
            while let Some(event) = connection.poll_event() {
                quiet = false;
                self.app.on_event(&event, connection)?;
            }
            if !alive {
                self.connection = None;
            } else if let Some(transmit) = connection.poll_transmit(now, &mut self.buffer, TRAIN) {
                to.send(now, self.address, &self.buffer, transmit);
            } else if quiet {
                break;
            }
        }
        while let Some(transmit) = self.endpoint.poll_transmit(now, &mut self.buffer) {
            to.send(now, self.address, &self.buffer, transmit);
        }
        Ok(())
    }

    fn next_timeout(&self) -> Option<Instant> {
        let connection = self.connection.as_ref();
        connection
            .and_then(|(_, connection)| connection.next_timeout())
            .into_iter()
            .chain(self.endpoint.next_timeout())
            .min()
    }
}

/// Writer to one stream and reader of another.
#[derive(Default)]
struct App {
    confirmed: bool,
    stream: Option<StreamId>,
    to_send: usize,
    received: usize,
    ended: bool,
    buffer: Vec<u8>,
}

impl App {
    fn on_event(&mut self, event: &Event, connection: &mut Connection) -> Result<()> {
        match event {
            Event::HandshakeComplete => {
                let agreed = connection.handshake().map(|it| it.key_exchange.to_string());
                if agreed.as_deref() != Some(GROUP) {
                    return Err(format!("agreed on {agreed:?}").into());
                }
            }
            Event::HandshakeConfirmed => self.confirmed = true,
            Event::Stream(StreamEvent::Writable(_)) => self.write(connection.streams())?,
            Event::Stream(StreamEvent::Opened(Direction::Uni)) => {
                while let Some(id) = connection.streams().accept(Direction::Uni) {
                    self.read(id, connection.streams())?;
                }
            }
            Event::Stream(StreamEvent::Readable(id)) => self.read(*id, connection.streams())?,
            _ => {}
        }
        Ok(())
    }

    fn write(&mut self, streams: &mut Streams) -> Result<()> {
        let Some(id) = self.stream else { return Ok(()) };
        while self.to_send > 0 {
            let (chunk, _) = CHUNK.split_at(self.to_send.min(CHUNK.len()));
            match streams.write(id, chunk) {
                Ok(taken) => self.to_send -= taken,
                Err(WriteError::Blocked) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        self.stream = None;
        streams
            .finish(id)
            .map_err(|_| "the stream closed under its writer".into())
    }

    fn read(&mut self, id: StreamId, streams: &mut Streams) -> Result<()> {
        self.buffer.resize(CHUNK.len(), 0);
        loop {
            match streams.read(id, &mut self.buffer) {
                Ok(0) => {
                    self.ended = true;
                    return Ok(());
                }
                Ok(read) => self.received += read,
                Err(ReadError::Blocked) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Datagrams that were sent together.
struct Train {
    at: Instant,
    source: SocketAddr,
    transmit: Transmit,
    bytes: Vec<u8>,
}

/// One direction of a link that loses nothing and keeps the order.
#[derive(Default)]
struct OneWay {
    trains: VecDeque<Train>,
    /// Time at which the last byte has left.
    free_at: Option<Instant>,
    /// Emptied buffers, kept for their memory.
    spare: Vec<Vec<u8>>,
}

impl OneWay {
    fn send(&mut self, now: Instant, source: SocketAddr, buffer: &[u8], transmit: Transmit) {
        let (sent, _) = buffer.split_at(transmit.size);
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(sent);
        let begin = self.free_at.map_or(now, |at| at.max(now));
        let end = begin + Duration::from_nanos(NANOSECONDS_PER_BYTE * transmit.size as u64);
        self.free_at = Some(end);
        self.trains.push_back(Train {
            at: end + ONE_WAY,
            source,
            transmit,
            bytes,
        });
    }

    fn receive(&mut self, now: Instant) -> Option<Train> {
        let due = self.trains.front().is_some_and(|train| train.at <= now);
        if due { self.trains.pop_front() } else { None }
    }

    fn next_arrival(&self) -> Option<Instant> {
        self.trains.front().map(|train| train.at)
    }
}

//! Does a fixed amount of work in the core, to count the instructions and allocations that it takes.
//!
//! Two endpoints talk to each other over a lossless link in memory, in virtual time and with
//! seeded randomness: there are no sockets, no threads and no sleeps. The TLS libraries draw
//! their keys from the system, so two counts of the same build differ a little.
//!
//! ```text
//! cargo build --release -p hybriq --example instructions
//! export GLIBC_TUNABLES=glibc.cpu.x86_rep_movsb_threshold=1073741824:glibc.cpu.x86_rep_stosb_threshold=1073741824
//! valgrind --tool=callgrind --collect-atstart=no --toggle-collect='instructions::counted*' \
//!     target/release/examples/instructions handshakes 100 rustls server
//! ```
//!
//! Without the tunables glibc copies with `rep movsb`, of which valgrind counts every byte.
//!
//! - `handshakes COUNT`: full handshakes with an ECDSA P-256 certificate, one after the other. Each
//!   connection lives from its first packet until both ends have forgotten it. The unit is a
//!   connection.
//! - `upload MIB`, `download MIB`: one stream from the client or the server over a connection that
//!   exists already, 1 Gbit/s and a round trip of 10 ms. The unit is a packet of the sender.
//! - `requests COUNT`: requests of 100 bytes and answers of 100 bytes, each on a stream of its own,
//!   one after the other. The unit is a request.
//!
//! Words that may follow, in any order: `rustls` or `s2n`; the group, `X25519MLKEM768` unless it is
//! `X25519`; `client` or `server`, if only one end is to be counted; `qlog`, with which both ends log
//! their connections to nowhere (the thread that writes is not counted).
//!
//! `.ci/instructions` makes the table in `quic/docs/instructions.md` of it.

#![expect(unsafe_code, reason = "an allocator cannot be wrapped without")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    collections::VecDeque,
    env,
    error::Error,
    hint::black_box,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use hybriq::{
    TransportConfig,
    qlog::Qlog,
    tls::{
        Backend, ClientOptions, Group, Identity, KeyExchange, PrivateKeyDer, ServerOptions, Side,
        Trust,
    },
};
use hybriq_proto::{
    connection::{Connection, Event},
    endpoint::{Arrival, Endpoint, Local, Routed, Setup, Slot, SocketId, Transmit},
    streams::{Direction, ReadError, StreamEvent, StreamId, Streams, WriteError},
};
use hybriq_sim::SeededRandom;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const CLIENT: &str = "10.0.0.1:50000";
const SERVER: &str = "192.0.2.1:4433";
const SERVER_NAME: &str = "localhost";

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

/// Bytes of a request, and of its answer.
const REQUEST: usize = 100;

const USAGE: &str = "instructions handshakes|upload|download|requests COUNT \
    [rustls|s2n] [X25519MLKEM768|X25519] [client|server] [qlog]";

/// Allocations so far.
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

struct Counting;

// SAFETY: every call goes to the system's allocator as it came; the counter changes nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Logs of the connections.
#[derive(Clone, Copy, PartialEq)]
enum Logs {
    Off,
    On,
}

/// What is set up, and which end is counted.
struct Options {
    backend: Backend,
    group: Group,
    client: Counted,
    server: Counted,
    logs: Logs,
}

impl Options {
    fn of(words: &[String]) -> Result<Self> {
        let mut options = Self {
            backend: Backend::Rustls,
            group: Group::X25519MLKEM768,
            client: Counted::Yes,
            server: Counted::Yes,
            logs: Logs::Off,
        };
        for word in words {
            match word.as_str() {
                "rustls" => options.backend = Backend::Rustls,
                #[cfg(all(unix, feature = "s2n-tls"))]
                "s2n" => options.backend = Backend::S2nTls,
                "X25519MLKEM768" => options.group = Group::X25519MLKEM768,
                "X25519" => options.group = Group::X25519,
                "client" => options.server = Counted::No,
                "server" => options.client = Counted::No,
                "qlog" => options.logs = Logs::On,
                _ => return Err(USAGE.into()),
            }
        }
        Ok(options)
    }

    fn key_exchange(&self) -> KeyExchange {
        if self.group.is_post_quantum() {
            KeyExchange::default()
        } else {
            KeyExchange::OnlyClassical
        }
    }
}

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [mode, amount, words @ ..] = arguments.as_slice() else {
        return Err(USAGE.into());
    };
    let amount: usize = amount.parse()?;
    let mut world = World::new(&Options::of(words)?)?;
    let units = match mode.as_str() {
        "handshakes" => {
            world.handshakes(WARM_UP)?;
            world.count();
            world.handshakes(amount)?;
            amount as u64
        }
        "upload" | "download" => {
            let from = if mode == "upload" {
                Side::Client
            } else {
                Side::Server
            };
            world.connect()?;
            world.transfer(from, WARM_UP << 20)?;
            let before = world.packets_sent(from);
            world.count();
            world.transfer(from, amount << 20)?;
            world.packets_sent(from) - before
        }
        "requests" => {
            world.connect()?;
            world.requests(WARM_UP)?;
            world.count();
            world.requests(amount)?;
            amount as u64
        }
        _ => return Err(USAGE.into()),
    };
    let allocations = world.client.allocations + world.server.allocations;
    println!("units={units} allocations={allocations}");
    Ok(())
}

/// Whether the work of one end is counted.
#[derive(Clone, Copy, PartialEq)]
enum Counted {
    No,
    Yes,
}

/// Lets an end do its work, which is counted.
#[inline(never)]
fn counted(machine: &mut Machine, now: Instant, from: &mut OneWay, to: &mut OneWay) -> Result<()> {
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    let done = machine.turn(now, from, to);
    machine.allocations += ALLOCATIONS.load(Ordering::Relaxed) - before;
    black_box(done)
}

/// Lets the client begin a connection, which is counted.
#[inline(never)]
fn counted_start(world: &mut World) -> Result<()> {
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    let done = world.start();
    world.client.allocations += ALLOCATIONS.load(Ordering::Relaxed) - before;
    black_box(done)
}

/// A client, a server and the link between them.
struct World {
    now: Instant,
    client: Machine,
    server: Machine,
    to_client: OneWay,
    to_server: OneWay,
    setup: Setup,
    group: Group,
    /// Ends whose work will be counted.
    ends: (Counted, Counted),
}

impl World {
    #[expect(clippy::disallowed_methods, reason = "virtual time needs a base")]
    fn new(options: &Options) -> Result<Self> {
        let (client, server) = setups(options)?;
        Ok(Self {
            now: Instant::now(),
            client: Machine::new(CLIENT, 1, None)?,
            server: Machine::new(SERVER, 2, Some(server))?,
            to_client: OneWay::default(),
            to_server: OneWay::default(),
            setup: client,
            group: options.group,
            ends: (options.client, options.server),
        })
    }

    /// Begins to count.
    fn count(&mut self) {
        (self.client.counted, self.server.counted) = self.ends;
    }

    /// Makes `count` connections one after the other.
    fn handshakes(&mut self, count: usize) -> Result<()> {
        for _ in 0..count {
            self.connect()?;
            self.disconnect()?;
        }
        Ok(())
    }

    fn connect(&mut self) -> Result<()> {
        self.client.app.confirmed = false;
        self.server.app.confirmed = false;
        match self.client.counted {
            Counted::Yes => counted_start(self)?,
            Counted::No => self.start()?,
        }
        self.run_until(|world| world.client.app.confirmed && world.server.app.confirmed)?;
        let connection = self.client.connection.as_ref();
        let agreed = connection.and_then(|(_, it)| it.handshake());
        if agreed.is_none_or(|it| it.key_exchange.group != self.group) {
            return Err(format!("agreed on {agreed:?}").into());
        }
        Ok(())
    }

    /// Begins a connection, with its ClientHello.
    fn start(&mut self) -> Result<()> {
        let (client, server) = (&mut self.client, self.server.address);
        let made = client
            .endpoint
            .connect(self.now, &self.setup, server, SERVER_NAME)?;
        client.connection = Some(made);
        Ok(())
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

    /// Sends this number of bytes on a new stream of one end.
    fn transfer(&mut self, from: Side, bytes: usize) -> Result<()> {
        let (sender, receiver) = match from {
            Side::Client => (&mut self.client, &mut self.server),
            Side::Server => (&mut self.server, &mut self.client),
        };
        receiver.app.received = 0;
        receiver.app.ended = false;
        let Some((_, connection)) = &mut sender.connection else {
            return Err("there is no connection".into());
        };
        let streams = connection.streams();
        sender.app.to_send = bytes;
        sender.app.stream = streams.open(Direction::Uni);
        sender.app.write(streams)?;
        self.run_until(|world| world.end(from.peer()).app.ended)?;
        if self.end(from.peer()).app.received != bytes {
            return Err("another number of bytes came".into());
        }
        Ok(())
    }

    /// Makes `count` requests one after the other.
    fn requests(&mut self, count: usize) -> Result<()> {
        for _ in 0..count {
            self.client.app.received = 0;
            self.client.app.ended = false;
            let Some((_, connection)) = &mut self.client.connection else {
                return Err("there is no connection".into());
            };
            let streams = connection.streams();
            self.client.app.to_send = REQUEST;
            let stream = streams.open(Direction::Bidi);
            self.client.app.stream = stream;
            self.client.app.write(streams)?;
            // Whoever was told that there is nothing to read is told when there is.
            self.client
                .app
                .read(stream.ok_or("no stream may be opened")?, streams)?;
            self.run_until(|world| world.client.app.ended)?;
            if self.client.app.received != REQUEST {
                return Err("another number of bytes came".into());
            }
        }
        Ok(())
    }

    const fn end(&self, side: Side) -> &Machine {
        match side {
            Side::Client => &self.client,
            Side::Server => &self.server,
        }
    }

    /// Returns the number of packets that one end sent over its connection.
    fn packets_sent(&self, side: Side) -> u64 {
        let connection = self.end(side).connection.as_ref();
        connection.map_or(0, |(_, it)| it.stats().packets_sent)
    }

    fn run_until(&mut self, done: impl Fn(&Self) -> bool) -> Result<()> {
        loop {
            let (to_server, to_client) = (&mut self.to_server, &mut self.to_client);
            self.server.work(self.now, to_server, to_client)?;
            self.client.work(self.now, to_client, to_server)?;
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
fn setups(options: &Options) -> Result<(Setup, Setup)> {
    let made = rcgen::generate_simple_self_signed([SERVER_NAME.to_owned()])?;
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der())?;
    let certificate = made.cert.der().clone();
    let server = ServerOptions::new(Identity::from_der(vec![certificate.clone()], key))
        .alpn(["count"])
        .without_tickets();
    let client = ClientOptions::new()
        .alpn(["count"])
        .key_exchange(options.key_exchange())
        .trust(Trust::roots_der([certificate]))
        .without_resumption();
    let mut transport = TransportConfig::new().initial_rtt(2 * ONE_WAY);
    if options.logs == Logs::On {
        let endless = Qlog::writer(std::io::sink()).max_log_bytes(u64::MAX);
        transport = transport.sampler(Arc::new(endless.start()?));
    }
    let transport = Arc::new(transport);
    Ok((
        Setup {
            provider: options.backend.client(&client)?,
            transport: transport.clone(),
        },
        Setup {
            provider: options.backend.server(&server)?,
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
    counted: Counted,
    /// Allocations that were counted.
    allocations: u64,
}

impl Machine {
    fn new(address: &str, seed: u64, server: Option<Setup>) -> Result<Self> {
        Ok(Self {
            address: address.parse()?,
            endpoint: Endpoint::new(0, Box::new(SeededRandom::new(seed)), server),
            connection: None,
            app: App::default(),
            buffer: vec![0; 65_536],
            counted: Counted::No,
            allocations: 0,
        })
    }

    fn local(&self) -> Local {
        Local {
            socket: SocketId(0),
            ip: Some(self.address.ip()),
        }
    }

    /// Does a turn's work, which is counted if it should be.
    fn work(&mut self, now: Instant, from: &mut OneWay, to: &mut OneWay) -> Result<()> {
        match self.counted {
            Counted::Yes => counted(self, now, from, to),
            Counted::No => self.turn(now, from, to),
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
            Event::HandshakeConfirmed => self.confirmed = true,
            Event::Stream(StreamEvent::Writable(_)) => self.write(connection.streams())?,
            Event::Stream(StreamEvent::Opened(Direction::Uni)) => {
                while let Some(id) = connection.streams().accept(Direction::Uni) {
                    self.read(id, connection.streams())?;
                }
            }
            Event::Stream(StreamEvent::Opened(Direction::Bidi)) => {
                while let Some(id) = connection.streams().accept(Direction::Bidi) {
                    self.stream = Some(id);
                    self.to_send = REQUEST;
                    self.read(id, connection.streams())?;
                    self.write(connection.streams())?;
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

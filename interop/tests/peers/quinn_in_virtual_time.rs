//! quinn's core against ours in virtual time: what a path of any kind does to early data past a
//! Retry, from seeds.
#![expect(
    clippy::unwrap_used,
    reason = "a scenario that cannot go on has failed"
)]

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    net::SocketAddr,
    sync::{Arc, Mutex, OnceLock},
    time::{Duration, Instant},
};

use bytes::BytesMut;
use hybriq::{Backend, Identity, fleet::AddressValidation, tls::PrivateKeyDer};
use hybriq_proto::{TransportConfig, endpoint::Setup, remembered::token::Ring};
use hybriq_sim::{Answer, Datagram, Echo, Hop, Network, Node, Rng, SERVER_ADDRESS, World};
use hybriq_tls::ServerOptions;
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig,
    Event, StreamId, Transmit, crypto::rustls::QuicClientConfig,
};

/// Address of the client.
const CLIENT: SocketAddr = SocketAddr::new(
    std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 9, 0, 1)),
    4000,
);
/// Bytes that the client sends early and wants back.
const BYTES: usize = 100_000;
/// Step of virtual time.
const STEP: Duration = Duration::from_millis(1);
/// Longest time for an exchange: less than any idle timeout.
const LIMIT: Duration = Duration::from_secs(20);

struct Setups {
    server: Setup,
    client: ClientConfig,
}

fn setups() -> Setups {
    static PARTS: OnceLock<(Identity, rustls::pki_types::CertificateDer<'static>)> =
        OnceLock::new();
    let (identity, root) = PARTS.get_or_init(|| {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let root = made.cert.der().clone();
        (Identity::from_der(vec![root.clone()], key), root)
    });
    let options = ServerOptions::new(identity.clone())
        .alpn(["sim"])
        .accept_early_data();
    let server = Setup {
        provider: Backend::Rustls.server(&options).unwrap(),
        transport: Arc::new(TransportConfig::new()),
    };
    let mut roots = rustls::RootCertStore::empty();
    roots.add(root.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"sim".to_vec()];
    tls.enable_early_data = true;
    let client = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).unwrap()));
    Setups { server, client }
}

/// Catches what the server sends.
#[derive(Clone, Default)]
struct Tap(Arc<Mutex<Vec<Datagram>>>);

impl Node for Tap {
    fn on_datagram(&mut self, datagram: Datagram, hop: &mut Hop<'_>) {
        if hop.toward.is_server() {
            hop.forward(datagram);
        } else {
            self.0.lock().unwrap().push(datagram);
        }
    }
}

/// A datagram under way: due time, number, direction.
type Flying = Reverse<(Instant, u64, bool, Vec<u8>)>;

/// The path, which loses and delays.
struct Path {
    flying: BinaryHeap<Flying>,
    rng: Rng,
    count: u64,
    /// One in this many is lost; 0 loses none.
    loss: u64,
    jitter: u64,
}

impl Path {
    fn send(&mut self, now: Instant, to_server: bool, payload: Vec<u8>) {
        self.count += 1;
        if self.loss > 0 && self.rng.below(self.loss) == 0 {
            return;
        }
        let wait = Duration::from_micros(2000 + self.rng.below(1 + self.jitter));
        self.flying
            .push(Reverse((now + wait, self.count, to_server, payload)));
    }

    fn arrived(&mut self, now: Instant) -> Option<(bool, Vec<u8>)> {
        if self.flying.peek().is_some_and(|it| it.0.0 <= now) {
            let Reverse((_, _, to_server, payload)) = self.flying.pop()?;
            return Some((to_server, payload));
        }
        None
    }
}

struct Client {
    endpoint: Endpoint,
    handle: ConnectionHandle,
    connection: Connection,
    stream: Option<StreamId>,
    written: usize,
    finished: bool,
    read: usize,
    whole: bool,
    lost: Option<String>,
    connected: bool,
}

struct Scene {
    world: World,
    tap: Tap,
    path: Path,
    log: bool,
}

impl Scene {
    fn new(seed: u64, server: &Setup, loss: u64, jitter: u64) -> Self {
        let tap = Tap::default();
        let mut world = World::new(Network::new(seed).node(tap.clone()), server.clone());
        world.expect_hostile_clients();
        let host = world.server_mut();
        host.validate_addresses(Arc::new(Ring::new(&[1; 32])), AddressValidation::Never);
        host.on_incoming(|incoming| {
            if incoming.may_retry() {
                Answer::Retry
            } else {
                Answer::Accept(None, Box::new(Echo::new()))
            }
        });
        let path = Path {
            flying: BinaryHeap::new(),
            rng: Rng::nth(seed, 7),
            count: 0,
            loss,
            jitter,
        };
        Self {
            world,
            tap,
            path,
            log: std::env::var("HYBRIQ_LOG").is_ok(),
        }
    }

    fn connect(&mut self, config: &ClientConfig) -> Client {
        let mut endpoint = Endpoint::new(Arc::new(EndpointConfig::default()), None, false, None);
        let now = self.world.instant();
        let (handle, connection) = endpoint
            .connect(now, config.clone(), SERVER_ADDRESS, "localhost")
            .unwrap();
        Client {
            endpoint,
            handle,
            connection,
            stream: None,
            written: 0,
            finished: false,
            read: 0,
            whole: false,
            lost: None,
            connected: false,
        }
    }

    /// Sends what the client has to send.
    fn transmit(&mut self, client: &mut Client) {
        let now = self.world.instant();
        loop {
            while let Some(event) = client.connection.poll_endpoint_events() {
                if let Some(event) = client.endpoint.handle_event(client.handle, event) {
                    client.connection.handle_event(event);
                }
            }
            let mut buffer = Vec::new();
            let Some(Transmit {
                size, segment_size, ..
            }) = client.connection.poll_transmit(now, 1, &mut buffer)
            else {
                return;
            };
            buffer.truncate(size);
            for payload in buffer.chunks(segment_size.unwrap_or(size)) {
                if self.log {
                    println!(
                        "{:?} > {} {:02x}",
                        self.world.now(),
                        payload.len(),
                        payload[0]
                    );
                }
                self.path.send(now, true, payload.to_vec());
            }
        }
    }

    fn step(&mut self, client: &mut Client) {
        while let Some((to_server, payload)) = self.path.arrived(self.world.instant()) {
            let now = self.world.instant();
            if to_server {
                self.world
                    .deliver(Datagram::new(CLIENT, SERVER_ADDRESS, payload));
                continue;
            }
            if self.log {
                println!(
                    "{:?} < {} {:02x}",
                    self.world.now(),
                    payload.len(),
                    payload[0]
                );
            }
            let mut buffer = Vec::new();
            let event = client.endpoint.handle(
                now,
                SERVER_ADDRESS,
                None,
                None,
                BytesMut::from(&payload[..]),
                &mut buffer,
            );
            if let Some(DatagramEvent::ConnectionEvent(_, event)) = event {
                client.connection.handle_event(event);
            }
        }
        self.world.run_for(Duration::ZERO);
        let now = self.world.instant();
        if client.connection.poll_timeout().is_some_and(|at| at <= now) {
            client.connection.handle_timeout(now);
        }
        client.work();
        self.transmit(client);
        self.world.run_for(STEP);
        let now = self.world.instant();
        let sent: Vec<Datagram> = self.tap.0.lock().unwrap().drain(..).collect();
        for datagram in sent {
            if datagram.destination == CLIENT {
                self.path.send(now, false, datagram.payload);
            }
        }
    }

    /// Runs an exchange; returns what is wrong after its time.
    fn run(&mut self, client: &mut Client) -> Result<(), String> {
        let end = self.world.now() + LIMIT;
        while self.world.now() < end {
            self.step(client);
            if client.whole {
                return Ok(());
            }
            if let Some(reason) = &client.lost {
                return Err(format!("lost: {reason}"));
            }
        }
        Err(format!(
            "connected: {}, written {}, read {}",
            client.connected, client.written, client.read
        ))
    }
}

impl Client {
    /// Writes, reads and takes events.
    fn work(&mut self) {
        while let Some(event) = self.connection.poll() {
            match event {
                Event::Connected => self.connected = true,
                Event::ConnectionLost { reason } => self.lost = Some(reason.to_string()),
                _ => {}
            }
        }
        let Some(id) = self.stream else {
            if self.connection.has_0rtt() || self.connected {
                self.stream = self.connection.streams().open(Dir::Bi);
            }
            if self.stream.is_some() {
                self.work();
            }
            return;
        };
        let chunk = [5; 8192];
        while self.written < BYTES {
            let some = chunk.len().min(BYTES - self.written);
            match self.connection.send_stream(id).write(&chunk[..some]) {
                Ok(written) => self.written += written,
                Err(_) => break,
            }
        }
        if self.written == BYTES && !self.finished {
            self.finished = self.connection.send_stream(id).finish().is_ok();
        }
        let mut stream = self.connection.recv_stream(id);
        if let Ok(mut chunks) = stream.read(true) {
            loop {
                match chunks.next(usize::MAX) {
                    Ok(Some(chunk)) => self.read += chunk.bytes.len(),
                    Ok(None) => {
                        self.whole = self.read == BYTES;
                        break;
                    }
                    Err(_) => break,
                }
            }
            let _ = chunks.finalize();
        }
    }
}

/// Exchanges data twice, the second time in 0-RTT packets, past a Retry each time.
fn visit_twice(seed: u64) -> Result<(), String> {
    let Setups { server, client } = setups();
    let losses = [0, 30, 10, 4];
    let jitters = [0, 500, 3000];
    let loss = losses[(seed % 4) as usize];
    let jitter = jitters[(seed / 4 % 3) as usize];
    let mut scene = Scene::new(seed, &server, 0, 0);
    let mut first = scene.connect(&client);
    scene.run(&mut first)?;
    for _ in 0..100 {
        scene.step(&mut first);
    }
    (scene.path.loss, scene.path.jitter) = (loss, jitter);
    let mut second = scene.connect(&client);
    if !second.connection.has_0rtt() {
        return Err("no ticket".to_owned());
    }
    let told = scene.run(&mut second);
    let early = second.connection.accepted_0rtt();
    told.map_err(|error| {
        format!("seed {seed}, loss {loss}, jitter {jitter}, early {early}: {error}")
    })
}

/// Returns what went wrong with these seeds.
fn failures(seeds: impl Iterator<Item = u64>) -> Vec<String> {
    seeds.filter_map(|seed| visit_twice(seed).err()).collect()
}

/// Without the acknowledgement that a server repeats with its flight, a fifth of these end with
/// quinn's idle timeout: its window is full, and the packets that would open it overtook the keys.
#[test]
fn early_data_gets_past_a_retry_in_any_order() {
    let failed = failures((0..48).map(|number| 4 * number));
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// quinn 0.11 has no probe timer while its window is full of 0-RTT packets. If half of its
/// ClientHello is lost then, and the other half was acknowledged before more came, it waits until
/// its idle timeout, and no server can help it. `HYBRIQ_SEEDS=0-480` names the seeds.
#[test]
#[ignore = "quinn 0.11 gives up in about one of fifteen"]
fn early_data_gets_past_a_retry_on_paths_that_lose() {
    let wanted = std::env::var("HYBRIQ_SEEDS").ok();
    let (from, to) = wanted.as_deref().unwrap_or("0-48").split_once('-').unwrap();
    let failed = failures(from.parse().unwrap()..to.parse().unwrap());
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

//! Tests of two connections over a perfect network, from datagrams to stream bytes.

mod ack_frequency;
mod adversary;
mod bad_acks;
mod cids;
mod datagrams;
mod early_data;
mod forged;
mod headers;
mod hostile;
mod key_update;
mod lost_hello;
mod mtu;
mod new_token;
mod owners;
mod path_end;
mod paths;
mod refused;
mod release;
mod reset;
mod restart;
mod retry;
mod trains;
mod wrong_packets;

use std::{
    net::SocketAddr,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use bytes::Bytes;
use hybriq_tls::{
    Backend, ClientOptions, Group, Identity, KeyExchange, PrivateKeyDer, ServerOptions, Trust,
};

use super::{Connection, Event};
use crate::{
    config::TransportConfig,
    endpoint::{Arrival, Endpoint, Routed, Setup, Slot, Transmit},
    owners::streams::{Direction, ReadError, StreamEvent},
    testing::SystemRandom,
    wire::{
        error::{By, ConnectionError},
        limits,
        params::Params,
    },
};

impl super::establish::opening::Opening {
    const fn is_over(&self) -> bool {
        self.0.is_none()
    }

    fn remembered_mut(&mut self) -> Option<&mut Params> {
        self.0.as_mut()?.remembered.as_deref_mut()
    }

    /// Returns the number of packets that wait for keys.
    fn kept_packets(&self) -> usize {
        self.0.as_ref().map_or(0, |parts| parts.kept.len())
    }
}

fn client_address() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 50_000))
}

fn server_address() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 2], 443))
}

fn identity() -> &'static (Identity, Trust) {
    static IDENTITY: OnceLock<(Identity, Trust)> = OnceLock::new();
    IDENTITY.get_or_init(|| {
        let made = rcgen::generate_simple_self_signed(["server.test".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let certificate = made.cert.der().clone();
        let identity = Identity::from_der(vec![certificate.clone()], key);
        (identity, Trust::roots_der(vec![certificate]))
    })
}

fn client_setup(policy: KeyExchange, backend: Backend) -> Setup {
    let (_, trust) = identity().clone();
    let options = ClientOptions::new()
        .alpn(["test"])
        .trust(trust)
        .key_exchange(policy);
    Setup {
        provider: backend.client(&options).unwrap(),
        transport: Arc::new(TransportConfig::new()),
    }
}

struct Side {
    endpoint: Endpoint,
    connection: Option<(Slot, Connection)>,
    address: SocketAddr,
}

impl Side {
    fn transmit(&mut self, now: Instant) -> Vec<Vec<u8>> {
        let mut out = vec![0; 65_536];
        let mut datagrams = Vec::new();
        let mut split = |out: &[u8], transmit: Transmit| {
            let size = transmit.segment_size.unwrap_or(transmit.size);
            datagrams.extend(out[..transmit.size].chunks(size).map(<[u8]>::to_vec));
        };
        while let Some(transmit) = self.endpoint.poll_transmit(now, &mut out) {
            split(&out, transmit);
        }
        if let Some((slot, connection)) = &mut self.connection {
            assert!(self.endpoint.service(*slot, connection));
            while let Some(transmit) = connection.poll_transmit(now, &mut out, 10) {
                split(&out, transmit);
            }
        }
        datagrams
    }

    fn receive(&mut self, now: Instant, from: SocketAddr, datagram: &mut [u8]) {
        let arrival = Arrival {
            peer: from,
            local: crate::wire::udp::Local::default(),
            ecn: None,
        };
        match self.endpoint.on_datagram(now, &arrival, datagram) {
            Routed::Connection(_, packets) => {
                let (_, connection) = self.connection.as_mut().unwrap();
                connection.on_packets(now, &arrival, packets);
            }
            Routed::Incoming(incoming) => {
                self.connection = Some(self.endpoint.accept(now, *incoming, None).unwrap());
            }
            Routed::Consumed => {}
            other => panic!("{other:?} at {}", self.address),
        }
    }

    fn connection(&mut self) -> &mut Connection {
        &mut self.connection.as_mut().unwrap().1
    }

    /// Returns true if the connection is not drained.
    fn endpoint_keeps(&mut self) -> bool {
        let (slot, connection) = self.connection.as_mut().unwrap();
        self.endpoint.service(*slot, connection)
    }

    fn close_reason(&mut self) -> Option<ConnectionError> {
        self.events().into_iter().find_map(|event| match event {
            Event::Closed(reason) => Some(reason),
            _ => None,
        })
    }

    fn events(&mut self) -> Vec<Event> {
        let connection = self.connection();
        std::iter::from_fn(|| connection.poll_event()).collect()
    }
}

fn server_options() -> ServerOptions {
    let (identity, _) = identity().clone();
    ServerOptions::new(identity).alpn(["test"])
}

struct Pair {
    client: Side,
    server: Side,
    now: Instant,
    datagrams: [usize; 2],
}

impl Pair {
    fn new(client: KeyExchange, server: KeyExchange, backends: [Backend; 2]) -> Self {
        let server_options = server_options().key_exchange(server);
        Self::with(client, &server_options, backends)
    }

    fn without_tickets() -> Self {
        let server_options = server_options().without_tickets();
        Self::with(
            KeyExchange::default(),
            &server_options,
            [Backend::Rustls; 2],
        )
    }

    /// Creates a pair; `set_up` changes the client's endpoint before it connects.
    fn with_client(set_up: impl FnOnce(&mut Endpoint)) -> Self {
        let mut pair = Self::without_tickets();
        let mut endpoint = Endpoint::new(0, Box::new(SystemRandom::new()), None);
        set_up(&mut endpoint);
        let setup = client_setup(KeyExchange::default(), Backend::Rustls);
        let started = endpoint.connect(pair.now, &setup, server_address(), "server.test");
        pair.client.connection = Some(started.unwrap());
        pair.client.endpoint = endpoint;
        pair
    }

    fn with_server_transport(transport: TransportConfig) -> Self {
        let mut pair = Self::without_tickets();
        let setup = Setup {
            provider: Backend::Rustls.server(&server_options()).unwrap(),
            transport: Arc::new(transport),
        };
        pair.server.endpoint = Endpoint::new(0, Box::new(SystemRandom::new()), Some(setup));
        pair
    }

    fn with(client: KeyExchange, server_options: &ServerOptions, backends: [Backend; 2]) -> Self {
        let server_setup = Setup {
            provider: backends[1].server(server_options).unwrap(),
            transport: Arc::new(TransportConfig::new()),
        };
        Self::between(&client_setup(client, backends[0]), server_setup)
    }

    /// Creates a client and a server with separate transport configurations.
    fn configured(client: TransportConfig, server: TransportConfig) -> Self {
        let client_setup = Setup {
            transport: Arc::new(client),
            ..client_setup(KeyExchange::default(), Backend::Rustls)
        };
        let server_setup = Setup {
            provider: Backend::Rustls.server(&server_options()).unwrap(),
            transport: Arc::new(server),
        };
        Self::between(&client_setup, server_setup)
    }

    fn between(client_setup: &Setup, server_setup: Setup) -> Self {
        #[expect(clippy::disallowed_methods, reason = "a base for virtual time")]
        let now = Instant::now();
        let mut endpoint = Endpoint::new(0, Box::new(SystemRandom::new()), None);
        let started = endpoint.connect(now, client_setup, server_address(), "server.test");
        let client = Side {
            endpoint,
            connection: Some(started.unwrap()),
            address: client_address(),
        };
        let server = Side {
            endpoint: Endpoint::new(0, Box::new(SystemRandom::new()), Some(server_setup)),
            connection: None,
            address: server_address(),
        };
        Self {
            client,
            server,
            now,
            datagrams: [0; 2],
        }
    }

    fn step(&mut self) -> bool {
        self.now += Duration::from_millis(1);
        let to_server = self.client.transmit(self.now);
        let to_client = self.server.transmit(self.now);
        self.now += Duration::from_millis(10);
        for datagram in &to_server {
            self.server
                .receive(self.now, client_address(), &mut datagram.clone());
        }
        for datagram in &to_client {
            self.client
                .receive(self.now, server_address(), &mut datagram.clone());
        }
        self.datagrams[0] += to_server.len();
        self.datagrams[1] += to_client.len();
        !(to_server.is_empty() && to_client.is_empty())
    }

    fn run(&mut self) {
        let mut steps = 0;
        while self.step() {
            steps += 1;
            assert!(steps < 10_000, "no end");
        }
    }
}

impl Pair {
    fn run_until_closed(&mut self) {
        while !self.client.connection().is_closed() {
            assert!(self.step(), "nothing happens any more");
        }
    }
}

const BACKENDS: [Backend; 2] = [Backend::Rustls, Backend::S2nTls];

#[test]
fn a_handshake_over_any_two_providers_agrees_on_x25519mlkem768() {
    for client in BACKENDS {
        for server in BACKENDS {
            let mut pair = Pair::new(
                KeyExchange::default(),
                KeyExchange::default(),
                [client, server],
            );
            pair.run();
            for side in [&mut pair.client, &mut pair.server] {
                let events = side.events();
                assert!(
                    events.contains(&Event::HandshakeConfirmed),
                    "{client} {server} {events:?}"
                );
                let agreed = side.connection().handshake().unwrap();
                assert_eq!(agreed.key_exchange.group, Group::X25519MLKEM768);
                assert!(!agreed.key_exchange.hello_retry);
                assert_eq!(agreed.alpn.as_deref(), Some(&b"test"[..]));
            }
        }
    }
}

#[test]
fn a_byte_each_way_and_a_close_take_few_datagrams() {
    let mut pair = Pair::new(
        KeyExchange::default(),
        KeyExchange::default(),
        [Backend::Rustls; 2],
    );
    while !pair.client.events().contains(&Event::HandshakeComplete) {
        assert!(pair.step());
    }
    let streams = pair.client.connection().streams();
    let id = streams.open(Direction::Bidi).unwrap();
    assert_eq!(streams.write(id, b"?"), Ok(1));
    streams.finish(id).unwrap();
    assert!(pair.step());
    assert!(
        pair.server
            .events()
            .contains(&Event::Stream(StreamEvent::Opened(Direction::Bidi)))
    );
    let streams = pair.server.connection().streams();
    assert_eq!(streams.accept(Direction::Bidi), Some(id));
    let mut byte = [0; 8];
    assert_eq!(streams.read(id, &mut byte), Ok(1));
    assert_eq!(streams.read(id, &mut byte), Ok(0));
    assert_eq!(streams.write(id, b"!"), Ok(1));
    streams.finish(id).unwrap();
    assert!(pair.step());
    let streams = pair.client.connection().streams();
    assert_eq!(streams.read(id, &mut byte), Ok(1));
    assert_eq!(streams.read(id, &mut byte), Ok(0));
    let now = pair.now;
    pair.client
        .connection()
        .close(now, 7, Bytes::from_static(b"done"));
    pair.run();
    let closed = Event::Closed(ConnectionError::Application {
        by: By::Peer,
        code: 7,
        reason: Bytes::from_static(b"done"),
    });
    assert!(pair.server.events().contains(&closed));
    assert_eq!(pair.datagrams, [4, 3]);
}

#[test]
fn a_mebibyte_arrives_whole() {
    let mut pair = Pair::new(
        KeyExchange::default(),
        KeyExchange::default(),
        [Backend::Rustls; 2],
    );
    while !pair.client.events().contains(&Event::HandshakeComplete) {
        assert!(pair.step());
    }
    let data: Vec<u8> = (0..1_u32 << 20)
        .map(|at| (at * 7 + at / 251) as u8)
        .collect();
    let id = pair
        .client
        .connection()
        .streams()
        .open(Direction::Uni)
        .unwrap();
    let (mut written, mut received) = (0, Vec::new());
    let mut buffer = vec![0; 65_536];
    for _ in 0..10_000 {
        let streams = pair.client.connection().streams();
        if written < data.len() {
            written += streams.write(id, &data[written..]).unwrap_or(0);
            if written == data.len() {
                streams.finish(id).unwrap();
            }
        }
        pair.step();
        pair.server.events();
        let streams = pair.server.connection().streams();
        streams.accept(Direction::Uni);
        loop {
            match streams.read(id, &mut buffer) {
                Ok(0) => {
                    assert!(received == data);
                    return;
                }
                Ok(len) => received.extend_from_slice(&buffer[..len]),
                Err(ReadError::Blocked | ReadError::Closed) => break,
                Err(error) => panic!("{error}"),
            }
        }
    }
    panic!("{} of {} bytes arrived", received.len(), data.len());
}

/// Proves: security 5 undecryptable-packets-are-bounded
/// Proves: rfc9001 5.7 1rtt-waits-for-the-handshake
#[test]
fn packets_that_come_before_their_keys_wait_and_are_bounded() {
    let mut pair = Pair::new(
        KeyExchange::default(),
        KeyExchange::default(),
        [Backend::Rustls; 2],
    );
    pair.now += Duration::from_millis(1);
    for datagram in pair.client.transmit(pair.now) {
        pair.server
            .receive(pair.now, client_address(), &mut datagram.clone());
    }
    let flight = pair.server.transmit(pair.now);
    assert_eq!(flight.len(), 2, "the Handshake packet is in the second");
    // Only the second arrives, many times: its Handshake packets have no keys yet.
    for _ in 0..3 * limits::UNDECRYPTABLE_PACKETS {
        pair.client
            .receive(pair.now, server_address(), &mut flight[1].clone());
    }
    assert_eq!(
        pair.client.connection().opening.kept_packets(),
        limits::UNDECRYPTABLE_PACKETS
    );
    pair.client
        .receive(pair.now, server_address(), &mut flight[0].clone());
    assert_eq!(pair.client.connection().opening.kept_packets(), 0);
    assert!(pair.client.events().contains(&Event::HandshakeComplete));
}

/// Proves: rfc9000 10.2.1 closing-is-rate-limited
#[test]
fn a_closing_connection_answers_ever_more_rarely() {
    let mut pair = Pair::new(
        KeyExchange::default(),
        KeyExchange::default(),
        [Backend::Rustls; 2],
    );
    pair.run();
    let now = pair.now;
    pair.server.connection().streams().open(Direction::Uni);
    pair.client.connection().close(now, 1, Bytes::new());
    assert_eq!(pair.client.transmit(now).len(), 1);
    let mut junk = vec![0x40; 40];
    let cid = pair.client.connection().cids().local().next().unwrap();
    junk[1..9].copy_from_slice(cid.as_bytes());
    let answers: usize = (0..64)
        .map(|_| {
            pair.client
                .receive(now, server_address(), &mut junk.clone());
            pair.client.transmit(now).len()
        })
        .sum();
    assert_eq!(answers, 7, "after 1, 2, 4, … 64 datagrams");
}

#[test]
fn a_timeout_longer_than_time_itself_is_none() {
    let mut pair = forged::pair();
    let setup = Setup {
        transport: Arc::new(
            TransportConfig::new()
                .handshake_timeout(Duration::MAX)
                .idle_timeout(Some(Duration::MAX)),
        ),
        ..client_setup(KeyExchange::default(), Backend::Rustls)
    };
    let endpoint = &mut pair.client.endpoint;
    let started = endpoint.connect(pair.now, &setup, server_address(), "server.test");
    pair.client.connection = Some(started.unwrap());
    pair.run();
    assert!(pair.client.connection().handshake().is_some());
}

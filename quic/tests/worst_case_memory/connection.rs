//! Parts of the worst case that count once for each connection.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use hybriq::{
    Backend, Identity, ServerConfig, TransportConfig, Trust,
    stats::WorstCaseMemory,
    tls::{CertificateDer, PrivateKeyDer},
};
use hybriq_proto::{
    endpoint::Setup,
    owners::streams::Direction,
    wire::{
        frame::{Stream, StreamId},
        limits,
        packet::Space,
    },
};
use hybriq_sim::{Answer, Datagram, Forge, Idle, Network, SERVER_ADDRESS, World, ms};
use hybriq_tls::ClientOptions;
use hybriq_tls::Side;

use super::{allocated, reaches, since};

/// Configuration of a server, and a client that it trusts, with a configuration of its own.
fn both(transport: TransportConfig, client_transport: TransportConfig) -> (ServerConfig, Setup) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let root: CertificateDer<'static> = made.cert.der().clone();
    let identity = Identity::from_der(vec![root.clone()], key);
    let server = ServerConfig::new(identity)
        .alpn(["sim"])
        .without_tickets()
        .transport(transport);
    let client = ClientOptions::new()
        .alpn(["sim"])
        .trust(Trust::roots_der(vec![root]));
    let client = Setup {
        provider: Backend::Rustls.client(&client).unwrap(),
        transport: Arc::new(client_transport),
    };
    (server, client)
}

/// A hostile client of a server whose application reads nothing.
struct Peer {
    world: World,
    before: usize,
}

impl Peer {
    /// Connects a client that lets the server send next to nothing.
    fn new(transport: TransportConfig) -> (Self, WorstCaseMemory) {
        let client = TransportConfig::new().receive_window(1);
        Self::connect(Network::new(1), transport, client)
    }

    fn connect(
        network: Network,
        transport: TransportConfig,
        client: TransportConfig,
    ) -> (Self, WorstCaseMemory) {
        let (server, client) = both(transport, client);
        let worst = server.worst_case_memory();
        let mut world = World::new(network.delay(ms(5)), server.setup().unwrap());
        let accept = |_: &_| Answer::Accept(None, Box::new(Idle));
        world.server_mut().on_incoming(accept);
        world.connect(&client, Idle);
        world.run_for(ms(500));
        world.forget_trace();
        let mut peer = Self { world, before: 0 };
        // Buffers and tables of both ends grow to their usual size.
        for _ in 0..200 {
            peer.send(|out| assert!(out.ping()));
        }
        peer.world.run_for(ms(2000));
        peer.world.forget_trace();
        peer.before = allocated();
        (peer, worst)
    }

    fn send(&mut self, fill: impl FnOnce(&mut hybriq_proto::wire::frame::FrameWriter<'_>)) {
        let client = self.world.client_connection(0);
        let payload = client.forge(Space::Data, |_| (), 0, fill);
        let from = SocketAddr::from(([10, 0, 0, 0], 50_000));
        self.world
            .deliver(Datagram::new(from, SERVER_ADDRESS, payload));
        self.world.run_for(ms(1));
        self.world.forget_trace();
    }

    /// Sends a stream up to an offset, in packets as full as can be.
    fn send_stream(&mut self, id: StreamId, from: u64, to: u64) {
        let mut offset = from;
        while offset < to {
            let len = (to - offset).min(1100);
            let data = vec![7; len as usize];
            self.send(|out| {
                let fin = false;
                assert!(out.write(&Stream {
                    id,
                    offset,
                    fin,
                    data: &data
                }));
            });
            offset += len;
        }
    }

    /// Returns the bytes held more than at the beginning.
    fn held(&mut self) -> u64 {
        self.world.run_for(ms(2000));
        self.world.forget_trace();
        assert!(!self.world.accepted_connection(0).is_closed());
        (allocated() - self.before) as u64
    }
}

fn stream(index: u64) -> StreamId {
    StreamId::new(Side::Client, Direction::Bidi, index)
}

/// Fills the receive window: streams that end just behind a new chunk, and pieces on others.
fn fill_window(peer: &mut Peer, window: u64, pieces: u64) {
    /// Offset at which the sixth chunk begins, the first of 32 KiB.
    const END: u64 = 34_101;
    const PIECES: u64 = 1024;
    let of_pieces = pieces.div_ceil(PIECES);
    for index in 0..of_pieces {
        let mut offset = 1;
        while offset < 2 * PIECES {
            peer.send(|out| {
                let id = stream(index);
                while out.remaining() > 40 && offset < 2 * PIECES {
                    let (fin, data) = (false, &[7][..]);
                    out.write(&Stream {
                        id,
                        offset,
                        fin,
                        data,
                    });
                    offset += 2;
                }
            });
        }
    }
    let mut left = window - of_pieces * 2 * PIECES;
    let mut index = of_pieces;
    while left > 0 {
        let end = left.min(END);
        peer.send_stream(stream(index), 0, end);
        left -= end;
        index += 1;
    }
}

#[test]
fn received_data_reaches_its_worst_case() {
    for (window, streams) in [(512 * 1024, 40), (1024 * 1024, 64)] {
        let transport = TransportConfig::new()
            .max_bidi_streams(streams)
            .max_uni_streams(0)
            .receive_window(window)
            .initial_receive_window(window)
            .stream_receive_window(64 * 1024)
            .initial_stream_receive_window(64 * 1024);
        let (mut peer, worst) = Peer::new(transport);
        fill_window(&mut peer, window, (window / 256).max(4096));
        let held = peer.held();
        reaches("received data", held, worst.received + worst.streams);
    }
}

#[test]
fn datagrams_reach_their_worst_case() {
    for bytes in [64 * 1024, 512 * 1024] {
        let datagrams = hybriq::transport::DatagramConfig::new()
            .receive_buffer(bytes)
            .send_queue(0);
        let (mut peer, worst) = Peer::new(TransportConfig::new().datagrams(datagrams));
        for _ in 0..bytes / 1000 {
            peer.send(|out| assert!(out.datagram(&[7; 1100])));
        }
        reaches("datagrams", peer.held(), worst.datagrams);
    }
}

#[test]
fn sent_data_reaches_its_worst_case() {
    for (buffer, streams) in [(32 * 1024, 16), (128 * 1024, 10)] {
        let transport = TransportConfig::new()
            .max_bidi_streams(streams)
            .send_buffer(buffer)
            .max_send_buffer(buffer);
        let (mut peer, worst) = Peer::new(transport);
        let client = peer.world.client_connection(0).streams();
        while let Some(id) = client.open(Direction::Bidi) {
            client.write(id, &[7]).unwrap();
        }
        peer.world.run_for(ms(100));
        let server = peer.world.accepted_connection(0).streams();
        let data = vec![7; buffer as usize];
        while let Some(id) = server.accept(Direction::Bidi) {
            while server.write(id, &data).is_ok() {}
        }
        drop(data);
        reaches("sent data", peer.held(), worst.sent + worst.streams);
    }
}

/// Window that lets every packet of a full record leave, and more.
const WIDE: u64 = 1 << 26;

/// Bytes of a send buffer that fills such a window.
const BUFFER: u64 = 4 << 20;

/// A client that acknowledges until the window is large, and then nothing. All streams that it may
/// open are open.
fn connect_and_fall_silent(transport: TransportConfig) -> (Peer, WorstCaseMemory, Vec<StreamId>) {
    let transport = transport.send_buffer(BUFFER).max_send_buffer(BUFFER);
    let windows = TransportConfig::new()
        .receive_window(WIDE)
        .initial_receive_window(WIDE)
        .stream_receive_window(WIDE)
        .initial_stream_receive_window(WIDE);
    let silent = Arc::new(AtomicBool::new(false));
    let is_silent = silent.clone();
    let network = Network::new(1).drop_if(move |_, _| is_silent.load(Ordering::Relaxed));
    let (mut peer, worst) = Peer::connect(network, transport, windows);
    let ids = open_streams(&mut peer);
    let data = vec![7; BUFFER as usize];
    for _ in 0..150 {
        let server = peer.world.accepted_connection(0).streams();
        while server.write(ids[0], &data).is_ok_and(|written| written > 0) {}
        peer.world.run_for(ms(1));
        peer.world.forget_trace();
    }
    drop(data);
    peer.world.run_for(ms(2000));
    peer.world.forget_trace();
    silent.store(true, Ordering::Relaxed);
    // The table of records has grown already.
    let grown = peer.world.accepted_connection(0).memory_held().packets;
    peer.before = allocated() - grown as usize;
    (peer, worst, ids)
}

/// Opens all streams that the client may open, and has the server accept them.
fn open_streams(peer: &mut Peer) -> Vec<StreamId> {
    let client = peer.world.client_connection(0).streams();
    while let Some(id) = client.open(Direction::Bidi) {
        client.write(id, &[7]).unwrap();
    }
    peer.world.run_for(ms(100));
    let server = peer.world.accepted_connection(0).streams();
    std::iter::from_fn(|| server.accept(Direction::Bidi)).collect()
}

/// Has the server write single bytes until it records as many packets as it may.
fn fill_records(peer: &mut Peer, ids: &[StreamId]) {
    // With four frames in each packet, in every third five, as many bytes belong to frames as may when
    // all packets are recorded.
    for round in 0.. {
        let server = peer.world.accepted_connection(0);
        if server.tables().sent_packets >= limits::SENT_PACKETS {
            return;
        }
        let frames = if round % 3 == 0 { 5 } else { 4 };
        for &id in &ids[1..=frames] {
            assert_eq!(server.streams().write(id, &[7]), Ok(1));
        }
        peer.world.run_for(Duration::from_micros(50));
        peer.world.forget_trace();
    }
}

#[test]
fn records_of_packets_and_a_whole_connection_reach_their_worst_case() {
    let transport = TransportConfig::new()
        .max_bidi_streams(8)
        .max_uni_streams(0)
        .receive_window(144 * 1024)
        .initial_receive_window(144 * 1024)
        .stream_receive_window(64 * 1024)
        .initial_stream_receive_window(64 * 1024);
    let (mut peer, worst, ids) = connect_and_fall_silent(transport);
    fill_records(&mut peer, &ids);
    let sent = peer.world.accepted_connection(0).memory_held().sent;
    reaches("records", since(peer.before) - sent, worst.packets);

    // The rest: send buffers, receive windows and datagrams.
    let data = vec![7; 64 * 1024];
    for &id in &ids {
        let server = peer.world.accepted_connection(0).streams();
        while server.write(id, &data).is_ok() {}
    }
    fill_window(&mut peer, 140 * 1024, 4096);
    for _ in 0..worst.datagrams / 1000 {
        peer.send(|out| assert!(out.datagram(&[7; 1100])));
    }
    let itself = peer.world.accepted_connection(0).memory_held().connection;
    reaches("connection", peer.held() + itself, worst.per_connection());
}

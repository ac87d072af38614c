//! Records of packets as both ends sealed and opened them.

use std::sync::{Arc, Mutex};

use hybriq::{
    TransportConfig,
    events::{Event, Meta, PacketKind, Subscriber},
    tls::Side,
};
use hybriq_proto::wire::{Reader, frame::Frame, packet::PacketNumber};
use hybriq_sim::{Ask, Network, World, ms};

use crate::duo::{client, server};

/// A frame that matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Stream {
        id: u64,
        offset: u64,
        data: Vec<u8>,
        fin: bool,
    },
    Reset {
        id: u64,
        code: u64,
        final_size: u64,
    },
    Ack(Vec<std::ops::RangeInclusive<PacketNumber>>),
    NewCid {
        sequence: u64,
        id: Vec<u8>,
        token: Vec<u8>,
    },
    Crypto {
        offset: u64,
        data: Vec<u8>,
    },
    HandshakeDone,
    Other,
}

/// One packet.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    /// Whose view it is.
    pub(crate) side: Side,
    pub(crate) sent: bool,
    pub(crate) kind: PacketKind,
    pub(crate) number: PacketNumber,
    pub(crate) frames: Vec<Seen>,
}

/// Writes down every packet.
#[derive(Default)]
pub(crate) struct Wiretap(Mutex<Vec<Packet>>);

impl Wiretap {
    pub(crate) fn packets(&self) -> Vec<Packet> {
        self.0.lock().unwrap().clone()
    }
}

impl Subscriber for Wiretap {
    fn on_event(&self, meta: &Meta, event: &Event<'_>) {
        let (sent, packet) = match event {
            Event::PacketSent(packet) => (true, packet),
            Event::PacketReceived(packet) => (false, packet),
            _ => return,
        };
        let mut reader = Reader::new(packet.frames.payload());
        let frames = std::iter::from_fn(|| {
            (!reader.is_empty())
                .then(|| Frame::decode(&mut reader).ok())
                .flatten()
        });
        let frames = frames.map(|frame| match frame {
            Frame::Stream(frame) => Seen::Stream {
                id: frame.id.0,
                offset: frame.offset,
                data: frame.data.to_vec(),
                fin: frame.fin,
            },
            Frame::ResetStream(frame) => Seen::Reset {
                id: frame.id.0,
                code: frame.code,
                final_size: frame.final_size,
            },
            Frame::Ack(ack) => Seen::Ack(ack.ranges().collect()),
            Frame::NewConnectionId(frame) => Seen::NewCid {
                sequence: frame.sequence,
                id: frame.cid.as_bytes().to_vec(),
                token: frame.reset_token.as_bytes().to_vec(),
            },
            Frame::Crypto(frame) => Seen::Crypto {
                offset: frame.offset,
                data: frame.data.to_vec(),
            },
            Frame::HandshakeDone => Seen::HandshakeDone,
            _ => Seen::Other,
        });
        self.0.lock().unwrap().push(Packet {
            side: meta.side,
            sent,
            kind: packet.kind,
            number: packet.number,
            frames: frames.collect(),
        });
    }
}

/// A configuration that is listened to.
pub(crate) fn tapped() -> (Arc<Wiretap>, TransportConfig) {
    let tap = Arc::new(Wiretap::default());
    let config = TransportConfig::new().subscriber(tap.clone());
    (tap, config)
}

/// All packets of an exchange of some streams over a network.
pub(crate) fn exchange(network: Network) -> Vec<Packet> {
    let (tap, config) = tapped();
    let mut world = World::new(network.delay(ms(10)), server(config.clone()));
    world.connect(&client(config), Ask::streams(6, 30_000));
    world.run(std::time::Duration::from_secs(120));
    assert!(world.client(0).done_at.is_some());
    tap.packets()
}

//! Which frames went from where to where.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use hybriq::{
    TransportConfig,
    events::{Event, Meta, PacketKind, Subscriber},
    tls::Side,
};
use hybriq_proto::wire::{
    Reader,
    frame::{Frame, FrameType},
};
use hybriq_sim::{self, World};

/// A frame the properties that affect its response for paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Noted {
    Padding,
    Ping,
    NewConnectionId,
    Challenge([u8; 8]),
    Response([u8; 8]),
    /// Any other, by its type.
    Other(FrameType),
}

impl Noted {
    const fn is_probing(self) -> bool {
        !matches!(self, Self::Ping | Self::Other(_))
    }
}

/// A 1-RTT packet and the datagram it left in.
#[derive(Clone, Debug)]
pub(crate) struct Sighting {
    pub(crate) at: Duration,
    pub(crate) by: Side,
    pub(crate) client: SocketAddr,
    pub(crate) server: SocketAddr,
    /// Bytes of the datagram.
    pub(crate) datagram: usize,
    pub(crate) frames: Vec<Noted>,
}

impl Sighting {
    /// True if all its frames are probing frames (RFC 9000 §9.1).
    pub(crate) fn is_probing(&self) -> bool {
        self.frames.iter().all(|frame| frame.is_probing())
    }

    pub(crate) fn challenge(&self) -> Option<[u8; 8]> {
        self.frames.iter().find_map(|frame| match frame {
            Noted::Challenge(data) => Some(*data),
            _ => None,
        })
    }

    pub(crate) fn response(&self) -> Option<[u8; 8]> {
        self.frames.iter().find_map(|frame| match frame {
            Noted::Response(data) => Some(*data),
            _ => None,
        })
    }
}

struct Sealed {
    side: Side,
    kind: PacketKind,
    size: usize,
    frames: Vec<Noted>,
}

/// Writes down what is sealed.
#[derive(Default)]
pub(crate) struct PathTap(Mutex<Vec<Sealed>>);

impl PathTap {
    /// One, and a configuration that it listens to.
    pub(crate) fn new() -> (Arc<Self>, TransportConfig) {
        Self::over(TransportConfig::new())
    }

    /// The same with a configuration of one's own.
    pub(crate) fn over(config: TransportConfig) -> (Arc<Self>, TransportConfig) {
        let tap = Arc::new(Self::default());
        let config = config.subscriber(tap.clone());
        (tap, config)
    }

    /// The data of every `PATH_RESPONSE` that was sent.
    pub(crate) fn answers(&self) -> Vec<[u8; 8]> {
        let sealed = self.0.lock().unwrap();
        let frames = sealed.iter().flat_map(|packet| &packet.frames);
        let answers = frames.filter_map(|frame| match frame {
            Noted::Response(data) => Some(*data),
            _ => None,
        });
        answers.collect()
    }

    /// The types of the packets that carried one of these.
    pub(crate) fn packets_with(&self, frames: &[Noted]) -> Vec<PacketKind> {
        let sealed = self.0.lock().unwrap();
        let with = |packet: &&Sealed| packet.frames.iter().any(|frame| frames.contains(frame));
        sealed
            .iter()
            .filter(with)
            .map(|packet| packet.kind)
            .collect()
    }

    /// Every 1-RTT packet of a world with one client, those of the client first.
    pub(crate) fn sightings(&self, world: &World) -> Vec<Sighting> {
        let sealed = self.0.lock().unwrap();
        let mut seen = Vec::new();
        for by in [Side::Client, Side::Server] {
            let one_rtt = sealed.iter().filter(|it| it.kind == PacketKind::OneRtt);
            let mut sealed = one_rtt.filter(|packet| packet.side == by);
            for record in world.trace().sent(by.peer()) {
                let headers = record.packets.iter();
                for header in headers.filter(|it| it.kind == hybriq_sim::PacketKind::OneRtt) {
                    let packet = sealed.next().expect("what is sent was sealed");
                    assert_eq!(packet.size, header.range.len(), "{record}");
                    seen.push(Sighting {
                        at: record.at,
                        by,
                        client: record.client,
                        server: record.server,
                        datagram: record.size,
                        frames: packet.frames.clone(),
                    });
                }
            }
        }
        seen
    }
}

impl Subscriber for PathTap {
    fn on_event(&self, meta: &Meta, event: &Event<'_>) {
        let Event::PacketSent(packet) = event else {
            return;
        };
        let mut reader = Reader::new(packet.frames.payload());
        let frames = std::iter::from_fn(|| {
            (!reader.is_empty())
                .then(|| Frame::decode(&mut reader).ok())
                .flatten()
        });
        let frames = frames.map(|frame| match frame {
            Frame::Padding(_) => Noted::Padding,
            Frame::Ping => Noted::Ping,
            Frame::NewConnectionId(_) => Noted::NewConnectionId,
            Frame::PathChallenge(frame) => Noted::Challenge(frame.0),
            Frame::PathResponse(frame) => Noted::Response(frame.0),
            frame => Noted::Other(frame.frame_type()),
        });
        self.0.lock().unwrap().push(Sealed {
            side: meta.side,
            kind: packet.kind,
            size: packet.size,
            frames: frames.collect(),
        });
    }
}

//! Reading a capture: the packets of QUIC, decrypted with the key log.

mod connection;
mod frames;
mod handshake;
mod keys;
mod print;

use std::time::Duration;

use self::{connection::Connection, keys::KeyLog};
use super::{capture::Capture, packet::Udp};
use crate::runner::Role;

pub(super) use connection::Facts;
pub(super) use frames::Frame;

/// Kind of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Initial,
    ZeroRtt,
    Handshake,
    Retry,
    OneRtt,
    VersionNegotiation,
}

/// A packet.
#[derive(Clone, Debug)]
pub(super) struct Packet {
    pub(super) kind: Kind,
    /// Version of a long header.
    pub(super) version: Option<u32>,
    /// Connection that it belongs to, as an index of [`Dissection::connections`].
    pub(super) connection: Option<usize>,
    /// Destination connection id.
    pub(super) to_id: Vec<u8>,
    /// Source connection id of a long header.
    pub(super) from_id: Vec<u8>,
    /// Token of an Initial packet, or of a Retry packet.
    pub(super) token: Vec<u8>,
    /// Contents and number; `None` if it cannot be decrypted.
    pub(super) opened: Option<Opened>,
}

/// A decrypted packet.
#[derive(Clone, Debug)]
pub(super) struct Opened {
    pub(super) number: u64,
    /// Key phase of a 1-RTT packet.
    pub(super) phase: bool,
    /// Bytes of the contents, as they were sent.
    pub(super) len: usize,
    pub(super) frames: Vec<Frame>,
}

/// A datagram.
#[derive(Clone, Debug)]
pub(super) struct Datagram {
    pub(super) at: Duration,
    pub(super) from: Role,
    pub(super) udp: Udp,
    /// Bytes of the UDP payload.
    pub(super) len: usize,
    /// Last bytes of the payload, by which it is known at the other side of the link.
    pub(super) mark: Vec<u8>,
    pub(super) packets: Vec<Packet>,
}

/// A capture that was read.
#[derive(Clone, Debug, Default)]
pub(super) struct Dissection {
    pub(super) datagrams: Vec<Datagram>,
    pub(super) connections: Vec<Facts>,
}

/// Bytes of a datagram's mark: an authentication tag.
const MARK: usize = 16;

/// Reads what passed between the client and the server.
pub(super) fn dissect(capture: &Capture, key_log: &str) -> Dissection {
    let log = KeyLog::read(key_log);
    let mut connections = Vec::<Connection>::new();
    let mut datagrams = Vec::new();
    for captured in &capture.0 {
        let Some(udp) = Udp::find(&captured.packet) else {
            continue;
        };
        if !udp.is_of_server(captured.from) {
            continue;
        }
        let payload = udp.payload(&captured.packet);
        let mut packets = Vec::new();
        let mut rest = payload;
        while !rest.is_empty() {
            let Some((packet, next)) =
                connection::read(captured.from, rest, &mut connections, &log)
            else {
                break;
            };
            packets.push(packet);
            rest = next;
        }
        datagrams.push(Datagram {
            at: captured.at,
            from: captured.from,
            udp,
            len: payload.len(),
            mark: payload[payload.len().saturating_sub(MARK)..].to_vec(),
            packets,
        });
    }
    Dissection {
        datagrams,
        connections: connections
            .into_iter()
            .map(Connection::into_facts)
            .collect(),
    }
}

impl Dissection {
    /// Returns the packets of one end, with their datagrams.
    pub(super) fn packets(&self, from: Role) -> impl Iterator<Item = (&Datagram, &Packet)> {
        let of_end = self
            .datagrams
            .iter()
            .filter(move |datagram| datagram.from == from);
        of_end.flat_map(|datagram| {
            datagram
                .packets
                .iter()
                .map(move |packet| (datagram, packet))
        })
    }

    /// Returns the frames of one end, with their datagrams and packets.
    pub(super) fn frames(&self, from: Role) -> impl Iterator<Item = (&Datagram, &Packet, &Frame)> {
        self.packets(from).flat_map(|(datagram, packet)| {
            let opened = packet.opened.iter();
            opened.flat_map(move |it| it.frames.iter().map(move |frame| (datagram, packet, frame)))
        })
    }
}

//! The honest half of a hostile peer: its handshake.

use std::{net::SocketAddr, sync::Arc, time::Instant};

use hybriq_proto::{
    TransportConfig,
    connection::{Connection, Event},
    endpoint::{Arrival, Endpoint, Local, Routed, Setup, Slot, StartError},
    wire::{
        Reader,
        frame::Frame,
        limits,
        packet::{Cid, Decoded, Kind, Packets, Version},
        params::Params,
    },
};
use hybriq_tls::{Provider, Side};

use super::{
    HostilePeer,
    disguise::{Disguise, Secrets},
    frames::Frames,
    keys::Keys,
};
use crate::{Rng, SERVER_ADDRESS, SeededRandom, adversary::Character, world::host::SERVER_NAME};

/// Honest code that does the handshake of a hostile peer, with its extreme transport parameters.
pub(in crate::adversary) struct Handshake {
    side: Side,
    address: SocketAddr,
    secrets: Secrets,
    endpoint: Endpoint,
    connection: Option<(Slot, Connection)>,
    confirmed: bool,
    /// Datagrams that it sent, and those from the victim.
    sent: Vec<Vec<u8>>,
    received: Vec<Vec<u8>>,
    buffer: Vec<u8>,
}

impl Handshake {
    fn new(
        side: Side,
        address: SocketAddr,
        seed: u64,
        character: &Character,
        provider: &Arc<dyn Provider>,
    ) -> (Self, Setup) {
        let secrets = Secrets::default();
        let setup = Setup {
            provider: Arc::new(Disguise {
                inner: provider.clone(),
                extremes: character.extremes.clone(),
                secrets: secrets.clone(),
            }),
            // With a single version there is only one set of key labels.
            transport: Arc::new(TransportConfig::new().versions([Version::V1])),
        };
        let of_server = side.is_server().then(|| setup.clone());
        let this = Self {
            side,
            address,
            secrets,
            endpoint: Endpoint::new(0, Box::new(SeededRandom::new(seed)), of_server),
            connection: None,
            confirmed: false,
            sent: Vec::new(),
            received: Vec::new(),
            buffer: vec![0; 65_536],
        };
        (this, setup)
    }

    /// Begins as a client.
    pub(in crate::adversary) fn of_client(
        now: Instant,
        address: SocketAddr,
        seed: u64,
        character: &Character,
        provider: &Arc<dyn Provider>,
    ) -> Result<Self, StartError> {
        let (mut this, setup) = Self::new(Side::Client, address, seed, character, provider);
        let endpoint = &mut this.endpoint;
        this.connection = Some(endpoint.connect(now, &setup, SERVER_ADDRESS, SERVER_NAME)?);
        Ok(this)
    }

    /// Waits as a server.
    pub(in crate::adversary) fn of_server(
        seed: u64,
        character: &Character,
        provider: &Arc<dyn Provider>,
    ) -> Self {
        Self::new(Side::Server, SERVER_ADDRESS, seed, character, provider).0
    }

    pub(in crate::adversary) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the datagrams that are due.
    pub(in crate::adversary) fn transmit(&mut self, now: Instant) -> Vec<Vec<u8>> {
        let mut due = Vec::new();
        loop {
            let mut transmit = self.endpoint.poll_transmit(now, &mut self.buffer);
            if let (None, Some((slot, connection))) = (&transmit, &mut self.connection) {
                self.endpoint.service(*slot, connection);
                while let Some(event) = connection.poll_event() {
                    self.confirmed |= event == Event::HandshakeConfirmed;
                }
                transmit = connection.poll_transmit(now, &mut self.buffer, limits::TRAIN);
            }
            let Some(out) = transmit else {
                self.sent.extend_from_slice(&due);
                return due;
            };
            let bytes = self.buffer.get(..out.size).unwrap_or_default();
            let datagrams = bytes.chunks(out.segment_size.unwrap_or(out.size).max(1));
            due.extend(datagrams.map(<[u8]>::to_vec));
        }
    }

    /// Takes a datagram of the victim.
    pub(in crate::adversary) fn receive(
        &mut self,
        now: Instant,
        from: SocketAddr,
        mut datagram: Vec<u8>,
    ) {
        self.received.push(datagram.clone());
        let arrival = Arrival {
            peer: from,
            local: Local::default(),
            ecn: None,
        };
        match self.endpoint.on_datagram(now, &arrival, &mut datagram) {
            Routed::Connection(_, packets) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.on_packets(now, &arrival, packets);
                }
            }
            Routed::Incoming(incoming) if self.connection.is_none() => {
                self.connection = self.endpoint.accept(now, *incoming, None).ok();
            }
            _ => {}
        }
    }

    /// Passes the keys to the hostile peer, if the handshake was confirmed.
    pub(in crate::adversary) fn hand_over(
        self,
        character: Character,
        rng: Rng,
    ) -> Option<HostilePeer> {
        let own = self.secrets.of(self.side).filter(|_| self.confirmed)?;
        let victims = self.secrets.of(self.side.peer())?;
        let params = Params::decode(&self.secrets.params(), self.side.peer()).unwrap_or_default();
        let mut crypto_end = 0;
        let mut own_packets = Keys::new(victims.clone(), own.clone());
        for datagram in &self.sent {
            own_packets.read(datagram, |_, payload| {
                crypto_end = crypto_end.max(end_of_crypto(payload));
            });
        }
        let first = first_id(&self.received).unwrap_or(Cid::EMPTY);
        let frames = Frames::new(self.side, params, first, crypto_end);
        let keys = Keys::new(own, victims);
        let mut peer = HostilePeer::new(character, rng, self.address, keys, frames);
        for datagram in &self.received {
            peer.read(self.address, datagram);
        }
        Some(peer)
    }
}

/// Returns the end of the CRYPTO data in a packet.
fn end_of_crypto(payload: &[u8]) -> u64 {
    let mut reader = Reader::new(payload);
    let frames = std::iter::from_fn(|| {
        let more = !reader.is_empty();
        more.then(|| Frame::decode(&mut reader).ok())?
    });
    let ends = frames.map(|frame| match frame {
        Frame::Crypto(crypto) => crypto.offset + crypto.data.len() as u64,
        _ => 0,
    });
    ends.max().unwrap_or(0)
}

/// Returns the connection id that the victim gave itself in its first packet with a permanent id.
fn first_id(datagrams: &[Vec<u8>]) -> Option<Cid> {
    let mut datagrams = datagrams.iter();
    datagrams.find_map(|datagram| {
        let mut datagram = datagram.clone();
        let packets = Packets::new(&mut datagram, 8);
        let mut handshake = packets.filter_map(|packet| match packet.ok()? {
            Decoded::Protected(packet) if packet.kind == Kind::Handshake => Some(packet.scid),
            _ => None,
        });
        handshake.next()
    })
}

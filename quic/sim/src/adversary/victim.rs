//! The end under attack, driven directly: without a network, and with only one peer.

use std::{net::SocketAddr, time::Instant};

use hybriq_proto::{
    connection::Connection,
    endpoint::{Arrival, Endpoint, Local, Routed, Setup, Slot, StartError},
    owners::streams::{Direction, ReadError, StreamId},
    wire::limits,
};

use crate::{
    Datagram, SERVER_ADDRESS, SeededRandom,
    host::SERVER_NAME,
    invariants::{Invariant, Violation, holds},
};

/// Maximum number of timers at one instant.
const TIMERS_AT_ONCE: u64 = 64;

/// A server with at most one connection, or a client with one.
pub(super) struct Victim {
    address: SocketAddr,
    endpoint: Endpoint,
    connection: Option<(Slot, Connection)>,
    /// Streams that the application reads.
    accepted: Vec<StreamId>,
    buffer: Vec<u8>,
    outgoing: Vec<Datagram>,
    /// Counter of the bytes that are allocated.
    pub(super) allocated: Option<fn() -> usize>,
    /// Bytes that its calls allocated, less those that they freed.
    held: i128,
    /// Calls of the connection's methods since the last datagram or timer.
    pub(super) calls: u64,
}

impl Victim {
    pub(super) fn server(seed: u64, setup: Setup) -> Self {
        Self::new(SERVER_ADDRESS, seed, Some(setup))
    }

    pub(super) fn client(
        seed: u64,
        now: Instant,
        address: SocketAddr,
        setup: &Setup,
    ) -> Result<Self, StartError> {
        let mut this = Self::new(address, seed, None);
        let endpoint = &mut this.endpoint;
        this.connection = Some(endpoint.connect(now, setup, SERVER_ADDRESS, SERVER_NAME)?);
        Ok(this)
    }

    fn new(address: SocketAddr, seed: u64, setup: Option<Setup>) -> Self {
        let random = Box::new(SeededRandom::new(seed ^ 0x71c7));
        Self {
            address,
            endpoint: Endpoint::new(0, random, setup),
            connection: None,
            accepted: Vec::new(),
            buffer: vec![0; 65_536],
            outgoing: Vec::with_capacity(1024),
            allocated: None,
            held: 0,
            calls: 0,
        }
    }

    /// Runs code of the victim, and counts the bytes that it allocates.
    ///
    /// Tests that count instructions find it by its name.
    #[inline(never)]
    fn measured<T>(&mut self, run: impl FnOnce(&mut Self) -> T) -> T {
        let count = |this: &Self| this.allocated.map_or(0, |allocated| allocated() as i128);
        let before = count(self);
        let result = run(self);
        self.held += count(self) - before;
        result
    }

    /// Returns by how many bytes the memory has grown since the beginning, if it is counted.
    pub(super) fn held(&self) -> Option<u64> {
        self.allocated?;
        Some(u64::try_from(self.held).unwrap_or(0))
    }

    pub(super) const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    pub(super) fn connection(&self) -> Option<&Connection> {
        self.connection.as_ref().map(|(_, connection)| connection)
    }

    /// Gives the application more to send than any window allows.
    pub(super) fn write(&mut self, bytes: usize) {
        let Some((_, connection)) = &mut self.connection else {
            return;
        };
        let streams = connection.streams();
        if let Some(id) = streams.open(Direction::Uni) {
            let _ = streams.write(id, &vec![7; bytes]);
        }
    }

    /// Lets the application read all data of all streams.
    pub(super) fn read(&mut self, buffer: &mut [u8]) {
        self.measured(|this| {
            let Some((_, connection)) = &mut this.connection else {
                return;
            };
            let streams = connection.streams();
            for direction in [Direction::Bidi, Direction::Uni] {
                while let Some(id) = streams.accept(direction) {
                    let _ = streams.finish(id);
                    this.accepted.push(id);
                }
            }
            this.accepted.retain(|&id| {
                loop {
                    match streams.read(id, buffer) {
                        Ok(0) | Err(ReadError::Reset(_) | ReadError::Closed) => return false,
                        Err(_) => return true,
                        Ok(_) => {}
                    }
                }
            });
            while connection.datagrams().recv().is_some() {}
        });
    }

    pub(super) fn receive(&mut self, now: Instant, from: SocketAddr, datagram: &mut [u8]) {
        self.calls = 0;
        self.measured(|this| {
            let arrival = Arrival {
                peer: from,
                local: Local::default(),
                ecn: None,
            };
            match this.endpoint.on_datagram(now, &arrival, datagram) {
                Routed::Connection(_, packets) => {
                    if let Some((_, connection)) = &mut this.connection {
                        connection.on_packets(now, &arrival, packets);
                    }
                }
                Routed::Incoming(incoming) if this.connection.is_none() => {
                    this.connection = this.endpoint.accept(now, *incoming, None).ok();
                }
                Routed::Incoming(incoming) => this.endpoint.refuse(*incoming),
                _ => {}
            }
        });
    }

    /// Handles all events, and returns all datagrams that are due.
    pub(super) fn drain(&mut self, now: Instant) -> Vec<Datagram> {
        while let Some((to, segment, size)) = self.measured(|this| this.transmit(now)) {
            let bytes = self.buffer.get(..size).unwrap_or_default();
            for datagram in bytes.chunks(segment) {
                let datagram = datagram.to_vec();
                self.outgoing
                    .push(Datagram::new(self.address, to, datagram));
            }
        }
        std::mem::take(&mut self.outgoing)
    }

    /// Writes the next datagrams into the buffer. Returns their address, the size of each, and the
    /// total size.
    fn transmit(&mut self, now: Instant) -> Option<(SocketAddr, usize, usize)> {
        let mut transmit = self.endpoint.poll_transmit(now, &mut self.buffer);
        if transmit.is_none() {
            let (slot, connection) = self.connection.as_mut()?;
            let alive = self.endpoint.service(*slot, connection);
            while connection.poll_event().is_some() {
                self.calls += 1;
            }
            if !alive {
                self.connection = None;
                return None;
            }
            self.calls += 1;
            transmit = connection.poll_transmit(now, &mut self.buffer, limits::TRAIN);
        }
        let transmit = transmit?;
        let segment = transmit.segment_size.unwrap_or(transmit.size);
        Some((transmit.peer, segment.max(1), transmit.size))
    }

    /// Returns the time of the next timer.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        let connection = self.connection().and_then(Connection::next_timeout);
        connection
            .into_iter()
            .chain(self.endpoint.next_timeout())
            .min()
    }

    /// Handles the timers that are due, and returns their number with the datagrams they released.
    pub(super) fn on_timeout(&mut self, now: Instant) -> Result<(u64, Vec<Datagram>), Violation> {
        let mut sent = Vec::new();
        let mut timers = 0;
        while let Some(at) = self.next_timeout().filter(|at| *at <= now) {
            self.calls = 0;
            timers += 1;
            let late = u64::from(at < now);
            holds(Invariant::Overdue, "timers at once", timers, TIMERS_AT_ONCE)?;
            holds(Invariant::Overdue, "timers in the past", late, 0)?;
            self.measured(|this| {
                if this.endpoint.next_timeout().is_some_and(|at| at <= now) {
                    this.endpoint.on_timeout(now);
                }
                if let Some((_, connection)) = &mut this.connection {
                    if connection.next_timeout().is_some_and(|at| at <= now) {
                        connection.on_timeout(now);
                    }
                }
            });
            sent.append(&mut self.drain(now));
        }
        Ok((timers, sent))
    }
}

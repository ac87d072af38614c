//! One end of the link.

use std::{net::SocketAddr, time::Instant};

use hybriq_proto::{
    connection::Connection,
    endpoint::{Arrival, Endpoint, Local, Routed, Setup, Slot, SocketId},
};
use hybriq_sim::SeededRandom;

use crate::{
    Result,
    app::App,
    counting::{Counted, counted},
    link::OneWay,
};

/// Maximum number of datagrams in one transmission.
const TRAIN: usize = 10;

/// One end: an endpoint with at most one connection.
pub(crate) struct Machine {
    pub(crate) address: SocketAddr,
    pub(crate) endpoint: Endpoint,
    pub(crate) connection: Option<(Slot, Connection)>,
    pub(crate) app: App,
    pub(crate) buffer: Vec<u8>,
    pub(crate) counted: Counted,
    /// Allocations that were counted.
    pub(crate) allocations: u64,
}

impl Machine {
    pub(crate) fn new(address: &str, seed: u64, server: Option<Setup>) -> Result<Self> {
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

    pub(crate) fn local(&self) -> Local {
        Local {
            socket: SocketId(0),
            ip: Some(self.address.ip()),
        }
    }

    /// Does a turn's work, which is counted if it should be.
    pub(crate) fn work(&mut self, now: Instant, from: &mut OneWay, to: &mut OneWay) -> Result<()> {
        match self.counted {
            Counted::Yes => counted(self, now, from, to),
            Counted::No => self.turn(now, from, to),
        }
    }

    /// Takes what arrived, does what is due, and sends.
    pub(crate) fn turn(&mut self, now: Instant, from: &mut OneWay, to: &mut OneWay) -> Result<()> {
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

    pub(crate) fn receive(
        &mut self,
        now: Instant,
        arrival: &Arrival,
        datagram: &mut [u8],
    ) -> Result<()> {
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
            _ => {}
        }
        Ok(())
    }

    pub(crate) fn send(&mut self, now: Instant, to: &mut OneWay) -> Result<()> {
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

    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        let connection = self.connection.as_ref();
        connection
            .and_then(|(_, connection)| connection.next_timeout())
            .into_iter()
            .chain(self.endpoint.next_timeout())
            .min()
    }
}

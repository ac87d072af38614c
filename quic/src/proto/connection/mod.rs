//! One connection: composes the owners.

use std::{net::SocketAddr, time::Instant};

use bytes::Bytes;
use hybriq_tls::Side;

use super::endpoint::{Arrival, Transmit};
use crate::{error::ConnectionError, handshake::Handshake, stats::ConnectionStats};

/// Something the application may want to know.
#[derive(Debug, PartialEq)]
pub enum Event {
    /// TLS is complete: [`Connection::handshake`] has its outcome, streams may be used.
    HandshakeComplete,
    /// The handshake is confirmed (RFC 9001 §4.1.2).
    HandshakeConfirmed,
    /// The connection is over for the application. Comes once, last.
    Closed(ConnectionError),
    /// Something about streams.
    Stream(super::streams::StreamEvent),
}

/// One connection.
///
/// After every call that may have changed something, call [`super::endpoint::Endpoint::service`],
/// drain [`Connection::poll_event`] and [`Connection::poll_transmit`], and look at
/// [`Connection::next_timeout`] again.
pub struct Connection {}

impl Connection {
    /// Takes a datagram that was routed here.
    pub fn on_datagram(&mut self, now: Instant, arrival: &Arrival, datagram: &mut [u8]) {
        todo!()
    }

    /// When [`Connection::on_timeout`] wants to be called.
    pub fn next_timeout(&self) -> Option<Instant> {
        todo!()
    }

    /// Handles what is due.
    pub fn on_timeout(&mut self, now: Instant) {
        todo!()
    }

    /// Fills `out` with up to `max_datagrams` datagrams for one destination, all but the last of
    /// one size. `None`: nothing to send now.
    pub fn poll_transmit(
        &mut self,
        now: Instant,
        out: &mut [u8],
        max_datagrams: usize,
    ) -> Option<Transmit> {
        todo!()
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        todo!()
    }

    /// Closes it with the application's code (RFC 9000 §10.2).
    pub fn close(&mut self, now: Instant, code: u64, reason: Bytes) {
        todo!()
    }

    /// The streams: open, accept, read, write. The caller transmits afterwards.
    pub fn streams(&mut self) -> &mut super::streams::Streams {
        todo!()
    }

    /// The outcome of the handshake, once it is complete.
    pub fn handshake(&self) -> Option<&Handshake> {
        todo!()
    }

    /// Which end we are.
    pub fn side(&self) -> Side {
        todo!()
    }

    /// The peer's address.
    pub fn remote_address(&self) -> SocketAddr {
        todo!()
    }

    /// The peer's certificates, its own first.
    pub fn peer_certificates(&self) -> Vec<hybriq_tls::CertificateDer<'static>> {
        todo!()
    }

    /// Counters.
    pub fn stats(&self) -> ConnectionStats {
        todo!()
    }

    /// Whether it was closed, by anybody.
    pub fn is_closed(&self) -> bool {
        todo!()
    }
}

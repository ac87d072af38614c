//! Datagrams in the simulated network.

use std::net::SocketAddr;

use hybriq_proto::owners::acks::Ecn;

use crate::forge::{Header, packets};

/// A UDP datagram in flight.
#[derive(Clone, Debug)]
pub struct Datagram {
    /// Claimed source address.
    pub source: SocketAddr,
    /// Destination address.
    pub destination: SocketAddr,
    /// ECN codepoint; `None` is Not-ECT.
    pub ecn: Option<Ecn>,
    /// Payload.
    pub payload: Vec<u8>,
    /// Stand-in for bytes that are not written; empty for datagrams of the real core.
    pub stand_in: StandIn,
}

/// Bytes on the wire without content, for flow models that send a million datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StandIn {
    /// Bytes beyond the payload.
    pub bytes: u32,
    /// Numbers that the two ends exchange instead of bytes.
    pub label: [u64; 3],
}

impl Datagram {
    /// Creates a datagram that is not ECN capable.
    pub const fn new(source: SocketAddr, destination: SocketAddr, payload: Vec<u8>) -> Self {
        Self {
            source,
            destination,
            ecn: None,
            payload,
            stand_in: StandIn {
                bytes: 0,
                label: [0; 3],
            },
        }
    }

    /// Returns the number of UDP payload bytes, written or not.
    pub fn size(&self) -> u64 {
        self.payload.len() as u64 + u64::from(self.stand_in.bytes)
    }

    /// Returns its packets, as far as an observer without keys can tell.
    pub fn packets(&self) -> Vec<Header> {
        packets(&self.payload)
    }
}

//! Datagrams on their way through the simulated network.

use std::net::SocketAddr;

use hybriq_proto::space::Ecn;

use crate::forge::{Header, packets};

/// A UDP datagram on its way.
#[derive(Clone, Debug)]
pub struct Datagram {
    /// Source address that the datagram claims.
    pub source: SocketAddr,
    /// Destination address.
    pub destination: SocketAddr,
    /// Its ECN codepoint; `None` is Not-ECT.
    pub ecn: Option<Ecn>,
    /// Its bytes.
    pub payload: Vec<u8>,
    /// Stands in for bytes that nobody writes; nothing for datagrams of the real core.
    pub stand_in: StandIn,
}

/// Bytes on the wire without content: a flow model sends a million datagrams and reads none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StandIn {
    /// Bytes beyond the payload.
    pub bytes: u32,
    /// Numbers that the two ends exchange in place of bytes.
    pub label: [u64; 3],
}

impl Datagram {
    /// One that is not ECN capable.
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

    /// Its UDP payload bytes, written or not.
    pub fn size(&self) -> u64 {
        self.payload.len() as u64 + u64::from(self.stand_in.bytes)
    }

    /// The packets in it, as far as an observer without keys can tell.
    pub fn packets(&self) -> Vec<Header> {
        packets(&self.payload)
    }
}

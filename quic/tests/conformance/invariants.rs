//! Packets as every version sees them (RFC 8999 §5.1), written and read by hand.

use hybriq::{TransportConfig, tls::Side};
use hybriq_sim::{Datagram, Network, SERVER_ADDRESS, World, ms};

use crate::duo::server;

/// A version nobody speaks.
pub(crate) const UNKNOWN: u32 = 0x5a6a_7a8a;

/// A long header with data after it that makes up this many bytes.
pub(crate) fn long(version: u32, dcid: &[u8], scid: &[u8], size: usize) -> Vec<u8> {
    let mut packet = vec![0xc0];
    packet.extend(version.to_be_bytes());
    for cid in [dcid, scid] {
        packet.push(u8::try_from(cid.len()).unwrap());
        packet.extend(cid);
    }
    packet.resize(size.max(packet.len()), 0);
    packet
}

/// Fields of a long header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Long {
    pub(crate) version: u32,
    pub(crate) dcid: Vec<u8>,
    pub(crate) scid: Vec<u8>,
    pub(crate) rest: Vec<u8>,
}

impl Long {
    pub(crate) fn read(packet: &[u8]) -> Self {
        assert!(packet[0] & 0x80 != 0);
        let version = u32::from_be_bytes(packet[1..5].try_into().unwrap());
        let (dcid, behind) = packet[6..].split_at(packet[5].into());
        let (scid, rest) = behind[1..].split_at(behind[0].into());
        Self {
            version,
            dcid: dcid.to_vec(),
            scid: scid.to_vec(),
            rest: rest.to_vec(),
        }
    }
}

/// Returns the answer to a datagram of a server that knows nothing of the sender.
pub(crate) fn answers(payload: Vec<u8>) -> Vec<Vec<u8>> {
    let mut world = World::new(Network::new(1), server(TransportConfig::new()));
    let source = ([198, 51, 100, 1], 4000).into();
    world.deliver(Datagram::new(source, SERVER_ADDRESS, payload));
    world.run_for(ms(10));
    let sent = world.trace().sent(Side::Client);
    sent.map(|record| record.payload.clone()).collect()
}

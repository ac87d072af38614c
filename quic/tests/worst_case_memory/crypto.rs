//! CRYPTO data that a client in its handshake makes a connection hold.

use std::sync::Arc;

use hybriq::{Backend, TransportConfig};
use hybriq_proto::{
    connection::Connection,
    endpoint::{Endpoint, Routed, Setup, Slot},
    wire::{
        limits,
        packet::{Cid, PacketNumber},
    },
};
use hybriq_sim::{InitialFrame, SeededRandom, build_initial, join, open_initials};
use hybriq_tls::ClientOptions;
use hybriq_tls::Side;

use super::{
    allocated,
    endpoint::{arrival, server},
    now, reaches, since,
};

/// Returns a server in its handshake with a client, and the ids of that client's Initial packets:
/// the one it chose for the server, and its own. The length of its ClientHello comes last.
fn handshaking() -> (Endpoint, Slot, Connection, [Cid; 2], u64) {
    let now = now();
    let setup = Setup {
        provider: Backend::Rustls
            .client(&ClientOptions::new().alpn(["sim"]))
            .unwrap(),
        transport: Arc::new(TransportConfig::new()),
    };
    let mut client = Endpoint::new(0, Box::new(SeededRandom::new(2)), None);
    let peer = arrival(1).peer;
    let (_, mut connection) = client.connect(now, &setup, peer, "localhost").unwrap();
    let mut out = vec![0; 65_536];
    let transmit = connection.poll_transmit(now, &mut out, 10).unwrap();
    let dcid = Cid::new(&out[6..14]).unwrap();
    let size = transmit.segment_size.unwrap_or(transmit.size);
    let (mut endpoint, _) = server();
    let mut initials = Vec::new();
    let mut accepted = None;
    for datagram in out[..transmit.size].chunks_mut(size) {
        initials.extend(open_initials(datagram, &dcid, Side::Client));
        if let Routed::Incoming(incoming) = endpoint.on_datagram(now, &arrival(1), datagram) {
            accepted = Some(endpoint.accept(now, *incoming, None).unwrap());
        }
    }
    let (slot, mut connection) = accepted.unwrap();
    endpoint.service(slot, &mut connection);
    while connection.poll_transmit(now, &mut out, 10).is_some() {}
    let len = join(&initials).len() as u64;
    (endpoint, slot, connection, [dcid, initials[0].scid], len)
}

#[test]
fn crypto_data_behind_a_gap_reaches_its_worst_case() {
    /// Bytes of each frame, so that the last chunk begins just before the end of the buffer.
    const FRAME: usize = 1040;
    let (_, worst) = server();
    let (mut endpoint, slot, mut connection, [dcid, scid], consumed) = handshaking();
    let end = consumed + limits::CRYPTO_BUFFER as u64;
    // One piece fewer than may be, and then data up to the end of the buffer.
    let pieces = limits::CRYPTO_PIECES as u64 - 1;
    let torn: Vec<_> = (0..pieces).map(|at| (consumed + 1 + 2 * at, 1)).collect();
    let rest = (consumed + 2 * pieces + 1..end).step_by(FRAME);
    let rest = rest.map(|at| vec![(at, FRAME.min((end - at) as usize))]);
    let before = allocated();
    for (number, frames) in (100..).zip([torn].into_iter().chain(rest)) {
        let frames = frames
            .into_iter()
            .map(|(offset, len)| InitialFrame::Crypto {
                offset,
                data: vec![7; len],
            });
        let frames: Vec<_> = frames.collect();
        let number = PacketNumber::from_u32(number);
        let mut datagram = build_initial(dcid, scid, number, &frames);
        let now = now();
        match endpoint.on_datagram(now, &arrival(1), &mut datagram) {
            Routed::Connection(to, packets) if to == slot => {
                connection.on_packets(now, &arrival(1), packets);
            }
            routed => panic!("{routed:?}"),
        }
        assert!(!connection.is_closed());
    }
    reaches("CRYPTO data", since(before), worst.crypto);
}

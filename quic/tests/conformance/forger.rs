//! A ClientHello that was changed on its way to the server, and what the server says to it.

use std::net::SocketAddr;

use hybriq::{TransportConfig, tls::Side};
use hybriq_proto::packet::{Cid, PacketNumber};
use hybriq_sim::{
    Datagram, Idle, InitialFrame, Network, SERVER_ADDRESS, World, build_initial, join, ms,
    open_initials,
};

use crate::duo::{client, server};

const FORGER: SocketAddr = SocketAddr::new(
    std::net::IpAddr::V4(std::net::Ipv4Addr::new(172, 16, 0, 1)),
    1000,
);

/// A real ClientHello, and the id of who wrote it.
pub(crate) fn client_hello() -> (Vec<u8>, Cid) {
    let mut world = World::new(Network::new(1), server(TransportConfig::new()));
    world.connect(&client(TransportConfig::new()), Idle);
    world.run_for(ms(0));
    let sent = world
        .trace()
        .initials(Side::Client, world.client_host(0).address);
    (
        join(sent.iter().map(|(_, initial)| initial)),
        sent[0].1.scid,
    )
}

/// The code with which a server closes on a ClientHello, if it does.
pub(crate) fn close_code(hello: &[u8], scid: Cid) -> Option<u64> {
    let mut world = World::new(Network::new(1), server(TransportConfig::new()));
    let dcid = Cid::from([0xf0, 1, 2, 3, 4, 5, 6, 7]);
    for (number, place) in (0..hello.len()).step_by(1000).enumerate() {
        let data = hello[place..].iter().copied().take(1000).collect();
        let crypto = InitialFrame::Crypto {
            offset: place as u64,
            data,
        };
        let payload = build_initial(
            dcid,
            scid,
            PacketNumber::saturating(number as u64),
            &[crypto],
        );
        world.inject(Side::Server, Datagram::new(FORGER, SERVER_ADDRESS, payload));
    }
    world.run_for(ms(10));
    let sent = world.trace().sent(Side::Client);
    let initials = sent.flat_map(|record| open_initials(&record.payload, &dcid, Side::Server));
    initials
        .flat_map(|initial| initial.frames)
        .find_map(|frame| match frame {
            InitialFrame::Close(code) => Some(code),
            _ => None,
        })
}

/// Replaces a run of bytes by others of the same length.
pub(crate) fn replaced(hello: &[u8], what: &[u8], by: &[u8]) -> Vec<u8> {
    assert_eq!(what.len(), by.len());
    let place = hello.windows(what.len()).position(|bytes| bytes == what);
    let place = place.expect("it is there");
    let mut changed = hello.to_vec();
    changed[place..place + by.len()].copy_from_slice(by);
    changed
}

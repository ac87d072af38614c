//! A ClientHello that was changed on its way to the server, and what the server says to it.

use std::net::SocketAddr;

use hybriq::{TransportConfig, tls::Side};
use hybriq_proto::{
    endpoint::Setup,
    wire::packet::{Cid, PacketNumber, Version, initial_direction},
};
use hybriq_sim::{
    Datagram, Idle, InitialFrame, Network, Raw, SERVER_ADDRESS, World, build_initial,
    initial_header, join, ms, open_initials, seal_packet,
};

use crate::duo::{client, server};

/// The address of a client that the server does not know.
pub(crate) const FORGER: SocketAddr = SocketAddr::new(
    std::net::IpAddr::V4(std::net::Ipv4Addr::new(172, 16, 0, 1)),
    1000,
);

/// The connection id that the forger makes up for the server.
pub(crate) fn forged_dcid() -> Cid {
    Cid::from([0xf0, 1, 2, 3, 4, 5, 6, 7])
}

/// A real ClientHello, and the id of who wrote it.
pub(crate) fn client_hello() -> (Vec<u8>, Cid) {
    client_hello_of(&client(TransportConfig::new()))
}

/// The ClientHello of a client, and the id of who wrote it.
pub(crate) fn client_hello_of(client: &Setup) -> (Vec<u8>, Cid) {
    let mut world = World::new(Network::new(1), server(TransportConfig::new()));
    world.connect(client, Idle);
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
    forge_hello(&mut world, hello, scid);
    world.run_for(ms(10));
    told(&world)
}

/// Returns a datagram of the forger with one Initial packet, which has any bytes as frames. Both
/// are filled up to `size`.
pub(crate) fn forged_initial(number: u64, scid: Cid, frames: &[u8], size: usize) -> Vec<u8> {
    let dcid = forged_dcid();
    let keys = initial_direction(Version::V1, &dcid, Side::Client);
    let number = PacketNumber::saturating(number);
    let mut datagram = seal_packet(&initial_header(dcid, scid), number, &keys, |out| {
        assert!(out.write(&Raw(frames)));
        size
    });
    // One packet has no more than 1,200 bytes.
    datagram.resize(size.max(datagram.len()), 0);
    datagram
}

/// Puts a ClientHello on the wire, in Initial packets of 1,000 bytes of it.
pub(crate) fn forge_hello(world: &mut World, hello: &[u8], scid: Cid) {
    for (number, place) in (0..hello.len()).step_by(1000).enumerate() {
        let data = hello[place..].iter().copied().take(1000).collect();
        let crypto = InitialFrame::Crypto {
            offset: place as u64,
            data,
        };
        let payload = build_initial(
            forged_dcid(),
            scid,
            PacketNumber::saturating(number as u64),
            &[crypto],
        );
        world.inject(Side::Server, Datagram::new(FORGER, SERVER_ADDRESS, payload));
    }
}

/// The code of the CONNECTION_CLOSE that went to the forger in an Initial packet.
pub(crate) fn told(world: &World) -> Option<u64> {
    let sent = world.trace().sent(Side::Client);
    let initials =
        sent.flat_map(|record| open_initials(&record.payload, &forged_dcid(), Side::Server));
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

/// Returns the extensions of a ClientHello: type, and the range of bytes from the type to the end.
pub(crate) fn extensions(hello: &[u8]) -> Vec<(u16, std::ops::Range<usize>)> {
    let two = |at: usize| u16::from_be_bytes([hello[at], hello[at + 1]]);
    let mut at = extension_list(hello) + 2;
    let mut list = Vec::new();
    while at < hello.len() {
        let end = at + 4 + usize::from(two(at + 2));
        list.push((two(at), at..end));
        at = end;
    }
    list
}

/// Returns the offset of the length of a ClientHello's extensions.
fn extension_list(hello: &[u8]) -> usize {
    // Type, length, version and random; then the session id, the suites and the compression.
    let session = 4 + 2 + 32;
    let suites = session + 1 + usize::from(hello[session]);
    let two = usize::from(u16::from_be_bytes([hello[suites], hello[suites + 1]]));
    let compression = suites + 2 + two;
    compression + 1 + usize::from(hello[compression])
}

/// Replaces an extension of a ClientHello, including its header, and fixes the lengths around it.
pub(crate) fn with_extension(hello: &[u8], ty: u16, by: &[u8]) -> Vec<u8> {
    let list = extension_list(hello);
    let mut all = extensions(hello).into_iter();
    let (_, place) = all.find(|(other, _)| *other == ty).expect("it is there");
    let mut changed = hello.to_vec();
    changed.splice(place, by.iter().copied());
    let rest = u16::try_from(changed.len() - list - 2).unwrap();
    changed[list..list + 2].copy_from_slice(&rest.to_be_bytes());
    let body = u32::try_from(changed.len() - 4).unwrap();
    changed[1..4].copy_from_slice(&body.to_be_bytes()[1..]);
    changed
}

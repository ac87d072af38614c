//! Junk from anybody, in any shape that comes before a connection, and the memory afterwards
//! (CVE-2025-54939 and others). A program of its own, because it counts every byte that is
//! allocated.
#![expect(
    clippy::unwrap_used,
    reason = "a scenario that cannot go on has failed"
)]

use std::{net::SocketAddr, sync::Arc, time::Duration};

use hybriq::{Backend, Identity, TransportConfig, tls::PrivateKeyDer};
use hybriq_proto::{
    endpoint::Setup,
    wire::packet::{Cid, PacketNumber},
};
use hybriq_sim::{
    Datagram, InitialFrame, Network, Rng, SERVER_ADDRESS, World, build_initial, heap, ms,
};
use hybriq_tls::ServerOptions;

#[global_allocator]
static ALLOCATOR: heap::Counting = heap::Counting;

fn server() -> Setup {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let identity = Identity::from_der(vec![made.cert.der().clone()], key);
    let options = ServerOptions::new(identity).alpn(["sim"]).without_tickets();
    Setup {
        provider: Backend::Rustls.server(&options).unwrap(),
        transport: Arc::new(TransportConfig::new()),
    }
}

fn from(number: u32) -> SocketAddr {
    let [a, b, c, d] = number.to_be_bytes();
    SocketAddr::from(([172, 16 | a, b, c], 1000 + u16::from(d)))
}

/// An Initial of a client that will be refused, and others of it in the same datagram.
fn coalesced(number: u32, frame: InitialFrame) -> Vec<u8> {
    let dcid = Cid::from((0xf000_0000_u64 | u64::from(number)).to_be_bytes());
    let scid = Cid::from([7; 8]);
    let first = build_initial(dcid, scid, PacketNumber::ZERO, &[frame, InitialFrame::Ping]);
    [&first[..], &first[..], &[0xc3; 600]].concat()
}

/// Datagrams of every kind that begins nothing: noise, short headers, versions nobody speaks,
/// Initials that do not open, 0-RTT packets, several Initials of a client that is refused at once,
/// and halves of a ClientHello that never become whole.
fn flood(world: &mut World, rng: &mut Rng, datagrams: u32) {
    for number in 0..datagrams {
        let mut payload = vec![0; 1200 + rng.below(200) as usize];
        rng.fill(&mut payload);
        match number % 7 {
            0 => payload.truncate(rng.below(100) as usize),
            1 => payload[0] = 0x40 | payload[0] & 0x3f,
            2 => payload[..6].copy_from_slice(&[0xc0, 0x1a, 0x2a, 0x3a, 0x4a, 8]),
            3 => payload[..6].copy_from_slice(&[0xc3, 0, 0, 0, 1, 8]),
            4 => payload[..6].copy_from_slice(&[0xd3, 0, 0, 0, 1, 8]),
            5 => {
                let offset = 70_000;
                let data = vec![0; 10];
                payload = coalesced(number, InitialFrame::Crypto { offset, data });
            }
            _ => {
                let data = vec![1, 0, 8, 0, 3, 3, 0, 0, 0, 0];
                payload = coalesced(number, InitialFrame::Crypto { offset: 0, data });
            }
        }
        world.deliver(Datagram::new(from(number), SERVER_ADDRESS, payload));
        if number % 100 == 0 {
            world.run_for(ms(1));
            world.forget_trace();
        }
    }
    // Parts that never became whole are forgotten by then.
    world.run_for(Duration::from_secs(120));
    world.forget_trace();
    let stats = world.server().stats();
    assert_eq!((stats.connections, stats.partial_hellos), (0, 0));
}

/// Proves: security 9 junk-leaves-no-memory
#[test]
fn memory_after_a_flood_of_junk_is_as_before() {
    const FLOOD: u32 = 20_000;
    const SLACK: usize = 16 * 1024;
    let mut world = World::new(Network::new(1).delay(ms(10)), server());
    world.expect_hostile_clients();
    let mut rng = Rng::new(1);
    // Tables grow to their size once, and the simulator remembers every address.
    flood(&mut world, &mut rng, FLOOD);
    let before = heap::allocated();
    for _ in 0..3 {
        flood(&mut world, &mut rng, FLOOD);
    }
    let after = heap::allocated();
    assert!(after < before + SLACK, "{before} bytes, then {after}");
}

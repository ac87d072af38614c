//! Memory after a flood of whole ClientHellos from addresses that never answer. A program of its
//! own, because it counts every byte that is allocated.
#![expect(
    clippy::unwrap_used,
    reason = "a scenario that cannot go on has failed"
)]

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use hybriq::{
    Backend, Identity, TransportConfig,
    tls::{PrivateKeyDer, Side},
};
use hybriq_proto::{
    connection::Connection,
    endpoint::{Arrival, Endpoint, Routed, Setup, Slot},
    wire::packet::{Cid, PacketNumber},
};
use hybriq_sim::{InitialFrame, SeededRandom, build_initial, heap, join, open_initials};
use hybriq_tls::{ClientOptions, ServerOptions};

#[global_allocator]
static ALLOCATOR: heap::Counting = heap::Counting;

fn server() -> Endpoint {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let identity = Identity::from_der(vec![made.cert.der().clone()], key);
    let options = ServerOptions::new(identity).alpn(["sim"]);
    let setup = Setup {
        provider: Backend::Rustls.server(&options).unwrap(),
        transport: Arc::new(TransportConfig::new()),
    };
    Endpoint::new(0, Box::new(SeededRandom::new(1)), Some(setup))
}

fn arrival(number: u32) -> Arrival {
    let [_, a, b, c] = number.to_be_bytes();
    Arrival {
        peer: SocketAddr::from(([10, a, b, c], 443)),
        local: hybriq_proto::endpoint::Local::default(),
        ecn: None,
    }
}

/// Returns the bytes of a ClientHello, and the id that its client gives itself.
fn client_hello(now: Instant) -> (Vec<u8>, Cid) {
    let options = ClientOptions::new().alpn(["sim"]);
    let setup = Setup {
        provider: Backend::Rustls.client(&options).unwrap(),
        transport: Arc::new(TransportConfig::new()),
    };
    let mut endpoint = Endpoint::new(0, Box::new(SeededRandom::new(2)), None);
    let peer = arrival(1).peer;
    let (_, mut connection) = endpoint.connect(now, &setup, peer, "localhost").unwrap();
    let mut out = vec![0; 65_536];
    let transmit = connection.poll_transmit(now, &mut out, 10).unwrap();
    let dcid = Cid::new(&out[6..14]).unwrap();
    let datagrams = out[..transmit.size].chunks(transmit.segment_size.unwrap());
    let initials: Vec<_> = datagrams
        .flat_map(|datagram| open_initials(datagram, &dcid, Side::Client))
        .collect();
    (join(&initials), initials[0].scid)
}

/// A flood, and all that follows from it until every attempt was given up.
fn flood(endpoint: &mut Endpoint, start: Instant, hello: &(Vec<u8>, Cid), clients: u32) -> usize {
    let mut out = vec![0; 65_536];
    let mut live: Vec<(Slot, Connection)> = Vec::new();
    let (head, tail) = hello.0.split_at(hello.0.len() / 2);
    for number in 0..clients {
        let dcid = Cid::from(u64::from(number).to_be_bytes());
        for (index, (offset, data)) in [(0, head), (head.len(), tail)].into_iter().enumerate() {
            let frame = InitialFrame::Crypto {
                offset: offset as u64,
                data: data.to_vec(),
            };
            let pn = PacketNumber::from_u32(index as u32);
            let mut datagram = build_initial(dcid, hello.1, pn, &[frame]);
            let routed = endpoint.on_datagram(start, &arrival(number), &mut datagram);
            if let Routed::Incoming(incoming) = routed {
                let (slot, mut connection) = endpoint.accept(start, *incoming, None).unwrap();
                endpoint.service(slot, &mut connection);
                while connection.poll_transmit(start, &mut out, 10).is_some() {}
                live.push((slot, connection));
            }
        }
        while endpoint.poll_transmit(start, &mut out).is_some() {}
    }
    let peak = heap::allocated();
    let end = start + Duration::from_secs(120);
    while let Some((slot, mut connection)) = live.pop() {
        while endpoint.service(slot, &mut connection) {
            let now = connection.next_timeout().unwrap();
            assert!(now < end);
            connection.on_timeout(now);
            while connection.poll_transmit(now, &mut out, 10).is_some() {}
        }
    }
    endpoint.on_timeout(end);
    assert_eq!(endpoint.stats().connections, 0);
    peak
}

/// Proves: security 9 hello-floods-leave-no-memory
#[test]
fn memory_after_a_flood_of_whole_client_hellos_is_as_before() {
    const SLACK: usize = 256 * 1024;
    #[expect(clippy::disallowed_methods, reason = "a base for virtual time")]
    let start = Instant::now();
    let hello = client_hello(start);
    let mut endpoint = server();
    flood(&mut endpoint, start, &hello, 10);
    let before = heap::allocated();
    for round in 1..4 {
        let start = start + Duration::from_secs(200 * round);
        let peak = flood(&mut endpoint, start, &hello, 2000);
        let after = heap::allocated();
        assert!(peak > before + 100 * SLACK, "{peak} bytes at the peak");
        assert!(after < before + SLACK, "{before} bytes, then {after}");
    }
}

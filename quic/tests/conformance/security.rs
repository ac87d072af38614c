//! Bugs that other stacks had in the field, and floods, where no other file has them.

use std::time::Duration;

use hybriq::tls::Side;
use hybriq_sim::{Ask, Datagram, Network, SERVER_ADDRESS, World, ms};

use crate::{
    duo::{client, server},
    forger::{client_hello, close_code, replaced},
};

const TRANSPORT_PARAMETER_ERROR: u64 = 0x08;

/// CVE-2026-11352: a datagram without bytes stopped the reader of a socket.
///
/// Proves: security 9 tiny-datagrams-are-harmless
#[test]
fn empty_and_tiny_datagrams_between_all_others_stop_nothing() {
    let transport = hybriq::TransportConfig::new;
    let mut world = World::new(Network::new(1).delay(ms(10)), server(transport()));
    world.connect(&client(transport()), Ask::streams(1, 100_000));
    let client = world.client_host(0).address;
    for round in 0..200 {
        let payload = vec![0x40 | round as u8; round % 22];
        for (toward, from, to) in [
            (Side::Server, client, SERVER_ADDRESS),
            (Side::Client, SERVER_ADDRESS, client),
        ] {
            world.inject(toward, Datagram::new(from, to, payload.clone()));
        }
        world.run_for(ms(1));
    }
    world.run(Duration::from_secs(120));
    assert!(world.client(0).done_at.is_some());
}

/// CVE-2026-31812 and others: parameters that no peer of good will sends.
///
/// Proves: security 1 transport-parameter-violations-close
#[test]
fn transport_parameters_that_break_the_rules_close_with_their_code() {
    let (hello, scid) = client_hello();
    // initial_source_connection_id: the id that the client wrote into its header.
    let mut named = vec![0x0f, scid.len() as u8];
    named.extend(scid.as_bytes());
    let mut foreign = named.clone();
    *foreign.last_mut().unwrap() ^= 1;
    // stateless_reset_token and original_destination_connection_id are for servers to send.
    let mut of_servers = named.clone();
    of_servers[0] = 0x00;
    // Lengths that reach into what follows, and beyond everything.
    let mut long = named.clone();
    long[1] = 0x3f;
    let code = |changed: &[u8]| close_code(&replaced(&hello, &named, changed), scid);
    for changed in [&foreign, &of_servers, &long] {
        assert_eq!(
            code(changed),
            Some(TRANSPORT_PARAMETER_ERROR),
            "{changed:x?}"
        );
    }
}

/// Each byte of the parameters with each of some values: an answer or a refusal, never a panic,
/// and never more than a connection.
///
/// Proves: security 1 transport-parameter-violations-close
#[test]
fn no_byte_of_the_parameters_makes_the_server_panic() {
    let (hello, scid) = client_hello();
    let place = hello.windows(2).position(|bytes| bytes == [0x00, 0x39]);
    let place = place.expect("quic_transport_parameters");
    for at in place + 4..(place + 120).min(hello.len()) {
        let mut changed = hello.clone();
        changed[at] ^= 0xff;
        let code = close_code(&changed, scid);
        assert!(code.is_none_or(|code| code != 0x01), "no internal error");
    }
}

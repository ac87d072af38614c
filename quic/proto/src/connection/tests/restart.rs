//! Tests of restarts after Version Negotiation (RFC 9000 §6.2).

use super::Pair;
use crate::{
    config::TransportConfig,
    wire::{packet::Version, udp::SocketId},
};

#[test]
fn a_client_that_begins_again_leaves_from_the_same_socket() {
    let client = TransportConfig::new().first_version(Version::V2);
    let server = TransportConfig::new().versions([Version::V1]);
    let mut pair = Pair::configured(client, server);
    let socket = SocketId(3);
    pair.client.connection().start_from(socket);
    while pair.client.connection().original_version() != Version::V1 {
        assert!(pair.step(), "it never began again");
        assert!(pair.client.endpoint_keeps());
    }
    assert_eq!(pair.client.connection().local().socket, socket);
    let mut out = [0; 1500];
    let transmit = pair
        .client
        .connection()
        .poll_transmit(pair.now, &mut out, 1);
    assert_eq!(transmit.unwrap().local.socket, socket);
}

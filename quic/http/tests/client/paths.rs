//! Paths to servers: where UDP does not get through, and where addresses do not answer.

use std::{
    net::{Ipv6Addr, SocketAddr},
    time::Duration,
};

use axum::Router;
use http::Version;
use hybriq::TransportConfig;
use hybriq_http::{Client, Http3};
use tokio::net::UdpSocket;

use crate::{
    common::{bytes, client, client_with, config, get, offering, post, until_http3, uri},
    front::Front,
    support::{run, soon},
};

/// HTTP/3 is tried first, and gets no answer.
#[tokio::test]
async fn http2_is_used_where_udp_is_dead() {
    let server = run(Router::new());
    let front = Front::of(server.address()).await;
    front.cut_udp();
    let client = client(Http3::First);
    for _ in 0..3 {
        let response = post(&client, front.address, "x").await.unwrap();
        assert_eq!(response.version(), Version::HTTP_2);
    }
    assert!(front.seen() > 0, "HTTP/3 was tried");
}

/// A port that is closed for UDP is left at once, and not tried again.
#[tokio::test]
async fn http2_is_used_after_an_offer_that_does_not_hold() {
    let nobody = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let offer = format!("h3=\":{}\"", nobody.local_addr().unwrap().port());
    let server = run(offering(&offer));
    let builder = Client::builder().connect_timeout(Duration::from_millis(200));
    let client = client_with(builder, config());
    let get = || get(&client, server.address());
    assert_eq!(get().await.version(), Version::HTTP_2);
    // The attempt goes on beside requests, and ends with the time to connect.
    let mut datagram = [0; 2000];
    assert_eq!(get().await.version(), Version::HTTP_2);
    soon(nobody.recv(&mut datagram)).await.unwrap();
    for _ in 0..10 {
        assert_eq!(get().await.version(), Version::HTTP_2);
    }
}

/// UDP dies under a connection that is used. The request is sent again over TCP, and so are the next.
#[tokio::test]
async fn http2_takes_over_when_udp_dies() {
    let server = run(Router::new());
    let front = Front::of(server.address()).await;
    let transport = TransportConfig::new().idle_timeout(Some(Duration::from_millis(300)));
    let builder = Client::builder().http3(Http3::First);
    let client = client_with(builder, config().transport(transport));
    assert_eq!(get(&client, front.address).await.version(), Version::HTTP_3);
    front.cut_udp();
    let response = get(&client, front.address).await;
    assert_eq!(response.version(), Version::HTTP_2);
    let response = post(&client, front.address, "x").await.unwrap();
    assert_eq!(response.version(), Version::HTTP_2);
    assert_eq!(bytes(response).await, "x");
}

/// Addresses of the other family that do not answer hold a connection up for the delay only: over TCP the
/// first is refused, over QUIC it is silent.
#[tokio::test]
async fn an_address_that_does_not_answer_is_passed_by() {
    let server = run(Router::new());
    let silent = SocketAddr::from((Ipv6Addr::LOCALHOST, server.address().port()));
    let Ok(silent) = UdpSocket::bind(silent).await else {
        println!("skipped: there is no IPv6");
        return;
    };
    for http3 in [Http3::Only, Http3::Off] {
        let addresses = [silent.local_addr().unwrap(), server.address()];
        let builder = Client::builder().http3(http3);
        let builder = builder.attempt_delay(Duration::from_millis(20));
        let client = builder.resolve("localhost", addresses).build(config());
        let response = soon(client.unwrap().get(uri(server.address(), "/"))).await;
        assert!(response.is_ok(), "{response:?}");
    }
    let mut datagram = [0; 2000];
    assert!(silent.try_recv(&mut datagram).is_ok(), "it was tried first");
}

/// After a move to another network, requests go on over new connections and a new socket.
#[tokio::test]
async fn the_network_may_change() {
    let server = run(Router::new());
    let client = client(Http3::Discover);
    until_http3(&client, server.address()).await;
    let before = get(&client, server.address()).await;
    client.on_network_change().unwrap();
    // The offer does not persist.
    let after = get(&client, server.address()).await;
    assert_eq!(after.version(), Version::HTTP_2);
    until_http3(&client, server.address()).await;
    let after = get(&client, server.address()).await;
    assert_ne!(after.headers()["x-peer"], before.headers()["x-peer"]);
}

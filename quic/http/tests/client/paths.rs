//! Paths to servers: where UDP does not get through, and where addresses do not answer.

use std::{
    net::{Ipv6Addr, SocketAddr},
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{Extension, Router, routing::any};
use http::Version;
use hybriq::{TransportConfig, memory::ServerMemory};
use hybriq_http::{Client, ClientError, Http3, OfferedHosts, Peer, QuicError};
use tokio::{net::UdpSocket, time::Instant};

use crate::{
    common::{bytes, client, client_with, config, get, offering, post, until_http3, uri},
    front::Front,
    support::{run, soon},
};

/// HTTP/3 is tried first, and gets no answer.
#[tokio::test]
async fn http2_is_used_where_udp_is_dead() {
    let server = run(offering("clear"));
    let front = Front::of(server.address()).await;
    front.cut_udp();
    let client = client(Http3::First);
    for _ in 0..3 {
        let response = post(&client, front.address, "x").await.unwrap();
        assert_eq!(response.version(), Version::HTTP_2);
    }
    assert_eq!(front.connections(), 1, "HTTP/3 was tried");
}

/// A place where HTTP/3 does not answer is tried once, whether an offer or the program named it.
#[tokio::test]
async fn a_place_without_http3_is_tried_once() {
    let server = run(offering("clear"));
    let front = Front::of(server.address()).await;
    front.cut_udp();
    let offering = run(offering(&format!("h3=\":{}\"", front.address.port())));
    for (http3, address) in [
        (Http3::Discover, offering.address()),
        (Http3::First, front.address),
    ] {
        let builder = Client::builder().http3(http3);
        let builder = builder.connect_timeout(Duration::from_millis(100));
        let builder = builder.attempt_delay(Duration::from_millis(10));
        let client = client_with(builder, config());
        front.forget_connections();
        // The attempt goes on beside requests, and ends with the time to connect.
        soon(async {
            while front.connections() == 0 {
                assert_eq!(get(&client, address).await.version(), Version::HTTP_2);
            }
        })
        .await;
        let end = Instant::now() + Duration::from_millis(300);
        while Instant::now() < end {
            client.close_idle();
            assert_eq!(get(&client, address).await.version(), Version::HTTP_2);
        }
        assert_eq!(front.connections(), 1, "{http3:?}");
    }
}

/// UDP dies under a connection that is used. The request is sent again over TCP, and so are the next.
#[tokio::test]
async fn http2_takes_over_when_udp_dies() {
    let server = run(offering("clear"));
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
    assert_eq!(front.connections(), 0, "HTTP/3 is left out for a while");
}

/// Addresses of the other family that do not answer hold a connection up for the delay only: over TCP the
/// first is refused, over QUIC it is silent.
#[tokio::test]
async fn an_address_that_does_not_answer_is_passed_by() {
    let server = run(Router::new());
    let silent = SocketAddr::from((Ipv6Addr::LOCALHOST, server.address().port()));
    let Ok(silent) = UdpSocket::bind(silent).await else {
        test_summary::skip("this machine has no IPv6");
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

/// The memory of servers goes through bytes, as in a file. The next client begins with HTTP/3, and a move to another
/// network changes that.
#[tokio::test]
async fn an_offer_outlives_the_client() {
    let server = run(Router::new());
    let client = |memory: ServerMemory| {
        let config = config().server_memory(memory);
        client_with(Client::builder(), config)
    };
    let memory = ServerMemory::new();
    let first = get(&client(memory.clone()), server.address()).await;
    assert_eq!(first.version(), Version::HTTP_2);
    let bytes = memory.to_bytes();
    for (moves, expected) in [(false, Version::HTTP_3), (true, Version::HTTP_2)] {
        let later = client(ServerMemory::from_bytes(&bytes).unwrap());
        if moves {
            later.on_network_change().unwrap();
        }
        let response = get(&later, server.address()).await;
        assert_eq!(response.version(), expected);
    }
}

/// Servers that take a connection and say nothing are given up in time, with an error for each way.
#[tokio::test]
async fn silent_servers_are_given_up() {
    let (tcp, udp) = crate::front::pair().await;
    let address = tcp.local_addr().unwrap();
    for http3 in [Http3::Only, Http3::First, Http3::Off] {
        let builder = Client::builder().http3(http3);
        let builder = builder.connect_timeout(Duration::from_millis(100));
        let builder = builder.attempt_delay(Duration::from_millis(10));
        let client = client_with(builder, config());
        // Those that wait share the attempt.
        let asked = (0..10).map(|_| client.get(uri(address, "/")));
        for error in soon(futures_util::future::join_all(asked)).await {
            let error = error.unwrap_err();
            let ClientError::Connect { quic, tcp, .. } = &error else {
                panic!("{error}");
            };
            assert_eq!(quic.is_some(), http3 != Http3::Off, "{error}");
            assert_eq!(tcp.is_some(), http3 != Http3::Only, "{error}");
            assert!(error.to_string().contains("connect_timeout"), "{error}");
        }
    }
    drop(udp);
}

/// Another host is not even looked up, unless the program allows other hosts.
#[tokio::test]
async fn a_server_offers_its_own_host_only() {
    let other = run(Router::new());
    let offer = format!("h3=\"other.test:{}\"", other.address().port());
    let server = run(offering(&offer));
    let names: Arc<Mutex<Vec<String>>> = Arc::default();
    let asked = names.clone();
    let builder = Client::builder().resolver(move |name, port| {
        asked.lock().unwrap().push(name);
        std::future::ready(Ok(vec![SocketAddr::from(([127, 0, 0, 1], port))]))
    });
    let client = builder.build(config()).unwrap();
    for _ in 0..20 {
        let response = get(&client, server.address()).await;
        assert_eq!(response.version(), Version::HTTP_2);
    }
    let names = names.lock().unwrap();
    assert!(names.iter().all(|name| name == "localhost"), "{names:?}");
}

/// The addresses of an alternative have rules too, which hold when it is connected to.
#[tokio::test]
async fn no_datagram_goes_to_an_address_that_the_rules_exclude() {
    let server = run(offering("h3=\"other.test:8443\""));
    let group = SocketAddr::from(([224, 0, 0, 1], 8443));
    let builder = Client::builder().offered_hosts(OfferedHosts::Any);
    let client = client_with(builder.resolve("other.test", [group]), config());
    get(&client, server.address()).await;
    // The next connection is to the alternative, and nobody is left whom to ask over TCP.
    soon(server.handle.shutdown(Duration::ZERO)).await;
    client.close_idle();
    let refused = soon(client.get(uri(server.address(), "/")))
        .await
        .unwrap_err();
    let ClientError::Connect {
        quic: Some(quic), ..
    } = refused
    else {
        panic!("{refused}");
    };
    assert!(matches!(*quic, QuicError::Excluded), "{quic}");
}

/// An alternative on another host is used under the name of the server, and named in the requests.
#[tokio::test]
async fn alternatives_may_have_other_names() {
    let show = async |fields: http::HeaderMap, Extension(peer): Extension<Peer>| {
        let used = fields
            .get("alt-used")
            .map(|used| used.to_str().unwrap().to_owned());
        format!("{:?} {:?} {used:?}", peer.version, peer.tls.server_name)
    };
    let alternative = run(Router::new().route("/", any(show)));
    let port = alternative.address().port();
    let server = run(offering(&format!("h3=\"other.test:{port}\"")));
    let builder = Client::builder().resolve("other.test", [alternative.address()]);
    let builder = builder.offered_hosts(OfferedHosts::Any);
    let client = client_with(builder, config());
    until_http3(&client, server.address()).await;
    let page = bytes(get(&client, server.address()).await).await;
    let expected = format!("HTTP/3.0 Some(\"localhost\") Some(\"other.test:{port}\")");
    assert_eq!(page, expected);
}

/// A host that cannot be resolved, and one without an address.
#[tokio::test]
async fn hosts_without_addresses_are_named() {
    let resolver = async |name: String, _| match name.as_str() {
        "empty.test" => Ok(Vec::new()),
        _ => Err(std::io::Error::other("no such name")),
    };
    for http3 in [Http3::Only, Http3::First, Http3::Off] {
        let builder = Client::builder().http3(http3).resolver(resolver);
        let client = builder.build(config()).unwrap();
        for (uri, text) in [
            ("https://empty.test/", "'empty.test' has no address"),
            ("https://other.test/", "no such name"),
        ] {
            let error = soon(client.get(uri)).await.unwrap_err();
            assert!(matches!(error, ClientError::Connect { .. }), "{error}");
            assert!(error.to_string().contains(text), "{error}");
        }
    }
}

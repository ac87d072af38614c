//! Connections that move from socket to socket, and datagrams larger than 1200 bytes, over loopback.

use std::{net::SocketAddr, process::Command};

use hybriq::{Endpoint, EndpointError, TransportConfig, error::MigrateError};

use crate::endpoint_support::{Pair, client, client_config, server, server_config, soon};

const MESSAGE: usize = 1 << 20;

fn message() -> Vec<u8> {
    (0..MESSAGE).map(|i| (i % 251) as u8).collect()
}

async fn pair_from(address: &str) -> Pair {
    let client = Endpoint::builder().client(client_config());
    Pair::of(
        server("127.0.0.1:0"),
        client.bind(address).expect("a free port"),
    )
    .await
}

#[tokio::test]
async fn a_transfer_goes_on_while_the_client_moves() {
    let pair = pair_from("127.0.0.1:0").await;
    let first = pair.server.peer_address();
    let message = message();
    let moves = async {
        let mut places = vec![first];
        for _ in 0..3 {
            let now_at = soon(pair.client.migrate("127.0.0.1:0".parse().unwrap())).await;
            places.push(now_at.unwrap());
        }
        places
    };
    let (echo, places) = tokio::join!(pair.echo(&message), moves);
    assert_eq!(echo, message);
    let again = pair.echo(&message[..1000]).await;
    assert_eq!(again, &message[..1000]);
    assert_eq!(pair.server.peer_address(), places[3]);
    let mut distinct = places.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), 4);
    assert_eq!(pair.client_endpoint.local_address(), first, "it is kept");
}

/// The server asks on each address that was left whether the client is still there, and it is.
#[tokio::test]
async fn a_client_moves_more_often_than_there_are_ids_at_once() {
    let pair = pair_from("127.0.0.1:0").await;
    for _ in 0..12 {
        let now_at = soon(pair.client.migrate("127.0.0.1:0".parse().unwrap())).await;
        assert_eq!(pair.echo(b"are you there?").await, b"are you there?");
        assert_eq!(Ok(pair.server.peer_address()), now_at);
    }
}

#[tokio::test]
async fn an_endpoint_takes_its_connections_along() {
    let pair = pair_from("127.0.0.1:0").await;
    let old = pair.client_endpoint.local_address();
    let message = message();
    let now_at = pair.client_endpoint.rebind("127.0.0.1:0").unwrap();
    assert_eq!(pair.echo(&message).await, message);
    assert_eq!(pair.client_endpoint.local_address(), now_at);
    soon(async {
        while pair.server.peer_address() != now_at {
            pair.echo(b"are you there?").await;
        }
    })
    .await;
    let connecting = pair
        .client_endpoint
        .connect(pair.server_endpoint.local_address(), "localhost");
    let accept = async { pair.server_endpoint.accept().await.unwrap().accept().await };
    let (accepted, connected) = soon(async { tokio::join!(accept, connecting) }).await;
    assert_eq!(accepted.unwrap().peer_address(), now_at);
    assert!(connected.is_ok());
    // Once nothing is in flight on it, the system may give the old port to others.
    soon(async {
        while std::net::UdpSocket::bind(old).is_err() {
            pair.echo(b"time goes by").await;
        }
    })
    .await;
}

/// The new socket belongs to the endpoint's runtime, not to that of the caller.
#[tokio::test]
async fn an_endpoint_moves_on_its_own_runtime() {
    let pair = pair_from("127.0.0.1:0").await;
    let endpoint = pair.client_endpoint.clone();
    let elsewhere = std::thread::spawn(move || {
        let outside = endpoint.rebind("127.0.0.1:0").unwrap();
        let without_io = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let inside = without_io.block_on(async { endpoint.rebind("127.0.0.1:0") });
        (outside, inside.unwrap())
    });
    let (outside, inside) = elsewhere.join().unwrap();
    assert_ne!(outside, inside);
    soon(async {
        while pair.server.peer_address() != inside {
            pair.echo(b"are you there?").await;
        }
    })
    .await;
    pair.client_endpoint.close(0, b"");
    let error = pair.client_endpoint.rebind("127.0.0.1:0").unwrap_err();
    assert!(matches!(error, hybriq::EndpointError::Closed), "{error}");
}

#[tokio::test]
async fn the_socket_that_was_left_is_closed() {
    let pair = pair_from("127.0.0.1:0").await;
    let first = pair.client.migrate("127.0.0.1:0".parse().unwrap());
    let first = soon(first).await.unwrap();
    let second = pair.client.migrate("127.0.0.1:0".parse().unwrap());
    soon(second).await.unwrap();
    soon(async {
        while std::net::UdpSocket::bind(first).is_err() {
            pair.echo(b"time goes by").await;
        }
    })
    .await;
}

#[tokio::test]
async fn who_cannot_move_is_told_why_and_stays() {
    let pair = pair_from("127.0.0.1:0").await;
    let anywhere = "127.0.0.1:0".parse().unwrap();
    assert_eq!(
        soon(pair.server.migrate(anywhere)).await,
        Err(MigrateError::Server)
    );
    let taken = pair.server_endpoint.local_address();
    assert_eq!(
        soon(pair.client.migrate(taken)).await,
        Err(MigrateError::Bind(taken, std::io::ErrorKind::AddrInUse))
    );
    assert_eq!(
        soon(pair.client.migrate("[::1]:0".parse().unwrap())).await,
        Err(MigrateError::Unreachable)
    );
    assert_eq!(pair.echo(b"still here").await, b"still here");
    pair.client.close(0, b"");
    assert_eq!(
        soon(pair.client.migrate(anywhere)).await,
        Err(MigrateError::Closed)
    );
}

#[tokio::test]
async fn the_last_wish_counts() {
    let pair = pair_from("127.0.0.1:0").await;
    let anywhere = "127.0.0.1:0".parse().unwrap();
    let (first, second) =
        soon(async { tokio::join!(pair.client.migrate(anywhere), pair.client.migrate(anywhere)) })
            .await;
    assert_eq!(first, Err(MigrateError::Replaced));
    pair.echo(b"moved").await;
    assert_eq!(pair.server.peer_address(), second.unwrap());
}

#[tokio::test]
async fn a_server_is_reached_on_each_of_its_sockets() {
    let server = Endpoint::builder()
        .server(server_config())
        .also_bind("127.0.0.1:0".parse().unwrap())
        .also_bind("[::1]:0".parse().unwrap())
        .bind("127.0.0.1:0")
        .unwrap();
    let addresses = server.local_addresses();
    assert_eq!(addresses.len(), 3);
    assert_eq!(addresses[0], server.local_address());
    let client = client();
    for address in addresses {
        let accept = async { server.accept().await.unwrap().accept().await };
        let connect = client.connect(address, "localhost");
        let (accepted, connected) = soon(async { tokio::join!(accept, connect) }).await;
        assert_eq!(connected.unwrap().peer_address(), address);
        accepted.unwrap();
    }
}

/// Proves: rfc9000 9.6.3 client-moves-to-preferred-address
#[tokio::test]
async fn clients_move_to_the_second_socket_of_a_server_that_prefers_it() {
    let free = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let SocketAddr::V4(preferred) = free.local_addr().unwrap() else {
        panic!("it is an IPv4 address");
    };
    drop(free);
    let transport = TransportConfig::new().preferred_address(Some(preferred), None);
    let server = Endpoint::builder()
        .server(server_config().transport(transport))
        .also_bind(preferred.into())
        .bind("127.0.0.1:0")
        .unwrap();
    let pair = Pair::of(server, client()).await;
    let message = message();
    assert_eq!(pair.echo(&message).await, message);
    soon(async {
        while pair.client.peer_address() != preferred.into() {
            pair.echo(b"are you there?").await;
        }
    })
    .await;
    assert_eq!(pair.echo(&message).await, message);
}

#[tokio::test]
async fn more_addresses_than_there_is_room_for_are_an_error() {
    let mut builder = Endpoint::builder().server(server_config());
    for _ in 0..8 {
        builder = builder.also_bind("127.0.0.1:0".parse().unwrap());
    }
    let error = builder.bind("127.0.0.1:0").unwrap_err();
    assert!(matches!(error, EndpointError::Addresses(9)), "{error}");
}

/// The loopback interface carries 64 KiB.
#[tokio::test]
async fn datagrams_grow_up_to_what_is_asked_for() {
    for (most, grown) in [(None, 1452), (Some(9000), 9000), (Some(65_000), 65_000)] {
        let transport = || match most {
            Some(most) => TransportConfig::new().max_datagram_size(most),
            None => TransportConfig::new(),
        };
        let server = Endpoint::server("127.0.0.1:0", server_config().transport(transport()));
        let client = Endpoint::client(client_config().transport(transport()));
        let pair = Pair::of(server.unwrap(), client.unwrap()).await;
        let message = message();
        assert_eq!(pair.echo(&message).await, message);
        for connection in [&pair.client, &pair.server] {
            assert_eq!(connection.path_stats().datagram_size, grown);
            let stats = connection.stats();
            assert_eq!((stats.mtu_probes_sent, stats.mtu_probes_lost), (1, 0));
        }
    }
}

/// Proves: rfc9000 14 no-fragments
///
/// The test runs itself in a network of its own, whose loopback interface carries 1400 bytes.
/// Proves: security 8 pmtu-injection-is-ignored
#[test]
#[cfg(target_os = "linux")]
fn the_mtu_of_a_real_interface_is_found() {
    let shell = "ip link set lo mtu 1400 up || exit 77; exec \"$0\" \
                 --exact sockets::in_a_network_of_1400_bytes --ignored --nocapture";
    let this = std::env::current_exe().unwrap();
    let output = Command::new("unshare")
        .args(["-rn", "sh", "-c", shell])
        .arg(this)
        .output();
    let said = |output: &std::process::Output| {
        let (out, err) = (&output.stdout, &output.stderr);
        [out, err].map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    };
    match output {
        Ok(output) if said(&output)[0].contains("running 1 test") => {
            assert!(output.status.success(), "{:?}", said(&output));
        }
        Ok(output) => test_summary::skip(format!(
            "a network of its own needs root or user namespaces: {:?}",
            said(&output)
        )),
        Err(error) => test_summary::skip(format!("a network of its own needs util-linux: {error}")),
    }
}

/// Run by the one above.
#[tokio::test]
#[ignore = "needs a loopback interface with an MTU of 1400"]
async fn in_a_network_of_1400_bytes() {
    let pair = pair_from("127.0.0.1:0").await;
    let message = message();
    soon(async {
        // The last of what may fit is tried while there is something to send.
        while !(1353..=1372).contains(&pair.client.path_stats().datagram_size) {
            assert_eq!(pair.echo(&message).await, message);
        }
    })
    .await;
    let stats = pair.client.stats();
    assert!(stats.mtu_probes_lost >= 3, "{stats:?}");
    assert_eq!(stats.mtu_black_holes, 0);
}

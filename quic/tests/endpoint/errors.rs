//! Errors that users see when something cannot work: one line that says how to fix it.

use std::time::Duration;

use crate::endpoint_support::{Pair, client, client_config, server, server_config, soon};
use hybriq::{ConnectError, Endpoint, EndpointError, Identity, TransportConfig};

fn told(endpoint: Result<Endpoint, EndpointError>) -> String {
    let message = endpoint.expect_err("it cannot be made").to_string();
    assert_eq!(message.lines().count(), 1);
    message
}

#[tokio::test]
async fn a_port_in_use_is_named() {
    let first = server("127.0.0.1:0");
    let address = first.local_address();
    assert_eq!(
        told(Endpoint::server(address, server_config())),
        format!(
            "{address} is already in use; stop the other program or choose another port \
             (0 picks a free one)"
        )
    );
}

#[tokio::test]
async fn an_address_of_another_machine_is_named() {
    let message = told(Endpoint::server("192.0.2.1:0", server_config()));
    assert_eq!(
        message,
        "192.0.2.1:0 is not an address of this machine; use one it has, or [::] for all"
    );
}

#[tokio::test]
async fn an_address_that_is_none_is_an_error() {
    let message = told(Endpoint::server("4433", server_config()));
    assert!(
        message.starts_with("cannot resolve the address to bind to: "),
        "{message}"
    );
}

#[test]
fn an_endpoint_needs_a_runtime() {
    let message = told(Endpoint::client(client_config()));
    assert!(message.starts_with("no tokio runtime here"), "{message}");
}

#[tokio::test]
async fn an_unusable_identity_fails_before_the_port_is_taken() {
    let config = hybriq::ServerConfig::new(Identity::from_der(
        vec![b"no certificate".to_vec().into()],
        hybriq::tls::PrivateKeyDer::Pkcs8(b"no key".to_vec().into()),
    ));
    let error = Endpoint::server("127.0.0.1:0", config).unwrap_err();
    assert!(matches!(error, EndpointError::Tls(_)), "{error}");
}

#[tokio::test]
async fn what_cannot_be_connected_to_is_an_error_at_once() {
    let server = server("127.0.0.1:0");
    let address = server.local_address();
    let error = soon(server.connect(address, "localhost"))
        .await
        .unwrap_err();
    assert!(matches!(error, ConnectError::NoClientConfig), "{error}");

    let client = client();
    for name in ["", "two words", "-a", "a..b", "ö"] {
        let error = soon(client.connect(address, name)).await.unwrap_err();
        assert!(
            matches!(&error, ConnectError::ServerName(told) if told == name),
            "{error}"
        );
    }
    let error = soon(client.connect(([127, 0, 0, 1], 0).into(), "localhost"))
        .await
        .unwrap_err();
    assert!(matches!(error, ConnectError::PortZero(_)), "{error}");
    for address in ["0.0.0.0:4433", "[::]:4433"] {
        let error = soon(client.connect(address.parse().unwrap(), "localhost"))
            .await
            .unwrap_err();
        assert!(matches!(error, ConnectError::Address(_)), "{error}");
    }
    let ipv4 = Endpoint::builder()
        .client(client_config())
        .bind("127.0.0.1:0")
        .unwrap();
    let error = soon(ipv4.connect("[::1]:4433".parse().unwrap(), "localhost"))
        .await
        .unwrap_err();
    assert!(matches!(error, ConnectError::Address(_)), "{error}");
}

#[tokio::test]
async fn values_beyond_what_quic_can_say_are_lowered() {
    let extreme = TransportConfig::new()
        .receive_window(u64::MAX)
        .stream_receive_window(u64::MAX)
        .send_buffer(0)
        .max_bidi_streams(u64::MAX)
        .max_uni_streams(u64::MAX)
        .max_ack_delay(Duration::MAX)
        .initial_rtt(Duration::MAX);
    let lowered = async |forever| {
        let transport = extreme
            .clone()
            .idle_timeout(forever)
            .handshake_timeout(Duration::MAX);
        let server = server_config().transport(transport.clone());
        let client = client_config().transport(transport);
        let pair = Pair::of(
            Endpoint::server("127.0.0.1:0", server).unwrap(),
            Endpoint::client(client).unwrap(),
        )
        .await;
        assert_eq!(pair.echo(b"hello").await, b"hello");
    };
    // Each waits for an acknowledgement that is delayed by 16 s, the most that QUIC can say.
    tokio::join!(
        lowered(Some(Duration::MAX)),
        lowered(Some(Duration::ZERO)),
        lowered(None)
    );
}

#[test]
#[should_panic(expected = "timers are disabled")]
fn an_endpoint_needs_the_time_driver() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .unwrap();
    let _inside = runtime.enter();
    let _ = Endpoint::builder()
        .client(client_config())
        .bind("127.0.0.1:0");
}

#[test]
#[should_panic(expected = "IO is disabled")]
fn an_endpoint_needs_the_io_driver() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let _inside = runtime.enter();
    let _ = Endpoint::builder()
        .client(client_config())
        .bind("127.0.0.1:0");
}

/// A silent address must not hold up the next one: its handshake is given up when another is complete.
#[tokio::test]
async fn a_silent_address_does_not_hold_up_a_server_with_several() {
    let transport = TransportConfig::new()
        .handshake_timeout(Duration::from_secs(3600))
        .idle_timeout(None);
    let endpoint = Endpoint::client(client_config().transport(transport)).unwrap();
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let server = server("127.0.0.1:0");
    let addresses = [silent.local_addr().unwrap(), server.local_address()];
    let connecting = soon(endpoint.connect_any(addresses, "localhost"));
    let accepting = async { server.accept().await.unwrap().accept().await };
    let (connected, accepted) = tokio::join!(connecting, soon(accepting));
    assert_eq!(connected.unwrap().peer_address(), server.local_address());
    accepted.unwrap();
}

#[tokio::test]
async fn a_host_that_is_none_is_named() {
    let endpoint = client();
    let port =
        "'localhost' is not name:port; give the server as example.com:443, or [2001:db8::1]:443";
    let error = soon(endpoint.connect_host("localhost")).await.unwrap_err();
    assert_eq!(error.to_string(), port);
    let error = soon(endpoint.connect_any([], "localhost"))
        .await
        .unwrap_err();
    assert!(matches!(error, ConnectError::Lookup { .. }), "{error}");
    assert!(error.to_string().ends_with("; check the name"), "{error}");
}

#[tokio::test]
async fn a_server_is_found_by_name_and_port() {
    let server = server("127.0.0.1:0");
    let host = format!("localhost:{}", server.local_address().port());
    let endpoint = client();
    let accepting = async { server.accept().await.unwrap().accept().await };
    let (connected, accepted) = tokio::join!(soon(endpoint.connect_host(&host)), soon(accepting));
    assert_eq!(connected.unwrap().peer_address(), server.local_address());
    accepted.unwrap();
}

//! Clients prove their addresses, over real loopback sockets.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use crate::endpoint_support::{client, client_config, server_config, soon};
use hybriq::{
    Backend, Endpoint, EndpointBuilder, Incoming,
    fleet::{AddressValidation, FleetKeys},
};

fn builder() -> EndpointBuilder {
    Endpoint::builder().server(server_config())
}

/// Connects, says something and closes. The server deals with every `Incoming` as told, until it
/// gets one back to accept; whether the address of that was validated is the result.
async fn connect(
    client: &Endpoint,
    server: &Endpoint,
    decide: impl Fn(Incoming) -> Option<Incoming>,
) -> bool {
    let serve = async {
        loop {
            let incoming = server.accept().await.unwrap();
            if let Some(incoming) = decide(incoming) {
                let validated = incoming.is_validated();
                return (incoming.accept().await.unwrap(), validated);
            }
        }
    };
    let connecting = client.connect(server.local_address(), "localhost");
    let ((accepted, validated), connected) = soon(async { tokio::join!(serve, connecting) }).await;
    let connected = connected.unwrap();
    // The server's messages after the handshake come before this.
    let say = async {
        let mut send = accepted.open_uni().await.unwrap();
        send.write_all(b"over").await.unwrap();
        send.finish();
        accepted.closed().await;
    };
    let listen = async {
        let mut recv = connected.accept_uni().await.unwrap().unwrap();
        assert_eq!(recv.read_to_end(10).await.unwrap(), b"over");
        connected.close(0, b"");
    };
    soon(async { tokio::join!(say, listen) }).await;
    validated
}

#[tokio::test]
async fn an_application_may_send_clients_away() {
    for backend in Backend::ALL {
        let server = builder()
            .address_validation(AddressValidation::Never)
            .bind("127.0.0.1:0")
            .unwrap();
        let client = Endpoint::client(client_config().tls(backend)).unwrap();
        connect(&client, &server, |incoming| {
            // Half of the ClientHello may be late on a busy machine, and be acknowledged.
            if !incoming.may_retry() {
                return Some(incoming);
            }
            assert!(!incoming.is_validated());
            incoming.retry().unwrap();
            None
        })
        .await;
        assert_eq!(server.stats().waiting_incoming, 0);
    }
}

#[tokio::test]
async fn a_client_that_followed_a_retry_is_given_back() {
    let server = builder()
        .address_validation(AddressValidation::Always)
        .bind("127.0.0.1:0")
        .unwrap();
    let validated = connect(&client(), &server, |incoming| {
        assert!(incoming.is_validated() && !incoming.may_retry());
        Some(*incoming.retry().unwrap_err())
    })
    .await;
    assert!(validated);
}

/// Proves: rfc9000 8.1.3 new-token-is-used
#[tokio::test]
async fn a_client_that_comes_back_needs_no_retry_on_any_server_of_a_fleet() {
    let server = || {
        let keys = FleetKeys::from_secret(&[9; 32]).unwrap();
        builder()
            .fleet_keys(&keys)
            .address_validation(AddressValidation::Always)
            .bind("127.0.0.1:0")
            .unwrap()
    };
    let (first, second, client) = (server(), server(), client());
    assert!(connect(&client, &first, Some).await);
    assert!(connect(&client, &second, Some).await);
    soon(second.idle()).await;
    let stats = second.stats();
    assert_eq!((stats.retries_sent, stats.addresses_validated), (0, 1));
    assert_eq!((stats.tokens_rejected, stats.tokens_replayed), (0, 0));
}

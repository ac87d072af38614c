//! Versions and key updates as an application sees them.

use hybriq::{ConnectError, ConnectionError, Endpoint, TransportConfig, transport::Version};

use crate::endpoint_support::{Pair, client_config, reachable, server, server_config, soon};

fn only(version: Version) -> TransportConfig {
    TransportConfig::new().versions([version])
}

#[tokio::test]
async fn both_ends_see_the_version_they_agreed_on() {
    let pair = Pair::new("127.0.0.1:0").await;
    assert_eq!(pair.client.version(), Version::V2);
    assert_eq!(pair.server.version(), Version::V2);
    assert_eq!(pair.client.handshake().version, Version::V2);
}

#[tokio::test]
async fn a_client_that_begins_in_another_version_is_led_to_the_servers() {
    let config = server_config().transport(only(Version::V1));
    let server = Endpoint::server("127.0.0.1:0", config).unwrap();
    let transport = TransportConfig::new().first_version(Version::V2);
    let client = Endpoint::client(client_config().transport(transport)).unwrap();
    let pair = Pair::of(server, client).await;
    assert_eq!(pair.client.version(), Version::V1);
    assert_eq!(pair.server.version(), Version::V1);
    let mut send = pair.client.open_uni().await.unwrap();
    send.write_all(b"x").await.unwrap();
    soon(send.acknowledged()).await.unwrap();
}

#[tokio::test]
async fn a_client_without_a_version_of_the_servers_is_told_so() {
    let config = server_config().transport(only(Version::V1));
    let server = Endpoint::server("127.0.0.1:0", config).unwrap();
    let client = Endpoint::client(client_config().transport(only(Version::V2))).unwrap();
    let outcome = soon(client.connect(reachable(&server), "localhost")).await;
    let Err(ConnectError::Connection(error)) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(error, ConnectionError::VersionMismatch);
}

#[tokio::test]
async fn an_application_may_update_the_keys() {
    let pair = Pair::of(server("127.0.0.1:0"), crate::endpoint_support::client()).await;
    pair.client.update_keys();
    // The update starts once the handshake is confirmed and something was acknowledged.
    for _ in 0..100 {
        let mut send = pair.client.open_uni().await.unwrap();
        send.write_all(b"x").await.unwrap();
        soon(send.acknowledged()).await.unwrap();
        if pair.server.stats().key_updates > 0 {
            break;
        }
    }
    assert_eq!(pair.client.stats().key_updates, 1);
    assert_eq!(pair.server.stats().key_updates, 1);
}

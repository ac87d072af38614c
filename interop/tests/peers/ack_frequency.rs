//! Tests that hybriq and quinn ask each other for fewer acknowledgements
//! (draft-ietf-quic-ack-frequency).

use std::sync::Arc;

use hybriq_interop::{
    Bulk, Certificate, Groups, Peer, Setup, echo_stream,
    peers::{Hybriq, Quinn},
};
use quinn::{AckFrequencyConfig, Endpoint, TransportConfig};

/// Requests an acknowledgement for every tenth packet and for losses.
fn requests() -> AckFrequencyConfig {
    let mut requests = AckFrequencyConfig::default();
    requests
        .ack_eliciting_threshold(9_u32.into())
        .reordering_threshold(3_u32.into());
    requests
}

fn server(setup: &Setup) -> Endpoint {
    let mut config = Quinn::server_config(setup).expect("a configuration");
    let mut transport = TransportConfig::default();
    transport.ack_frequency_config(Some(requests()));
    config.transport_config(Arc::new(transport));
    Endpoint::server(config, ([127, 0, 0, 1], 0).into()).expect("a socket")
}

#[tokio::test(flavor = "multi_thread")]
async fn thirty_two_mebibytes_each_way_with_requests_of_both_ends() {
    let certificate = Certificate::generate().expect("a certificate");
    let setup = Setup::new(certificate, Groups::PreferPostQuantum);
    let endpoint = server(&setup);
    let address = endpoint.local_addr().expect("an address");
    let echo = tokio::spawn(async move {
        let incoming = endpoint.accept().await.expect("a client");
        let connection = incoming.await.expect("a connection");
        let (writer, reader) = connection.accept_bi().await.expect("a stream");
        echo_stream(Box::new(writer), Box::new(reader)).await;
        connection.closed().await;
        connection.stats()
    });

    let peer = Hybriq(hybriq::Backend::Rustls);
    let connection = peer.connect(&setup, address).await.expect("a connection");
    let bulk = Bulk {
        bytes: 32 * 1024 * 1024,
        seed: 7,
    };
    let receipt = bulk.exchange(&*connection).await.expect("an echo");
    assert!(receipt.bytes == bulk.bytes && receipt.is_intact());
    connection.close();

    let stats = echo.await.expect("an echo");
    assert!(stats.frame_tx.ack_frequency > 0, "quinn asked for nothing");
    assert!(stats.frame_rx.ack_frequency > 0, "hybriq asked for nothing");
}

//! One QUIC connection over the loopback interface, between any two providers.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use hybriq::{ClientConfig, Endpoint, Handshake, Identity, ServerConfig};
use hybriq_tls::Provider;

use super::handshake::SERVER_NAME;
use crate::system::failure::Failure;

/// Timeout, longer than any connection on one machine takes.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Outcome of a connection, as the client and as the server saw it.
pub(crate) struct Connected {
    pub(crate) client: Handshake,
    pub(crate) server: Handshake,
    /// Bytes of UDP payload that the client sent and received until the server's first data
    /// arrived.
    pub(crate) sent_bytes: u64,
    pub(crate) received_bytes: u64,
    /// Number of certificates that the server saw.
    pub(crate) client_certificates: usize,
}

/// Connects, sends one byte each way, and closes.
pub(crate) async fn connect(
    client: Arc<dyn Provider>,
    server: Arc<dyn Provider>,
    identity: Identity,
) -> Result<Connected, Failure> {
    let config = ServerConfig::new(identity).provider(server);
    let server = Endpoint::server(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), config)?;
    let client = Endpoint::client(ClientConfig::new().provider(client))?;
    let address = server.local_address();
    let ask = async {
        let connection = client.connect(address, SERVER_NAME).await?;
        let (mut send, mut receive) = connection.open_bidi().await?;
        send.write_all(b"?").await?;
        send.finish();
        let answer = receive.read_to_end(1).await?;
        if answer != b"!" {
            return Err("the server's answer is another".into());
        }
        let stats = connection.stats();
        let handshake = connection.handshake().clone();
        connection.close(0, b"");
        Ok::<_, Failure>((handshake, stats.bytes_sent, stats.bytes_received))
    };
    let answer = async {
        let incoming = server.accept().await.ok_or("the server stopped")?;
        let connection = incoming.accept().await?;
        let (mut send, mut receive) = connection
            .accept_bidi()
            .await?
            .ok_or("the client asked nothing")?;
        receive.read_to_end(1).await?;
        send.write_all(b"!").await?;
        send.finish();
        connection.closed().await;
        Ok::<_, Failure>((
            connection.handshake().clone(),
            connection.peer_certificates().len(),
        ))
    };
    let both = async { tokio::try_join!(ask, answer) };
    let both = tokio::time::timeout(TIMEOUT, both).await;
    let ((client, sent_bytes, received_bytes), (server, client_certificates)) =
        both.map_err(|_| "nothing came of it in 10 s")??;
    Ok(Connected {
        client,
        server,
        sent_bytes,
        received_bytes,
        client_certificates,
    })
}

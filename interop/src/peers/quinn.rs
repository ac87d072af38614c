use std::{net::SocketAddr, sync::Arc};

use hybriq::By;
use quinn::{
    ConnectionError, Endpoint, TransportConfig, VarInt,
    crypto::rustls::{QuicClientConfig, QuicServerConfig},
};
use rustls::{
    RootCertStore,
    crypto::{CryptoProvider, aws_lc_rs},
    version::TLS13,
};
use tokio::sync::mpsc;

use crate::{
    ALPN, Answer, Connection, Failure, Groups, Handshake, NARROW_CONNECTION, NARROW_STREAM, Peer,
    Reader, Role, SERVER_NAME, Server, Setup, Windows, Writer, echo_stream,
};

/// quinn 0.11 on rustls with aws-lc-rs.
///
/// Its public API tells neither the group nor the HelloRetryRequest.
#[derive(Clone, Copy, Debug)]
pub struct Quinn;

impl Peer for Quinn {
    fn name(&self) -> &'static str {
        "quinn"
    }

    fn supports(&self, role: Role, groups: Groups) -> bool {
        role == Role::Client || groups != Groups::ClassicalShareFirst
    }

    // rustls 0.23 follows the client's order.
    fn retries_for_post_quantum(&self) -> bool {
        false
    }

    fn serve(&self, setup: &Setup) -> Result<Server, Failure> {
        let config = server_config(setup)?;
        let endpoint =
            Endpoint::server(config, ([127, 0, 0, 1], 0).into()).map_err(Failure::set_up)?;
        let address = endpoint.local_addr().map_err(Failure::set_up)?;
        let (outcomes, received) = mpsc::unbounded_channel();
        let task = tokio::spawn(async move {
            while let Some(incoming) = endpoint.accept().await {
                match incoming.await {
                    Ok(connection) => {
                        let _ = outcomes.send(Ok(Handshake::default()));
                        tokio::spawn(echo_connection(connection));
                    }
                    Err(error) => {
                        let _ = outcomes.send(Err(failure(&error)));
                    }
                }
            }
        });
        Ok(Server::new(address, received, task))
    }

    fn connect<'a>(
        &'a self,
        setup: &'a Setup,
        server: SocketAddr,
    ) -> Answer<'a, Result<Box<dyn Connection>, Failure>> {
        Box::pin(async move {
            let config = client_config(setup)?;
            let endpoint = Endpoint::client(([127, 0, 0, 1], 0).into()).map_err(Failure::set_up)?;
            let connection = endpoint
                .connect_with(config, server, SERVER_NAME)
                .map_err(Failure::set_up)?
                .await
                .map_err(|error| failure(&error))?;
            Ok(Box::new(Opened(connection)) as Box<dyn Connection>)
        })
    }
}

async fn echo_connection(connection: quinn::Connection) {
    while let Ok((writer, reader)) = connection.accept_bi().await {
        tokio::spawn(echo_stream(Box::new(writer), Box::new(reader)));
    }
}

struct Opened(quinn::Connection);

impl Connection for Opened {
    fn handshake(&self) -> Handshake {
        Handshake::default()
    }

    fn open(&self) -> Answer<'_, Result<(Writer, Reader), Failure>> {
        Box::pin(async move {
            let (writer, reader) = self.0.open_bi().await.map_err(|error| failure(&error))?;
            Ok((Box::new(writer) as Writer, Box::new(reader) as Reader))
        })
    }

    fn close(&self) {
        self.0.close(VarInt::from_u32(0), b"");
    }
}

fn failure(error: &ConnectionError) -> Failure {
    match error {
        ConnectionError::ConnectionClosed(close) => Failure::Transport {
            by: By::Peer,
            code: close.error_code.into(),
            reason: String::from_utf8_lossy(&close.reason).into_owned(),
        },
        ConnectionError::TransportError(error) => Failure::Transport {
            by: By::Local,
            code: error.code.into(),
            reason: error.reason.clone(),
        },
        other => Failure::other(other),
    }
}

fn transport(windows: Windows) -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
    if windows == Windows::Narrow {
        config
            .stream_receive_window(NARROW_STREAM.into())
            .receive_window(NARROW_CONNECTION.into())
            .send_window(NARROW_CONNECTION.into());
    }
    Arc::new(config)
}

fn provider(groups: Groups) -> Arc<CryptoProvider> {
    use aws_lc_rs::kx_group::{SECP256R1, SECP256R1MLKEM768, SECP384R1, X25519, X25519MLKEM768};
    let kx_groups = match groups {
        Groups::PreferPostQuantum => vec![X25519MLKEM768, X25519, SECP256R1, SECP384R1],
        Groups::RequirePostQuantum => vec![X25519MLKEM768, SECP256R1MLKEM768],
        Groups::OnlyClassical => vec![X25519, SECP256R1, SECP384R1],
        Groups::ClassicalShareFirst => vec![X25519, X25519MLKEM768],
        Groups::OnlySecp384r1 => vec![SECP384R1],
    };
    Arc::new(CryptoProvider {
        kx_groups,
        ..aws_lc_rs::default_provider()
    })
}

fn server_config(setup: &Setup) -> Result<quinn::ServerConfig, Failure> {
    let mut tls = rustls::ServerConfig::builder_with_provider(provider(setup.groups))
        .with_protocol_versions(&[&TLS13])
        .map_err(Failure::set_up)?
        .with_no_client_auth()
        .with_single_cert(vec![setup.certificate.der()], setup.certificate.key_der())
        .map_err(Failure::set_up)?;
    tls.alpn_protocols = vec![ALPN.into()];
    let tls = QuicServerConfig::try_from(tls).map_err(Failure::set_up)?;
    let mut config = quinn::ServerConfig::with_crypto(Arc::new(tls));
    config.transport_config(transport(setup.windows));
    Ok(config)
}

fn client_config(setup: &Setup) -> Result<quinn::ClientConfig, Failure> {
    let mut roots = RootCertStore::empty();
    roots
        .add(setup.certificate.der())
        .map_err(Failure::set_up)?;
    let mut tls = rustls::ClientConfig::builder_with_provider(provider(setup.groups))
        .with_protocol_versions(&[&TLS13])
        .map_err(Failure::set_up)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![ALPN.into()];
    let tls = QuicClientConfig::try_from(tls).map_err(Failure::set_up)?;
    let mut config = quinn::ClientConfig::new(Arc::new(tls));
    config.transport_config(transport(setup.windows));
    Ok(config)
}

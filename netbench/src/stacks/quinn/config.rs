//! Configuration of quinn, and of its fork noq.

use std::sync::Arc;

use hybriq::error::By;
use rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;

use super::BbrConfig;
use super::library::congestion::{CubicConfig, NewRenoConfig};
use super::library::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use super::library::{
    ClientConfig, ConnectionError, IdleTimeout, ServerConfig, TransportConfig, VarInt,
};
use crate::stacks::{self, Close, Failure, Tls, Transport};

/// Returns a server's configuration.
pub fn server(tls: &Tls<'_>, settings: &Transport<'_>) -> Result<ServerConfig, Failure> {
    let tls = Arc::new(stacks::rustls::server(tls, u32::MAX)?);
    let tls = QuicServerConfig::with_initial(tls, initial_suite()?)?;
    let mut config = ServerConfig::with_crypto(Arc::new(tls));
    config.transport_config(Arc::new(transport(settings)?));
    Ok(config)
}

/// Returns a client's configuration, with a configuration of [`stacks::rustls::client`].
pub fn client(
    tls: rustls::ClientConfig,
    settings: &Transport<'_>,
) -> Result<ClientConfig, Failure> {
    let tls = QuicClientConfig::with_initial(Arc::new(tls), initial_suite()?)?;
    let mut config = ClientConfig::new(Arc::new(tls));
    config.transport_config(Arc::new(transport(settings)?));
    Ok(config)
}

/// Returns the transport's close, if one ended the connection.
pub fn close(error: &ConnectionError) -> Option<Close> {
    match error {
        ConnectionError::ConnectionClosed(close) => Some(Close {
            by: By::Peer,
            code: close.error_code.into(),
            reason: String::from_utf8_lossy(&close.reason).into_owned(),
        }),
        ConnectionError::TransportError(error) => Some(Close {
            by: By::Local,
            code: error.code.into(),
            reason: error.reason.clone(),
        }),
        _ => None,
    }
}

/// Returns the suite of Initial packets, which does not depend on the negotiation (RFC 9001 §5.2).
fn initial_suite() -> Result<rustls::quic::Suite, Failure> {
    let suite = TLS13_AES_128_GCM_SHA256
        .tls13()
        .and_then(rustls::Tls13CipherSuite::quic_suite);
    Ok(suite.ok_or("rustls has no QUIC suite for Initial packets")?)
}

fn transport(settings: &Transport<'_>) -> Result<TransportConfig, Failure> {
    let mut config = TransportConfig::default();
    if let Some(bytes) = settings.datagram_size {
        config.initial_mtu(bytes).mtu_discovery_config(None);
    }
    if let Some(name) = settings.congestion {
        congestion(&mut config, name)?;
    }
    if let Some(windows) = settings.windows {
        config
            .stream_receive_window(windows.stream.into())
            .receive_window(windows.connection.into())
            .send_window(windows.connection.into());
    }
    if let Some(timeout) = settings.idle_timeout {
        config.max_idle_timeout(Some(IdleTimeout::try_from(timeout)?));
    }
    if let Some(count) = settings.max_streams {
        let count = VarInt::from_u64(count)?;
        config
            .max_concurrent_bidi_streams(count)
            .max_concurrent_uni_streams(count);
    }
    Ok(config)
}

fn congestion(config: &mut TransportConfig, name: &str) -> Result<(), Failure> {
    match name {
        "cubic" => config.congestion_controller_factory(Arc::new(CubicConfig::default())),
        "new-reno" => config.congestion_controller_factory(Arc::new(NewRenoConfig::default())),
        "bbr" => config.congestion_controller_factory(Arc::new(BbrConfig::default())),
        _ => {
            return Err(format!(
                "there is no congestion controller '{name}'; valid: cubic, new-reno, bbr"
            )
            .into());
        }
    };
    Ok(())
}

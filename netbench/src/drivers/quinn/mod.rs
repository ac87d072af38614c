//! Driver of quinn on rustls with aws-lc-rs.

mod connection;
mod socket;

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use quinn::congestion::{BbrConfig, CubicConfig, NewRenoConfig};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{
    Endpoint, EndpointConfig, IdleTimeout, Runtime as _, ServerConfig, TokioRuntime,
    TransportConfig, VarInt,
};
use rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;

use super::rustls_watch::Watch;
use super::{
    Accepting, Answer, Connection, Connector, Driver, Handover, Listener, Role, Setup, Traffic,
    Transport, rustls_config, udp,
};
use crate::Failure;
use crate::axes::Cell;
use crate::outcome::Failed;
use connection::{Opened, ended};
use hybriq::Backend;
use socket::Counting;

pub(super) struct Quinn;

impl Driver for Quinn {
    fn name(&self) -> &'static str {
        "quinn"
    }

    fn congestion(&self) -> String {
        "cubic".to_owned()
    }

    fn controllers(&self) -> &'static [&'static str] {
        &["new-reno", "cubic", "bbr"]
    }

    fn check(&self, role: Role, cell: &Cell) -> Result<(), Failure> {
        if role == Role::Server && cell.provider != Backend::Rustls {
            return Err(format!(
                "quinn's TLS is rustls, not {}; use provider rustls",
                cell.provider
            )
            .into());
        }
        rustls_config::check(role, cell)
    }

    fn listen(&self, setup: &Setup, address: SocketAddr) -> Result<Box<dyn Listener>, Failure> {
        let tls = Arc::new(rustls_config::server(setup, u32::MAX)?);
        let tls = QuicServerConfig::with_initial(tls, initial_suite()?)?;
        let mut config = ServerConfig::with_crypto(Arc::new(tls));
        config.transport_config(transport(&setup.transport)?);
        let (endpoint, socket) = endpoint(&setup.transport, address, Some(config))?;
        Ok(Box::new(Served {
            endpoint,
            socket,
            handover: Handover::of(&setup.cell),
        }))
    }

    fn client(&self, setup: &Setup, server: SocketAddr) -> Result<Box<dyn Connector>, Failure> {
        let (tls, watch) = rustls_config::client(setup)?;
        let tls = QuicClientConfig::with_initial(Arc::new(tls), initial_suite()?)?;
        let mut config = quinn::ClientConfig::new(Arc::new(tls));
        config.transport_config(transport(&setup.transport)?);
        let (mut endpoint, socket) = endpoint(&setup.transport, udp::any_port(server), None)?;
        endpoint.set_default_client_config(config);
        Ok(Box::new(Client {
            endpoint,
            socket,
            watch,
            handover: Handover::of(&setup.cell),
        }))
    }
}

/// Returns the suite of Initial packets, which does not depend on the negotiation (RFC 9001 §5.2).
fn initial_suite() -> Result<rustls::quic::Suite, Failure> {
    let suite = TLS13_AES_128_GCM_SHA256
        .tls13()
        .and_then(rustls::Tls13CipherSuite::quic_suite);
    Ok(suite.ok_or("rustls has no QUIC suite for Initial packets")?)
}

fn endpoint(
    settings: &Transport,
    address: SocketAddr,
    config: Option<ServerConfig>,
) -> Result<(Endpoint, Arc<Counting>), Failure> {
    let runtime = Arc::new(TokioRuntime);
    let socket = runtime.wrap_udp_socket(udp::bind(address, settings)?)?;
    let socket = Arc::new(Counting::new(socket));
    let endpoint = Endpoint::new_with_abstract_socket(
        EndpointConfig::default(),
        config,
        Arc::clone(&socket) as _,
        runtime,
    )?;
    Ok((endpoint, socket))
}

fn transport(settings: &Transport) -> Result<Arc<TransportConfig>, Failure> {
    let mut config = TransportConfig::default();
    if let Some(bytes) = settings.datagram_size {
        config.initial_mtu(bytes).mtu_discovery_config(None);
    }
    if let Some(name) = &settings.congestion {
        congestion(&mut config, name)?;
    }
    if let Some(bytes) = settings.window {
        config
            .stream_receive_window(bytes.into())
            .receive_window(bytes.into())
            .send_window(bytes.into());
    }
    if let Some(milliseconds) = settings.idle_timeout_ms {
        let timeout = IdleTimeout::try_from(Duration::from_millis(milliseconds))?;
        config.max_idle_timeout(Some(timeout));
    }
    if let Some(count) = settings.max_streams {
        let count = VarInt::from_u64(count)?;
        config
            .max_concurrent_bidi_streams(count)
            .max_concurrent_uni_streams(count);
    }
    Ok(Arc::new(config))
}

fn congestion(config: &mut TransportConfig, name: &str) -> Result<(), Failure> {
    match name {
        "cubic" => config.congestion_controller_factory(Arc::new(CubicConfig::default())),
        "new-reno" => config.congestion_controller_factory(Arc::new(NewRenoConfig::default())),
        "bbr" => config.congestion_controller_factory(Arc::new(BbrConfig::default())),
        _ => {
            return Err(format!(
                "quinn has no congestion controller '{name}'; it has cubic, new-reno, bbr"
            )
            .into());
        }
    };
    Ok(())
}

struct Served {
    endpoint: Endpoint,
    socket: Arc<Counting>,
    handover: Handover,
}

impl Listener for Served {
    fn address(&self) -> SocketAddr {
        self.endpoint
            .local_addr()
            .unwrap_or_else(|_| ([0, 0, 0, 0], 0).into())
    }

    fn accept(&mut self) -> Answer<'_, Accepting> {
        let handover = self.handover;
        Box::pin(async move {
            let incoming = self.endpoint.accept().await;
            let incoming = incoming.ok_or_else(|| Failed::other("the endpoint is closed"))?;
            Ok(Box::pin(async move {
                let connecting = incoming.accept().map_err(ended)?;
                Opened::accept(connecting, handover).await
            }) as Accepting)
        })
    }

    fn traffic(&self) -> Option<Traffic> {
        Some(self.socket.traffic())
    }
}

struct Client {
    endpoint: Endpoint,
    socket: Arc<Counting>,
    watch: Arc<Watch>,
    handover: Handover,
}

impl Connector for Client {
    fn connect<'a>(&'a self, server: SocketAddr, name: &'a str) -> Answer<'a, Rc<dyn Connection>> {
        Box::pin(async move {
            let connecting = self.endpoint.connect(server, name);
            let begun = self.watch.begun();
            let connecting = connecting.map_err(Failed::other)?;
            Opened::connect(connecting, self.handover, (Arc::clone(&self.watch), begun)).await
        })
    }

    fn traffic(&self) -> Option<Traffic> {
        Some(self.socket.traffic())
    }
}

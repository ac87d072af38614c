//! Driver of s2n-quic on s2n-tls or on rustls, both with aws-lc-rs.

mod connection;
mod events;
mod tls;

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use s2n_quic::client::Connect;
use s2n_quic::provider::congestion_controller::{Bbr, Cubic, Endpoint as Congestion};
use s2n_quic::provider::datagram::default::Endpoint as Datagrams;
use s2n_quic::provider::io::Default as Io;
use s2n_quic::provider::limits::Limits;
use s2n_quic::provider::tls::Provider as Tls;

use super::rustls_watch::Watch;
use super::{
    Accepting, Answer, Connection, Connector, Driver, Listener, Role, Setup, Traffic, Transport,
    rustls_config, udp,
};
use crate::Failure;
use crate::axes::Cell;
use crate::outcome::Failed;
use connection::{Opened, ended};
use events::{Endpoint, Observer};
use hybriq::Backend;

pub(super) struct S2nQuic;

/// Maximum number of datagrams waiting to be sent or read; the default is 200.
const DATAGRAMS: usize = 1024;

impl Driver for S2nQuic {
    fn name(&self) -> &'static str {
        "s2n-quic"
    }

    fn congestion(&self) -> String {
        "cubic".to_owned()
    }

    fn controllers(&self) -> &'static [&'static str] {
        &["cubic", "bbr"]
    }

    fn check(&self, role: Role, cell: &Cell) -> Result<(), Failure> {
        tls::check(role, cell)
    }

    fn listen(&self, setup: &Setup, address: SocketAddr) -> Result<Box<dyn Listener>, Failure> {
        if setup.cell.provider == Backend::S2nTls {
            listen(tls::s2n_server(setup)?, setup, address)
        } else {
            let config = rustls_config::server(setup, 0)?;
            let tls = s2n_quic::provider::tls::rustls::Server::from(config);
            listen(tls, setup, address)
        }
    }

    fn client(&self, setup: &Setup, server: SocketAddr) -> Result<Box<dyn Connector>, Failure> {
        let (tls, watch) = rustls_config::client(setup)?;
        let tls = s2n_quic::provider::tls::rustls::Client::from(tls);
        let address = udp::any_port(server);
        match congestion(&setup.transport)? {
            Controller::Cubic => client(tls, Cubic::default(), watch, setup, address),
            Controller::Bbr => client(tls, Bbr::default(), watch, setup, address),
        }
    }
}

enum Controller {
    Cubic,
    Bbr,
}

fn congestion(settings: &Transport) -> Result<Controller, Failure> {
    match settings.congestion.as_deref() {
        None | Some("cubic") => Ok(Controller::Cubic),
        Some("bbr") => Ok(Controller::Bbr),
        Some(name) => {
            Err(format!("s2n-quic has no congestion controller '{name}'; it has cubic, bbr").into())
        }
    }
}

fn listen(tls: impl Tls, setup: &Setup, address: SocketAddr) -> Result<Box<dyn Listener>, Failure> {
    match congestion(&setup.transport)? {
        Controller::Cubic => serve(tls, Cubic::default(), setup, address),
        Controller::Bbr => serve(tls, Bbr::default(), setup, address),
    }
}

fn serve(
    tls: impl Tls,
    congestion: impl Congestion,
    setup: &Setup,
    address: SocketAddr,
) -> Result<Box<dyn Listener>, Failure> {
    let endpoint = Arc::new(Endpoint::default());
    let server = s2n_quic::Server::builder()
        .with_tls(tls)
        .map_err(failure)?
        .with_congestion_controller(congestion)?
        .with_limits(limits(&setup.transport)?)?
        .with_event(Observer(Arc::clone(&endpoint)))?
        .with_datagram(datagrams()?)?
        .with_io(io(address, &setup.transport)?)?
        .start()
        .map_err(|error| format!("cannot listen on UDP {address}: {error}"))?;
    Ok(Box::new(Served { server, endpoint }))
}

fn client(
    tls: impl Tls,
    congestion: impl Congestion,
    watch: Arc<Watch>,
    setup: &Setup,
    address: SocketAddr,
) -> Result<Box<dyn Connector>, Failure> {
    let endpoint = Arc::new(Endpoint::default());
    let client = s2n_quic::Client::builder()
        .with_tls(tls)
        .map_err(failure)?
        .with_congestion_controller(congestion)?
        .with_limits(limits(&setup.transport)?)?
        .with_event(Observer(Arc::clone(&endpoint)))?
        .with_datagram(datagrams()?)?
        .with_io(io(address, &setup.transport)?)?
        .start()?;
    Ok(Box::new(Client {
        stack: client,
        endpoint,
        watch,
    }))
}

fn failure(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn datagrams() -> Result<Datagrams, Failure> {
    Ok(Datagrams::builder()
        .with_send_capacity(DATAGRAMS)
        .and_then(|builder| builder.with_recv_capacity(DATAGRAMS))
        .map_err(|_| "s2n-quic takes no datagrams")?
        .build()?)
}

fn io(address: SocketAddr, settings: &Transport) -> Result<Io, Failure> {
    let mut io = Io::builder().with_receive_address(address)?;
    if let Some(bytes) = settings.socket_buffer {
        io = io
            .with_recv_buffer_size(bytes as usize)?
            .with_send_buffer_size(bytes as usize)?;
    }
    if let Some(bytes) = settings.datagram_size {
        // The value includes the headers of UDP and IP; equal limits switch the search off.
        let size = bytes.saturating_add(if address.is_ipv4() { 28 } else { 48 });
        io = io.with_max_mtu(size)?.with_initial_mtu(size)?;
    }
    Ok(io.build()?)
}

fn limits(settings: &Transport) -> Result<Limits, Failure> {
    let mut limits = Limits::default();
    if let Some(bytes) = settings.window {
        limits = limits
            .with_data_window(bytes.into())?
            .with_bidirectional_local_data_window(bytes.into())?
            .with_bidirectional_remote_data_window(bytes.into())?
            .with_unidirectional_data_window(bytes.into())?
            .with_max_send_buffer_size(bytes)?;
    }
    if let Some(milliseconds) = settings.idle_timeout_ms {
        limits = limits.with_max_idle_timeout(Duration::from_millis(milliseconds))?;
    }
    if let Some(count) = settings.max_streams {
        limits = limits
            .with_max_open_remote_bidirectional_streams(count)?
            .with_max_open_remote_unidirectional_streams(count)?;
    }
    Ok(limits)
}

struct Served {
    server: s2n_quic::Server,
    endpoint: Arc<Endpoint>,
}

impl Listener for Served {
    fn address(&self) -> SocketAddr {
        self.server
            .local_addr()
            .unwrap_or_else(|_| ([0, 0, 0, 0], 0).into())
    }

    /// Returns the next connection; s2n-quic hands them out when their handshake is complete.
    fn accept(&mut self) -> Answer<'_, Accepting> {
        Box::pin(async {
            let connection = self.server.accept().await;
            let connection = connection.ok_or_else(|| Failed::other("the endpoint is closed"))?;
            let opened = Opened::new(connection, None).map(|opened| opened as Rc<dyn Connection>);
            Ok(Box::pin(std::future::ready(opened)) as Accepting)
        })
    }

    fn traffic(&self) -> Option<Traffic> {
        Some(self.endpoint.traffic())
    }
}

struct Client {
    stack: s2n_quic::Client,
    endpoint: Arc<Endpoint>,
    watch: Arc<Watch>,
}

impl Connector for Client {
    fn connect<'a>(&'a self, server: SocketAddr, name: &'a str) -> Answer<'a, Rc<dyn Connection>> {
        Box::pin(async move {
            let begun = self.watch.begun();
            let connect = Connect::new(server).with_server_name(name);
            let connection = self.stack.connect(connect).await.map_err(ended)?;
            let negotiated = self.watch.complete(begun);
            Ok(Opened::new(connection, Some(negotiated))? as Rc<dyn Connection>)
        })
    }

    fn traffic(&self) -> Option<Traffic> {
        Some(self.endpoint.traffic())
    }
}

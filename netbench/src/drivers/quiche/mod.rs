//! Driver of quiche on BoringSSL. quiche does no I/O: `endpoint` moves its datagrams, and
//! `connection` lets many tasks wait for one connection.

mod connection;
mod endpoint;
mod line;
mod stream;
mod tls;

use std::net::SocketAddr;
use std::rc::Rc;

use super::{
    Accepting, Answer, Connection, Connector, Driver, Listener, Role, Setup, Traffic, udp,
};
use crate::Failure;
use crate::axes::{Cell, Resumption};
use crate::outcome::Failed;
use connection::{Opened, Tickets};
use endpoint::Endpoint;

/// Limits that quiche's own tools use; the library's defaults allow a peer nothing.
const STREAM_WINDOW: u64 = 1_000_000;
const CONNECTION_WINDOW: u64 = 10_000_000;
const STREAMS: u64 = 100;
const IDLE_TIMEOUT_MS: u64 = 30_000;
const DATAGRAM_SIZE: u16 = 1350;
/// Maximum number of unreliable datagrams waiting to be sent or received.
const DATAGRAM_QUEUE: usize = 1024;

pub(super) struct Quiche;

impl Driver for Quiche {
    fn name(&self) -> &'static str {
        "quiche"
    }

    fn congestion(&self) -> String {
        "cubic".to_owned()
    }

    fn controllers(&self) -> &'static [&'static str] {
        &["new-reno", "cubic", "bbr"]
    }

    fn check(&self, role: Role, cell: &Cell) -> Result<(), Failure> {
        tls::check(role, cell)
    }

    fn listen(&self, setup: &Setup, address: SocketAddr) -> Result<Box<dyn Listener>, Failure> {
        let config = config(setup, Role::Server)?;
        let socket = udp::bind(address, &setup.transport)?;
        let endpoint = Endpoint::start(socket, config, Role::Server)?;
        Ok(Box::new(Served(endpoint)))
    }

    fn client(&self, setup: &Setup, server: SocketAddr) -> Result<Box<dyn Connector>, Failure> {
        let config = config(setup, Role::Client)?;
        let socket = udp::bind(udp::any_port(server), &setup.transport)?;
        Ok(Box::new(Client {
            endpoint: Endpoint::start(socket, config, Role::Client)?,
            tickets: Tickets::default(),
            resumption: setup.cell.resumption,
        }))
    }
}

fn config(setup: &Setup, role: Role) -> Result<quiche::Config, Failure> {
    let mut config = tls::config(setup, role)?;
    let settings = &setup.transport;
    let window = settings.window.map(u64::from);
    let stream = window.unwrap_or(STREAM_WINDOW);
    config.set_initial_max_data(window.unwrap_or(CONNECTION_WINDOW));
    config.set_initial_max_stream_data_bidi_local(stream);
    config.set_initial_max_stream_data_bidi_remote(stream);
    config.set_initial_max_stream_data_uni(stream);
    if let Some(window) = window {
        config.set_max_connection_window(window);
        config.set_max_stream_window(window);
    }
    let streams = settings.max_streams.unwrap_or(STREAMS);
    config.set_initial_max_streams_bidi(streams);
    config.set_initial_max_streams_uni(streams);
    config.set_max_idle_timeout(settings.idle_timeout_ms.unwrap_or(IDLE_TIMEOUT_MS));
    let size = settings.datagram_size.unwrap_or(DATAGRAM_SIZE);
    config.set_max_send_udp_payload_size(size.into());
    config.enable_dgram(true, DATAGRAM_QUEUE, DATAGRAM_QUEUE);
    if let Some(name) = &settings.congestion {
        config.set_cc_algorithm_name(congestion(name)?)?;
    }
    Ok(config)
}

fn congestion(name: &str) -> Result<&'static str, Failure> {
    match name {
        "new-reno" => Ok("reno"),
        "cubic" => Ok("cubic"),
        "bbr" => Ok("bbr2_gcongestion"),
        _ => Err(format!(
            "quiche has no congestion controller '{name}'; valid: new-reno, cubic, bbr"
        )
        .into()),
    }
}

struct Served(Rc<Endpoint>);

impl Listener for Served {
    fn address(&self) -> SocketAddr {
        self.0.address
    }

    fn accept(&mut self) -> Answer<'_, Accepting> {
        Box::pin(async {
            let line = self.0.accept().await?;
            Ok(Box::pin(Opened::begin(line, None)) as Accepting)
        })
    }

    fn traffic(&self) -> Option<Traffic> {
        Some(self.0.traffic.get())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.0.stop();
    }
}

struct Client {
    endpoint: Rc<Endpoint>,
    tickets: Tickets,
    resumption: Resumption,
}

impl Connector for Client {
    fn connect<'a>(&'a self, server: SocketAddr, name: &'a str) -> Answer<'a, Rc<dyn Connection>> {
        Box::pin(async move {
            let ticket = match self.resumption {
                Resumption::Full => None,
                Resumption::Psk | Resumption::ZeroRtt => self.tickets.borrow_mut().pop_back(),
            };
            let line = self.endpoint.connect(server, name, ticket.as_deref());
            let line = line.map_err(Failed::other)?;
            Opened::begin(line, Some(Rc::clone(&self.tickets))).await
        })
    }

    fn traffic(&self) -> Option<Traffic> {
        Some(self.endpoint.traffic.get())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.endpoint.stop();
    }
}

impl Traffic {
    /// Adds a datagram of that length, sent or received; 0 for none.
    fn with(self, sent: usize, received: usize) -> Self {
        Self {
            sent_datagrams: self.sent_datagrams + u64::from(sent > 0),
            sent_bytes: self.sent_bytes + sent as u64,
            received_datagrams: self.received_datagrams + u64::from(received > 0),
            received_bytes: self.received_bytes + received as u64,
        }
    }
}

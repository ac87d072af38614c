//! Driver of this project's own stack.

mod connection;
mod http;
mod http3;
mod seat;
mod tls;

use std::{net::SocketAddr, rc::Rc, time::Duration};

use hybriq::transport::congestion::Congestion;
use hybriq::{Endpoint, Incoming, TransportConfig, fleet::Placement};

use super::{
    Accepting, Answer, Attempt, Connection, Connector, Driver, Handover, Listener, Role, Setup,
    Streams, Traffic, Transport, udp::any_port,
};
use crate::scenario::axes::Cell;
use crate::system::failure::Failure;
use crate::system::outcome::Failed;
use connection::Opened;

pub(super) struct Hybriq;

impl Driver for Hybriq {
    fn name(&self) -> &'static str {
        "hybriq"
    }

    fn congestion(&self) -> String {
        "cubic".to_owned()
    }

    fn controllers(&self) -> &'static [&'static str] {
        &["new-reno", "cubic", "bbr", "prague"]
    }

    fn has_http(&self) -> bool {
        true
    }

    fn has_workers(&self) -> bool {
        true
    }

    fn check(&self, role: Role, cell: &Cell) -> Result<(), Failure> {
        tls::check(role, cell)
    }

    fn listen(&self, setup: &Setup, address: SocketAddr) -> Result<Box<dyn Listener>, Failure> {
        let config = tls::server(setup)?.transport(transport(&setup.transport)?);
        let mut builder = builder(&setup.transport);
        let seats = match setup.cell.workers {
            1 => Seats::Here,
            workers => {
                builder = builder
                    .workers(usize::from(workers))
                    .placement(Placement::Threads);
                Seats::WithWorkers
            }
        };
        if setup.transport.streams == Streams::Http {
            return http::listen(builder, address, config);
        }
        Ok(Box::new(Served {
            endpoint: builder.server(config).bind(address)?,
            handover: Handover::of(&setup.cell),
            seats,
        }))
    }

    fn client(&self, setup: &Setup, server: SocketAddr) -> Result<Box<dyn Connector>, Failure> {
        let config = tls::client(setup)?.transport(transport(&setup.transport)?);
        let endpoint = builder(&setup.transport)
            .client(config)
            .bind(any_port(server))?;
        let handover = Handover::of(&setup.cell);
        Ok(Box::new(Client {
            endpoint,
            handover,
            streams: setup.transport.streams,
        }))
    }
}

fn builder(transport: &Transport) -> hybriq::EndpointBuilder {
    let builder = Endpoint::builder();
    match transport.socket_buffer {
        Some(bytes) => builder.socket_buffers(bytes as usize),
        None => builder,
    }
}

fn transport(settings: &Transport) -> Result<TransportConfig, Failure> {
    let mut config = TransportConfig::new();
    if let Some(bytes) = settings.datagram_size {
        config = config.datagram_size(bytes).without_mtu_discovery();
    }
    if let Some(name) = &settings.congestion {
        config = config.congestion(congestion(name)?);
    }
    if let Some(bytes) = settings.window {
        let bytes = bytes.into();
        config = config
            .receive_window(bytes)
            .stream_receive_window(bytes)
            .max_send_buffer(bytes);
    }
    if let Some(milliseconds) = settings.idle_timeout_ms {
        config = config.idle_timeout(Some(Duration::from_millis(milliseconds)));
    }
    if let Some(count) = settings.max_streams {
        config = config.max_bidi_streams(count).max_uni_streams(count);
    }
    Ok(config)
}

fn congestion(name: &str) -> Result<Congestion, Failure> {
    Ok(match name {
        "new-reno" => Congestion::NewReno,
        "cubic" => Congestion::Cubic,
        "bbr" => Congestion::Bbr,
        "prague" => Congestion::Prague,
        _ => {
            return Err(format!(
                "unknown congestion controller '{name}'; valid: new-reno, cubic, bbr, prague"
            )
            .into());
        }
    })
}

/// Threads on which a server works on its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seats {
    /// The thread that accepts them.
    Here,
    /// The threads of the endpoint's workers, each for its own connections.
    WithWorkers,
}

struct Served {
    endpoint: Endpoint,
    handover: Handover,
    seats: Seats,
}

impl Served {
    /// Returns the next client, and the server name that it asks for.
    async fn next(&self) -> Result<(Incoming, Option<String>), Failed> {
        let incoming = self.endpoint.accept().await;
        let incoming = incoming.ok_or_else(|| Failed::other("the endpoint is closed"))?;
        let name = incoming.client_hello().server_name().map(str::to_owned);
        Ok((incoming, name))
    }
}

impl Listener for Served {
    fn address(&self) -> SocketAddr {
        self.endpoint.local_address()
    }

    fn accept(&mut self) -> Answer<'_, Accepting> {
        Box::pin(async {
            let (incoming, name) = self.next().await?;
            Ok(Opened::begin(incoming.accept(), name, self.handover))
        })
    }

    fn attempt(&mut self) -> Answer<'_, Attempt> {
        Box::pin(async {
            if self.seats == Seats::Here {
                return Ok(Attempt::Here(self.accept().await?));
            }
            let (incoming, name) = self.next().await?;
            let handover = self.handover;
            Ok(Attempt::There(Box::new(move |work| {
                seat::start(incoming, move |incoming| {
                    work(Opened::begin(incoming.accept(), name, handover))
                });
            })))
        })
    }

    fn traffic(&self) -> Option<Traffic> {
        Some(traffic(&self.endpoint))
    }
}

struct Client {
    endpoint: Endpoint,
    handover: Handover,
    streams: Streams,
}

impl Connector for Client {
    fn connect<'a>(&'a self, server: SocketAddr, name: &'a str) -> Answer<'a, Rc<dyn Connection>> {
        let connecting = self.endpoint.connect(server, name);
        if self.streams == Streams::Http {
            return Box::pin(http::connect(connecting));
        }
        Opened::begin(connecting, None, self.handover)
    }

    fn traffic(&self) -> Option<Traffic> {
        Some(traffic(&self.endpoint))
    }
}

fn traffic(endpoint: &Endpoint) -> Traffic {
    let stats = endpoint.stats();
    Traffic {
        sent_datagrams: stats.datagrams_sent,
        sent_bytes: stats.bytes_sent,
        received_datagrams: stats.datagrams_received,
        received_bytes: stats.bytes_received,
    }
}

//! Driver of TLS 1.3 over TCP with rustls, for comparison with QUIC.
//!
//! ```text
//!   one stream a connection (`raw`)      many (`multiplexed`)      HTTP/2 (`http::h2`)
//!            bytes                        streams ─► yamux              hyper
//!              └──────────────┬─────────────────────┴─────────────────────┘
//!                          `session`: handshake, counters
//!                           `tls`: rustls over a socket
//!                         `socket`: TCP, TCP_INFO
//! ```

mod multiplexed;
mod pump;
mod raw;
mod session;
mod shared;
mod socket;
mod stream;
mod tls;

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, ServerConfig, ServerConnection};
use tokio::net::TcpListener;
use tokio::task::spawn_local;

use self::multiplexed::Multiplexed;
use self::raw::Raw;
use self::session::{Session, failure};
use self::socket::{Socket, Sockets};
use super::http::{Http, Serving, h2};
use super::rustls_watch::Watch;
use super::{
    Accepting, Answer, Connection, Connector, Driver, Listener, Role, Setup, Streams, Traffic,
    Transport, rustls_config,
};
use crate::scenario::axes::{Cell, Resumption};
use crate::system::failure::Failure;
use crate::system::outcome::Failed;
use hybriq::Backend;

const NO_DATAGRAMS: &str = "TCP has no datagrams; use a driver of QUIC for them";

/// Maximum number of bytes that a server accepts before the handshake is complete.
const EARLY_DATA: u32 = 64 * 1024;

pub(super) struct TcpTls;

impl Driver for TcpTls {
    fn name(&self) -> &'static str {
        "tcp-tls"
    }

    fn congestion(&self) -> String {
        let path = "/proc/sys/net/ipv4/tcp_congestion_control";
        std::fs::read_to_string(path).map_or_else(
            |_| "as the system has it".to_owned(),
            |name| format!("{} (the system's)", name.trim()),
        )
    }

    fn has_datagrams(&self) -> bool {
        false
    }

    fn has_http(&self) -> bool {
        true
    }

    fn is_over_udp(&self) -> bool {
        false
    }

    fn check(&self, role: Role, cell: &Cell) -> Result<(), Failure> {
        if cell.driver != cell.client {
            return Err("tcp-tls has no peer but itself; use it for both client and driver".into());
        }
        if cell.provider != Backend::Rustls {
            let provider = &cell.provider;
            return Err(format!("tcp-tls has rustls, not {provider}; use provider rustls").into());
        }
        rustls_config::check(role, cell)
    }

    fn listen(&self, setup: &Setup, address: SocketAddr) -> Result<Box<dyn Listener>, Failure> {
        let mut tls = rustls_config::server(setup, EARLY_DATA)?;
        // An answer to early data need not wait for the end of the handshake.
        tls.send_half_rtt_data = setup.cell.resumption == Resumption::ZeroRtt;
        let listener = socket::listen(address, &setup.transport)?;
        Ok(Box::new(Listening {
            address: listener.local_addr()?,
            listener,
            tls: Arc::new(tls),
            transport: setup.transport.clone(),
            sockets: Rc::default(),
        }))
    }

    fn client(&self, setup: &Setup, _: SocketAddr) -> Result<Box<dyn Connector>, Failure> {
        let (tls, watch) = rustls_config::client(setup)?;
        Ok(Box::new(Connecting {
            tls: Arc::new(tls),
            watch,
            transport: setup.transport.clone(),
            sockets: Rc::default(),
        }))
    }
}

struct Listening {
    address: SocketAddr,
    listener: TcpListener,
    tls: Arc<ServerConfig>,
    transport: Transport,
    sockets: Rc<Sockets>,
}

impl Listener for Listening {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn accept(&mut self) -> Answer<'_, Accepting> {
        Box::pin(async {
            let (stream, _) = self.listener.accept().await.map_err(Failed::other)?;
            let socket = Socket::new(stream, &self.transport, &self.sockets);
            let tls = ServerConnection::new(Arc::clone(&self.tls));
            let streams = self.transport.streams;
            Ok(Box::pin(async move {
                let tls = tls.map_err(Failed::other)?;
                let socket = socket.map_err(Failed::other)?;
                let session = Session::begin(socket, tls.into(), None).await?;
                Ok(match streams {
                    Streams::One => Raw::over(session, Role::Server),
                    Streams::Many => Multiplexed::begin(session, Role::Server),
                    Streams::Http => {
                        spawn_local(h2::serve(session.tls.clone()));
                        Http::over(Raw::over(session, Role::Server), Serving)
                    }
                })
            }) as Accepting)
        })
    }

    fn traffic(&self) -> Option<Traffic> {
        self.sockets.traffic()
    }
}

struct Connecting {
    tls: Arc<ClientConfig>,
    watch: Arc<Watch>,
    transport: Transport,
    sockets: Rc<Sockets>,
}

impl Connector for Connecting {
    fn connect<'a>(&'a self, server: SocketAddr, name: &'a str) -> Answer<'a, Rc<dyn Connection>> {
        Box::pin(async move {
            let name = ServerName::try_from(name.to_owned()).map_err(Failed::other)?;
            let socket = Socket::connect(server, &self.transport, &self.sockets).await;
            let socket = socket.map_err(|error| failure(error.into()))?;
            let tls = ClientConnection::new(Arc::clone(&self.tls), name).map_err(Failed::other)?;
            let watched = Some((Arc::clone(&self.watch), self.watch.begun()));
            let session = Session::begin(socket, tls.into(), watched).await?;
            Ok(match self.transport.streams {
                Streams::One => Raw::over(session, Role::Client),
                Streams::Many => Multiplexed::begin(session, Role::Client),
                Streams::Http => {
                    let requests = h2::Client::start(session.tls.clone()).await?;
                    Http::over(Raw::over(session, Role::Client), requests)
                }
            })
        })
    }

    fn traffic(&self) -> Option<Traffic> {
        self.sockets.traffic()
    }
}

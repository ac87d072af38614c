//! Driver of s2n-quic on s2n-tls or on rustls, both with aws-lc-rs.

mod connection;
mod events;
mod tls;

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use s2n_quic::client::Connect;
use s2n_quic::provider::{endpoint_limits, tls::Provider as Tls};

use super::rustls_watch::Watch;
use super::{
    Accepting, Answer, Connection, Connector, Driver, Listener, Role, Setup, Traffic,
    rustls_config, udp,
};
use crate::scenario::axes::Cell;
use crate::stacks;
use crate::system::failure::Failure;
use crate::system::outcome::Failed;
use connection::{Opened, ended};
use events::{Endpoint, Observer};
use hybriq::Backend;

pub(super) struct S2nQuic;

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
        let endpoint = Arc::new(Endpoint::default());
        let events = Observer(Arc::clone(&endpoint));
        let settings = (&setup.transport).into();
        let stack = stacks::s2n_quic::client(tls, &settings, udp::any_port(server), events)?;
        Ok(Box::new(Client {
            stack,
            endpoint,
            watch,
        }))
    }
}

fn listen(tls: impl Tls, setup: &Setup, address: SocketAddr) -> Result<Box<dyn Listener>, Failure> {
    let endpoint = Arc::new(Endpoint::default());
    let events = Observer(Arc::clone(&endpoint));
    let settings = (&setup.transport).into();
    let everyone = endpoint_limits::Default::default();
    let server = stacks::s2n_quic::serve(tls, &settings, address, events, everyone)?;
    Ok(Box::new(Served { server, endpoint }))
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

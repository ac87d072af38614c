//! Driver of quinn on rustls with aws-lc-rs.

mod connection;
mod http;
mod socket;

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use quinn::{Endpoint, EndpointConfig, Runtime as _, ServerConfig, TokioRuntime};

use super::rustls_watch::Watch;
use super::{
    Accepting, Answer, Connection, Connector, Driver, Handover, Listener, Role, Setup, Streams,
    Traffic, Transport, rustls_config, udp,
};
use crate::scenario::axes::Cell;
use crate::stacks;
use crate::system::failure::Failure;
use crate::system::outcome::Failed;
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

    fn has_http(&self) -> bool {
        true
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
        let config = stacks::quinn::server(&setup.tls(Role::Server), &(&setup.transport).into())?;
        let (endpoint, socket) = endpoint(&setup.transport, address, Some(config))?;
        Ok(Box::new(Served {
            endpoint,
            socket,
            handover: Handover::of(&setup.cell),
            streams: setup.transport.streams,
        }))
    }

    fn client(&self, setup: &Setup, server: SocketAddr) -> Result<Box<dyn Connector>, Failure> {
        let (tls, watch) = rustls_config::client(setup)?;
        let config = stacks::quinn::client(tls, &(&setup.transport).into())?;
        let (mut endpoint, socket) = endpoint(&setup.transport, udp::any_port(server), None)?;
        endpoint.set_default_client_config(config);
        Ok(Box::new(Client {
            endpoint,
            socket,
            watch,
            handover: Handover::of(&setup.cell),
            streams: setup.transport.streams,
        }))
    }
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

struct Served {
    endpoint: Endpoint,
    socket: Arc<Counting>,
    handover: Handover,
    streams: Streams,
}

impl Listener for Served {
    fn address(&self) -> SocketAddr {
        self.endpoint
            .local_addr()
            .unwrap_or_else(|_| ([0, 0, 0, 0], 0).into())
    }

    fn accept(&mut self) -> Answer<'_, Accepting> {
        let (handover, streams) = (self.handover, self.streams);
        Box::pin(async move {
            let incoming = self.endpoint.accept().await;
            let incoming = incoming.ok_or_else(|| Failed::other("the endpoint is closed"))?;
            Ok(Box::pin(async move {
                let connecting = incoming.accept().map_err(ended)?;
                if streams == Streams::Http {
                    return http::accept(connecting, handover).await;
                }
                Ok(Opened::accept(connecting, handover).await? as Rc<dyn Connection>)
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
    streams: Streams,
}

impl Connector for Client {
    fn connect<'a>(&'a self, server: SocketAddr, name: &'a str) -> Answer<'a, Rc<dyn Connection>> {
        Box::pin(async move {
            let connecting = self.endpoint.connect(server, name);
            let begun = self.watch.begun();
            let connecting = connecting.map_err(Failed::other)?;
            let watched = (Arc::clone(&self.watch), begun);
            let opened = Opened::connect(connecting, self.handover, watched).await?;
            if self.streams == Streams::Http {
                return http::over(opened).await;
            }
            Ok(opened as Rc<dyn Connection>)
        })
    }

    fn traffic(&self) -> Option<Traffic> {
        Some(self.socket.traffic())
    }
}

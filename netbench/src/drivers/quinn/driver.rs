//! Driver of quinn, and of its fork noq.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use hybriq::Backend;

use super::connection::{Opened, ended};
use super::counters::Counters;
use super::library::{Endpoint, EndpointConfig, ServerConfig, TokioRuntime};
use super::{HAS_HTTP, NAME, http, set_client, socket, stack};
use crate::drivers::rustls_watch::Watch;
use crate::drivers::{
    Accepting, Answer, Connection, Connector, Driver, Handover, Listener, Role, Setup, Streams,
    Traffic, Transport, rustls_config, udp,
};
use crate::scenario::axes::Cell;
use crate::system::failure::Failure;
use crate::system::outcome::Failed;

pub(in crate::drivers) struct Quinn;

impl Driver for Quinn {
    fn name(&self) -> &'static str {
        NAME
    }

    fn congestion(&self) -> String {
        "cubic".to_owned()
    }

    fn controllers(&self) -> &'static [&'static str] {
        &["new-reno", "cubic", "bbr"]
    }

    fn has_http(&self) -> bool {
        HAS_HTTP
    }

    fn check(&self, role: Role, cell: &Cell) -> Result<(), Failure> {
        if role == Role::Server && cell.provider != Backend::Rustls {
            return Err(format!(
                "{NAME}'s TLS is rustls, not {}; use provider rustls",
                cell.provider
            )
            .into());
        }
        rustls_config::check(role, cell)
    }

    fn listen(&self, setup: &Setup, address: SocketAddr) -> Result<Box<dyn Listener>, Failure> {
        let config = stack::server(&setup.tls(Role::Server), &(&setup.transport).into())?;
        let (endpoint, counters) = endpoint(&setup.transport, address, Some(config))?;
        Ok(Box::new(Served {
            endpoint,
            counters,
            handover: Handover::of(&setup.cell),
            streams: setup.transport.streams,
        }))
    }

    fn client(&self, setup: &Setup, server: SocketAddr) -> Result<Box<dyn Connector>, Failure> {
        let (tls, watch) = rustls_config::client(setup)?;
        let config = stack::client(tls, &(&setup.transport).into())?;
        let (mut endpoint, counters) = endpoint(&setup.transport, udp::any_port(server), None)?;
        set_client(&mut endpoint, config);
        Ok(Box::new(Client {
            endpoint,
            counters,
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
) -> Result<(Endpoint, Arc<Counters>), Failure> {
    let runtime = Arc::new(TokioRuntime);
    let counters = Arc::new(Counters::default());
    let socket = socket::counted(&*runtime, udp::bind(address, settings)?, &counters)?;
    let endpoint =
        Endpoint::new_with_abstract_socket(EndpointConfig::default(), config, socket, runtime)?;
    Ok((endpoint, counters))
}

struct Served {
    endpoint: Endpoint,
    counters: Arc<Counters>,
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
        Some(self.counters.traffic())
    }
}

struct Client {
    endpoint: Endpoint,
    counters: Arc<Counters>,
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
        Some(self.counters.traffic())
    }
}

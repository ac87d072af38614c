//! Driver of quiche on BoringSSL, run by [`stacks::quiche`].

mod connection;
mod stream;
#[cfg(test)]
mod tests;
mod tls;

use std::net::SocketAddr;
use std::rc::Rc;

use super::{
    Accepting, Answer, Connection, Connector, Driver, Listener, Role, Setup, Traffic, udp,
};
use crate::scenario::axes::{Cell, Resumption};
use crate::stacks;
use crate::stacks::quiche::{Admission, Endpoint};
use crate::system::failure::Failure;
use crate::system::outcome::Failed;
use connection::{Opened, Tickets};

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
        let tls = setup.tls(Role::Server);
        let config = stacks::quiche::server(&tls, &(&setup.transport).into())?;
        let socket = udp::bind(address, &setup.transport)?;
        let endpoint = Endpoint::start(socket, config, Admission::AtOnce)?;
        Ok(Box::new(Served(endpoint)))
    }

    fn client(&self, setup: &Setup, server: SocketAddr) -> Result<Box<dyn Connector>, Failure> {
        let tls = setup.tls(Role::Client);
        let config = stacks::quiche::client(&tls, &(&setup.transport).into())?;
        let socket = udp::bind(udp::any_port(server), &setup.transport)?;
        Ok(Box::new(Client {
            endpoint: Endpoint::start(socket, config, Admission::Never)?,
            tickets: Tickets::default(),
            resumption: setup.cell.resumption,
        }))
    }
}

struct Served(Rc<Endpoint>);

impl Listener for Served {
    fn address(&self) -> SocketAddr {
        self.0.address()
    }

    fn accept(&mut self) -> Answer<'_, Accepting> {
        Box::pin(async {
            let line = self.0.accept().await;
            let line = line.ok_or_else(|| Failed::other("the socket failed"))?;
            Ok(Box::pin(Opened::begin(line, None)) as Accepting)
        })
    }

    fn traffic(&self) -> Option<Traffic> {
        Some(self.0.traffic())
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
        Some(self.endpoint.traffic())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.endpoint.stop();
    }
}

//! One client of a scenario: its plan, its names, and its connectors to the servers.

pub(super) mod attempt;
pub(super) mod connecting;
pub(super) mod holding;
pub(super) mod making;
pub(super) mod ops;
pub(super) mod pooling;
pub(super) mod tickets;

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;

use super::ClientSpec;
use super::plan::Plan;
use super::record::names::{Name, Names};
use crate::drivers::{Connection, Connector, Driver, Traffic};
use crate::scenario::ClientOp;
use crate::scenario::axes::Resumption;
use crate::system::failure::Failure;
use crate::system::outcome::Failed;

/// One client of a scenario.
pub(super) struct Client {
    pub(super) spec: ClientSpec,
    pub(super) plan: Plan,
    pub(super) names: Names,
    connectors: Vec<Box<dyn Connector>>,
    /// Connections that are kept to the end.
    pub(super) held: RefCell<Vec<Rc<dyn Connection>>>,
    /// True once the scripts' connections were opened to be held.
    pub(super) holds: Cell<bool>,
}

impl Client {
    pub(super) fn new(spec: ClientSpec, driver: &dyn Driver) -> Result<Self, Failure> {
        if spec.scenario.clients.get(spec.client).is_none() {
            return Err(format!("the scenario has no client {}", spec.client).into());
        }
        let connectors = spec
            .servers
            .iter()
            .map(|server| driver.client(&spec.setup, *server))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            plan: Plan::new(&spec.scenario)?,
            spec,
            names: Names::default(),
            connectors,
            held: RefCell::default(),
            holds: Cell::default(),
        })
    }

    /// Returns the operations of this client.
    pub(super) fn script(&self) -> &[ClientOp] {
        let client = self.spec.scenario.clients.get(self.spec.client);
        client.map_or(&[], |client| &client.ops)
    }

    /// Returns the traffic of the sockets so far.
    pub(super) fn traffic(&self) -> Option<Traffic> {
        let mut sum = Traffic::default();
        for connector in &self.connectors {
            sum += connector.traffic()?;
        }
        Some(sum)
    }

    /// Returns the connector to a server of the scenario, and the server's address.
    pub(super) fn server(&self, number: usize) -> Result<(&dyn Connector, SocketAddr), Failed> {
        let connector = self.connectors.get(number).map(Box::as_ref);
        let address = self.spec.servers.get(number).copied();
        connector.zip(address).ok_or_else(|| {
            Failed::other(format_args!(
                "the script connects to server {number} of {}, counted from 0",
                self.spec.servers.len()
            ))
        })
    }

    /// Returns true if connections are resumed.
    pub(super) fn resumes(&self) -> bool {
        self.spec.setup.cell.resumption != Resumption::Full
    }

    /// Returns true if scripts begin before the handshake is complete.
    pub(super) fn sends_early(&self) -> bool {
        self.spec.setup.cell.resumption == Resumption::ZeroRtt
    }

    /// Returns a name to connect under, with a ticket if there is one.
    pub(super) fn name(&self, base: &str, server: usize) -> Name<'_> {
        if self.resumes() {
            self.names.lend(base, server)
        } else {
            Name::plain(base)
        }
    }
}

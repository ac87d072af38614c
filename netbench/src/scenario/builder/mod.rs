//! Scenarios in Rust, typed.
//!
//! What both ends do on a stream is written in one place, and each end's script has a type of its
//! own: what is only for the other end, or for the other half of a stream, does not compile.

mod client;
mod connect;
mod script;
#[cfg(test)]
mod tests;
mod turns;

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Client, Phases, Scenario, Transport};
use crate::Failure;
use crate::axes::Axes;

pub use client::{ClientScript, ClientThreads};
pub use connect::{Connections, Requests};
pub use script::{
    AtClient, AtServer, Both, CanReceive, CanSend, Connection, Park, Receiving, Script, Sending,
    Side, Threads, Unpark,
};
pub use turns::Turns;

/// What a scenario is made with; see [`Scenario::build`].
pub struct Builder {
    scenario: Scenario,
    servers: usize,
}

/// A server that clients connect to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Server(usize);

impl Scenario {
    /// Makes a scenario, and validates it.
    ///
    /// ```
    /// use hybriq_netbench::scenario::Scenario;
    ///
    /// let scenario = Scenario::build("a-million", |scenario| {
    ///     let server = scenario.server();
    ///     scenario.warm_up(100);
    ///     scenario.client("client", |client| {
    ///         client.connect(server, |connections| {
    ///             connections.count(1_000_000).concurrency(64);
    ///             connections.client(|connection| {
    ///                 connection.request("", |connection| {
    ///                     connection.open_bidi(
    ///                         |local| {
    ///                             local.send(1);
    ///                             local.finish();
    ///                             local.receive_all();
    ///                         },
    ///                         |peer| {
    ///                             peer.receive_all();
    ///                             peer.send(1);
    ///                             peer.finish();
    ///                         },
    ///                     );
    ///                 });
    ///             });
    ///         });
    ///     });
    /// })?;
    /// assert_eq!(scenario.clients.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// A half that only receives cannot be sent on:
    ///
    /// ```compile_fail
    /// use hybriq_netbench::scenario::Scenario;
    ///
    /// Scenario::build("wrong", |scenario| {
    ///     let server = scenario.server();
    ///     scenario.client("client", |client| {
    ///         client.connect(server, |connections| {
    ///             connections.client(|connection| {
    ///                 connection.open_uni(|local| { local.finish(); }, |peer| { peer.send(1); });
    ///             });
    ///         });
    ///     });
    /// });
    /// ```
    pub fn build(name: &str, write: impl FnOnce(&mut Builder)) -> Result<Self, Failure> {
        let mut builder = Builder {
            scenario: Self {
                netbench: super::FORMAT,
                name: name.to_owned(),
                description: String::new(),
                params: BTreeMap::new(),
                phases: Phases::default(),
                transport: Transport::default(),
                breakdown: false,
                axes: Axes::default(),
                clients: Vec::new(),
            },
            servers: 0,
        };
        write(&mut builder);
        builder
            .scenario
            .validate()
            .map_err(|problem| format!("{name}: {problem}"))?;
        Ok(builder.scenario)
    }
}

impl Builder {
    /// What it measures, in a sentence.
    pub fn description(&mut self, text: &str) -> &mut Self {
        text.clone_into(&mut self.scenario.description);
        self
    }

    /// Makes so many connections of each `connect` before, that are not counted.
    pub fn warm_up(&mut self, connections: u64) -> &mut Self {
        self.scenario.phases.warm_up.connections = Some(connections);
        self
    }

    /// Ends the measurement after that time.
    pub fn measure(&mut self, time: Duration) -> &mut Self {
        self.scenario.phases.measure = Some(time);
        self
    }

    /// How long what is under way may take to end.
    pub fn drain(&mut self, time: Duration) -> &mut Self {
        self.scenario.phases.drain = time;
        self
    }

    /// Settings of the transport of both ends.
    pub fn transport(&mut self, transport: Transport) -> &mut Self {
        self.scenario.transport = transport;
        self
    }

    /// What is varied.
    pub fn axes(&mut self, axes: Axes) -> &mut Self {
        self.scenario.axes = axes;
        self
    }

    /// A server to connect to.
    pub fn server(&mut self) -> Server {
        self.servers += 1;
        Server(self.servers - 1)
    }

    /// A client process, and what it does.
    pub fn client(&mut self, name: &str, write: impl FnOnce(&mut ClientScript)) -> &mut Self {
        let mut client = ClientScript::default();
        write(&mut client);
        self.scenario.clients.push(Client {
            name: name.to_owned(),
            ops: client.into_ops(),
        });
        self
    }
}

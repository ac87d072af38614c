//! How connections are made, and requests over a pool of them.

use std::time::Duration;

use super::script::{AtClient, AtServer, Connection, Script};
use crate::scenario::{Arrivals, Connect, OnError, Pool};

/// Connections that are made, each with the same script.
pub struct Connections(Connect);

impl Connections {
    pub(super) fn to(server: usize) -> Self {
        Self(Connect {
            server,
            label: String::new(),
            connections: Some(1),
            concurrency: 1,
            rate: None,
            arrivals: Arrivals::Constant,
            timeout: Duration::from_secs(10),
            on_error: OnError::Count,
            ops: Vec::new(),
            server_ops: Vec::new(),
        })
    }

    pub(super) fn into_connect(self) -> Connect {
        self.0
    }

    /// What results call them.
    pub fn label(&mut self, label: &str) -> &mut Self {
        label.clone_into(&mut self.0.label);
        self
    }

    /// How many.
    pub fn count(&mut self, connections: u64) -> &mut Self {
        self.0.connections = Some(connections);
        self
    }

    /// As many as the measurement has time for.
    pub fn unlimited(&mut self) -> &mut Self {
        self.0.connections = None;
        self
    }

    /// How many may be under way at once.
    pub fn concurrency(&mut self, connections: u32) -> &mut Self {
        self.0.concurrency = connections;
        self
    }

    /// Open loop: so many begin every second, and as many as that takes may be under way. A bound
    /// is set by [`Self::concurrency`] afterwards.
    pub fn rate(&mut self, connections: f64) -> &mut Self {
        self.0.rate = Some(connections);
        self.0.concurrency = crate::scenario::MAX_OPEN_LOOP;
        self
    }

    /// How the arrivals of an open loop are spaced.
    pub fn arrivals(&mut self, arrivals: Arrivals) -> &mut Self {
        self.0.arrivals = arrivals;
        self
    }

    /// How long one connection may take.
    pub fn timeout(&mut self, time: Duration) -> &mut Self {
        self.0.timeout = time;
        self
    }

    /// What follows a failure.
    pub fn on_error(&mut self, then: OnError) -> &mut Self {
        self.0.on_error = then;
        self
    }

    /// What the client does on each connection.
    pub fn client(&mut self, write: impl FnOnce(&mut Script<AtClient, Connection>)) -> &mut Self {
        let mut script = Script::new();
        write(&mut script);
        self.0.ops = script.into_ops();
        self
    }

    /// What the server does on each connection beside answering streams.
    pub fn server(&mut self, write: impl FnOnce(&mut Script<AtServer, Connection>)) -> &mut Self {
        let mut script = Script::new();
        write(&mut script);
        self.0.server_ops = script.into_ops();
        self
    }
}

/// Requests over connections that are kept and shared.
pub struct Requests(Pool);

impl Requests {
    pub(super) fn to(server: usize) -> Self {
        Self(Pool {
            server,
            label: String::new(),
            connections: 1,
            keep: None,
            requests: None,
            rate: None,
            every: None,
            burst: 1,
            arrivals: Arrivals::Constant,
            timeout: Duration::from_secs(10),
            on_error: OnError::Count,
            ops: Vec::new(),
        })
    }

    pub(super) fn into_pool(self) -> Pool {
        self.0
    }

    /// What results call them.
    pub fn label(&mut self, label: &str) -> &mut Self {
        label.clone_into(&mut self.0.label);
        self
    }

    /// How many connections there may be at once.
    pub fn connections(&mut self, connections: u32) -> &mut Self {
        self.0.connections = connections;
        self
    }

    /// How long a connection may be unused before it is closed.
    pub fn keep(&mut self, time: Duration) -> &mut Self {
        self.0.keep = Some(time);
        self
    }

    /// How many requests; as many as the measurement has time for unless it is said.
    pub fn count(&mut self, requests: u64) -> &mut Self {
        self.0.requests = Some(requests);
        self
    }

    /// Open loop: so many bursts begin every second.
    pub fn rate(&mut self, bursts: f64) -> &mut Self {
        self.0.rate = Some(bursts);
        self.0.every = None;
        self
    }

    /// Open loop: a burst begins every so often.
    pub fn every(&mut self, time: Duration) -> &mut Self {
        self.0.every = Some(time);
        self.0.rate = None;
        self
    }

    /// How many requests begin together.
    pub fn burst(&mut self, requests: u32) -> &mut Self {
        self.0.burst = requests;
        self
    }

    /// How bursts of an open loop are spaced.
    pub fn arrivals(&mut self, arrivals: Arrivals) -> &mut Self {
        self.0.arrivals = arrivals;
        self
    }

    /// How long one request may take.
    pub fn timeout(&mut self, time: Duration) -> &mut Self {
        self.0.timeout = time;
        self
    }

    /// What follows a failure.
    pub fn on_error(&mut self, then: OnError) -> &mut Self {
        self.0.on_error = then;
        self
    }

    /// One request.
    pub fn request(&mut self, write: impl FnOnce(&mut Script<AtClient, Connection>)) -> &mut Self {
        let mut script = Script::new();
        write(&mut script);
        self.0.ops = script.into_ops();
        self
    }
}

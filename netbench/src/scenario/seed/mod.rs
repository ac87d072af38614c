//! Reader for scenarios of s2n-netbench.
//!
//! In that format the two sides of a connection are separate and refer to streams by number; here
//! the two scripts of a stream are together:
//!
//! ```text
//!  clients[0].connections[c].ops           ──►  connect.ops
//!  servers[s].connections[c].peer_streams  ──►  the `peer` of each stream that they open
//!  servers[s].connections[c].ops           ──►  connect.server_ops
//!  clients[0].connections[c].peer_streams  ──►  the `peer` of each stream that those open
//! ```
//! A thousand equal `connect` in a row become one with a count.

mod connection;
mod format;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Map, Value};

use self::connection::{End, Role, Side};
use super::{ClientOp, Connect, OnError, Phases, Scenario, Transport, problem};
use crate::scenario::axes::Axes;

/// Maximum duration of a connection, which that format does not limit.
const TIMEOUT: Duration = Duration::from_hours(1);

/// Returns true if a file is one of s2n-netbench's.
pub(super) fn is_seed(document: &Map<String, Value>) -> bool {
    !document.contains_key("netbench")
        && document.contains_key("clients")
        && document.contains_key("servers")
}

/// Reads a file, and names the scenario after it.
pub(super) fn read(name: &str, document: Map<String, Value>) -> Result<Scenario, String> {
    let seed: format::Scenario = problem::typed(Value::Object(document))?;
    if !seed.routers.is_empty() {
        return Err(no_routers("routers"));
    }
    let clients = (seed.clients.iter().enumerate())
        .map(|(index, client)| {
            let name = match client.name.as_str() {
                "" => format!("client {index}"),
                name => name.to_owned(),
            };
            let mut parked = BTreeSet::new();
            parks(&client.scenario, &mut parked);
            let reader = Reader {
                seed: &seed,
                client,
                parked,
            };
            let ops = reader.ops(&format!("clients[{index}].scenario"), &client.scenario)?;
            Ok(super::Client { name, ops })
        })
        .collect::<Result<_, String>>()?;
    Ok(Scenario {
        netbench: super::FORMAT,
        name: name.to_owned(),
        description: String::new(),
        params: BTreeMap::new(),
        phases: Phases::default(),
        transport: Transport::default(),
        breakdown: false,
        axes: Axes::default(),
        clients,
    })
}

fn no_routers(path: &str) -> String {
    format!(
        "{path}: netbench emulates links beside the scenario; use the link axis, as \
         `--link \"--delay 25ms --loss 1%\"`, or `netbench link`"
    )
}

/// Finds the checkpoints at which a client's script waits.
fn parks(ops: &[format::ClientOp], found: &mut BTreeSet<u64>) {
    for op in ops {
        match op {
            format::ClientOp::Park { checkpoint } => {
                found.insert(*checkpoint);
            }
            format::ClientOp::Scope { threads } => threads.iter().for_each(|ops| parks(ops, found)),
            _ => {}
        }
    }
}

struct Reader<'a> {
    seed: &'a format::Scenario,
    client: &'a format::Client,
    /// Checkpoints at which a script waits. An `unpark` of any other has no effect.
    parked: BTreeSet<u64>,
}

impl Reader<'_> {
    fn ops(&self, path: &str, ops: &[format::ClientOp]) -> Result<Vec<ClientOp>, String> {
        let mut read = Vec::new();
        // The connection of the previous operation, by its numbers.
        let mut last = None;
        for (index, op) in ops.iter().enumerate() {
            let path = format!("{path}[{index}]");
            let connects = match op {
                format::ClientOp::Connect {
                    server_id,
                    server_connection_id,
                    client_connection_id,
                    router_id: None,
                } => Some((*server_id, *server_connection_id, *client_connection_id)),
                _ => None,
            };
            match read.last_mut() {
                Some(ClientOp::Connect(before)) if connects.is_some() && connects == last => {
                    before.connections = before.connections.map(|count| count + 1);
                }
                _ => read.extend(self.op(&path, op)?),
            }
            last = connects;
        }
        Ok(read)
    }

    fn op(&self, path: &str, op: &format::ClientOp) -> Result<Option<ClientOp>, String> {
        Ok(Some(match op {
            format::ClientOp::Sleep { timeout_ms } => {
                ClientOp::Sleep(Duration::from_millis(*timeout_ms))
            }
            format::ClientOp::Connect {
                router_id: Some(_), ..
            } => return Err(no_routers(&format!("{path}.connect.router_id"))),
            format::ClientOp::Connect {
                server_id,
                server_connection_id,
                client_connection_id,
                router_id: None,
            } => {
                let path = format!("{path}.connect");
                let server = (self.seed.servers.get(*server_id))
                    .ok_or_else(|| format!("{path}.server_id: there is no server {server_id}"))?;
                let no_connection = |key, number| format!("{path}.{key}: there is no {number}");
                let ours = (self.client.connections.get(*client_connection_id))
                    .ok_or_else(|| no_connection("client_connection_id", client_connection_id))?;
                let theirs = (server.connections.get(*server_connection_id))
                    .ok_or_else(|| no_connection("server_connection_id", server_connection_id))?;
                self.connect(*server_id, ours, theirs)
                    .map_err(|problem| format!("{path}: {problem}"))?
            }
            format::ClientOp::Park { checkpoint } => ClientOp::Park(*checkpoint),
            format::ClientOp::Unpark { checkpoint } if self.parked.contains(checkpoint) => {
                ClientOp::Unpark(*checkpoint)
            }
            format::ClientOp::Unpark { .. } | format::ClientOp::Trace { .. } => return Ok(None),
            format::ClientOp::Scope { threads } => {
                let threads = (threads.iter().enumerate())
                    .map(|(index, ops)| self.ops(&format!("{path}.scope.threads[{index}]"), ops));
                ClientOp::Scope(threads.collect::<Result<_, _>>()?)
            }
        }))
    }

    fn connect(
        &self,
        server: usize,
        ours: &format::Connection,
        theirs: &format::Connection,
    ) -> Result<ClientOp, String> {
        let client = End::new(Role::Client, ours);
        let server_end = End::new(Role::Server, theirs);
        let side = |end, other| Side {
            end,
            other,
            traces: &self.seed.traces,
            stream: None,
        };
        Ok(ClientOp::Connect(Box::new(Connect {
            server,
            label: String::new(),
            connections: Some(1),
            concurrency: 1,
            rate: None,
            arrivals: super::Arrivals::default(),
            timeout: TIMEOUT,
            on_error: OnError::default(),
            ops: side(&client, &server_end).script()?,
            server_ops: side(&server_end, &client).script()?,
        })))
    }
}

//! Refuses scenarios that cannot be run as they are written.

pub(super) mod checkpoints;
pub(super) mod shared;
pub(super) mod streams;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use aws_lc_rs::digest;

use self::checkpoints::Checkpoints;
use self::shared::{End, check_iterate, check_rate, refuse_no_time, refuse_zero};
use super::{Arrivals, ClientOp, Connect, Op, Pool, Scenario};
use crate::system::failure::Failure;

impl Scenario {
    /// Returns a hexadecimal digest of the phases, the transport and the scripts, without names,
    /// descriptions, parameters and axes.
    pub(crate) fn id(&self) -> String {
        let content = (&self.phases, &self.transport, self.breakdown, &self.clients);
        let content = serde_json::to_vec(&content).unwrap_or_default();
        let digest = digest::digest(&digest::SHA256, &content);
        let mut text = String::new();
        for byte in digest.as_ref() {
            let _ = write!(text, "{byte:02x}");
        }
        text
    }

    /// Refuses what can never run, in one line with its place.
    pub(crate) fn validate(&self) -> Result<(), Failure> {
        Ok(self.check()?)
    }

    fn check(&self) -> Result<(), String> {
        if self.netbench != super::FORMAT {
            return Err(format!(
                "netbench: this netbench reads format {}",
                super::FORMAT
            ));
        }
        if self.name.trim().is_empty() {
            return Err("name: is empty".to_owned());
        }
        if self.clients.is_empty() {
            return Err("clients: the list is empty; add at least one".to_owned());
        }
        let mut servers = BTreeSet::new();
        for (index, client) in self.clients.iter().enumerate() {
            let path = format!("clients[{index}].ops");
            let mut check = ClientCheck {
                end: match self.phases.measure {
                    Some(_) => End::ByTime,
                    None => End::ByScripts,
                },
                servers: &mut servers,
                connects: false,
                is_repeated: false,
            };
            check.ops(&path, &client.ops)?;
            if !check.connects {
                return Err(format!("{path}: it never connects"));
            }
            Checkpoints::of_client(&path, client).check()?;
        }
        let is_stream = |op: &Op| matches!(op, Op::OpenBidi(_) | Op::OpenUni(_) | Op::Datagrams(_));
        if self.has(&|op| matches!(op, Op::Fetch(_))) && self.has(&is_stream) {
            return Err(
                "clients: a scenario with `fetch` is HTTP, so no script can open streams or send \
                 datagrams; write two scenarios"
                    .to_owned(),
            );
        }
        // Servers get their addresses by number, so no number may be missing.
        match (0..servers.len()).find(|server| !servers.contains(server)) {
            Some(unused) => Err(format!(
                "server {} is used but server {unused} is not; number them from 0",
                servers.last().copied().unwrap_or_default()
            )),
            None => Ok(()),
        }
    }
}

struct ClientCheck<'a> {
    end: End,
    servers: &'a mut BTreeSet<usize>,
    connects: bool,
    /// True inside of an `iterate`.
    is_repeated: bool,
}

impl ClientCheck<'_> {
    fn ops(&mut self, path: &str, ops: &[ClientOp]) -> Result<(), String> {
        for (index, op) in ops.iter().enumerate() {
            self.op(&format!("{path}[{index}]"), op)?;
        }
        Ok(())
    }

    fn op(&mut self, path: &str, op: &ClientOp) -> Result<(), String> {
        match op {
            ClientOp::Connect(connect) => {
                self.connects = true;
                self.servers.insert(connect.server);
                self.connect(&format!("{path}.connect"), connect)
            }
            ClientOp::Pool(pool) => {
                self.connects = true;
                self.servers.insert(pool.server);
                self.pool(&format!("{path}.pool"), pool)
            }
            ClientOp::Hold(hold) => {
                self.servers.insert(hold.server);
                let path = format!("{path}.hold");
                if self.is_repeated {
                    return Err(format!(
                        "{path}: connections are held from before the measurement; put it outside of \
                         `iterate`"
                    ));
                }
                refuse_zero(&path, "concurrency", Some(hold.concurrency.into()))?;
                refuse_no_time(&path, "timeout", hold.timeout)
            }
            ClientOp::Sleep(_) | ClientOp::Park(_) | ClientOp::Unpark(_) => Ok(()),
            ClientOp::Scope(threads) => (threads.iter().enumerate())
                .try_for_each(|(index, ops)| self.ops(&format!("{path}.scope[{index}]"), ops)),
            ClientOp::Iterate(iterate) => {
                let path = format!("{path}.iterate");
                check_iterate(&path, iterate, self.end)?;
                let outside = std::mem::replace(&mut self.is_repeated, true);
                let checked = self.ops(&format!("{path}.ops"), &iterate.ops);
                self.is_repeated = outside;
                checked
            }
        }
    }

    fn connect(&self, path: &str, connect: &Connect) -> Result<(), String> {
        refuse_zero(path, "connections", connect.connections)?;
        refuse_zero(path, "concurrency", Some(connect.concurrency.into()))?;
        refuse_no_time(path, "timeout", connect.timeout)?;
        check_rate(path, connect.rate)?;
        if connect.connections.is_none() && self.end == End::ByScripts {
            return Err(format!(
                "{path}.connections: unlimited needs `phases.measure`, which ends it"
            ));
        }
        if connect.rate.is_none() && connect.arrivals == Arrivals::Poisson {
            return Err(format!(
                "{path}.arrivals: without `rate` there are no arrivals to space"
            ));
        }
        streams::check(path, &connect.ops, &connect.server_ops, self.end)?;
        Checkpoints::of_connection(path, &connect.ops, &connect.server_ops)
    }

    fn pool(&self, path: &str, pool: &Pool) -> Result<(), String> {
        refuse_zero(path, "connections", Some(pool.connections.into()))?;
        refuse_zero(path, "requests", pool.requests)?;
        refuse_zero(path, "burst", Some(pool.burst.into()))?;
        refuse_no_time(path, "timeout", pool.timeout)?;
        check_rate(path, pool.rate)?;
        if let Some(every) = pool.every {
            refuse_no_time(path, "every", every)?;
        }
        if pool.requests.is_none() && self.end == End::ByScripts {
            return Err(format!(
                "{path}.requests: give their number, or `phases.measure`, which ends it"
            ));
        }
        if pool.rate.is_some() && pool.every.is_some() {
            return Err(format!(
                "{path}: `rate` and `every` both say when bursts begin; give one"
            ));
        }
        let is_open = pool.rate.is_some() || pool.every.is_some();
        if !is_open && (pool.burst > 1 || pool.arrivals == Arrivals::Poisson) {
            return Err(format!(
                "{path}: bursts and arrivals need `rate` or `every`"
            ));
        }
        if pool.ops.is_empty() {
            return Err(format!("{path}.ops: is empty: a request does something"));
        }
        streams::check(path, &pool.ops, &[], self.end)?;
        Checkpoints::of_connection(path, &pool.ops, &[])
    }
}

//! Flags of a run against servers on other hosts.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::env;
use std::rc::Rc;
use std::time::Duration;

use clap::Args;

use super::session::Agents;
use super::{Target, Token};
use crate::report::results::Fleet;
use crate::scenario::Template;
use crate::system::failure::Failure;

/// Servers and other clients on other hosts.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Other hosts")]
pub(crate) struct PeerArgs {
    /// Uses a server that `netbench server` starts on that host, instead of one on this host.
    /// Repeatable, for scenarios with several servers. Default: SERVER_0, SERVER_1, … of the environment.
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "listen")]
    server: Vec<Target>,

    /// Secret with which `netbench server` was started.
    #[arg(
        long,
        value_name = "TEXT",
        env = "NETBENCH_TOKEN",
        hide_env_values = true
    )]
    token: Option<Token>,

    /// Total number of clients that measure together. Start each with the same command and its own
    /// `--client-id`, and `netbench server` with the same number; `netbench merge` adds them up.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    fleet: u32,

    /// Number of this client in the fleet, counted from 0.
    #[arg(long, value_name = "N", default_value_t = 0, env = "CLIENT_ID")]
    client_id: u32,

    /// Seconds that a client of a fleet waits for the others.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    fleet_wait: u64,
}

impl PeerArgs {
    /// Returns the servers on other hosts; `None` if servers are started here.
    pub(crate) fn agents(&self, template: &Template) -> Result<Option<Rc<Agents>>, Failure> {
        let targets = self.targets()?;
        if targets.is_empty() {
            if self.fleet > 1 {
                return Err("a fleet needs a server to share: give --server HOST:PORT".into());
            }
            return Ok(None);
        }
        if self.client_id >= self.fleet {
            let most = self.fleet - 1;
            return Err(match self.fleet {
                1 => "--client-id is for the clients of a fleet: give --fleet too".to_owned(),
                size => format!("a fleet of {size} has the clients 0 to {most}"),
            }
            .into());
        }
        Ok(Some(Rc::new(Agents {
            targets,
            token: self.token.clone(),
            fleet: Fleet {
                size: self.fleet,
                client: self.client_id,
            },
            wait: Duration::from_secs(self.fleet_wait),
            scenario_id: template.resolve(&BTreeMap::new())?.id(),
            rounds: RefCell::default(),
            is_lost: Cell::default(),
        })))
    }

    fn targets(&self) -> Result<Vec<Target>, Failure> {
        if !self.server.is_empty() {
            return Ok(self.server.clone());
        }
        let names = (0..).map(|number| format!("SERVER_{number}"));
        names
            .map_while(|name| Some((env::var(&name).ok()?, name)))
            .map(|(value, name)| value.parse().map_err(|why| format!("{name}: {why}").into()))
            .collect()
    }
}

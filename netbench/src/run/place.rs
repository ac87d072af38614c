//! Where the servers of a run are.

use std::net::{IpAddr, SocketAddr};

use tokio::net::TcpStream;

use crate::Failure;
use crate::machine::Machine;
use crate::process::Process;

/// Where servers run.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// On this machine, started for each repetition, listening there.
    Here(SocketAddr),
    /// Where `netbench server` waits for runs, by the scenario's server numbers: `host:port`.
    Agents(Vec<String>),
}

/// How clients reach what a server listens on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Host {
    Here,
    At(IpAddr),
}

impl Place {
    /// Begins to talk to a server.
    pub(super) async fn server(&self, number: usize) -> Result<(Process, Host), Failure> {
        let Self::Agents(agents) = self else {
            return Ok((Process::spawn("serve", &[])?, Host::Here));
        };
        let Some(agent) = agents.get(number) else {
            return Err(format!(
                "the scenario has a server {number}, but there are {} addresses; \
                 give one more with SERVER_{number}=HOST:PORT",
                agents.len()
            )
            .into());
        };
        let stream = TcpStream::connect(agent)
            .await
            .map_err(|error| format!("no `netbench server` answers at {agent} (TCP): {error}"))?;
        stream.set_nodelay(true)?;
        let host = Host::At(stream.peer_addr()?.ip());
        let (from, to) = stream.into_split();
        Ok((
            Process::over(format!("the server at {agent}"), from, to),
            host,
        ))
    }

    /// Begins to talk to a client, which always is on this machine.
    #[expect(clippy::unused_self, reason = "clients may get places of their own")]
    pub(super) fn client(&self) -> Result<Process, Failure> {
        Process::spawn("drive", &[])
    }

    /// What a server is told to listen on. An agent has addresses of its own.
    pub(super) fn listen(&self) -> SocketAddr {
        match self {
            Self::Here(listen) => *listen,
            Self::Agents(_) => SocketAddr::from(([0, 0, 0, 0], 0)),
        }
    }

    /// Cores of other machines are theirs to choose.
    pub(super) fn server_core(&self, machine: &Machine) -> Option<usize> {
        match self {
            Self::Here(_) => machine.server_core,
            Self::Agents(_) => None,
        }
    }
}

impl Host {
    pub(super) fn reached_at(self, listening: SocketAddr) -> SocketAddr {
        match self {
            Self::Here => listening,
            Self::At(host) => SocketAddr::new(host, listening.port()),
        }
    }
}

//! Place of a run's servers: this host, or others.

pub(super) mod processes;

use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use self::processes::{START, in_time};
use crate::drivers::Certificates;
use crate::engine::{FromServer, ServerSpec};
use crate::report::results::Fleet;
use crate::run::distributed::Agents;
use crate::system::failure::Failure;
use crate::system::machine::Machine;
use crate::system::process::Process;

/// Place where servers run.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// On this machine, started for each repetition, listening there.
    Here(SocketAddr),
    /// Hosts on which `netbench server` waits for runs.
    Agents(Rc<Agents>),
}

/// A server that listens.
pub(super) struct Listening {
    pub(super) process: Process,
    /// Address at which clients reach it.
    pub(super) address: SocketAddr,
    pub(super) elsewhere: Option<Elsewhere>,
}

/// Facts about a server on another host.
#[derive(Clone, Debug)]
pub(super) struct Elsewhere {
    pub(super) machine: Machine,
    /// Certificates for its clients; all clients of a fleet use those of one of them.
    pub(super) certificates: Certificates,
    pub(super) round: u64,
}

impl Place {
    /// Starts a server. `certificates` is for its clients.
    pub(super) async fn serve(
        &self,
        number: usize,
        spec: &ServerSpec,
        certificates: &Certificates,
    ) -> Result<Listening, Failure> {
        match self {
            Self::Here(_) => {
                let mut process = Process::spawn("serve", &[])?;
                let answer = async {
                    process.tell(spec).await?;
                    process.receive().await
                };
                let answer = in_time(START, "the server", answer).await?;
                let FromServer::Listening(address) = answer else {
                    return Err(process.out_of_turn());
                };
                Ok(Listening {
                    process,
                    address,
                    elsewhere: None,
                })
            }
            Self::Agents(agents) => {
                let started = agents.start(number, spec, certificates).await?;
                Ok(Listening {
                    process: started.process,
                    address: started.address,
                    elsewhere: Some(Elsewhere {
                        machine: started.machine,
                        certificates: started.certificates,
                        round: started.round,
                    }),
                })
            }
        }
    }

    /// Starts a client, which is always on this machine.
    #[expect(clippy::unused_self, reason = "clients may get places of their own")]
    pub(super) fn client(&self) -> Result<Process, Failure> {
        Process::spawn("drive", &[])
    }

    /// Returns the address for a server to listen on. Agents use their own.
    pub(super) fn listen(&self) -> SocketAddr {
        match self {
            Self::Here(listen) => *listen,
            Self::Agents(_) => SocketAddr::from(([0, 0, 0, 0], 0)),
        }
    }

    /// Returns the server's core; other machines choose their own.
    pub(super) fn server_core(&self, machine: &Machine) -> Option<usize> {
        match self {
            Self::Here(_) => machine.server_core,
            Self::Agents(_) => None,
        }
    }

    /// Returns the additional time for a server's answers, because it also waits for other clients.
    pub(super) fn patience(&self) -> Duration {
        match self {
            Self::Here(_) => Duration::ZERO,
            Self::Agents(agents) => agents.patience(),
        }
    }

    /// Returns true if no server can be started there any longer.
    pub(super) fn is_lost(&self) -> bool {
        matches!(self, Self::Agents(agents) if agents.is_lost.get())
    }

    /// Returns the place of this run among the clients that run together.
    pub(super) fn fleet(&self) -> Option<Fleet> {
        match self {
            Self::Agents(agents) if agents.fleet.size > 1 => Some(agents.fleet),
            _ => None,
        }
    }
}

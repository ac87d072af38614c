//! Processes of one repetition, and their messages.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::engine::{ClientSpec, FromClient, FromServer, ToClient, ToServer};
use crate::scenario::axes::link::arguments;
use crate::system::failure::Failure;
use crate::system::process::Process;

/// Maximum time for a process to start.
pub(crate) const START: Duration = Duration::from_secs(20);

/// Servers, their links, and clients. Dropping this ends them all.
#[derive(Default)]
pub(crate) struct Processes {
    pub(crate) servers: Vec<Member>,
    links: Vec<Member>,
    pub(crate) clients: Vec<Member>,
}

/// A process of the repetition.
pub(crate) struct Member {
    process: Process,
    pub(crate) is_gone: bool,
}

/// A message of a process.
pub(crate) enum Received {
    Server(FromServer),
    Client(usize, FromClient),
}

#[derive(Clone, Copy)]
enum Origin {
    Server(usize),
    Link(usize),
    Client(usize),
}

/// First line of a link.
#[derive(Deserialize)]
struct Listening {
    listening: SocketAddr,
}

impl Processes {
    /// Adds a server that listens.
    pub(crate) fn add_server(&mut self, server: Process) {
        self.servers.push(Member::new(server));
    }

    /// Puts a link before a server; returns its address for clients.
    pub(crate) async fn link(
        &mut self,
        args: &str,
        seed: u64,
        server: SocketAddr,
    ) -> Result<SocketAddr, Failure> {
        let mut all: Vec<String> = arguments(args)
            .split_whitespace()
            .map(str::to_owned)
            .collect();
        if !all.iter().any(|arg| arg.starts_with("--seed")) {
            all.extend(["--seed".to_owned(), seed.to_string()]);
        }
        all.extend(["--json", "--until-eof", "--to"].map(str::to_owned));
        all.push(server.to_string());
        let mut link = Process::spawn("link", &all)?;
        let Listening { listening } = in_time(START, "the link", link.read()).await?;
        self.links.push(Member::new(link));
        Ok(listening)
    }

    pub(crate) async fn drive(
        &mut self,
        mut client: Process,
        spec: &ClientSpec,
    ) -> Result<(), Failure> {
        client.tell(spec).await?;
        self.clients.push(Member::new(client));
        Ok(())
    }

    pub(crate) async fn tell_servers(&mut self, message: &ToServer) -> Result<(), Failure> {
        for server in &mut self.servers {
            server.process.tell(message).await?;
        }
        Ok(())
    }

    pub(crate) async fn tell_clients(&mut self, message: &ToClient) -> Result<(), Failure> {
        for client in &mut self.clients {
            client.process.tell(message).await?;
        }
        Ok(())
    }

    /// Returns the next message of any process, or the failure of one that ended. Cancel safe.
    pub(crate) async fn next(&mut self) -> Result<Received, Failure> {
        let (who, line) = poll_fn(|cx| self.poll_line(cx)).await;
        let (Origin::Server(index) | Origin::Link(index) | Origin::Client(index)) = who;
        let group = match who {
            Origin::Server(_) => &mut self.servers,
            Origin::Link(_) => &mut self.links,
            Origin::Client(_) => &mut self.clients,
        };
        let Some(member) = group.get_mut(index) else {
            return Err("a process that was never started spoke".into());
        };
        let received = match who {
            Origin::Server(_) => member.process.understand(line).await.map(Received::Server),
            Origin::Client(_) => {
                let said = member.process.understand(line).await;
                said.map(|said| Received::Client(index, said))
            }
            Origin::Link(_) => match member.process.understand::<serde_json::Value>(line).await {
                Ok(_) => Err(member.process.out_of_turn()),
                Err(failure) => Err(failure),
            },
        };
        member.is_gone = received.is_err();
        received
    }

    fn poll_line(&mut self, cx: &mut Context<'_>) -> Poll<(Origin, io::Result<Option<String>>)> {
        let servers = self.servers.iter_mut().enumerate();
        let links = self.links.iter_mut().enumerate();
        let clients = self.clients.iter_mut().enumerate();
        let all = (servers.map(|(index, member)| (Origin::Server(index), member)))
            .chain(links.map(|(index, member)| (Origin::Link(index), member)))
            .chain(clients.map(|(index, member)| (Origin::Client(index), member)));
        for (who, member) in all.filter(|(_, member)| !member.is_gone) {
            if let Poll::Ready(line) = member.process.poll_line(cx) {
                return Poll::Ready((who, line));
            }
        }
        Poll::Pending
    }
}

impl Member {
    fn new(process: Process) -> Self {
        Self {
            process,
            is_gone: false,
        }
    }

    /// Sends a message if the process still exists; returns true if it does.
    pub(crate) async fn tell_if_there<T: Serialize>(&mut self, message: &T) -> bool {
        self.is_gone = self.is_gone || self.process.tell(message).await.is_err();
        !self.is_gone
    }
}

/// Waits for an answer with a time limit.
pub(crate) async fn in_time<T>(
    limit: Duration,
    who: &str,
    answer: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    tokio::time::timeout(limit, answer)
        .await
        .unwrap_or_else(|_| Err(format!("{who} did not answer within {limit:?}").into()))
}

//! One server process and the clients that share it.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::time::{Instant, timeout_at};

use super::barrier::Barrier;
use super::control::options::Options;
use super::control::protocol::{Listening, Order};
use crate::engine::{FromServer, ToServer};
use crate::system::failure::Failure;
use crate::system::process::Process;

/// News that members tell their group.
pub(super) enum Event {
    Join(Box<Joining>),
    Say(Member, ToServer),
    Leave(Member),
}

/// A connection, and its client number in the fleet, which two may claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) connection: u64,
    pub(super) client: u32,
}

/// A client that joins.
pub(super) struct Joining {
    pub(super) member: Member,
    pub(super) order: Order,
    /// Address of this host that the client connected to.
    pub(super) host: IpAddr,
    /// Lines for the client. Dropping this disconnects it.
    pub(super) replies: UnboundedSender<String>,
}

/// Gathers the fleet, runs its server process, and ends it.
pub(super) async fn conduct(options: Rc<Options>, mut events: UnboundedReceiver<Event>) {
    let mut group = Group {
        barrier: Barrier::new(options.fleet),
        orders: BTreeMap::new(),
        host: None,
        replies: BTreeMap::new(),
    };
    if let Err(failure) = group.conduct(&options, &mut events).await {
        group.tell(&Err::<(), _>(crate::system::failure::with_causes(
            failure.as_ref(),
        )));
    }
}

struct Group {
    barrier: Barrier,
    /// Orders of the members, equal except for the certificates. Those of the lowest number are
    /// used, so that all servers of a fleet have the same.
    orders: BTreeMap<u32, Order>,
    /// Address of this host that the members connected to.
    host: Option<IpAddr>,
    replies: BTreeMap<u32, (Member, UnboundedSender<String>)>,
}

impl Group {
    async fn conduct(
        &mut self,
        options: &Options,
        events: &mut UnboundedReceiver<Event>,
    ) -> Result<(), Failure> {
        if !self.gather(options, events).await? {
            return Ok(());
        }
        let (Some((_, order)), Some(host)) = (self.orders.pop_first(), self.host) else {
            return Ok(());
        };
        let (mut process, address) = tokio::select! {
            started = start(options, order.clone(), host) => started?,
            () = self.wait_for_the_last_to_leave(events) => return Ok(()),
        };
        self.tell(&Ok::<_, String>(Listening {
            address,
            certificates: order.certificates,
            machine: options.machine.clone(),
        }));
        self.relay(&mut process, events).await
    }

    /// Waits until all clients have joined; returns false if all have left again.
    async fn gather(
        &mut self,
        options: &Options,
        events: &mut UnboundedReceiver<Event>,
    ) -> Result<bool, Failure> {
        let end = Instant::now() + options.wait;
        loop {
            let Ok(event) = timeout_at(end, events.recv()).await else {
                return Err(format!(
                    "only {} of the fleet's {} clients came within {} s",
                    self.barrier.clients(),
                    options.fleet,
                    options.wait.as_secs()
                )
                .into());
            };
            match event {
                Some(Event::Join(joining)) => {
                    if self.join(*joining) {
                        return Ok(true);
                    }
                }
                Some(Event::Say(member, _)) => self.refuse(member, "the client spoke out of turn"),
                Some(Event::Leave(member)) => {
                    self.leave(member);
                }
                None => return Ok(false),
            }
            if self.barrier.is_empty() {
                return Ok(false);
            }
        }
    }

    fn join(&mut self, joining: Joining) -> bool {
        let Joining {
            member,
            order,
            host,
            replies,
        } = joining;
        let first = *self.host.get_or_insert(host);
        let joined = if first == host {
            self.barrier.join(member.client)
        } else {
            Err(format!(
                "this client came to {host} and the first one of the fleet to {first}: give all \
                 clients the same address"
            ))
        };
        match joined {
            Ok(full) => {
                self.replies.insert(member.client, (member, replies));
                self.orders.insert(member.client, order);
                full
            }
            Err(refused) => {
                tell(&replies, &Err::<(), _>(refused));
                false
            }
        }
    }

    async fn wait_for_the_last_to_leave(&mut self, events: &mut UnboundedReceiver<Event>) {
        while let Some(event) = events.recv().await {
            self.handle_late(event);
            if self.replies.is_empty() {
                return;
            }
        }
    }

    /// Relays messages between the clients and the server process until it has reported.
    async fn relay(
        &mut self,
        process: &mut Process,
        events: &mut UnboundedReceiver<Event>,
    ) -> Result<(), Failure> {
        while !self.replies.is_empty() {
            tokio::select! {
                said = process.receive::<FromServer>() => {
                    let said = self.mark(said?);
                    self.tell(&Ok::<_, String>(&said));
                    if matches!(said, FromServer::Report(_)) {
                        return Ok(());
                    }
                }
                event = events.recv() => {
                    let Some(event) = event else { return Ok(()) };
                    if let Some(told) = self.handle_late(event) {
                        process.tell(&told).await?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Handles an event after all have joined; returns the message for the server.
    fn handle_late(&mut self, event: Event) -> Option<ToServer> {
        match event {
            Event::Join(joining) => {
                let late = "the fleet has begun without this client";
                tell(&joining.replies, &Err::<(), _>(late));
                None
            }
            Event::Say(member, said) if self.has(member) => {
                match self.barrier.say(member.client, &said) {
                    Ok(told) => told,
                    Err(refused) => {
                        self.refuse(member, &refused);
                        self.barrier.leave(member.client)
                    }
                }
            }
            Event::Leave(member) => self.leave(member),
            // Already refused.
            Event::Say(..) => None,
        }
    }

    fn has(&self, member: Member) -> bool {
        let known = self.replies.get(&member.client);
        known.is_some_and(|(known, _)| *known == member)
    }

    /// Removes a member, unless it was refused and so has no place.
    fn leave(&mut self, member: Member) -> Option<ToServer> {
        if !self.has(member) {
            return None;
        }
        self.replies.remove(&member.client);
        self.orders.remove(&member.client);
        self.barrier.leave(member.client)
    }

    /// Adds the clients that left early to a report.
    fn mark(&self, mut said: FromServer) -> FromServer {
        if let FromServer::Report(report) = &mut said {
            let left = self.barrier.left().iter().map(u32::to_string);
            let left: Vec<_> = left.collect();
            if !left.is_empty() {
                report.lacks = Some(format!(
                    "client {} of the fleet left before the end",
                    left.join(", ")
                ));
            }
        }
        said
    }

    fn refuse(&mut self, member: Member, why: &str) {
        if self.has(member)
            && let Some((_, replies)) = self.replies.remove(&member.client)
        {
            tell(&replies, &Err::<(), _>(why));
        }
    }

    fn tell<T: serde::Serialize>(&self, said: &Result<T, String>) {
        for (_, replies) in self.replies.values() {
            tell(replies, said);
        }
    }
}

fn tell<T: serde::Serialize, E: serde::Serialize>(
    replies: &UnboundedSender<String>,
    said: &Result<T, E>,
) {
    if let Ok(line) = serde_json::to_string(said) {
        // A client that is gone needs no answer.
        let _ = replies.send(line);
    }
}

/// Starts the server process on the address at which the clients reached this host.
async fn start(
    options: &Options,
    order: Order,
    host: IpAddr,
) -> Result<(Process, SocketAddr), Failure> {
    let mut spec = order.spec;
    spec.core = options.machine.server_core;
    spec.listen = SocketAddr::new(host, options.data_port);
    let mut process = Process::start("serve", &spec).await?;
    match process.receive().await? {
        FromServer::Listening(address) => Ok((process, address)),
        _ => Err(process.out_of_turn()),
    }
}

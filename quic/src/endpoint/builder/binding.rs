//! The start of an endpoint from its builder: checks, sockets, TLS providers and workers.

use std::{
    net::{SocketAddr, ToSocketAddrs, UdpSocket},
    sync::Arc,
};

use hybriq_proto::{
    endpoint::Setup,
    wire::{limits, udp::canonical},
};
use tokio::runtime::Handle;

use super::{EndpointBuilder, Steered};
use crate::{
    config::{ClientConfig, Placement, ServerConfig, TokenKeys, Workers},
    endpoint::{
        Endpoint,
        sockets::{self, Ports},
    },
    errors::EndpointError,
    restart::Inheritance,
    sync::Mutex,
    udp::{self, DatagramSocket, Opened, Prepared, Sharing},
    worker::{self, Mailbox, Shared, WorkerSettings},
};

/// Largest number of sockets that an endpoint starts with. Connections that migrate need more.
const ADDRESSES: usize = limits::SOCKETS / 2;

impl EndpointBuilder {
    /// Opens the sockets and starts the endpoint.
    ///
    /// If the address resolves to several, the first one that can be bound is used.
    ///
    /// # Errors
    /// A setting or an address cannot be used, the TLS configuration is invalid, or there is no tokio
    /// runtime, which workers need unless their [`placement`](Self::placement) is a thread. Each
    /// [`EndpointError`] says what to do.
    ///
    /// # Panics
    /// The tokio runtime was built without its I/O or time driver; use `enable_all`.
    pub fn bind(self, address: impl ToSocketAddrs) -> Result<Endpoint, EndpointError> {
        let (count, ports) = self.check()?;
        let mut sockets = vec![sockets::open(address, &ports, count)?];
        for address in &self.also {
            sockets.push(sockets::open(address, &ports, count)?);
        }
        let setups = self.setups()?;
        self.start(sockets, setups, ports, Inheritance::default())
    }

    /// Starts the endpoint on sockets that are already open and bound: inherited from a parent
    /// process, passed by systemd (`ListenFds`), or opened with options of your own.
    ///
    /// Connections start from the first socket. With several workers there must be a socket for
    /// each on every address, and all must have been bound with `SO_REUSEPORT`. Give them in the
    /// order in which they were bound, which is the order that the system uses: otherwise workers
    /// pass datagrams on to each other
    /// ([`EndpointStats::datagrams_passed_on`](crate::stats::EndpointStats::datagrams_passed_on)).
    /// The sockets keep their buffers; [`socket_buffers`](Self::socket_buffers) does not apply.
    /// They are made non-blocking.
    ///
    /// # Errors
    /// As for [`bind`](Self::bind); and if there are too few sockets for the workers, or one of
    /// them is not a UDP socket, is connected, is a clone of another one, or was bound without
    /// `SO_REUSEPORT` where several workers share an address.
    ///
    /// # Panics
    /// The tokio runtime was built without its I/O or time driver; use `enable_all`.
    ///
    /// # Examples
    /// ```no_run
    /// use std::net::UdpSocket;
    ///
    /// use hybriq::{Endpoint, Identity, ServerConfig};
    ///
    /// # fn run(inherited: UdpSocket) -> Result<(), Box<dyn std::error::Error>> {
    /// # let identity = Identity::from_pem_files("cert.pem", "key.pem")?;
    /// let server = Endpoint::builder()
    ///     .server(ServerConfig::new(identity).alpn(["echo"]))
    ///     .bind_sockets([inherited])?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn bind_sockets(
        self,
        given: impl IntoIterator<Item = UdpSocket>,
    ) -> Result<Endpoint, EndpointError> {
        let (count, ports) = self.check()?;
        let mut sockets: Vec<Vec<Opened>> = Vec::new();
        let mut unshared = None;
        for (number, socket) in given.into_iter().enumerate() {
            let unsuitable = |reason| EndpointError::Unsuitable { number, reason };
            udp::check(&socket).map_err(unsuitable)?;
            if count > 1 && !udp::is_shared(&socket) {
                unshared = unshared.or(Some(number));
            }
            let socket = Opened::adopt(socket, ports.options)?;
            let address = socket.local_address();
            let same = |group: &&mut Vec<Opened>| {
                let first = group.first();
                first.is_some_and(|first| first.local_address() == address)
            };
            match sockets.iter_mut().find(same) {
                Some(group) if group.iter().any(|other| other.is_clone_of(&socket)) => {
                    let reason = "is a clone of another one; open one for each worker";
                    return Err(unsuitable(reason));
                }
                Some(group) => group.push(socket),
                None => sockets.push(vec![socket]),
            }
        }
        if count > 1 && !ports.has_ids {
            return Err(EndpointError::SharedPort);
        }
        for address in &self.also {
            sockets.push(sockets::open(address, &ports, count)?);
        }
        for group in &sockets {
            let first = group.first().map(Opened::local_address);
            if let Some(address) = first.filter(|_| group.len() != count) {
                return Err(EndpointError::Sockets {
                    address,
                    sockets: group.len(),
                    workers: count,
                });
            }
        }
        if let Some(number) = unshared {
            let reason =
                "was bound without SO_REUSEPORT; set it on all sockets before they are bound";
            return Err(EndpointError::Unsuitable { number, reason });
        }
        if sockets.is_empty() {
            return Err(EndpointError::NoSocket);
        }
        let setups = self.setups()?;
        self.start(sockets, setups, ports, Inheritance::default())
    }

    /// Starts the endpoint on a socket of the application: a tunnel, or a simulated network.
    ///
    /// There is one worker. Connections do not move to other local addresses
    /// ([`Connection::migrate`](crate::Connection::migrate)), and the endpoint cannot be handed over to another process.
    ///
    /// # Virtual time
    /// Endpoints take the time from tokio's clock. On a runtime whose clock is paused, it jumps to the next timer whenever
    /// nothing else is to be done: with a simulated network, hours pass in milliseconds, for the endpoint and for all of
    /// the program that uses tokio's timers.
    ///
    /// # Errors
    /// As for [`bind`](Self::bind); and if the builder asks for several workers.
    ///
    /// # Panics
    /// The tokio runtime was built without its I/O or time driver; use `enable_all`.
    pub fn bind_custom(self, socket: impl DatagramSocket) -> Result<Endpoint, EndpointError> {
        let (count, ports) = self.check()?;
        let mut addresses = vec![canonical(socket.local_address())];
        if let (Some(&address), false) = (addresses.first(), count == 1) {
            return Err(EndpointError::Sockets {
                address,
                sockets: 1,
                workers: count,
            });
        }
        let mut sockets = vec![Prepared::Custom(Box::new(socket))];
        for address in &self.also {
            for opened in sockets::open(address, &ports, count)? {
                addresses.push(opened.local_address());
                sockets.push(Prepared::System(opened));
            }
        }
        let (setups, placement) = (self.setups()?, self.placement);
        let parts = self.assemble(addresses, setups, count, ports, Inheritance::default());
        if let Some(mailbox) = parts.mailboxes.first() {
            let core = worker::first_core(count);
            parts.start(0, core, mailbox, sockets).run(placement)?;
        }
        Ok(parts.endpoint)
    }

    /// Checks the settings. Returns the number of workers, and how to open sockets.
    pub(in crate::endpoint) fn check(&self) -> Result<(usize, Ports), EndpointError> {
        if self.placement == Placement::Runtime {
            Handle::try_current().map_err(|_| EndpointError::NoRuntime)?;
            // Panics here without a time driver, not later in the worker's task.
            drop(tokio::time::sleep(std::time::Duration::ZERO));
        }
        let count = self.workers.count();
        if !(1..=Workers::MOST).contains(&count) {
            return Err(EndpointError::Workers(count));
        }
        self.ids.check(self.server.as_ref())?;
        if self.also.len() >= ADDRESSES {
            return Err(EndpointError::Addresses(self.also.len() + 1));
        }
        let ports = Ports {
            options: self.socket,
            accepts: self.server.is_some(),
            has_ids: !self.ids.are_empty(),
            by_id: self.steering == Steered::ById,
        };
        Ok((count, ports))
    }

    /// Starts the workers. `sockets` has one socket for each worker and address.
    pub(in crate::endpoint) fn start(
        self,
        sockets: Vec<Vec<Opened>>,
        setups: Setups,
        ports: Ports,
        inheritance: Inheritance,
    ) -> Result<Endpoint, EndpointError> {
        let placement = self.placement;
        let addresses = sockets.iter().filter_map(|group| group.first());
        let addresses = addresses.map(Opened::local_address).collect();
        let count = sockets.first().map_or(0, Vec::len);
        let parts = self.assemble(addresses, setups, count, ports, inheritance);
        for group in &sockets {
            sockets::steer(group, &ports, &parts.settings.ids);
        }
        let mut sockets: Vec<_> = sockets.into_iter().map(Vec::into_iter).collect();
        let first_core = worker::first_core(count);
        for (index, mailbox) in parts.mailboxes.iter().enumerate() {
            let own = sockets.iter_mut().filter_map(Iterator::next);
            let own = own.map(Prepared::System).collect();
            let core = first_core.wrapping_add(index);
            let start = parts.start(index as u8, core, mailbox, own);
            // Dropping the endpoint after an error ends the workers that have started.
            start.run(placement)?;
        }
        Ok(parts.endpoint)
    }

    /// Builds the TLS providers of the configurations.
    pub(crate) fn setups(&self) -> Result<Setups, EndpointError> {
        Ok(Setups {
            server: self.server.as_ref().map(ServerConfig::setup).transpose()?,
            client: self.client.as_ref().map(ClientConfig::setup).transpose()?,
        })
    }

    /// Creates an endpoint with these addresses, and everything that its workers are made with.
    pub(crate) fn assemble(
        mut self,
        addresses: Vec<SocketAddr>,
        setups: Setups,
        count: usize,
        ports: Ports,
        inheritance: Inheritance,
    ) -> Parts {
        self.ids.draw_reset_key();
        let Setups { server, client } = setups;
        let drain = Arc::new(worker::Drain::default());
        let mailboxes: Box<[_]> = (0..count).map(|_| Mailbox::new(drain.clone())).collect();
        if let (Some(client), Some(first)) = (&client, mailboxes.first()) {
            if client.provider.may_prepare() {
                first.push(worker::Command::Prepare(client.provider.clone()));
            }
        }
        let shared = Shared::new(
            mailboxes.clone(),
            addresses,
            self.accept_backlog,
            self.limits,
            drain,
        );
        let settings = Arc::new(WorkerSettings {
            server: Mutex::new(server),
            ids: self.ids,
            workers: count,
            token_keys: self.token_keys.unwrap_or_else(TokenKeys::random),
            address_validation: self.address_validation,
            accept_backlog: self.accept_backlog,
            spent: worker::Spent::default(),
            inheritance,
            watcher: self.watcher,
            name: self.name,
        });
        Parts {
            endpoint: Endpoint {
                shared,
                settings: settings.clone(),
                client,
                ports,
            },
            mailboxes,
            settings,
            options: udp::Options {
                sharing: Sharing::Alone,
                ..self.socket
            },
        }
    }
}

/// Parts of an endpoint whose workers do not run yet.
pub(crate) struct Parts {
    pub(crate) endpoint: Endpoint,
    pub(crate) mailboxes: Box<[Arc<Mailbox>]>,
    pub(crate) settings: Arc<WorkerSettings>,
    /// Options of sockets opened later.
    pub(crate) options: udp::Options,
}

impl Parts {
    /// Returns everything that a worker starts with.
    fn start(
        &self,
        index: u8,
        core: usize,
        mailbox: &Arc<Mailbox>,
        sockets: Vec<Prepared>,
    ) -> worker::Start {
        worker::Start {
            index,
            core,
            shared: self.endpoint.shared.clone(),
            mailbox: mailbox.clone(),
            sockets: (sockets, self.options),
            settings: self.settings.clone(),
        }
    }
}

/// Setups with which an endpoint accepts and starts connections.
#[derive(Clone)]
pub(crate) struct Setups {
    server: Option<Setup>,
    client: Option<Setup>,
}

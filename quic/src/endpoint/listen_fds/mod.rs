//! Sockets of a service manager such as systemd, which opened them before it started this process
//! (`sd_listen_fds(3)`).

use std::{
    env,
    ffi::OsString,
    io,
    net::{SocketAddr, TcpListener, UdpSocket},
    os::fd::{AsRawFd as _, OwnedFd},
    process,
    sync::atomic::{AtomicBool, Ordering},
};

use socket2::{Domain, Socket, Type};

use crate::udp;

/// Largest number of sockets that are taken.
const MOST: u16 = 1024;

/// True once the sockets of this process were taken.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Sockets that a service manager such as systemd opened for this process, so that it needs no
/// privileges for them and no client is refused while it restarts. Unix only.
///
/// They arrive in the environment variables `LISTEN_FDS`, `LISTEN_PID` and `LISTEN_FDNAMES`.
/// Variables meant for another process are ignored: then [`ListenFds::is_empty`] returns true.
///
/// # Examples
/// ```no_run
/// use hybriq::{Endpoint, Identity, ServerConfig, Workers, fleet::ListenFds};
///
/// # fn run() -> Result<(), Box<dyn std::error::Error>> {
/// # let identity = Identity::from_pem_files("cert.pem", "key.pem")?;
/// let builder = Endpoint::builder().server(ServerConfig::new(identity).alpn(["echo"]));
/// let given = ListenFds::take()?.udp()?;
/// let server = if given.is_empty() {
///     builder.workers(Workers::PerCore).bind("[::]:4433")?
/// } else {
///     // As many workers as the unit has sockets on each address.
///     builder.workers(given.workers()).bind_sockets(given)?
/// };
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct ListenFds(Vec<Given>);

/// One of the sockets.
#[derive(Debug)]
struct Given {
    /// Position in the list, from 0.
    place: usize,
    /// Name that the unit gives it (`FileDescriptorName=`).
    name: String,
    socket: Socket,
}

/// UDP sockets of a service manager, for [`EndpointBuilder::bind_sockets`].
///
/// [`EndpointBuilder::bind_sockets`]: crate::EndpointBuilder::bind_sockets
#[derive(Debug, Default)]
pub struct ListenUdp {
    sockets: Vec<UdpSocket>,
    workers: usize,
}

impl ListenFds {
    /// Takes the sockets of this process. They are closed on `exec` from now on, so that child
    /// processes do not get them.
    ///
    /// # Errors
    /// The variables cannot be understood, a file descriptor is not a socket, or the sockets were
    /// already taken.
    pub fn take() -> Result<Self, ListenFdsError> {
        let Some((count, names)) = announced(|name| env::var_os(name), process::id())? else {
            return Ok(Self::default());
        };
        if TAKEN.swap(true, Ordering::AcqRel) {
            return Err(ListenFdsError::Taken);
        }
        Self::of(udp::passed(count), usize::from(count), &names)
    }

    fn of(given: Vec<OwnedFd>, announced: usize, names: &[String]) -> Result<Self, ListenFdsError> {
        if given.len() < announced {
            return Err(ListenFdsError::Missing {
                announced,
                open: given.len(),
            });
        }
        let mut taken = Vec::new();
        for (place, fd) in given.into_iter().enumerate() {
            let number = fd.as_raw_fd();
            let socket = Socket::from(fd);
            let checked = socket.r#type().and_then(|_| socket.set_cloexec(true));
            checked.map_err(|cause| ListenFdsError::NoSocket { number, cause })?;
            taken.push(Given {
                place,
                name: names.get(place).cloned().unwrap_or_default(),
                socket,
            });
        }
        Ok(Self(taken))
    }

    /// Returns true if no socket is left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the names of the sockets that are left, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|given| &*given.name)
    }

    /// Takes the UDP sockets, and checks that the workers of an endpoint can use them.
    ///
    /// # Errors
    /// A socket is not bound to an IPv4 or IPv6 address, several sockets on one address were bound
    /// without `SO_REUSEPORT`, or the addresses do not have equally many sockets.
    pub fn udp(&mut self) -> Result<ListenUdp, ListenFdsError> {
        self.udp_where(|_| true)
    }

    /// Takes the UDP sockets with this name (`FileDescriptorName=` of the unit), as
    /// [`ListenFds::udp`] does.
    ///
    /// # Errors
    /// As for [`ListenFds::udp`].
    pub fn udp_named(&mut self, name: &str) -> Result<ListenUdp, ListenFdsError> {
        self.udp_where(|given| given.name == name)
    }

    fn udp_where(
        &mut self,
        mut wanted: impl FnMut(&Given) -> bool,
    ) -> Result<ListenUdp, ListenFdsError> {
        let taken = self.extract(|given| is(given, Type::DGRAM) && wanted(given));
        let mut groups: Vec<(SocketAddr, usize)> = Vec::new();
        for given in &taken {
            let address = address(given)?;
            match groups.iter_mut().find(|(known, _)| *known == address) {
                Some((_, count)) => *count += 1,
                None => groups.push((address, 1)),
            }
        }
        let workers = groups.first().map_or(0, |(_, count)| *count);
        if let Some((address, sockets)) = groups.iter().find(|(_, count)| *count != workers) {
            return Err(ListenFdsError::Uneven {
                address: *address,
                sockets: *sockets,
                workers,
            });
        }
        if let Some(given) = taken.iter().find(|it| workers > 1 && !is_shared(it)) {
            return Err(ListenFdsError::NotShared(address(given)?));
        }
        Ok(ListenUdp {
            sockets: taken.into_iter().map(|given| given.socket.into()).collect(),
            workers,
        })
    }

    /// Takes the TCP sockets that listen, for HTTP/1.1 and HTTP/2 on the same port or for health
    /// checks. They are in non-blocking mode.
    ///
    /// # Errors
    /// A socket is not bound to an IPv4 or IPv6 address, or cannot be made non-blocking.
    pub fn tcp(&mut self) -> Result<Vec<TcpListener>, ListenFdsError> {
        self.tcp_where(|_| true)
    }

    /// Takes the TCP sockets with this name (`FileDescriptorName=` of the unit), as
    /// [`ListenFds::tcp`] does.
    ///
    /// # Errors
    /// As for [`ListenFds::tcp`].
    pub fn tcp_named(&mut self, name: &str) -> Result<Vec<TcpListener>, ListenFdsError> {
        self.tcp_where(|given| given.name == name)
    }

    /// Checks that every socket was taken.
    ///
    /// # Errors
    /// One is left: it is neither a UDP socket nor a TCP socket that listens, or it was not wanted.
    pub fn finish(self) -> Result<(), ListenFdsError> {
        match self.0.into_iter().next() {
            Some(Given { place, name, .. }) => Err(ListenFdsError::Left { place, name }),
            None => Ok(()),
        }
    }

    fn tcp_where(
        &mut self,
        wanted: impl Fn(&Given) -> bool,
    ) -> Result<Vec<TcpListener>, ListenFdsError> {
        let listens = |given: &Given| {
            let listens = given.socket.is_listener().unwrap_or_default();
            is(given, Type::STREAM) && listens && wanted(given)
        };
        let prepare = |given: Given| {
            address(&given)?;
            let socket = given.socket;
            let done = socket.set_nonblocking(true);
            done.map_err(|cause| ListenFdsError::NoSocket {
                number: socket.as_raw_fd(),
                cause,
            })?;
            Ok(socket.into())
        };
        self.extract(listens).into_iter().map(prepare).collect()
    }

    fn extract(&mut self, mut wanted: impl FnMut(&Given) -> bool) -> Vec<Given> {
        let all = std::mem::take(&mut self.0).into_iter();
        let (taken, left) = all.partition(|given| wanted(given));
        self.0 = left;
        taken
    }
}

impl ListenUdp {
    /// Returns true if there are no sockets.
    pub fn is_empty(&self) -> bool {
        self.sockets.is_empty()
    }

    /// Returns the number of sockets on each address, which is the number of workers that an
    /// endpoint must have to use them.
    pub fn workers(&self) -> usize {
        self.workers
    }
}

impl IntoIterator for ListenUdp {
    type Item = UdpSocket;
    type IntoIter = std::vec::IntoIter<UdpSocket>;

    fn into_iter(self) -> Self::IntoIter {
        self.sockets.into_iter()
    }
}

fn is(given: &Given, kind: Type) -> bool {
    given.socket.r#type().is_ok_and(|it| it == kind)
}

fn is_shared(given: &Given) -> bool {
    given.socket.reuse_port().unwrap_or_default()
}

/// Returns the address of a socket.
fn address(given: &Given) -> Result<SocketAddr, ListenFdsError> {
    let unsuitable = ListenFdsError::Address { place: given.place };
    let local = given.socket.local_addr().ok();
    let family = local.as_ref().map(socket2::SockAddr::domain);
    if !matches!(family, Some(Domain::IPV4 | Domain::IPV6)) {
        return Err(unsuitable);
    }
    let address = local.and_then(|address| address.as_socket());
    let bound = address.filter(|address| address.port() != 0);
    bound.ok_or(unsuitable)
}

/// Returns the number of sockets and their names, if the variables are meant for this process.
fn announced(
    variable: impl Fn(&str) -> Option<OsString>,
    process: u32,
) -> Result<Option<(u16, Vec<String>)>, ListenFdsError> {
    let number = |name: &'static str| -> Result<Option<u32>, ListenFdsError> {
        let Some(value) = variable(name) else {
            return Ok(None);
        };
        let parsed = value.to_str().and_then(|text| text.parse().ok());
        match parsed {
            Some(number) => Ok(Some(number)),
            None => Err(ListenFdsError::NoNumber { name, value }),
        }
    };
    let Some(count) = number("LISTEN_FDS")? else {
        return Ok(None);
    };
    if number("LISTEN_PID")? != Some(process) || count == 0 {
        return Ok(None);
    }
    let few = u16::try_from(count).ok().filter(|count| *count <= MOST);
    let count = few.ok_or(ListenFdsError::TooMany(count))?;
    let names = variable("LISTEN_FDNAMES").unwrap_or_default();
    let names = names.to_string_lossy();
    Ok(Some((count, names.split(':').map(str::to_owned).collect())))
}

/// Reason why the sockets of a service manager cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenFdsError {
    /// The value of a variable is not a number.
    #[error("{name} is {value:?} and not a number; let the service manager start the program")]
    NoNumber {
        /// Name of the variable.
        name: &'static str,
        /// Value of the variable.
        value: OsString,
    },
    /// There are more sockets than one process can need.
    #[error("LISTEN_FDS announces {0} sockets; at most 1024 are accepted")]
    TooMany(u32),
    /// Some of the file descriptors are not open.
    #[error(
        "LISTEN_FDS announces {announced} sockets, and {open} are open; \
         something closed them before ListenFds::take"
    )]
    Missing {
        /// Number of sockets that were announced.
        announced: usize,
        /// Number of file descriptors that are open.
        open: usize,
    },
    /// A file descriptor is not a socket.
    #[error("file descriptor {number} cannot be used as a socket: {cause}; check the socket unit")]
    NoSocket {
        /// The file descriptor.
        number: i32,
        /// Error of the system.
        cause: io::Error,
    },
    /// A socket is not bound to an IPv4 or IPv6 address.
    #[error(
        "socket {place} of the unit has no address of IPv4 or IPv6 with a port; \
         give ListenDatagram and ListenStream an address and a port"
    )]
    Address {
        /// Position in the unit, from 0.
        place: usize,
    },
    /// Several sockets on one address were bound without `SO_REUSEPORT`.
    #[error("the sockets on {0} cannot share it; set ReusePort=yes in the socket unit")]
    NotShared(SocketAddr),
    /// The addresses do not have equally many sockets.
    #[error(
        "{address} has {sockets} sockets, and another address {workers}; \
         give each address one for each worker"
    )]
    Uneven {
        /// Address with a different number of sockets from the first one.
        address: SocketAddr,
        /// Number of its sockets.
        sockets: usize,
        /// Number of sockets of the first address.
        workers: usize,
    },
    /// Nobody uses a socket.
    #[error(
        "socket {place} of the unit ({name:?}) is not used: the server takes UDP sockets (ListenDatagram) \
         and TCP sockets that listen (ListenStream); remove it, or take it first"
    )]
    Left {
        /// Position in the unit, from 0.
        place: usize,
        /// Name of the socket, or nothing.
        name: String,
    },
    /// The sockets were already taken.
    #[error("the sockets were taken before; take them once and keep them")]
    Taken,
}

impl From<ListenFdsError> for io::Error {
    fn from(error: ListenFdsError) -> Self {
        Self::new(io::ErrorKind::InvalidInput, error)
    }
}

#[cfg(test)]
mod tests;

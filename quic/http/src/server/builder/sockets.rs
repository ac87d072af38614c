//! The sockets of a server: TCP and UDP on one port number, or sockets from outside.

use std::{
    io,
    net::{SocketAddr, TcpListener, ToSocketAddrs},
    path::Path,
    sync::Arc,
};

use hybriq::{Endpoint, EndpointBuilder, EndpointError, error::ConfigError};
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::net::TcpListener as Listener;

/// Number of connections that may wait to be accepted.
const BACKLOG: i32 = 4096;

/// Number of ports that are tried if any port will do.
const ATTEMPTS: usize = 32;

/// Protocols that a server speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Protocols {
    #[default]
    All,
    Http3Only,
}

/// Reason why a server could not be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The QUIC endpoint cannot be created.
    #[error("for HTTP/3: {0}")]
    Quic(EndpointError),
    /// The address cannot be used for TCP.
    #[error(
        "for HTTP/1.1 and HTTP/2: cannot listen on TCP {address}: {cause}; {}, or call \
         ServerBuilder::without_tcp",
        remedy(cause)
    )]
    Tcp {
        /// The address.
        address: SocketAddr,
        /// Error of the system.
        cause: std::io::Error,
    },
    /// A TCP listener that was given cannot be used.
    #[error("TCP listener {number} {reason}")]
    Listener {
        /// Position among the listeners, from 0.
        number: usize,
        /// Its problem, and how to fix it.
        reason: &'static str,
    },
    /// No TCP listener was given.
    #[error(
        "no TCP listener was given for HTTP/1.1 and HTTP/2; give one, or call \
         ServerBuilder::without_tcp"
    )]
    NoListener,
    /// TCP listeners were given to a server of HTTP/3 only.
    #[error(
        "TCP listeners were given, but the server serves HTTP/3 only; give none, or drop \
         ServerBuilder::without_tcp"
    )]
    UnusedListeners,
    /// A PROXY protocol is expected on a port that no TCP listener has.
    #[error(
        "no TCP listener has port {0}, on which a PROXY protocol is expected; give \
         ProxyProtocol::on_port the local port of one"
    )]
    ProxyPort(u16),
    /// `Alt-Svc` cannot name port 0.
    #[error("no client can reach port 0; give AltSvc the outer port, such as 443")]
    AltSvcPort,
    /// `Alt-Svc` cannot name this host.
    #[error("{0:?} is no host; give AltSvc a name such as www.example.com, or an address")]
    AltSvcHost(String),
    /// A time is 0.
    #[error("{0} is 0, so that nothing could ever be in time; give it a time such as 15 s")]
    NoTime(
        /// The setting.
        &'static str,
    ),
    /// The sockets of a service manager cannot be used.
    #[cfg(unix)]
    #[error(transparent)]
    ListenFds(#[from] hybriq::fleet::ListenFdsError),
}

impl From<EndpointError> for BindError {
    fn from(cause: EndpointError) -> Self {
        Self::Quic(cause)
    }
}

/// Returns what to do about an address that cannot be used.
fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "stop the program that uses the port",
        io::ErrorKind::PermissionDenied => {
            "use a port above 1023, or give the program the capability CAP_NET_BIND_SERVICE"
        }
        io::ErrorKind::AddrNotAvailable => "use an address of this machine",
        // A system without IPv6 does not know its sockets.
        _ => "use another address, such as 0.0.0.0 if the system has no IPv6",
    }
}

/// Sockets of a server: its endpoint, and its TCP listeners.
pub(super) struct Sockets {
    pub(super) endpoint: Endpoint,
    pub(super) tcp: Vec<Arc<Listener>>,
}

/// Creates the endpoint and the listener on the same port.
pub(super) fn bind(
    endpoint: EndpointBuilder,
    address: impl ToSocketAddrs,
    protocols: Protocols,
) -> Result<Sockets, BindError> {
    if protocols == Protocols::Http3Only {
        return Ok(Sockets {
            endpoint: endpoint.bind(address)?,
            tcp: Vec::new(),
        });
    }
    let addresses: Vec<_> = address
        .to_socket_addrs()
        .map(Iterator::collect)
        .unwrap_or_default();
    let any_port = addresses.iter().all(|address| address.port() == 0);
    let mut attempts = if any_port { ATTEMPTS } else { 1 };
    // The TCP socket comes first: the builder of the endpoint can be used once.
    let listener = loop {
        attempts -= 1;
        match listen(&addresses) {
            Ok(listener) => {
                let address = listener.local_addr();
                let free = address.is_ok_and(|at| std::net::UdpSocket::bind(at).is_ok());
                if free || attempts == 0 {
                    break listener;
                }
            }
            Err(error) => return Err(error),
        }
    };
    let tcp_error = |cause| BindError::Tcp {
        address: addresses.first().copied().unwrap_or(UNSPECIFIED),
        cause,
    };
    let address = listener.local_addr().map_err(tcp_error)?;
    let endpoint = endpoint.bind(address)?;
    let listener = Listener::from_std(listener).map_err(tcp_error)?;
    Ok(Sockets {
        endpoint,
        tcp: vec![Arc::new(listener)],
    })
}

/// Uses TCP listeners from outside.
pub(super) fn adopt(
    given: Vec<TcpListener>,
    protocols: Protocols,
) -> Result<Vec<Arc<Listener>>, BindError> {
    match (protocols, given.is_empty()) {
        (Protocols::All, true) => return Err(BindError::NoListener),
        (Protocols::Http3Only, false) => return Err(BindError::UnusedListeners),
        _ => {}
    }
    let adopt = |(number, listener)| {
        let unsuitable = |reason| BindError::Listener { number, reason };
        check(&listener).map_err(unsuitable)?;
        let registered = listener.set_nonblocking(true);
        let registered = registered.and_then(|()| Listener::from_std(listener));
        let registered = registered.map(Arc::new);
        registered.map_err(|_| unsuitable("cannot be registered with the runtime; open it anew"))
    };
    given.into_iter().enumerate().map(adopt).collect()
}

/// Checks that a file descriptor is what its type says.
fn check(listener: &TcpListener) -> Result<(), &'static str> {
    let socket = SockRef::from(listener);
    if !socket.r#type().is_ok_and(|kind| kind == Type::STREAM) {
        return Err("is not a TCP socket; give UDP sockets as such");
    }
    let address = socket.local_addr().ok();
    if address.and_then(|address| address.as_socket()).is_none() {
        return Err("has no address of IPv4 or IPv6; bind it to an IP address and a port");
    }
    #[cfg(any(target_os = "linux", target_os = "android"))]
    if !socket.is_listener().unwrap_or_default() {
        return Err("does not listen; call listen on it");
    }
    Ok(())
}

/// Creates the endpoint of a process that waits at a path, with its TCP listeners, or both anew.
pub(super) async fn take_over_or_bind(
    endpoint: EndpointBuilder,
    path: &Path,
    address: impl ToSocketAddrs,
    protocols: Protocols,
) -> Result<Sockets, BindError> {
    let taken = Box::pin(endpoint.clone().take_over_with(path)).await?;
    let Some((endpoint, listeners)) = taken else {
        return bind(endpoint, address, protocols);
    };
    let listeners = match (protocols, listeners.is_empty()) {
        (Protocols::Http3Only, _) => Vec::new(),
        (Protocols::All, false) => listeners,
        // The earlier process had none.
        (Protocols::All, true) => vec![listen(&[endpoint.local_address()])?],
    };
    Ok(Sockets {
        endpoint,
        tcp: adopt(listeners, protocols)?,
    })
}

const UNSPECIFIED: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V6(std::net::Ipv6Addr::UNSPECIFIED), 0);

/// Listens on the first address that can be used.
fn listen(addresses: &[SocketAddr]) -> Result<TcpListener, BindError> {
    let mut failed = BindError::Tcp {
        address: UNSPECIFIED,
        cause: io::Error::new(io::ErrorKind::InvalidInput, "the name has no address"),
    };
    for &address in addresses {
        match listen_on(address) {
            Ok(listener) => return Ok(listener),
            Err(cause) => failed = BindError::Tcp { address, cause },
        }
    }
    Err(failed)
}

fn listen_on(address: SocketAddr) -> io::Result<TcpListener> {
    let domain = Domain::for_address(address);
    let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        // `[::]` takes IPv4 as well, as it does for QUIC.
        socket.set_only_v6(false)?;
    }
    // Closing connections of an earlier process do not hold the port.
    #[cfg(unix)]
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

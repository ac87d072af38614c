//! Binds TCP and UDP to one port number.

use std::{
    io,
    net::{SocketAddr, TcpListener, ToSocketAddrs},
};

use hybriq::{Endpoint, EndpointBuilder, EndpointError, error::ConfigError};
use socket2::{Domain, Protocol, Socket, Type};

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

/// Creates the endpoint and the listener on the same port.
pub(super) fn bind(
    endpoint: EndpointBuilder,
    address: impl ToSocketAddrs,
    protocols: Protocols,
) -> Result<(Endpoint, Option<tokio::net::TcpListener>), BindError> {
    if protocols == Protocols::Http3Only {
        return Ok((endpoint.bind(address)?, None));
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
    let listener = tokio::net::TcpListener::from_std(listener).map_err(tcp_error)?;
    Ok((endpoint, Some(listener)))
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

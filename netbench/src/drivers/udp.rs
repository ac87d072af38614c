//! Sockets for stacks that do not make their own.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
#[cfg(any(feature = "noq", feature = "quiche", feature = "quinn"))]
use {
    super::Transport,
    crate::system::failure::Failure,
    socket2::{Domain, Protocol, Socket, Type},
    std::net::UdpSocket,
};

/// Binds a socket with the requested buffer sizes.
#[cfg(any(feature = "noq", feature = "quiche", feature = "quinn"))]
pub(super) fn bind(address: SocketAddr, settings: &Transport) -> Result<UdpSocket, Failure> {
    let bind = || {
        let socket = Socket::new(
            Domain::for_address(address),
            Type::DGRAM,
            Some(Protocol::UDP),
        )?;
        if let Some(bytes) = settings.socket_buffer {
            socket.set_recv_buffer_size(bytes as usize)?;
            socket.set_send_buffer_size(bytes as usize)?;
        }
        socket.bind(&address.into())?;
        Ok::<UdpSocket, std::io::Error>(socket.into())
    };
    bind().map_err(|error| format!("cannot listen on UDP {address}: {error}").into())
}

/// Returns an unspecified address of the server's family, with a free port.
pub(super) fn any_port(server: SocketAddr) -> SocketAddr {
    let ip: IpAddr = match server.ip() {
        ip if ip.is_loopback() => ip,
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    SocketAddr::new(ip, 0)
}

//! Opening and binding a UDP socket.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
};

use socket2::{Domain, Protocol, Socket, Type};

use crate::error::EndpointError;

/// Opens and binds a socket. `[::]` stands for `0.0.0.0` on machines without IPv6.
pub(super) fn open(address: SocketAddr) -> io::Result<Socket> {
    match bind(address) {
        Err(error) if address.is_ipv6() && address.ip().is_unspecified() => match error.kind() {
            io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied => Err(error),
            _ => bind(SocketAddr::new(
                Ipv4Addr::UNSPECIFIED.into(),
                address.port(),
            )),
        },
        result => result,
    }
}

fn bind(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::DGRAM,
        Some(Protocol::UDP),
    )?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    socket.bind(&address.into())?;
    Ok(socket)
}

/// Converts an error of the system to one that says what to do.
pub(super) fn explain(address: SocketAddr, error: io::Error) -> EndpointError {
    match error.kind() {
        io::ErrorKind::AddrInUse => EndpointError::InUse(address),
        io::ErrorKind::PermissionDenied => EndpointError::Permission(address),
        io::ErrorKind::AddrNotAvailable => EndpointError::NotOurs(address),
        _ => EndpointError::Socket {
            address,
            source: error,
        },
    }
}

//! Opening and binding of UDP sockets, and those that a process was started with.

#[cfg(unix)]
use std::os::fd::{FromRawFd as _, OwnedFd, RawFd};
use std::{
    io,
    net::{Ipv4Addr, SocketAddr, UdpSocket},
};

use socket2::{Domain, Protocol, SockRef, Socket, Type};

use crate::{errors::EndpointError, udp::Sharing};

/// Opens and binds a socket. `[::]` stands for `0.0.0.0` on machines without IPv6.
pub(in crate::udp) fn open(address: SocketAddr, sharing: Sharing) -> io::Result<Socket> {
    match bind(address, sharing) {
        Err(error) if address.is_ipv6() && address.ip().is_unspecified() => match error.kind() {
            io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied => Err(error),
            _ => {
                let address = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), address.port());
                bind(address, sharing)
            }
        },
        result => result,
    }
}

fn bind(address: SocketAddr, sharing: Sharing) -> io::Result<Socket> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::DGRAM,
        Some(Protocol::UDP),
    )?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    if sharing == Sharing::Shared {
        share(&socket)?;
    }
    socket.bind(&address.into())?;
    Ok(socket)
}

/// Lets other sockets of the same user share the address; all of them must set this option.
#[cfg(any(
    target_os = "linux",
    target_os = "android",
    target_vendor = "apple",
    target_os = "freebsd"
))]
fn share(socket: &Socket) -> io::Result<()> {
    socket.set_reuse_port(true)
}

/// Fails: on other systems, datagrams would not be spread over the sockets.
#[cfg(not(any(
    target_os = "linux",
    target_os = "android",
    target_vendor = "apple",
    target_os = "freebsd"
)))]
fn share(_: &Socket) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns true if other sockets of the same user may share the address of a socket.
#[cfg(unix)]
pub(crate) fn is_shared(socket: &UdpSocket) -> bool {
    SockRef::from(socket).reuse_port().unwrap_or_default()
}

/// Returns true: on a system without the option, binding the sockets finds out.
#[cfg(not(unix))]
pub(crate) fn is_shared(_: &UdpSocket) -> bool {
    true
}

/// Checks a socket that another program opened.
///
/// # Errors
/// Why it cannot be used, and what to do.
pub(crate) fn check(socket: &UdpSocket) -> Result<(), &'static str> {
    let socket = SockRef::from(socket);
    let is_internet = socket.local_addr().is_ok_and(|at| at.as_socket().is_some());
    if !is_internet || socket.r#type().ok() != Some(Type::DGRAM) {
        return Err("is not a UDP socket; open one with UdpSocket::bind");
    }
    if socket.peer_addr().is_ok() {
        return Err("is connected, and would receive from only one peer; do not connect it");
    }
    Ok(())
}

/// Converts an error of the system to one that says what to do.
pub(in crate::udp) fn explain(address: SocketAddr, error: io::Error) -> EndpointError {
    match error.kind() {
        io::ErrorKind::AddrInUse => EndpointError::InUse(address),
        io::ErrorKind::PermissionDenied => EndpointError::Permission(address),
        io::ErrorKind::AddrNotAvailable => EndpointError::NotOurs(address),
        _ => EndpointError::Socket {
            address,
            cause: error,
        },
    }
}

/// First file descriptor that a service manager passes (`sd_listen_fds(3)`).
#[cfg(unix)]
const FIRST: RawFd = 3;

/// Takes the file descriptors that a service manager passed to this process, in their order.
///
/// Call it only once: nobody else in this process may own them.
#[cfg(unix)]
pub(crate) fn passed(count: u16) -> Vec<OwnedFd> {
    let all = FIRST..FIRST + RawFd::from(count);
    let is_open = |fd: &RawFd| {
        #[expect(
            unsafe_code,
            reason = "asks for the flags of a number that may be none"
        )]
        // SAFETY: the call only reads flags, and fails if the file descriptor is not open.
        let flags = unsafe { libc::fcntl(*fd, libc::F_GETFD) };
        flags >= 0
    };
    all.filter(is_open)
        .map(|fd| {
            #[expect(unsafe_code, reason = "the environment tells only the number")]
            // SAFETY: the file descriptor is open, and the service manager gave it to this process
            // for its own use. The caller takes it only once.
            unsafe {
                OwnedFd::from_raw_fd(fd)
            }
        })
        .collect()
}

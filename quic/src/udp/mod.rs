//! The UDP socket of a worker: batches, GSO, GRO, ECN and local addresses through `quinn-udp`.

mod bind;
mod buffers;
mod control;

use std::{
    io,
    net::{IpAddr, SocketAddr},
    task::{Context, Poll},
};

use quinn_udp::{EcnCodepoint, UdpSockRef, UdpSocketState};
use tokio::{io::Interest, net::UdpSocket};

use crate::error::EndpointError;
use hybriq_proto::{endpoint::Transmit, space::Ecn};

pub(crate) use buffers::Buffers;

/// True on systems whose readiness is edge-triggered. There, a batch that is not full has emptied the
/// socket, and telling the runtime saves the system call that would find out.
const EDGE_TRIGGERED: bool = cfg!(any(target_os = "linux", target_os = "android"));

/// Options that sockets are made with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// True if one system call may send several datagrams.
    pub(crate) gso: bool,
    /// Number of bytes that the system is asked to buffer for each direction.
    pub(crate) buffer_size: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            gso: true,
            buffer_size: 8 * 1024 * 1024,
        }
    }
}

/// A UDP socket. Its methods take and return IPv4 addresses as such, also on a dual-stack socket.
pub(crate) struct Socket {
    io: UdpSocket,
    state: UdpSocketState,
    local_address: SocketAddr,
    gso: bool,
}

impl Socket {
    /// Opens and binds a socket on the current runtime. `[::]` receives IPv4 as well, and stands for
    /// `0.0.0.0` on machines without IPv6.
    pub(crate) fn bind(address: SocketAddr, options: Options) -> Result<Self, EndpointError> {
        let open = || {
            let socket = bind::open(address)?;
            let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
            control::without_timestamps(&socket)?;
            // The system caps both at its own limits, and refuses where it does not like them.
            let size = options.buffer_size;
            let _ = state.set_recv_buffer_size(UdpSockRef::from(&socket), size);
            let _ = state.set_send_buffer_size(UdpSockRef::from(&socket), size);
            let io = UdpSocket::from_std(socket.into())?;
            let local_address = io.local_addr()?;
            Ok(Self {
                io,
                state,
                local_address,
                gso: options.gso,
            })
        };
        open().map_err(|error| bind::explain(address, error))
    }

    /// Returns the address that the socket is bound to.
    pub(crate) fn local_address(&self) -> SocketAddr {
        canonical(self.local_address)
    }

    /// Returns the number of datagrams that one call may send.
    pub(crate) fn max_datagrams(&self) -> usize {
        if self.gso {
            self.state.max_gso_segments().max(1)
        } else {
            1
        }
    }

    /// Returns ready when datagrams may be waiting.
    pub(crate) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.io.poll_recv_ready(cx).map(|_| ())
    }

    /// Returns ready when there may be room to send.
    pub(crate) fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.io.poll_send_ready(cx).map(|_| ())
    }

    /// Receives a batch and returns the number of messages, or an error of kind `WouldBlock` if none
    /// waits.
    pub(crate) fn receive(&self, buffers: &mut Buffers) -> io::Result<usize> {
        let mut received = 0;
        let result = self.io.try_io(Interest::READABLE, || {
            received = buffers.fill(|messages, meta| {
                self.state.recv(UdpSockRef::from(&self.io), messages, meta)
            })?;
            if EDGE_TRIGGERED && received < Buffers::MESSAGES {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            Ok(())
        });
        match result {
            Err(error) if received == 0 => Err(error),
            _ => Ok(received),
        }
    }

    /// Sends one datagram, or several of one size. Returns an error of kind `WouldBlock` if there is
    /// no room.
    pub(crate) fn send(&self, transmit: &Transmit, contents: &[u8]) -> io::Result<()> {
        let transmit = quinn_udp::Transmit {
            destination: self.mapped(transmit.peer),
            ecn: transmit.ecn.map(codepoint),
            contents,
            segment_size: transmit.segment_size,
            src_ip: transmit.local.ip.map(|ip| self.mapped_ip(ip)),
        };
        self.io.try_io(Interest::WRITABLE, || {
            self.state.try_send(UdpSockRef::from(&self.io), &transmit)
        })
    }

    /// Converts an address to the family of this socket.
    fn mapped(&self, address: SocketAddr) -> SocketAddr {
        match address {
            SocketAddr::V4(v4) if self.local_address.is_ipv6() => {
                SocketAddr::new(v4.ip().to_ipv6_mapped().into(), v4.port())
            }
            address => address,
        }
    }

    fn mapped_ip(&self, ip: IpAddr) -> IpAddr {
        match ip {
            IpAddr::V4(v4) if self.local_address.is_ipv6() => v4.to_ipv6_mapped().into(),
            ip => ip,
        }
    }
}

/// Returns true if a socket bound to `local` can reach `peer`.
pub(crate) fn can_reach(local: SocketAddr, peer: SocketAddr) -> bool {
    let peer = canonical(peer);
    if peer.port() == 0 || peer.ip().is_unspecified() {
        return false;
    }
    match local.ip() {
        IpAddr::V4(_) => peer.is_ipv4(),
        IpAddr::V6(ip) => peer.is_ipv6() || ip.is_unspecified(),
    }
}

/// Converts an IPv4-mapped IPv6 address to IPv4; returns other addresses unchanged.
pub(crate) fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        ip @ IpAddr::V4(_) => SocketAddr::new(ip, address.port()),
        IpAddr::V6(_) => address,
    }
}

fn codepoint(ecn: Ecn) -> EcnCodepoint {
    match ecn {
        Ecn::Ect0 => EcnCodepoint::Ect0,
        Ecn::Ect1 => EcnCodepoint::Ect1,
        Ecn::Ce => EcnCodepoint::Ce,
    }
}

fn ecn(codepoint: EcnCodepoint) -> Ecn {
    match codepoint {
        EcnCodepoint::Ect0 => Ecn::Ect0,
        EcnCodepoint::Ect1 => Ecn::Ect1,
        EcnCodepoint::Ce => Ecn::Ce,
    }
}

#[cfg(test)]
mod tests;

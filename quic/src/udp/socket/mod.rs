//! The sockets of workers: of the operating system, or of the application.

mod custom;
#[cfg(test)]
mod port;
pub(super) mod system;

use std::{
    io,
    net::SocketAddr,
    task::{Context, Poll},
};

use hybriq_proto::{endpoint::Transmit, wire::udp::canonical};

use super::{Buffers, Handle, Options, Report, Watched};
use crate::errors::EndpointError;
pub use custom::{DatagramSocket, Outgoing, Received};
#[cfg(test)]
pub(crate) use port::Network;
pub(crate) use system::Opened;

/// A socket of a worker.
#[allow(
    clippy::large_enum_variant,
    reason = "a worker has few sockets, and each datagram passes the large ones"
)]
pub(crate) enum Socket {
    /// A socket of the operating system.
    System(system::Socket),
    /// A socket of the application.
    Custom(Box<dyn DatagramSocket>),
    /// A port of a network of unit tests.
    #[cfg(test)]
    Port(port::Port),
}

/// A socket that no runtime watches yet.
pub(crate) enum Prepared {
    /// A socket of the operating system.
    System(Opened),
    /// A socket of the application.
    Custom(Box<dyn DatagramSocket>),
}

impl Prepared {
    /// Registers it with the current runtime.
    pub(crate) fn register(self) -> Result<Socket, EndpointError> {
        match self {
            Self::System(opened) => Socket::register(opened),
            Self::Custom(socket) => Ok(Socket::Custom(socket)),
        }
    }
}

impl Socket {
    /// Opens and binds a socket of the system on the current runtime.
    pub(crate) fn bind(address: SocketAddr, options: Options) -> Result<Self, EndpointError> {
        system::Socket::bind(address, options).map(Self::System)
    }

    /// Registers a socket of the system with the current runtime.
    pub(crate) fn register(opened: Opened) -> Result<Self, EndpointError> {
        system::Socket::register(opened).map(Self::System)
    }

    /// Returns true for a socket of the application: the system has none like it.
    pub(crate) const fn is_custom(&self) -> bool {
        matches!(self, Self::Custom(_))
    }

    /// Returns another handle of the socket, for another process.
    pub(crate) fn handle(&self) -> io::Result<Handle> {
        if let Self::System(socket) = self {
            socket.handle()
        } else {
            Err(io::ErrorKind::Unsupported.into())
        }
    }

    /// Sets which events the runtime watches the socket for.
    pub(crate) fn watch(&mut self, for_what: Watched) -> io::Result<()> {
        if let Self::System(socket) = self {
            socket.watch(for_what)
        } else {
            Ok(())
        }
    }

    /// Returns the address that the socket is bound to.
    pub(crate) fn local_address(&self) -> SocketAddr {
        match self {
            Self::System(socket) => socket.local_address(),
            Self::Custom(socket) => canonical(socket.local_address()),
            #[cfg(test)]
            Self::Port(port) => port.address,
        }
    }

    /// Returns the number of datagrams that one call may send.
    #[inline]
    pub(crate) fn max_datagrams(&self) -> usize {
        if let Self::System(socket) = self {
            socket.max_datagrams()
        } else {
            1
        }
    }

    /// Notes that a datagram of a train was sent on its own.
    pub(crate) fn on_taken_apart(&self, peer: SocketAddr) {
        if let Self::System(socket) = self {
            socket.on_taken_apart(peer);
        }
    }

    /// Returns ready when datagrams may be waiting.
    #[inline]
    pub(crate) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
        match self {
            Self::System(socket) => socket.poll_readable(cx),
            Self::Custom(socket) => socket.poll_readable(cx),
            #[cfg(test)]
            Self::Port(port) => port.poll_readable(cx),
        }
    }

    /// Returns ready when there may be room to send.
    #[inline]
    pub(crate) fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<()> {
        match self {
            Self::System(socket) => socket.poll_writable(cx),
            Self::Custom(socket) => socket.poll_writable(cx),
            #[cfg(test)]
            Self::Port(port) => port.poll_writable(cx),
        }
    }

    /// Sets whether the system keeps reports about datagrams that are sent.
    pub(crate) fn keep_reports(&mut self, keep: bool) {
        if let Self::System(socket) = self {
            socket.keep_reports(keep);
        }
    }

    /// Takes the next report about a datagram that was sent.
    pub(crate) fn take_report(&self) -> Option<Report> {
        if let Self::System(socket) = self {
            socket.take_report()
        } else {
            None
        }
    }

    /// Returns ready when there may be reports.
    pub(crate) fn poll_reports(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Self::System(socket) = self {
            socket.poll_reports(cx)
        } else {
            Poll::Pending
        }
    }

    /// Returns true if [`Socket::poll_writable`] can tell that there is room again.
    pub(crate) fn is_watched_for_room(&self) -> bool {
        match self {
            Self::System(socket) => socket.is_watched_for_room(),
            Self::Custom(_) => true,
            #[cfg(test)]
            Self::Port(port) => port.with(|state| !state.is_unwatched),
        }
    }

    /// Receives a batch and returns the number of messages, or an error of kind `WouldBlock` if none waits.
    #[inline]
    pub(crate) fn receive(&self, buffers: &mut Buffers) -> io::Result<usize> {
        match self {
            Self::System(socket) => socket.receive(buffers),
            Self::Custom(socket) => {
                buffers.fill(|messages, meta| custom::receive(&**socket, messages, meta))
            }
            #[cfg(test)]
            Self::Port(port) => buffers.fill(|messages, meta| port.receive(messages, meta)),
        }
    }

    /// Sends one datagram, or several of one size. Returns an error of kind `WouldBlock` if there is no room.
    #[inline]
    pub(crate) fn send(&self, transmit: &Transmit, contents: &[u8]) -> io::Result<()> {
        match self {
            Self::System(socket) => socket.send(transmit, contents),
            Self::Custom(socket) => socket.send(&Outgoing::new(transmit, contents)),
            #[cfg(test)]
            Self::Port(port) => port.send(transmit, contents),
        }
    }
}

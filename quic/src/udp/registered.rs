//! A socket of the system that a runtime watches.

use std::{
    io,
    net::UdpSocket as StdSocket,
    task::{Context, Poll},
};

use quinn_udp::UdpSockRef;
use tokio::{io::Interest, net::UdpSocket};

/// A socket that a runtime watches.
pub(super) enum Registered {
    /// For datagrams that wait, and for room to send.
    Both(UdpSocket),
    /// For room to send alone: another process receives the datagrams, each of which would wake this
    /// process for nothing.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    Sending(tokio::io::unix::AsyncFd<StdSocket>),
}

impl Registered {
    /// Gives a socket to the current runtime.
    pub(super) fn both(socket: StdSocket) -> io::Result<Self> {
        UdpSocket::from_std(socket).map(Self::Both)
    }

    /// Gives a socket from which another process receives to the current runtime.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    #[expect(unsafe_code, reason = "the runtime has no safe function for it")]
    pub(super) fn sending(socket: StdSocket) -> io::Result<Self> {
        // SAFETY: the socket owns its file descriptor, which stays the same until it is dropped with
        // the registration; nothing takes the socket out of it.
        let registered =
            unsafe { tokio::io::unix::AsyncFd::register_with_interest(socket, Interest::WRITABLE) };
        registered
            .map(Self::Sending)
            .map_err(|error| error.into_parts().1)
    }

    /// Returns the socket.
    pub(super) fn reference(&self) -> UdpSockRef<'_> {
        match self {
            Self::Both(socket) => UdpSockRef::from(socket),
            #[cfg(any(target_os = "linux", target_os = "android"))]
            Self::Sending(socket) => UdpSockRef::from(socket.get_ref()),
        }
    }

    /// Returns another handle of the socket.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(super) fn handle(&self) -> io::Result<std::os::fd::OwnedFd> {
        use std::os::fd::AsFd as _;

        match self {
            Self::Both(socket) => socket.as_fd().try_clone_to_owned(),
            Self::Sending(socket) => socket.as_fd().try_clone_to_owned(),
        }
    }

    /// Returns ready when datagrams may be waiting.
    pub(super) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
        match self {
            Self::Both(socket) => socket.poll_recv_ready(cx).map(|_| ()),
            #[cfg(any(target_os = "linux", target_os = "android"))]
            Self::Sending(_) => Poll::Pending,
        }
    }

    /// Returns ready when there may be room to send.
    pub(super) fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<()> {
        match self {
            Self::Both(socket) => socket.poll_send_ready(cx).map(|_| ()),
            #[cfg(any(target_os = "linux", target_os = "android"))]
            Self::Sending(socket) => socket.poll_write_ready(cx).map(|_| ()),
        }
    }

    /// Calls the system, unless it is known that it would refuse; remembers if it does.
    pub(super) fn try_io<R>(
        &self,
        interest: Interest,
        call: impl FnOnce() -> io::Result<R>,
    ) -> io::Result<R> {
        match self {
            Self::Both(socket) => socket.try_io(interest, call),
            #[cfg(any(target_os = "linux", target_os = "android"))]
            Self::Sending(socket) => socket.try_io(interest, |_| call()),
        }
    }
}

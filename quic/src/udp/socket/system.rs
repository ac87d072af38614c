//! A UDP socket of the operating system.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    task::{Context, Poll},
};

use quinn_udp::{UdpSockRef, UdpSocketState};
use tokio::io::Interest;

#[cfg(any(target_os = "linux", target_os = "android"))]
use crate::udp::{message, registered::Awaited, reports};
use crate::{
    errors::EndpointError,
    udp::{
        Buffers, Handle, Options, Report, Watched, codepoint,
        offload::Offload,
        registered::Registered,
        setup::{bind, control, steer},
    },
};
use hybriq_proto::{endpoint::Transmit, owners::cids::Steering, wire::udp::canonical};

/// True on systems whose readiness is edge-triggered. There, a batch that is not full has emptied
/// the socket, and telling the runtime so saves a system call.
const EDGE_TRIGGERED: bool = cfg!(any(target_os = "linux", target_os = "android"));

/// A UDP socket. Its methods take and return plain IPv4 addresses, even on a dual-stack socket.
pub(crate) struct Socket {
    io: Registered,
    state: UdpSocketState,
    local_address: SocketAddr,
    gso: bool,
    offload: Offload,
    #[cfg(any(target_os = "linux", target_os = "android"))]
    reports: Option<Awaited>,
}

/// A socket that is bound but not yet registered with a runtime.
pub(crate) struct Opened {
    io: socket2::Socket,
    state: UdpSocketState,
    local_address: SocketAddr,
    gso: bool,
}

impl Opened {
    /// Opens and binds a socket. `[::]` receives IPv4 as well, and means `0.0.0.0` on machines
    /// without IPv6.
    pub(crate) fn bind(address: SocketAddr, options: Options) -> Result<Self, EndpointError> {
        let open = || {
            let io = bind::open(address, options.sharing)?;
            let opened = Self::prepare(io, options)?;
            // The system caps both at its own limits; a refusal does no harm.
            let (state, size) = (&opened.state, options.buffer_size);
            let _ = state.set_recv_buffer_size(UdpSockRef::from(&opened.io), size);
            let _ = state.set_send_buffer_size(UdpSockRef::from(&opened.io), size);
            Ok(opened)
        };
        open().map_err(|error| bind::explain(address, error))
    }

    /// Takes a socket that was opened and bound elsewhere. Its buffers stay as they are.
    pub(crate) fn adopt(
        socket: std::net::UdpSocket,
        options: Options,
    ) -> Result<Self, EndpointError> {
        let address = socket.local_addr().map_err(EndpointError::Address)?;
        Self::prepare(socket.into(), options).map_err(|error| bind::explain(address, error))
    }

    /// Returns true if both are handles of one socket, on systems that can tell.
    pub(crate) fn is_clone_of(&self, other: &Self) -> bool {
        #[cfg(target_os = "linux")]
        return match (self.io.cookie(), other.io.cookie()) {
            (Ok(own), Ok(other)) => own == other,
            _ => false,
        };
        #[cfg(not(target_os = "linux"))]
        {
            let _ = other;
            false
        }
    }

    fn prepare(io: socket2::Socket, options: Options) -> io::Result<Self> {
        io.set_nonblocking(true)?;
        let state = UdpSocketState::new(UdpSockRef::from(&io))?;
        control::without_timestamps(&io)?;
        let local_address = io.local_addr()?.as_socket().ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidInput, "this is not a UDP socket")
        })?;
        Ok(Self {
            io,
            state,
            local_address,
            gso: options.gso,
        })
    }

    /// Returns the address that the socket is bound to.
    pub(crate) fn local_address(&self) -> SocketAddr {
        canonical(self.local_address)
    }

    /// Lets the system choose among the sockets that share this address by connection ids. Returns
    /// false if it cannot.
    pub(crate) fn steer(&self, steering: Steering, workers: u8) -> bool {
        control::steer(&self.io, &steer::program(steering, workers))
    }
}

impl Socket {
    /// Opens and binds a socket on the current runtime.
    pub(crate) fn bind(address: SocketAddr, options: Options) -> Result<Self, EndpointError> {
        Self::register(Opened::bind(address, options)?)
    }

    /// Registers a socket with the current runtime.
    pub(crate) fn register(opened: Opened) -> Result<Self, EndpointError> {
        let address = opened.local_address;
        let io =
            Registered::both(opened.io.into()).map_err(|error| bind::explain(address, error))?;
        Ok(Self {
            io,
            state: opened.state,
            local_address: opened.local_address,
            gso: opened.gso,
            offload: Offload::default(),
            #[cfg(any(target_os = "linux", target_os = "android"))]
            reports: None,
        })
    }

    /// Returns the address that the socket is bound to.
    pub(crate) fn local_address(&self) -> SocketAddr {
        canonical(self.local_address)
    }

    /// Returns another handle of the socket, for another process.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(crate) fn handle(&self) -> io::Result<Handle> {
        self.io.handle()
    }

    /// Sets which events the runtime watches the socket for.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(crate) fn watch(&mut self, for_what: Watched) -> io::Result<()> {
        let other = self.handle()?.into();
        self.io = match for_what {
            Watched::Both => Registered::both(other)?,
            Watched::Sending => Registered::sending(other)?,
        };
        Ok(())
    }

    /// Fails: other systems cannot hand sockets over.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub(crate) fn handle(&self) -> io::Result<Handle> {
        let _ = &self.io;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Does nothing: other systems cannot hand sockets over.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    #[expect(
        clippy::unnecessary_wraps,
        clippy::unused_self,
        reason = "it can fail on Linux"
    )]
    pub(crate) fn watch(&mut self, _: Watched) -> io::Result<()> {
        Ok(())
    }

    /// Returns the number of datagrams that one call may send.
    pub(crate) fn max_datagrams(&self) -> usize {
        if self.gso && self.offload.is_on() {
            self.state.max_gso_segments().max(1)
        } else {
            1
        }
    }

    /// Returns ready when datagrams may be waiting.
    pub(crate) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.io.poll_readable(cx)
    }

    /// Returns ready when there may be room to send.
    pub(crate) fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.io.poll_writable(cx)
    }

    /// Returns true if [`Socket::poll_writable`] can tell that there is room again. It cannot if the
    /// system had no file descriptor left when the socket was full.
    pub(crate) fn is_watched_for_room(&self) -> bool {
        self.io.is_watched_for_room()
    }

    /// Receives a batch and returns the number of messages, or an error of kind `WouldBlock` if none
    /// waits.
    pub(crate) fn receive(&self, buffers: &mut Buffers) -> io::Result<usize> {
        let mut received = 0;
        let result = self.io.try_io(Interest::READABLE, || {
            received = buffers
                .fill(|messages, meta| self.state.recv(self.io.reference(), messages, meta))?;
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

    /// Sends one datagram, or several of one size. Returns an error of kind `WouldBlock` if there
    /// is no room. No error changes how other datagrams are sent.
    pub(crate) fn send(&self, transmit: &Transmit, contents: &[u8]) -> io::Result<()> {
        let transmit = quinn_udp::Transmit {
            destination: self.mapped(transmit.peer),
            ecn: transmit.ecn.map(codepoint),
            contents,
            segment_size: transmit.segment_size,
            src_ip: transmit.local.ip.map(|ip| self.mapped_ip(ip)),
        };
        self.io
            .try_io(Interest::WRITABLE, || self.try_send(&transmit))?;
        self.offload.on_sent(transmit.segment_size.is_some());
        Ok(())
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn try_send(&self, transmit: &quinn_udp::Transmit<'_>) -> io::Result<()> {
        self.io.with_reference(|socket| {
            let sent = message::send(socket, transmit);
            let is_foreign = |error: &io::Error| error.kind() != io::ErrorKind::WouldBlock;
            if self.reports.is_some() && sent.as_ref().is_err_and(is_foreign) {
                // The error may be a report about another datagram, which is delivered only once.
                return message::send(socket, transmit);
            }
            sent
        })
    }

    /// Sets whether the system keeps reports about datagrams that are sent.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(crate) fn keep_reports(&mut self, keep: bool) {
        if self.reports.is_some() == keep {
            return;
        }
        let is_v4 = self.local_address.is_ipv4();
        let set = self
            .io
            .with_reference(|socket| reports::keep(socket, is_v4, keep));
        if !keep {
            while self.take_report().is_some() {}
        }
        let keeps = keep && set.is_ok();
        self.reports = keeps.then(|| self.io.next_report());
    }

    /// Takes the next report about a datagram that was sent.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(crate) fn take_report(&self) -> Option<Report> {
        self.io.with_reference(reports::next)
    }

    /// Returns ready when there may be reports.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(crate) fn poll_reports(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(reports) = &mut self.reports else {
            return Poll::Pending;
        };
        std::task::ready!(reports.as_mut().poll(cx));
        self.reports = Some(self.io.next_report());
        Poll::Ready(())
    }

    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub(crate) fn keep_reports(&mut self, _: bool) {}

    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    #[expect(clippy::unused_self, reason = "sockets of Linux have reports")]
    pub(crate) const fn take_report(&self) -> Option<Report> {
        None
    }

    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub(crate) fn poll_reports(&mut self, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }

    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    fn try_send(&self, transmit: &quinn_udp::Transmit<'_>) -> io::Result<()> {
        self.state.try_send(self.io.reference(), transmit)
    }

    /// Notes that a datagram of a train was sent on its own, after the system had refused the
    /// train.
    pub(crate) fn on_taken_apart(&self, peer: SocketAddr) {
        self.offload.on_taken_apart(peer.ip());
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

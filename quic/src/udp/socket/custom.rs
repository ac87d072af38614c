//! Sockets of the application.

use std::{
    io::{self, IoSliceMut},
    net::{IpAddr, SocketAddr},
    task::{Context, Poll},
};

use hybriq_proto::{endpoint::Transmit, wire::udp::Ecn};
use quinn_udp::RecvMeta;

use crate::udp::codepoint;

/// A socket for datagrams that is not the operating system's: a tunnel, a network stack in user space, or a simulated
/// network. [`EndpointBuilder::bind_custom`](crate::EndpointBuilder::bind_custom) takes it.
///
/// Its methods are called by one worker, which never blocks. Like a socket of UDP it may lose, repeat and reorder
/// datagrams, and it must keep their boundaries.
pub trait DatagramSocket: Send + Sync + 'static {
    /// Returns the address of this end.
    fn local_address(&self) -> SocketAddr;

    /// Returns ready when datagrams may be waiting. Otherwise the task is woken once there may be one; only the task of
    /// the last call counts.
    fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()>;

    /// Receives one datagram into the buffer, which has room for 65,535 bytes.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if none waits. The endpoint continues after other errors, and ends
    /// after ten seconds with nothing but errors.
    fn receive(&self, buffer: &mut [u8]) -> io::Result<Received>;

    /// Returns ready when there may be room to send, after [`send`](Self::send) had none. By default there always is.
    fn poll_writable(&self, _: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }

    /// Sends one datagram.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if there is no room. After other errors the datagram counts as lost.
    fn send(&self, datagram: &Outgoing<'_>) -> io::Result<()>;
}

/// A datagram that a [`DatagramSocket`] received.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Received {
    /// Its bytes, at the beginning of the buffer.
    pub len: usize,
    /// Address of the peer.
    pub peer: SocketAddr,
    /// Local IP address that it was sent to, if it is known.
    pub local: Option<IpAddr>,
    /// Its ECN mark, if it has one (RFC 3168 §5).
    pub ecn: Option<Ecn>,
}

impl Received {
    /// Describes a datagram without an ECN mark, to an address that is not known.
    pub const fn new(len: usize, peer: SocketAddr) -> Self {
        Self {
            len,
            peer,
            local: None,
            ecn: None,
        }
    }
}

/// A datagram for a [`DatagramSocket`] to send.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Outgoing<'a> {
    /// Its bytes.
    pub contents: &'a [u8],
    /// Address of the peer.
    pub peer: SocketAddr,
    /// Local IP address to send it from, if there is a choice.
    pub local: Option<IpAddr>,
    /// Its ECN mark, if it has one.
    pub ecn: Option<Ecn>,
}

impl<'a> Outgoing<'a> {
    pub(super) fn new(transmit: &Transmit, contents: &'a [u8]) -> Self {
        Self {
            contents,
            peer: transmit.peer,
            local: transmit.local.ip,
            ecn: transmit.ecn,
        }
    }
}

/// Receives a batch, one datagram for each message.
pub(super) fn receive(
    socket: &dyn DatagramSocket,
    messages: &mut [IoSliceMut<'_>],
    meta: &mut [RecvMeta],
) -> io::Result<usize> {
    let mut count = 0;
    for (message, meta) in messages.iter_mut().zip(meta) {
        let received = match socket.receive(message) {
            Ok(received) => received,
            // The error comes again, or has passed.
            Err(_) if count > 0 => break,
            Err(error) => return Err(error),
        };
        *meta = RecvMeta::default();
        meta.addr = received.peer;
        meta.len = received.len;
        meta.stride = received.len;
        meta.ecn = received.ecn.map(codepoint);
        meta.dst_ip = received.local;
        count += 1;
    }
    Ok(count)
}

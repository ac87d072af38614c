//! UDP sockets that move trains of datagrams in one call (GSO, GRO).

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::task::{Context, Poll, ready};

use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSocketState};
use tokio::io::Interest;
use tokio::net::UdpSocket;

/// Maximum number of bytes of a train, received or sent.
const LONGEST: usize = 65_535;
/// Maximum number of bytes that the system takes in one call.
const SENT: usize = 65_000;

/// A UDP socket.
pub(super) struct Socket {
    io: UdpSocket,
    state: UdpSocketState,
    address: SocketAddr,
}

impl Socket {
    pub(super) fn new(socket: std::net::UdpSocket) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self {
            state: UdpSocketState::new((&socket).into())?,
            address: socket.local_addr()?,
            io: UdpSocket::from_std(socket)?,
        })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sends a train; [`io::ErrorKind::WouldBlock`] if there is no room for it.
    pub(super) fn send(&self, train: &Train, bytes: &[u8]) -> io::Result<()> {
        let transmit = Transmit {
            destination: train.to,
            ecn: None,
            contents: bytes,
            segment_size: Some(train.size),
            src_ip: None,
        };
        let send = || self.state.try_send((&self.io).into(), &transmit);
        self.io.try_io(Interest::WRITABLE, send)
    }

    /// Sends a train once there is room for it, and ignores other errors.
    pub(super) fn poll_send(&self, train: &Train, bytes: &[u8], cx: &mut Context<'_>) -> Poll<()> {
        loop {
            match self.send(train, bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let _ = ready!(self.io.poll_send_ready(cx));
                }
                _ => return Poll::Ready(()),
            }
        }
    }

    /// Sends a datagram of its own, if there is room for it.
    pub(super) fn try_send_to(&self, datagram: &[u8], to: SocketAddr) -> io::Result<usize> {
        self.io.try_send_to(datagram, to)
    }

    /// Receives a batch, and returns the number of its trains.
    pub(super) fn poll_receive(
        &self,
        inbox: &mut Inbox,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.io.poll_recv_ready(cx))?;
            let receive = || self.receive(inbox);
            match self.io.try_io(Interest::READABLE, receive) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                received => return Poll::Ready(received),
            }
        }
    }

    /// Does the same before the runtime knows that there is something to read.
    pub(super) fn receive(&self, inbox: &mut Inbox) -> io::Result<usize> {
        let mut rest = inbox.bytes.chunks_exact_mut(LONGEST).map(IoSliceMut::new);
        let mut slices: [IoSliceMut<'_>; BATCH_SIZE] =
            std::array::from_fn(|_| rest.next().unwrap_or(IoSliceMut::new(&mut [])));
        self.state
            .recv((&self.io).into(), &mut slices, &mut inbox.meta)
    }

    /// Returns the number of datagrams that one call may send.
    pub(super) fn longest_train(&self) -> usize {
        self.state.max_gso_segments().max(1)
    }
}

/// Memory for a batch.
pub(super) struct Inbox {
    bytes: Vec<u8>,
    meta: [RecvMeta; BATCH_SIZE],
}

impl Inbox {
    pub(super) fn new() -> Self {
        Self {
            bytes: vec![0; BATCH_SIZE * LONGEST],
            meta: [RecvMeta::default(); BATCH_SIZE],
        }
    }

    /// Returns the datagrams of a batch of `count` trains, each with its sender.
    pub(super) fn datagrams(
        &mut self,
        count: usize,
    ) -> impl Iterator<Item = (&mut [u8], SocketAddr)> {
        let trains = self.bytes.chunks_exact_mut(LONGEST).zip(&self.meta);
        trains.take(count).flat_map(|(bytes, meta)| {
            let bytes = bytes.split_at_mut(meta.len.min(LONGEST)).0;
            let datagrams = bytes.chunks_mut(meta.stride.max(1));
            datagrams.map(move |datagram| (datagram, meta.addr))
        })
    }
}

/// Datagrams of one size that leave together; the last may be shorter.
#[derive(Clone, Copy)]
pub(super) struct Train {
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    /// Length of each datagram.
    size: usize,
    /// Length of all.
    pub(super) len: usize,
}

impl Train {
    pub(super) fn of(len: usize, info: &quiche::SendInfo) -> Self {
        let (from, to) = (info.from, info.to);
        Self {
            from,
            to,
            size: len,
            len,
        }
    }

    /// Appends a datagram; returns false if it cannot join.
    pub(super) fn push(&mut self, len: usize, info: &quiche::SendInfo, most: usize) -> bool {
        let joins = (self.from, self.to) == (info.from, info.to)
            && self.len.is_multiple_of(self.size)
            && len <= self.size
            && self.len / self.size < most
            && self.len + len <= SENT;
        if joins {
            self.len += len;
        }
        joins
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::Train;

    #[test]
    fn a_train_has_datagrams_of_one_length_and_perhaps_a_shorter_last_one() {
        let info = |port: u16| quiche::SendInfo {
            from: ([127, 0, 0, 1], 1).into(),
            to: ([127, 0, 0, 1], port).into(),
            at: Instant::now(),
        };
        let mut train = Train::of(1200, &info(2));
        assert!(!train.push(1201, &info(2), 64), "a longer one");
        assert!(!train.push(1200, &info(3), 64), "one to another peer");
        assert!(!train.push(1200, &info(2), 1), "more than the system takes");
        assert!(train.push(1200, &info(2), 64));
        assert!(train.push(700, &info(2), 64));
        assert!(!train.push(700, &info(2), 64), "one after the last");
        assert_eq!(train.len, 3100);
        let mut train = Train::of(60_000, &info(2));
        assert!(!train.push(60_000, &info(2), 64), "more than a call takes");
    }
}

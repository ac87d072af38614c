//! The UDP sockets of the relay, through `quinn-udp`: batches, GRO, GSO and ECN.

use std::io::{self, ErrorKind, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use quinn_udp::{BATCH_SIZE, EcnCodepoint, RecvMeta, Transmit, UdpSockRef, UdpSocketState};

use crate::os::{self, Unsaid};

/// Asked of the system, which caps it: a burst of a fast link has to fit.
const SYSTEM_BUFFER: usize = 8 << 20;

/// The longest message: one datagram, or several that the system joined (GRO).
const MESSAGE: usize = 64 << 10;

/// Datagrams older than this when they are read are taken for younger: a wall clock that was set
/// must not shorten the delay much.
const OLDEST: Duration = Duration::from_millis(50);

pub(crate) struct Socket {
    io: UdpSocket,
    state: UdpSocketState,
}

impl Socket {
    pub(crate) fn bind(address: SocketAddr) -> io::Result<Self> {
        // Bound to one address, it need not be told which one was meant.
        let unsaid = if address.ip().is_unspecified() {
            Unsaid::Time
        } else {
            Unsaid::Destination
        };
        Self::bind_with(address, unsaid)
    }

    /// `quinn-udp` has no room for all that it asks the kernel to say about joined datagrams
    /// (GRO): of destination, time and ECN mark, the mark would be cut off.
    fn bind_with(address: SocketAddr, unsaid: Unsaid) -> io::Result<Self> {
        let io = UdpSocket::bind(address)?;
        let state = UdpSocketState::new(UdpSockRef::from(&io))?;
        os::leave_unsaid(&io, unsaid)?;
        let _ = state.set_recv_buffer_size(UdpSockRef::from(&io), SYSTEM_BUFFER);
        let _ = state.set_send_buffer_size(UdpSockRef::from(&io), SYSTEM_BUFFER);
        Ok(Self { io, state })
    }

    /// On a free port from which `server` can be reached.
    pub(crate) fn towards(server: SocketAddr) -> io::Result<Self> {
        let ip: IpAddr = match server.ip() {
            ip if ip.is_loopback() => ip,
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        Self::bind_with(SocketAddr::new(ip, 0), Unsaid::Destination)
    }

    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.io.local_addr()
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.io.as_fd()
    }

    /// Datagrams the system dropped here because nobody read them in time.
    pub(crate) fn unseen(&self) -> u64 {
        os::socket_drops(&self.io)
    }

    /// Datagrams that one call may send.
    pub(crate) fn max_train(&self) -> usize {
        self.state.max_gso_segments().max(1)
    }

    pub(crate) fn send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        self.state.try_send(UdpSockRef::from(&self.io), transmit)
    }

    /// Receives a batch. `None`: there is none.
    pub(crate) fn receive<'a>(&self, buffers: &'a mut Buffers) -> io::Result<Option<Batch<'a>>> {
        let mut slices = buffers
            .memory
            .chunks_exact_mut(MESSAGE)
            .map(IoSliceMut::new);
        let mut slices: [IoSliceMut<'_>; BATCH_SIZE] =
            std::array::from_fn(|_| slices.next().unwrap_or(IoSliceMut::new(&mut [])));
        loop {
            match self
                .state
                .recv(UdpSockRef::from(&self.io), &mut slices, &mut buffers.meta)
            {
                Ok(count) => return Ok(Some(Batch { buffers, count })),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                // What a datagram met that was sent before, as a server that is gone.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Memory into which batches are received; allocated once. The default has no room.
#[derive(Default)]
pub(crate) struct Buffers {
    memory: Vec<u8>,
    meta: Vec<RecvMeta>,
}

impl Buffers {
    pub(crate) fn new() -> Self {
        Self {
            memory: vec![0; BATCH_SIZE * MESSAGE],
            meta: vec![RecvMeta::default(); BATCH_SIZE],
        }
    }
}

/// Messages that one call received.
pub(crate) struct Batch<'a> {
    buffers: &'a Buffers,
    count: usize,
}

/// Datagrams of one sender that came together.
pub(crate) struct Message<'a> {
    pub(crate) from: SocketAddr,
    pub(crate) to: Option<IpAddr>,
    pub(crate) ecn: Option<EcnCodepoint>,
    /// Time since they came.
    pub(crate) age: Duration,
    bytes: &'a [u8],
    stride: usize,
}

impl Batch<'_> {
    /// Returns true if there may be more.
    pub(crate) fn is_full(&self) -> bool {
        self.count == BATCH_SIZE
    }

    pub(crate) fn messages(&self) -> impl Iterator<Item = Message<'_>> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.unwrap_or_default();
        self.buffers
            .memory
            .chunks_exact(MESSAGE)
            .zip(&self.buffers.meta)
            .take(self.count)
            .map(move |(memory, meta)| Message {
                from: meta.addr,
                to: meta.dst_ip,
                ecn: meta.ecn,
                age: now
                    .saturating_sub(meta.timestamp.unwrap_or(now))
                    .min(OLDEST),
                bytes: memory.split_at(meta.len.min(MESSAGE)).0,
                stride: meta.stride.max(1),
            })
    }
}

impl Message<'_> {
    /// One by one; an empty datagram is one, too.
    pub(crate) fn datagrams(&self) -> impl Iterator<Item = &[u8]> {
        let empty = self.bytes.is_empty().then_some(self.bytes);
        self.bytes.chunks(self.stride).chain(empty)
    }
}

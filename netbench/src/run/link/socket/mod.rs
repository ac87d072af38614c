//! The UDP sockets of the relay, through `quinn-udp`: batches, GRO, GSO and ECN.

pub(super) mod train;

use std::io::{self, ErrorKind, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use quinn_udp::{BATCH_SIZE, EcnCodepoint, RecvMeta, Transmit, UdpSockRef, UdpSocketState};

use crate::system::os;
use crate::system::os::Unsaid;

/// Socket buffer requested from the system, which caps it: a burst of a fast link has to fit.
const SYSTEM_BUFFER: usize = 8 << 20;

/// Maximum length of a message: one datagram, or several joined by the system (GRO).
const MESSAGE: usize = 64 << 10;

/// Maximum age of a datagram when it is read. Older ones are taken for younger, because a change of
/// the wall clock must not shorten the delay much.
const OLDEST: Duration = Duration::from_millis(50);

pub(crate) struct Socket {
    io: UdpSocket,
    state: UdpSocketState,
}

impl Socket {
    pub(crate) fn bind(address: SocketAddr) -> io::Result<Self> {
        // A socket bound to one address need not be told the destination.
        let unsaid = if address.ip().is_unspecified() {
            Unsaid::Time
        } else {
            Unsaid::Destination
        };
        Self::bind_with(address, unsaid)
    }

    /// Binds a socket. With GRO, `quinn-udp` has no room for everything that it asks the kernel to
    /// report: of destination, time and ECN mark, the mark would be cut off.
    fn bind_with(address: SocketAddr, unsaid: Unsaid) -> io::Result<Self> {
        let io = UdpSocket::bind(address)?;
        let state = UdpSocketState::new(UdpSockRef::from(&io))?;
        os::leave_unsaid(&io, unsaid)?;
        let _ = state.set_recv_buffer_size(UdpSockRef::from(&io), SYSTEM_BUFFER);
        let _ = state.set_send_buffer_size(UdpSockRef::from(&io), SYSTEM_BUFFER);
        Ok(Self { io, state })
    }

    /// Binds a free port from which `server` can be reached.
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

    /// Returns the number of datagrams that the system dropped because nobody read them in time.
    pub(crate) fn unseen(&self) -> u64 {
        os::socket_drops(&self.io)
    }

    /// Returns the number of datagrams that one call may send.
    pub(crate) fn max_train(&self) -> usize {
        self.state.max_gso_segments().max(1)
    }

    pub(crate) fn send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        self.state.try_send(UdpSockRef::from(&self.io), transmit)
    }

    /// Receives a batch; `None` if there is none.
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
                // Error about an earlier datagram, for example because the server is gone.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Memory for received batches, allocated once. The default has none.
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

/// Messages received by one call.
pub(crate) struct Batch<'a> {
    buffers: &'a Buffers,
    count: usize,
}

/// Datagrams of one sender that arrived together.
pub(crate) struct Message<'a> {
    pub(crate) from: SocketAddr,
    pub(crate) to: Option<IpAddr>,
    pub(crate) ecn: Option<EcnCodepoint>,
    /// Time since their arrival.
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
    /// Returns the datagrams one by one; an empty one counts too.
    pub(crate) fn datagrams(&self) -> impl Iterator<Item = &[u8]> {
        let empty = self.bytes.is_empty().then_some(self.bytes);
        self.bytes.chunks(self.stride).chain(empty)
    }
}
